"""Draws a graph: as dot for graphviz, and as SVG, which needs no other program.

The SVG has a column for each stage and a box for each node. All nodes of a column wait for all
nodes of the column before, so there is one arrow between columns. Tooltips have the files and
objects.
"""

from collections.abc import Iterator
from html import escape

import msgspec

from quarterdeck.payload.graph import Graph, Mode, PayloadNode, level_label

_ROWS = 14
"""The most boxes in a column; more continue in the next column."""
_BOX_HEIGHT, _GAP, _ARROW, _MARGIN, _HEADER = 44, 12, 48, 24, 84
_CHARACTER = 7.6
_LONGEST_LABEL = 44
_STYLE = """
svg { background: #fff; font-family: system-ui, sans-serif; color: #1b1f24; }
text { fill: currentColor; }
.title { font-size: 17px; font-weight: 600; }
.note, .count { font-size: 12px; opacity: .65; }
.level { font-size: 13px; font-weight: 600; }
.name { font-size: 13px; }
.node { fill: #eaf2fb; stroke: #3b73af; }
.arrow { stroke: #57606a; stroke-width: 1.5; fill: none; }
.head { fill: #57606a; }
@media (prefers-color-scheme: dark) {
  svg { background: #16191d; color: #e6e9ec; }
  .node { fill: #1f3146; stroke: #6ea8e0; }
  .arrow { stroke: #98a2ad; } .head { fill: #98a2ad; }
}
"""


class _GraphColumn(msgspec.Struct, frozen=True):
    title: str
    nodes: list[PayloadNode]
    starts_stage: bool


def to_dot(graph: Graph, title: str) -> str:
    """The graph in graphviz's language, left to right."""
    lines = [
        "digraph payload {",
        "  rankdir=LR;",
        f"  label={_dot_text(title)};",
        "  node [shape=box, style=rounded];",
    ]
    for node in graph.nodes:
        label = _dot_text(f"{node.label}\n{_count(node)}")
        lines.append(f"  n{node.number} [label={label}];")
    lines += [f"  n{before} -> n{node.number};" for node in graph.nodes for before in node.after]
    return "\n".join([*lines, "}", ""])


def to_svg(graph: Graph, title: str) -> str:
    """The graph as an SVG document."""
    columns = list(_columns(graph))
    names = [_box_label(graph, node) for node in graph.nodes]
    width = max([120.0, *(len(name) * _CHARACTER + 24 for name in names)])
    pitch = width + _ARROW
    rows = max((len(column.nodes) for column in columns), default=0)
    total_width = max(2 * _MARGIN + len(columns) * pitch - _ARROW, len(title) * 11 + 2 * _MARGIN)
    total_height = _HEADER + rows * (_BOX_HEIGHT + _GAP) + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total_width:.0f}" '
        f'height="{total_height}" viewBox="0 0 {total_width:.0f} {total_height}" role="img">',
        f"<title>{_xml(title)}</title><style>{_STYLE}</style>",
        f'<text class="title" x="{_MARGIN}" y="30">{_xml(title)}</text>',
        f'<text class="note" x="{_MARGIN}" y="50">{_xml(_note(graph))}</text>',
    ]
    for index, column in enumerate(columns):
        x = _MARGIN + index * pitch
        if index and column.starts_stage:
            parts.append(_arrow(x - _ARROW + 6, x - 6))
        parts.append(f'<text class="level" x="{x:.0f}" y="74">{_xml(column.title)}</text>')
        for row, node in enumerate(column.nodes):
            y = _HEADER + row * (_BOX_HEIGHT + _GAP)
            parts += _box(node, _box_label(graph, node), x, y, width)
    return "\n".join([*parts, "</svg>", ""])


def _columns(graph: Graph) -> Iterator[_GraphColumn]:
    for stage in graph.stages():
        for start in range(0, len(stage), _ROWS):
            nodes = stage[start : start + _ROWS]
            first = start == 0
            levelled = graph.mode is Mode.UPDATING and first
            title = _level_title(nodes[0].run_level) if levelled else ""
            yield _GraphColumn(title, nodes, first)


def _box(node: PayloadNode, label: str, x: float, y: float, width: float) -> list[str]:
    return [
        f"<g><title>{_xml(_objects(node))}</title>",
        f'<rect class="node" x="{x:.0f}" y="{y}" width="{width:.0f}" height="{_BOX_HEIGHT}" '
        'rx="6"/>',
        f'<text class="name" x="{x + 12:.0f}" y="{y + 19}">{_xml(label)}</text>',
        f'<text class="count" x="{x + 12:.0f}" y="{y + 35}">{_count(node)}</text></g>',
    ]


def _arrow(start: float, end: float) -> str:
    y = _HEADER + _BOX_HEIGHT / 2
    return (
        f'<path class="arrow" d="M{start:.0f} {y:.0f}H{end - 6:.0f}"/>'
        f'<path class="head" d="M{end:.0f} {y:.0f}l-9 -5v10z"/>'
    )


def _note(graph: Graph) -> str:
    count = f"{len(graph.manifests)} manifests in {len(graph.nodes)} nodes"
    match graph.mode:
        case Mode.UPDATING:
            return f"{count}; a column starts when all of the one before is done"
        case Mode.INITIALIZING:
            return f"{count}; everything at once, except behind a Job"
        case Mode.RECONCILING:
            return f"{count}; everything at once, by a few workers"


def _box_label(graph: Graph, node: PayloadNode) -> str:
    text = node.component or "other files"
    if graph.mode is not Mode.UPDATING:
        text = f"{level_label(node.run_level)} {text}"
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


def _level_title(run_level: int | None) -> str:
    return "last" if run_level is None else f"run level {level_label(run_level)}"


def _count(node: PayloadNode) -> str:
    return "1 manifest" if len(node.manifests) == 1 else f"{len(node.manifests)} manifests"


def _objects(node: PayloadNode) -> str:
    return "\n".join(f"{manifest.file}: {manifest.identity}" for manifest in node.manifests)


def _xml(text: str) -> str:
    # Characters that XML 1.0 does not allow are dropped; names in a payload may have any.
    return escape("".join(c for c in text if c in "\t\n" or c.isprintable()), quote=False)


def _dot_text(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{quoted}"'
