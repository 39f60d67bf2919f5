"""The order in which manifests are applied, as a graph, for each of the three modes.

A node has the manifests of one component at one run level, which are applied one after another.
Nodes that do not wait for each other can run at the same time.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import groupby

import msgspec

from quarterdeck.payload.model import Manifest


class Mode(StrEnum):
    """The mode in which the cluster is."""

    INITIALIZING = "initializing"
    """A new cluster: all nodes in parallel."""
    UPDATING = "updating"
    """From one release to another: run levels in order, each waits for the one before."""
    RECONCILING = "reconciling"
    """A settled cluster: all nodes in parallel, Jobs too."""


class PayloadNode(msgspec.Struct, frozen=True, kw_only=True):
    """Manifests that are applied one after another."""

    number: int
    run_level: int | None
    component: str
    manifests: tuple[Manifest, ...]
    after: tuple[int, ...]
    """The nodes that must succeed before; their numbers are lower."""

    @property
    def label(self) -> str:
        """Run level and component, as text."""
        return f"{level_label(self.run_level)} {self.component}".rstrip()


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes, each after the nodes that it waits for."""

    mode: Mode
    nodes: tuple[PayloadNode, ...]

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """All manifests of the graph, in an order in which they can be applied."""
        return tuple(manifest for node in self.nodes for manifest in node.manifests)

    def stages(self) -> list[list[PayloadNode]]:
        """The nodes in stages: each node is in the stage after the last node that it waits for."""
        stage: dict[int, int] = {}
        result: list[list[PayloadNode]] = []
        for node in self.nodes:
            stage[node.number] = 1 + max((stage[before] for before in node.after), default=-1)
            while len(result) <= stage[node.number]:
                result.append([])
            result[stage[node.number]].append(node)
        return result


def level_label(run_level: int | None) -> str:
    """A run level as in file names; `last` for files without one."""
    return "last" if run_level is None else f"{run_level:02}"


def build_graph(manifests: Iterable[Manifest], mode: Mode) -> Graph:
    """The graph of manifests, which are in file order."""
    nodes: list[PayloadNode] = []
    barrier: tuple[int, ...] = ()
    for part in _split_at_jobs(manifests, mode):
        start = len(nodes)
        after = barrier
        for level, members in groupby(part, key=lambda manifest: manifest.run_level):
            first = len(nodes)
            for component, files in groupby(members, key=lambda manifest: manifest.component):
                nodes.append(
                    PayloadNode(
                        number=len(nodes),
                        run_level=level,
                        component=component,
                        manifests=tuple(files),
                        after=after,
                    )
                )
            if mode is Mode.UPDATING:
                after = tuple(range(first, len(nodes)))
        barrier = after if mode is Mode.UPDATING else tuple(range(start, len(nodes)))
    return Graph(mode=mode, nodes=tuple(nodes))


def _split_at_jobs(manifests: Iterable[Manifest], mode: Mode) -> Iterator[list[Manifest]]:
    """The parts of the payload, each of which waits for the one before; a Job is a part of its own.

    A Job migrates something that the manifests after it depend on. On a settled cluster it has run.
    """
    part: list[Manifest] = []
    for manifest in manifests:
        if mode is not Mode.RECONCILING and is_job(manifest):
            if part:
                yield part
            yield [manifest]
            part = []
        else:
            part.append(manifest)
    if part:
        yield part


def is_job(manifest: Manifest) -> bool:
    """Whether the manifest is a Job, which runs once, and which later manifests wait for."""
    return manifest.identity.group == "batch" and manifest.identity.kind == "Job"
