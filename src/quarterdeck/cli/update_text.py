"""How `quarterdeck update` shows a cluster's version, its update, and what to do next."""

import os
import shutil
from collections.abc import Iterator
from typing import IO

import click

from quarterdeck.cli.cluster import this_program
from quarterdeck.cli.output import table
from quarterdeck.operators.cluster_version.version.update_view import ListedUpdate, UpdateView
from quarterdeck.terminal import cut, visible, width

FOLLOW_AGAIN = "follow it with: quarterdeck update --watch"
BAR = 30
"""The width of the progress bar, in columns."""


def as_text(view: UpdateView) -> str:
    """The version, what is under way or wrong, the possible updates, and what to do next."""
    return "\n".join([as_sentence(view), *_possible(view), *_next_steps(view)])


def as_sentence(view: UpdateView) -> str:
    """The state of the cluster's version in a few words, and what is wrong."""
    lines = [_state(view)]
    if view.state == "updating" and (waiting := _waiting_on(view)):
        lines.append(f"it waits for {visible(waiting)}")
    if view.failing:
        lines += ["", "what fails:", *_indented(view.failing)]
    if view.retrieving:
        lines += ["", f"{view.requested or view.desired} is being retrieved:"]
        lines += _indented(view.retrieving)
        lines.append(FOLLOW_AGAIN)
    if view.refused and view.refused != view.failing:
        lines += ["", f"{view.requested or view.desired} is not accepted:"]
        lines += _indented(view.refused)
        if view.requested and view.requested != view.desired:
            lines.append("the request stays, and the update begins when the reason is gone; to")
            lines.append(f"withdraw it: {this_program()} update --cancel")
    if view.turn_back_to and view.failing:
        back = f"{this_program()} update {view.turn_back_to} --watch"
        lines += ["", f"to turn the update back: {back}"]
    return "\n".join(lines)


def as_brief(view: UpdateView) -> str:
    """The state of the cluster's version, and how to follow an update that goes on."""
    return "\n".join([as_sentence(view), *_to_follow(view)])


def _waiting_on(view: UpdateView) -> str:
    """What an update waits for, by the operator's message; empty if it does not say."""
    return view.message.partition(", waiting on ")[2]


def _state(view: UpdateView) -> str:
    match view.state:
        case "unknown":
            return "no release has been applied yet"
        case "complete":
            return f"the cluster runs {view.desired}"
        case "failing" if view.version == view.desired:
            return f"the cluster runs {view.desired}, and something of it fails"
        case _:
            come = f" from {view.version}" if view.version else ""
            return f"updating{come} to {view.desired}{_share(view)}"


def _share(view: UpdateView) -> str:
    if view.done is None or not view.total:
        return ""
    return f": {view.done} of {view.total} manifests are done"


def _possible(view: UpdateView) -> Iterator[str]:
    if _is_under_way(view) and not view.updates and not view.not_retrieved:
        return  # That there is no other one is no help now.
    yield ""
    if view.not_retrieved:
        yield "the update service could not be asked:"
        yield from _indented(view.not_retrieved)
    if view.updates is None:
        yield "the possible updates are not known yet"
        return
    if not view.updates:
        yield "there is no update from this release"
        return
    rows = [(each.version, _advice(each), each.image) for each in view.updates]
    yield table(("VERSION", "UPDATE", "IMAGE"), rows)
    for each in view.updates:
        for risk in each.risks if each.recommended != "True" else ():
            yield f"{each.version} has the risk {risk.name}:"
            yield from _indented(f"{risk.message} ({risk.url})")


def _advice(update: ListedUpdate) -> str:
    if update.blocked:
        return "blocked"
    return {"True": "recommended", "False": "not recommended", "Unknown": "risks unknown"}[
        update.recommended
    ]


def _next_steps(view: UpdateView) -> Iterator[str]:
    if view.blocked:
        yield ""
        yield from visible(view.blocked, lines=True).splitlines()
    open_updates = [each for each in view.updates or () if not each.blocked]
    good = next((each for each in open_updates if each.recommended == "True"), None)
    if _is_under_way(view):
        yield ""
        if view.turn_back_to and not view.failing:
            yield f"to turn it back: {this_program()} update {view.turn_back_to} --watch"
        yield from _to_follow(view)
    elif good is not None:
        yield ""
        yield f"to update: {this_program()} update {good.version} --watch"


def _is_under_way(view: UpdateView) -> bool:
    return view.state in ("updating", "failing") and view.version != view.desired


def _to_follow(view: UpdateView) -> Iterator[str]:
    if _is_under_way(view):
        yield f"to follow it: {this_program()} update --watch"


def _indented(text: str) -> Iterator[str]:
    for line in visible(text, lines=True).splitlines():
        yield f"  {line}"


class ProgressBar:
    """The progress of an update: one line that is drawn again, or a line for each change."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._redraws = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._last = ""
        self._failing = ""

    def show(self, view: UpdateView) -> None:
        """Show this state, if it differs from the last one; a fault on lines that stay."""
        if view.failing and view.failing != self._failing:
            self.end()
            self._last = ""
            click.echo(visible(as_sentence(view), lines=True), file=self._stream)
        self._failing = view.failing
        line = visible(self._line(view))
        if line == self._last:
            return
        self._last = line
        if self._redraws:
            room = shutil.get_terminal_size().columns - 1
            line = cut(line, room) if width(line) > room else line
            click.echo(f"\r\x1b[K{line}", file=self._stream, nl=False)
        else:
            click.echo(line, file=self._stream)

    def end(self) -> None:
        """Leave the last state on its line."""
        if self._redraws and self._last:
            click.echo(file=self._stream)

    def _line(self, view: UpdateView) -> str:
        text = view.retrieving or view.message or view.state
        if view.done is None or not view.total:
            return text
        if not self._redraws:
            return text
        filled = BAR * view.done // view.total
        bar = "#" * filled + "." * (BAR - filled)
        waiting = _waiting_on(view)
        after = f" waiting on {waiting}" if waiting else ""
        return f"{view.desired} [{bar}] {100 * view.done // view.total:3d}%{after}"
