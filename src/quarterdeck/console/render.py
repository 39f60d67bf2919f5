"""Renders templates; everything from the cluster is escaped."""

import hashlib
import re
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from quarterdeck.api.times import format_time, parse_time, show_duration
from quarterdeck.terminal import visible

STATIC = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_AGE = re.compile(r'(<time data-ago datetime="([^"]*)"[^>]*>)[^<]*(</time>)')
_LEFT = re.compile(r'(<time data-left datetime="([^"]*)"[^>]*>)[^<]*(</time>)')
_WAIT = re.compile(r'(<progress data-from="([^"]*)" data-until="([^"]*)" max="1000" value=")0(")')


@cache
def static(name: str) -> bytes:
    """The content of a static file."""
    return (files("quarterdeck.console") / "static" / name).read_bytes()


@cache
def static_url(name: str) -> str:
    """The address of a static file, which changes with its content: browsers keep it."""
    return f"/static/{hashlib.sha256(static(name)).hexdigest()[:12]}/{name}"


def age(moment: datetime | str | None) -> Markup:
    """The element for how long ago something was; `with_ages` and the browser fill in the age.

    The age itself is not part of it, so that a page that only got older has not changed.
    """
    found = parse_time(moment) if isinstance(moment, str) else moment
    if found is None:
        return Markup('<span class="none">&ndash;</span>')
    text = format_time(found)
    shown = text.replace("T", " ").replace("Z", " UTC")
    return Markup('<time data-ago datetime="{0}" title="{1}">{1}</time>').format(text, shown)


def left(moment: datetime) -> Markup:
    """The element for how long it is until then; `with_ages` and the browser fill that in."""
    text = format_time(moment)
    shown = text.replace("T", " ").replace("Z", " UTC")
    return Markup('<time data-left datetime="{0}" title="{1}">{1}</time>').format(text, shown)


def wait(begin: datetime, end: datetime) -> Markup:
    """The bar of a wait; `with_ages` and the browser fill in how much of it has passed."""
    return Markup(
        '<progress data-from="{}" data-until="{}" max="1000" value="0" '
        'aria-label="Time that has passed"></progress>'
    ).format(format_time(begin), format_time(end))


def clock(moment: datetime | str | None) -> Markup:
    """The element for a time of day."""
    found = parse_time(moment) if isinstance(moment, str) else moment
    if found is None:
        return Markup('<span class="none">&ndash;</span>')
    text = format_time(found)
    return Markup('<time datetime="{}" title="{}">{} UTC</time>').format(
        text, text.replace("T", " "), text[11:19]
    )


def with_ages(html: str, now: datetime) -> str:
    """The page with the ages of all its times, and what is left of its waits, as of now."""

    def past(text: str) -> float:
        moment = parse_time(text)
        return (now - moment).total_seconds() if moment else 0.0

    def age_of(match: re.Match[str]) -> str:
        return f"{match[1]}{show_age(past(match[2]))}{match[3]}"

    def left_of(match: re.Match[str]) -> str:
        return f"{match[1]}{show_left(-past(match[2]))}{match[3]}"

    def wait_of(match: re.Match[str]) -> str:
        whole = past(match[2]) - past(match[3])
        share = past(match[2]) / whole if whole > 0 else 1.0
        return f"{match[1]}{round(1000 * min(1.0, max(0.0, share)))}{match[4]}"

    return _WAIT.sub(wait_of, _LEFT.sub(left_of, _AGE.sub(age_of, html)))


def show_left(seconds: float) -> str:
    """What is left of a wait: `in 4m10s`, `now`."""
    return f"in {show_duration(seconds)}" if seconds >= 1 else "now"


def show_age(seconds: float) -> str:
    """An age in its largest unit, two for minutes below ten: `4m`, `23m`, `2h`, `3d`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m"
    if whole < 48 * 3600:
        return f"{whole // 3600}h"
    return f"{whole // 86400}d"


def hidden_row(row: Markup) -> Markup:
    """The row of a table, there but not shown: a live page needs it, if the filter changes."""
    return Markup(str(row).replace("<tr ", "<tr hidden ", 1))  # noqa: S704 rendered


def shown_text(value: Any) -> Any:
    """A text from the cluster as it can be read: what hides or turns characters is written out.

    Rendered HTML and values that are no text stay as they are.
    """
    if type(value) is not str:
        return value
    lines = [visible(part, lines=True) for part in value.replace("\r\n", "\n").split("\t")]
    return "\t".join(lines)


def exact(value: str) -> Markup:
    """A value that a form sends back: nothing of it may change."""
    return escape(value)


def environment() -> Environment:
    """The templates, and the functions that they use."""
    made = Environment(
        loader=PackageLoader("quarterdeck.console", "templates"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # The files of an installed package do not change while it runs.
        auto_reload=False,
        finalize=shown_text,
    )
    made.filters.update(
        age=age,
        clock=clock,
        left=left,
        duration=show_duration,
        hidden_row=hidden_row,
        exact=exact,
    )
    made.globals.update(wait=wait)
    made.globals.update(static_url=static_url)
    return made


def fragment(made: Environment, template: str, **values: Any) -> str:
    """A rendered fragment, without space around it."""
    return made.get_template(template).render(**values).strip()
