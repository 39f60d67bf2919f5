"""Which updates a graph offers to a cluster, and whether their risks apply to it. Pure.

While an update is not complete, parts of several versions run. An update is possible only if the
graph has an edge from each of them. Updates to lower versions are possible and not shown.

What is shown has to fit into a status; an update that is possible and not shown can be asked for.

A risk applies if the first of its rules with a result says so. `Always` applies. `PromQL` asks the
cluster's monitoring, and we do not: such a rule has no result. A risk without any result makes the
recommendation unknown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from quarterdeck.api.conditions import Condition
from quarterdeck.api.config_v1 import (
    ConditionalUpdate,
    ConditionalUpdateRisk,
    Release,
    RiskRuleType,
)
from quarterdeck.update_graph.model import ReleaseNode, UpdateGraph
from quarterdeck.versions import parse_version

MAX_AVAILABLE = 300
MAX_AVAILABLE_BYTES = 256 << 10
"""Of a status; etcd refuses an object of more than 1.5 MiB."""
MAX_CONDITIONAL = 100
MAX_CONDITIONAL_BYTES = 256 << 10
MAX_RISKS_SHOWN = 200
"""Of one update; the API server refuses a status with more."""
RECOMMENDED = "Recommended"
MAX_MESSAGE = 16 << 10

Shown = TypeVar("Shown", Release, ConditionalUpdate)


class PossibleUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """A release with an edge from each running version, and the risks of those edges."""

    release: Release
    risks: tuple[ConditionalUpdateRisk, ...] = ()


class OfferedUpdates(msgspec.Struct, frozen=True, kw_only=True):
    """The updates of a cluster, newest first; those with known risks are kept apart."""

    available: tuple[Release, ...] = ()
    conditional: tuple[ConditionalUpdate, ...] = ()
    possible: Mapping[str, PossibleUpdate] = {}
    """By version: every update of the graph, whether it is shown or not."""

    def release(self, version: str) -> Release | None:
        """The release of this version, if it can be updated to, with risks or without."""
        found = self.possible.get(version)
        return found.release if found is not None else None

    def risks(self, version: str) -> str:
        """Why the update to this version is not recommended; empty if it is."""
        found = self.possible.get(version)
        if found is None or not found.risks:
            return ""
        return recommendation(found.risks)[2][:MAX_MESSAGE]


def offered_updates(
    graph: UpdateGraph,
    running: Sequence[str],
    now: datetime,
    before: Iterable[ConditionalUpdate] = (),
) -> OfferedUpdates:
    """The updates from these versions; conditions that stay as `before` keep their time."""
    since = {update.release.version: update.conditions for update in before}
    nodes = _targets(graph, running)
    possible = {
        node.release.version: PossibleUpdate(
            release=node.release, risks=_risks(graph, running, node.release.version)
        )
        for node in nodes
    }
    above = [possible[node.release.version] for node in nodes if _is_above(node, running)]
    plain = [one.release for one in above if not one.risks]
    # Only so many are built: their texts may be long.
    risky = [one for one in above if 0 < len(one.risks) <= MAX_RISKS_SHOWN][:MAX_CONDITIONAL]
    conditional = (
        ConditionalUpdate(
            release=one.release,
            risks=one.risks,
            conditions=(_recommended(one.risks, since.get(one.release.version, ()), now),),
        )
        for one in risky
    )
    return OfferedUpdates(
        available=tuple(_fitting(plain[:MAX_AVAILABLE], MAX_AVAILABLE_BYTES)),
        conditional=tuple(_fitting(conditional, MAX_CONDITIONAL_BYTES)),
        possible=possible,
    )


def _is_above(node: ReleaseNode, running: Sequence[str]) -> bool:
    versions = [parse_version(version) for version in running]
    return all(version is not None and version < node.version for version in versions)


def _fitting(updates: Iterable[Shown], limit: int) -> Iterator[Shown]:
    """The updates that fit into so many bytes, in their order."""
    size = 0
    for update in updates:
        more = len(msgspec.json.encode(update)) + 1
        if size + more <= limit:
            size += more
            yield update


def _targets(graph: UpdateGraph, running: Sequence[str]) -> list[ReleaseNode]:
    """The releases with an edge from each running version, newest first."""
    found: set[str] | None = None
    for version in running:
        leads = set(graph.edges.get(version, ()))
        leads |= {to for start, to in graph.conditional if start == version}
        found = leads if found is None else found & leads
    nodes = [graph.nodes[version] for version in found or ()]
    return sorted(nodes, key=lambda node: node.version, reverse=True)


def _risks(
    graph: UpdateGraph, running: Sequence[str], to: str
) -> tuple[ConditionalUpdateRisk, ...]:
    """The risks of the update from each running version, each name once."""
    found: dict[str, ConditionalUpdateRisk] = {}
    for version in running:
        for risk in graph.conditional.get((version, to), ()):
            found.setdefault(risk.name, risk)
    return tuple(found.values())


def _recommended(
    risks: Sequence[ConditionalUpdateRisk], before: Iterable[Condition], now: datetime
) -> Condition:
    status, reason, message = recommendation(risks)
    was = next((c for c in before if (c.type, c.status) == (RECOMMENDED, status)), None)
    return Condition(
        type=RECOMMENDED,
        status=status,
        last_transition_time=was.last_transition_time if was else now.replace(microsecond=0),
        reason=reason,
        message=message[:MAX_MESSAGE],
    )


def recommendation(risks: Sequence[ConditionalUpdateRisk]) -> tuple[str, str, str]:
    """Whether an update with these risks is recommended: status, reason and message."""
    applying = [risk for risk in risks if applies(risk)]
    if applying:
        return "False", _reason(applying), "\n".join(_texts(applying))
    message = "\n".join(
        f"whether the risk {risk.name} applies is not known, because PromQL is not evaluated"
        f" here: {text}"
        for risk, text in zip(risks, _texts(risks), strict=True)
    )
    return "Unknown", "NotEvaluated", message


def applies(risk: ConditionalUpdateRisk) -> bool:
    """Whether a risk surely applies to this cluster."""
    return any(rule.type == RiskRuleType.ALWAYS for rule in risk.matching_rules)


def _reason(risks: Sequence[ConditionalUpdateRisk]) -> str:
    """The name of the only risk, if a condition can have it as its reason."""
    name = risks[0].name
    fits = name.isascii() and name.isalnum() and name[0].isalpha()
    return name if len(risks) == 1 and fits else "MultipleReasons" if len(risks) > 1 else "Risk"


def _texts(risks: Iterable[ConditionalUpdateRisk]) -> Iterator[str]:
    return (f"{risk.message} {risk.url}" for risk in risks)
