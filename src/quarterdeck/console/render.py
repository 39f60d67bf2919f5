"""Renders templates; everything from the cluster is escaped."""

import hashlib
import re
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from quarterdeck.api.times import format_time, parse_time, show_duration

STATIC = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_AGE = re.compile(r'(<time data-ago datetime="([^"]*)"[^>]*>)[^<]*(</time>)')


@cache
def static(name: str) -> bytes:
    """The content of a static file."""
    return (files("quarterdeck.console") / "static" / name).read_bytes()


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
    """The page with the ages of all its times as of now."""

    def filled(match: re.Match[str]) -> str:
        since = parse_time(match[2])
        past = (now - since).total_seconds() if since else 0.0
        return f"{match[1]}{show_age(past)}{match[3]}"

    return _AGE.sub(filled, html)


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


def environment() -> Environment:
    """The templates, and the functions that they use."""
    made = Environment(
        loader=PackageLoader("quarterdeck.console", "templates"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(age=age, clock=clock, duration=show_duration, hidden_row=hidden_row)
    made.globals.update(static_url=static_url)
    return made


def fragment(made: Environment, template: str, **values: Any) -> str:
    """A rendered fragment, without space around it."""
    return made.get_template(template).render(**values).strip()
