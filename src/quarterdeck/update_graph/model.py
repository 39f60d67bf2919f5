"""The update graph as a value, and its decoding from an answer that may be hostile. Pure.

    {"nodes": [{"version": "1.0.0", "payload": "registry.example.test/q@sha256:…",
                "metadata": {"url": "https://…"}}, …],
     "edges": [[0, 1], …],
     "conditionalEdges": [{"edges": [{"from": "1.0.0", "to": "1.1.0"}],
                           "risks": [{"name": …, "message": …, "url": …, "matchingRules": […]}]}]}

What is kept is what ClusterVersion's status may have: the API server refuses a status with a risk
without a name, and then no condition could be written either. So a graph is used whole or refused
whole, with the place of its fault.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

import msgspec

from quarterdeck.api.config_v1 import ConditionalUpdateRisk, Release, RiskRuleType
from quarterdeck.payload.files import printable
from quarterdeck.payload.images import is_image
from quarterdeck.versions import Version, parse_version

MAX_BYTES = 8 << 20
MAX_NODES = 5_000
MAX_EDGES = 100_000
MAX_RISKS = 200
MAX_NAME = 256
MAX_TEXT = 4096
MAX_URL = 2048
MAX_CHANNELS = 20
MAX_CHANNEL = 64
CHANNELS = "io.openshift.upgrades.graph.release.channels"


_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")
"""A host and port that the API server takes too, which knows other addresses than Python."""


class GraphInvalid(Exception):  # noqa: N818 - a property of the answer
    """An answer is no update graph; the message has the place, the value and what is expected."""


class ReleaseNode(msgspec.Struct, frozen=True, kw_only=True):
    """One release of the graph."""

    version: Version
    release: Release


class UpdateGraph(msgspec.Struct, frozen=True, kw_only=True):
    """The releases by version, and the updates between them."""

    nodes: Mapping[str, ReleaseNode]
    edges: Mapping[str, frozenset[str]]
    """By version: the versions to which it can be updated."""
    conditional: Mapping[tuple[str, str], tuple[ConditionalUpdateRisk, ...]]
    """By the two versions of an update: its known risks."""


class _Node(msgspec.Struct):
    version: str
    payload: str
    metadata: dict[str, str] | None = None


class _Edge(msgspec.Struct):
    to: str
    start: str = msgspec.field(name="from")


class _ConditionalEdges(msgspec.Struct):
    edges: list[_Edge]
    risks: list[ConditionalUpdateRisk]


class _Graph(msgspec.Struct):
    nodes: list[_Node]
    edges: list[tuple[int, int]]
    conditional_edges: list[_ConditionalEdges] | None = msgspec.field(
        name="conditionalEdges", default=None
    )


def parse_graph(data: bytes) -> UpdateGraph:
    """The graph in an answer; GraphInvalid if it is none, or larger than any real one."""
    if len(data) > MAX_BYTES:
        raise GraphInvalid(f"{len(data)} bytes, more than {MAX_BYTES}")
    try:
        raw = msgspec.json.decode(data, type=_Graph)
    except msgspec.ValidationError as error:
        raise GraphInvalid(f"not an update graph: {error}") from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise GraphInvalid(f"not JSON: {printable(str(error))[:200]}") from error
    _check_sizes(raw)
    nodes = [_node(number, node) for number, node in enumerate(raw.nodes)]
    by_version = {node.release.version: node for node in nodes}
    if len(by_version) < len(nodes):
        raise GraphInvalid("nodes: two of them have the same version")
    edges = _edges(raw.edges, nodes)
    conditional = dict(_conditional(raw.conditional_edges or (), by_version))
    _refuse_cycles([*_pairs(edges), *conditional])
    return UpdateGraph(nodes=by_version, edges=edges, conditional=conditional)


def _check_sizes(raw: _Graph) -> None:
    conditional = raw.conditional_edges or []
    edges = len(raw.edges) + sum(len(one.edges) for one in conditional)
    for what, count, limit in (("nodes", len(raw.nodes), MAX_NODES), ("edges", edges, MAX_EDGES)):
        if count > limit:
            raise GraphInvalid(f"{what}: {count} of them, more than {limit}")


def _node(number: int, node: _Node) -> ReleaseNode:
    place = f"nodes[{number}]"
    version = parse_version(node.version)
    if version is None:
        raise GraphInvalid(f"{place}.version: {node.version[:60]!r} is no semantic version")
    if not is_image(node.payload):
        raise GraphInvalid(f"{place}.payload: {node.payload[:60]!r} is no image reference")
    metadata = node.metadata or {}
    url = metadata.get("url", "")
    return ReleaseNode(
        version=version,
        release=Release(
            version=node.version,
            image=node.payload,
            url=url if _is_url(url) else None,
            channels=_channels(metadata.get(CHANNELS, "")),
        ),
    )


def _channels(text: str) -> tuple[str, ...]:
    """The channels in a text, each once after it is cut: a status has them as a set."""
    names = (printable(channel.strip())[:MAX_CHANNEL] for channel in text.split(","))
    return tuple(sorted(dict.fromkeys(filter(None, names)))[:MAX_CHANNELS])


def _edges(
    raw: Iterable[tuple[int, int]], nodes: list[ReleaseNode]
) -> Mapping[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for number, (start, to) in enumerate(raw):
        if not (0 <= start < len(nodes) and 0 <= to < len(nodes)):
            raise GraphInvalid(f"edges[{number}]: [{start}, {to}] names no node")
        found[nodes[start].release.version].add(nodes[to].release.version)
    return {version: frozenset(to) for version, to in found.items()}


def _conditional(
    raw: Iterable[_ConditionalEdges], nodes: Mapping[str, ReleaseNode]
) -> Iterator[tuple[tuple[str, str], tuple[ConditionalUpdateRisk, ...]]]:
    for number, group in enumerate(raw):
        risks = _risks(f"conditionalEdges[{number}]", group.risks)
        for edge in group.edges:
            # A service may leave out nodes for this cluster, and not the edges to them.
            if edge.start in nodes and edge.to in nodes:
                yield (edge.start, edge.to), risks


def _risks(place: str, risks: list[ConditionalUpdateRisk]) -> tuple[ConditionalUpdateRisk, ...]:
    if not 0 < len(risks) <= MAX_RISKS:
        raise GraphInvalid(f"{place}.risks: {len(risks)} of them; 1 to {MAX_RISKS} are possible")
    if len({risk.name for risk in risks}) < len(risks):
        raise GraphInvalid(f"{place}.risks: two of them have the same name")
    return tuple(_risk(f"{place}.risks[{number}]", risk) for number, risk in enumerate(risks))


def _risk(place: str, risk: ConditionalUpdateRisk) -> ConditionalUpdateRisk:
    if not risk.name or len(risk.name) > MAX_NAME or not risk.name.isprintable():
        raise GraphInvalid(f"{place}.name: {risk.name[:60]!r} is no name")
    message = _plain(risk.message[: MAX_TEXT + 1])
    if not message.strip() or len(risk.message) > MAX_TEXT:
        raise GraphInvalid(f"{place}.message: write 1 to {MAX_TEXT} characters")
    if not _is_url(risk.url):
        raise GraphInvalid(f"{place}.url: {risk.url[:60]!r} is no https address")
    known = tuple(rule for rule in risk.matching_rules if rule.type in set(RiskRuleType))
    for rule in known:
        if (rule.type == RiskRuleType.PROMQL) != (rule.promql is not None):
            raise GraphInvalid(f"{place}.matchingRules: a query belongs to the type PromQL only")
        if rule.promql is not None and len(rule.promql.promql) > MAX_TEXT:
            raise GraphInvalid(f"{place}.matchingRules: a query of more than {MAX_TEXT} characters")
    if not known:
        raise GraphInvalid(f"{place}.matchingRules: none of the type Always or PromQL")
    return msgspec.structs.replace(risk, matching_rules=known, message=message)


def _plain(text: str) -> str:
    return "\n".join(printable(line) for line in text.splitlines())


def _is_url(text: str) -> bool:
    if not text or len(text) > MAX_URL or not text.isascii() or not text.isprintable():
        return False
    if " " in text or _BAD_ESCAPE.search(text):
        return False
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    return (
        parts.scheme in ("https", "http")
        and port != 0
        and _HOST.fullmatch(parts.netloc) is not None
    )


def _pairs(edges: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, str]]:
    return ((start, to) for start, all_ in edges.items() for to in all_)


def _refuse_cycles(pairs: Iterable[tuple[str, str]]) -> None:
    """Refuse edges that lead back to where they start: updates would never end."""
    leads: defaultdict[str, list[str]] = defaultdict(list)
    incoming: defaultdict[str, int] = defaultdict(int)
    for start, to in pairs:
        leads[start].append(to)
        incoming[to] += 1
        incoming[start] += 0
    ready = [version for version, count in incoming.items() if not count]
    while ready:
        for to in leads[ready.pop()]:
            incoming[to] -= 1
            if not incoming[to]:
                ready.append(to)
    left = sorted(version for version, count in incoming.items() if count)
    if left:
        raise GraphInvalid(f"edges: a cycle, among {', '.join(left[:5])}")
