"""The states of the model, and the steps of the operators in it. Pure.

A step is one request: an operator reads the Deployment, then reads the ClusterOperator and decides,
then writes. Anything may happen between two steps; a crash is a return to the beginning.

A write carries the resource version of the read, so the server refuses it if the Deployment has
changed since; a create has none, and is refused only while there is a Deployment. An operator whose
read is outdated can do nothing but read again: the model puts it back to the beginning at once,
which keeps it small. With the fault `unfenced_claim` it does not, and shows what the resource
version is for. The Lease, by which only one of two machine API operators writes, is left out:
nothing here depends on it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from quarterdeck.metal3.handover import (
    HandoverDecision,
    Ownership,
    baremetal_decision,
    machine_api_decision,
)

NOT_STARTED, IDLE, HAS_READ, STOPPED = "not started", "idle", "has read", "stopped"
OUTDATED_CLAIM = "claim, outdated"
RUNNING_PHASES = frozenset({IDLE, HAS_READ, OUTDATED_CLAIM, *HandoverDecision})

MOST_CHANGES = 3
"""Where the model stops to count changes of the pod template: there is no bound."""


class ModelOperator(NamedTuple):
    """One operator of one release."""

    name: str
    """`old machine-api`, for example."""
    kind: str
    """Its ClusterOperator."""
    gated: bool = True

    @property
    def is_baremetal(self) -> bool:
        """Whether it is the baremetal operator."""
        return self.kind == "baremetal"


class Deployment(NamedTuple):
    """metal3's Deployment on the server."""

    machine_api: bool
    baremetal: bool
    template: str
    """Whose images its pod template has."""

    @property
    def ownership(self) -> Ownership:
        """Its annotations."""
        return Ownership(self.machine_api, self.baremetal)


class World(NamedTuple):
    """A state of the model."""

    deployment: Deployment | None
    cluster_operator: bool
    """Whether the ClusterOperator `baremetal` exists."""
    phases: tuple[str, ...]
    """What each operator is about to do."""
    changes: int = 0
    """How often the pod template has changed, up to `MOST_CHANGES`."""


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """Faults that can be put into the protocol, to see whether the model finds them."""

    unfenced_claim: bool = False
    """A claim has no resource version."""
    keeps_both_annotations: bool = False
    """A claim adds the own annotation and leaves the other's."""


NO_FAULTS = Faults()


class Transition(NamedTuple):
    """A step from one state to another."""

    text: str
    world: World
    violation: str = ""
    """What the step breaks; empty if it breaks nothing."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What an exploration varies."""

    operators: tuple[ModelOperator, ...]
    same_images: bool = True
    any_order: bool = True
    """Whether the administrator may delete the ClusterOperator while its operator runs."""
    deletions: bool = True
    """Whether somebody may delete the Deployment and the ClusterOperator at any time."""
    faults: Faults = NO_FAULTS


def operator_steps(rules: Rules, world: World, index: int) -> Iterator[Transition]:
    """The steps that one operator can make now."""
    operator, phase = rules.operators[index], world.phases[index]
    match phase:
        case "idle":
            yield _moved(world, index, HAS_READ, f"{operator.name} reads the Deployment")
            if operator.is_baremetal and not world.cluster_operator:
                text = f"{operator.name} creates its ClusterOperator"
                yield Transition(text, world._replace(cluster_operator=True))
        case "has read":
            decision = _decide(operator, world)
            if decision is HandoverDecision.STAND_DOWN:
                yield _moved(world, index, IDLE, f"{operator.name} stands down")
            else:
                yield _moved(world, index, decision, f"{operator.name} decides: {decision}")
        case HandoverDecision.CREATE if world.deployment is not None:
            yield _moved(world, index, IDLE, f"{operator.name} finds that another one was faster")
        case HandoverDecision.CREATE:
            made = _applied(rules, operator, None)
            yield _written(rules, world, index, made, f"{operator.name} creates the Deployment")
        case HandoverDecision.MANAGE:
            yield _managed(rules, world, index)
        case HandoverDecision.CLAIM:
            yield _claimed(rules, world, index)
        case "claim, outdated":
            step = _claimed(rules, world, index)
            lost = f"{operator.name} overwrites a change that it has not read"
            yield step._replace(violation=step.violation or lost) if world.deployment else step
    if phase in RUNNING_PHASES and phase != IDLE:
        yield _moved(world, index, IDLE, f"{operator.name} is killed and restarts")


def deletion_steps(rules: Rules, world: World) -> Iterator[Transition]:
    """The deletions that nobody planned; the operators have to make good for them."""
    if not rules.deletions:
        return
    if world.deployment is not None:
        phases = tuple(_outdated(rules, phase) for phase in world.phases)
        gone = world._replace(deployment=None, phases=phases)
        yield Transition("somebody deletes the Deployment", gone)
    if world.cluster_operator:
        gone = world._replace(cluster_operator=False)
        yield Transition("somebody deletes the ClusterOperator baremetal", gone)


def settled(rules: Rules, world: World) -> bool:
    """Whether no operator that runs would write anything."""
    for operator, phase in zip(rules.operators, world.phases, strict=True):
        if phase not in RUNNING_PHASES:
            continue
        if phase != IDLE or (operator.is_baremetal and not world.cluster_operator):
            return False
        match _decide(operator, world):
            case HandoverDecision.STAND_DOWN:
                continue
            case HandoverDecision.MANAGE if world.deployment == _applied(
                rules, operator, world.deployment
            ):
                continue
            case _:
                return False
    return True


def _decide(operator: ModelOperator, world: World) -> HandoverDecision:
    found = world.deployment.ownership if world.deployment else None
    if operator.is_baremetal:
        return baremetal_decision(found, own_exists=world.cluster_operator)
    return machine_api_decision(
        found, baremetal_exists=world.cluster_operator, gated=operator.gated
    )


def _applied(rules: Rules, operator: ModelOperator, current: Deployment | None) -> Deployment:
    """The Deployment after an apply: its own annotation is there, the other's is as it was."""
    template = "any" if rules.same_images else operator.kind
    before = current or Deployment(machine_api=False, baremetal=False, template=template)
    if operator.is_baremetal:
        return before._replace(baremetal=True, template=template)
    return before._replace(machine_api=True, template=template)


def _managed(rules: Rules, world: World, index: int) -> Transition:
    operator, current = rules.operators[index], world.deployment
    made = _applied(rules, operator, current)
    if made == current:
        return _moved(world, index, IDLE, f"{operator.name} has nothing to write")
    owner = current.ownership.owner if current else ""
    foreign = owner == "baremetal" and not operator.is_baremetal
    violation = f"{operator.name} writes what the baremetal operator manages" if foreign else ""
    return _written(rules, world, index, made, f"{operator.name} applies", violation)


def _claimed(rules: Rules, world: World, index: int) -> Transition:
    """The one write that changes annotations only; the operator then applies."""
    operator, current = rules.operators[index], world.deployment
    if current is None:
        return _moved(world, index, IDLE, f"{operator.name} finds nothing to claim")
    keeps = rules.faults.keeps_both_annotations
    made = current._replace(
        machine_api=not operator.is_baremetal or (keeps and current.machine_api),
        baremetal=operator.is_baremetal or (keeps and current.baremetal),
    )
    text = f"{operator.name} claims the Deployment"
    both = "both annotations are there after a claim" if made.machine_api and made.baremetal else ""
    step = _written(rules, world, index, made, text, both)
    # It knows the result of its own write, and goes on with it.
    return step._replace(world=_with_phase(step.world, index, HandoverDecision.MANAGE))


def _written(
    rules: Rules, world: World, index: int, made: Deployment, text: str, violation: str = ""
) -> Transition:
    """The state after a write: all that others have read is outdated."""
    current = world.deployment
    changed = current is not None and current.template != made.template
    phases = tuple(
        IDLE if at == index else _outdated(rules, phase) for at, phase in enumerate(world.phases)
    )
    changes = min(world.changes + changed, MOST_CHANGES)
    after = world._replace(deployment=made, phases=phases, changes=changes)
    return Transition(text, after, violation)


def _outdated(rules: Rules, phase: str) -> str:
    if phase in (HandoverDecision.CLAIM, OUTDATED_CLAIM) and rules.faults.unfenced_claim:
        return OUTDATED_CLAIM
    if phase == HandoverDecision.CREATE and rules.deletions:
        return phase  # it succeeds if the Deployment is gone again by then
    return IDLE if phase in RUNNING_PHASES else phase


def _moved(world: World, index: int, phase: str, text: str) -> Transition:
    return Transition(text, _with_phase(world, index, phase))


def _with_phase(world: World, index: int, phase: str) -> World:
    phases = world.phases
    return world._replace(phases=(*phases[:index], phase, *phases[index + 1 :]))
