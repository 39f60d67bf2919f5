"""The run levels of a release as a picture, and how far the cluster is. Pure.

The SVG has no styles of its own: the console's style sheet colours its classes. A column is a stage
of the update; it starts when the column before is done.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from markupsafe import Markup

from quarterdeck.payload.graph import Graph, PayloadNode, level_label

ROWS = 12
"""The most boxes in a column; more continue in the next column."""
WIDTH, HEIGHT, GAP, ARROW, TOP = 176, 40, 10, 36, 26
LABEL = 24
SIGNS = {"done": "✓", "now": "↻", "trouble": "✕", "later": "·"}
WORDS = {"done": "done", "now": "now", "trouble": "waited for", "later": "later"}


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A component at one run level."""

    node: PayloadNode
    state: str
    """`done`, `now`, `trouble` or `later`."""


def stages_with_state(
    graph: Graph, done: int, total: int, waiting_on: Iterable[str]
) -> list[list[Box]]:
    """The stages, with the state of each component.

    ClusterVersion reports how many manifests are done, and stages are applied in their order: that
    tells which stage is at work. A component that is waited for is marked.
    """
    waited = {name.rpartition("/")[2].rpartition(" ")[2] for name in waiting_on}
    before, found = 0, []
    for stage in graph.stages():
        size = sum(len(node.manifests) for node in stage)
        if done >= total or before + size <= done:
            state = "done"
        elif before <= done:
            state = "now"
        else:
            state = "later"
        found.append([_box(node, state, waited) for node in stage])
        before += size
    return found


def _box(node: PayloadNode, state: str, waited: set[str]) -> Box:
    names = {manifest.identity.name for manifest in node.manifests}
    trouble = state == "now" and bool(names & waited or node.component in waited)
    return Box(node=node, state="trouble" if trouble else state)


def drawn(stages: Sequence[Sequence[Box]]) -> Markup:
    """The picture."""
    columns = list(_columns(stages))
    pitch = WIDTH + ARROW
    rows = max((len(boxes) for _, _, boxes in columns), default=0)
    width = max(1, len(columns)) * pitch - ARROW + 2
    height = TOP + rows * (HEIGHT + GAP)
    parts = [
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{0}" height="{1}" '
            'viewBox="0 0 {0} {1}" aria-label="{2}">'
        ).format(width, height, in_words(stages))
    ]
    for number, (title, first, boxes) in enumerate(columns):
        x = number * pitch + 1
        if number and first:
            parts.append(_arrow(x - ARROW + 4, x - 4))
        parts.append(Markup('<text class="level" x="{}" y="14">{}</text>').format(x, title))
        for row, box in enumerate(boxes):
            parts.append(_drawn(box, x, TOP + row * (HEIGHT + GAP)))
    return Markup("").join([*parts, Markup("</svg>")])


def in_words(stages: Sequence[Sequence[Box]]) -> str:
    """The picture for those who do not see it."""
    states = [box.state for stage in stages for box in stage]
    counts = ", ".join(
        f"{states.count(state)} {word}" for state, word in WORDS.items() if state in states
    )
    return f"Run levels of the release: {len(states)} components in {len(stages)} stages; {counts}"


def _columns(stages: Sequence[Sequence[Box]]) -> Iterator[tuple[str, bool, Sequence[Box]]]:
    for stage in stages:
        for start in range(0, len(stage), ROWS):
            level = stage[0].node.run_level
            title = "last" if level is None else f"run level {level_label(level)}"
            yield (title if start == 0 else ""), start == 0, stage[start : start + ROWS]


def _drawn(box: Box, x: int, y: int) -> Markup:
    node = box.node
    name = node.component or "other files"
    label = name if len(name) <= LABEL else f"{name[: LABEL - 1]}…"
    count = len(node.manifests)
    files = "\n".join(f"{one.file}: {one.identity}" for one in node.manifests[:40])
    return Markup(
        '<g class="{state}"><title>{files}</title>'
        '<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
        '<text class="label" x="{text}" y="{first}">{label}</text>'
        '<text class="small" x="{text}" y="{second}">{sign} {word} · {count}</text></g>'
    ).format(
        state=box.state,
        files=files,
        x=x,
        y=y,
        width=WIDTH,
        height=HEIGHT,
        text=x + 10,
        first=y + 17,
        second=y + 32,
        label=label,
        sign=SIGNS[box.state],
        word=WORDS[box.state],
        count="1 manifest" if count == 1 else f"{count} manifests",
    )


def _arrow(start: int, end: int) -> Markup:
    y = TOP + HEIGHT // 2
    return Markup('<path d="M{} {}H{}"/><path class="head" d="M{} {}l-8 -4v8z"/>').format(
        start, y, end - 6, end, y
    )
