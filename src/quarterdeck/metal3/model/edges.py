"""The releases A to D, and the updates between them. Pure.

An update starts the new machine API operator, and after it the new baremetal operator; old ones
stop some time later. If the new release has no baremetal operator, the old one runs on: an
administrator deletes its Deployment and its ClusterOperator, in any order.
"""

from collections.abc import Iterator
from typing import NamedTuple

from quarterdeck.metal3.model.world import (
    IDLE,
    NOT_STARTED,
    RUNNING_PHASES,
    STOPPED,
    Deployment,
    ModelOperator,
    Rules,
    Transition,
    World,
    settled,
)


class ModelRelease(NamedTuple):
    """A release with a build of the machine API operator, and perhaps the baremetal operator."""

    name: str
    version: str
    machine_api: str
    """What its machine API operator does with metal3."""
    has_baremetal: bool

    @property
    def manages(self) -> bool:
        """Whether its machine API operator knows metal3."""
        return self.machine_api != "none"


RELEASES = {
    release.name: release
    for release in (
        ModelRelease("A", "4.6.0", "ungated", has_baremetal=False),
        ModelRelease("B", "4.6.1", "gated", has_baremetal=False),
        ModelRelease("C", "4.7.0", "gated", has_baremetal=True),
        ModelRelease("D", "4.7.1", "none", has_baremetal=True),
    )
}


class Edge(NamedTuple):
    """An update from one release to another, up or down."""

    old: ModelRelease
    new: ModelRelease

    @property
    def name(self) -> str:
        """`B->C`, for example."""
        return f"{self.old.name}->{self.new.name}"

    @property
    def removes_baremetal(self) -> bool:
        """Whether an administrator has to remove the baremetal operator."""
        return self.old.has_baremetal and not self.new.has_baremetal

    @property
    def operators(self) -> tuple[ModelOperator, ...]:
        """The operators that run at some time of it."""
        found: list[ModelOperator] = []
        for age, release in (("old", self.old), ("new", self.new)):
            if release.manages:
                gated = release.machine_api == "gated"
                found.append(
                    ModelOperator(f"{age} machine-api {release.name}", "machine-api", gated)
                )
            if release.has_baremetal:
                found.append(ModelOperator(f"{age} baremetal {release.name}", "baremetal"))
        return tuple(found)


EDGES = tuple(
    Edge(RELEASES[old], RELEASES[new])
    for old, new in (
        ("A", "B"),
        ("A", "C"),
        ("A", "D"),
        ("B", "C"),
        ("B", "D"),
        ("C", "D"),
        ("B", "A"),
        ("C", "B"),
        ("C", "A"),
        ("D", "C"),
        ("D", "B"),
        ("D", "A"),
    )
)
"""All updates, in the order of the design document: up, then down."""


def first_worlds(edge: Edge, rules: Rules) -> Iterator[World]:
    """The states in which the update begins: with the Deployment, and without one."""
    owner = "baremetal" if edge.old.has_baremetal else "machine-api"
    template = "any" if rules.same_images else owner
    made = Deployment(owner == "machine-api", owner == "baremetal", template)
    phases = tuple(IDLE if _is_old(one) else NOT_STARTED for one in rules.operators)
    for deployment in (made, None):
        yield World(deployment, cluster_operator=edge.old.has_baremetal, phases=phases)


def update_steps(edge: Edge, rules: Rules, world: World) -> Iterator[Transition]:
    """The steps of the cluster version operator and of the administrator."""
    begun = _new_machine_api_runs(edge, world)
    for index, operator in enumerate(rules.operators):
        phase = world.phases[index]
        if phase == NOT_STARTED and (begun or not operator.is_baremetal):
            yield _step(world, index, IDLE, f"the update starts {operator.name}")
        if phase in RUNNING_PHASES and _may_stop(edge, rules, world, operator):
            yield _step(world, index, STOPPED, f"{operator.name} is stopped")
    runs = any(
        one.is_baremetal and phase in RUNNING_PHASES
        for one, phase in zip(rules.operators, world.phases, strict=True)
    )
    may_delete = begun and edge.removes_baremetal and (rules.any_order or not runs)
    if may_delete and world.cluster_operator:
        text = "the administrator deletes the ClusterOperator baremetal"
        yield Transition(text, world._replace(cluster_operator=False))


def is_final(edge: Edge, rules: Rules, world: World) -> bool:
    """Whether the update is complete, with what the administrator has to do, and all is settled."""
    for operator, phase in zip(rules.operators, world.phases, strict=True):
        if (phase == STOPPED) is not _is_old(operator) or phase == NOT_STARTED:
            return False
    if edge.removes_baremetal and world.cluster_operator:
        return False
    return settled(rules, world)


def _may_stop(edge: Edge, rules: Rules, world: World, operator: ModelOperator) -> bool:
    """Whether what replaces an old operator is there; the administrator replaces it by nothing."""
    if not _is_old(operator):
        return False
    if not operator.is_baremetal or edge.removes_baremetal:
        return _new_machine_api_runs(edge, world)
    new = next(i for i, one in enumerate(rules.operators) if one.is_baremetal and not _is_old(one))
    return world.phases[new] != NOT_STARTED


def _new_machine_api_runs(edge: Edge, world: World) -> bool:
    for operator, phase in zip(edge.operators, world.phases, strict=True):
        if not operator.is_baremetal and not _is_old(operator):
            return phase != NOT_STARTED
    return True  # it does not know metal3, and so is no part of the model


def _is_old(operator: ModelOperator) -> bool:
    return operator.name.startswith("old ")


def _step(world: World, index: int, phase: str, text: str) -> Transition:
    phases = (*world.phases[:index], phase, *world.phases[index + 1 :])
    return Transition(text, world._replace(phases=phases))
