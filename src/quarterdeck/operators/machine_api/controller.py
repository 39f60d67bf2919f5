"""Manages metal3 on bare metal, unless the baremetal operator does.

Before it creates or takes back the Deployment, it reads the ClusterOperator `baremetal` from the
server: its cache may be behind the claim that it has already seen.
"""

from functools import partial

from quarterdeck.api.config_v1 import CLUSTER_OPERATORS
from quarterdeck.api.meta import Key
from quarterdeck.controller import Manager, Selection, Watch
from quarterdeck.kube import KubeError, NotFound
from quarterdeck.metal3.handover import HandoverDecision, Ownership, machine_api_decision
from quarterdeck.metal3.names import BAREMETAL, MACHINE_API
from quarterdeck.metal3.operand import MACHINE_API_ROLE, CannotDecide
from quarterdeck.metal3.part import Metal3Part
from quarterdeck.operators.machine_api.build import Build
from quarterdeck.operators.machine_api.conditions import with_metal3, without_metal3
from quarterdeck.operators.machine_api.settings import Settings
from quarterdeck.status import Reporter

NEEDS_CERTAINTY = (HandoverDecision.CREATE, HandoverDecision.CLAIM)


def setup(manager: Manager, settings: Settings) -> None:
    """Add the part that manages metal3, if this build has one, and the operator's reporter."""
    build = Build(settings.metal3_build)
    if not build.manages_metal3:
        Reporter(manager, MACHINE_API, without_metal3())
        return
    named_baremetal = Selection(name=BAREMETAL, optional=True)
    group = manager.group(f"metal3 of {MACHINE_API}")
    others = group.objects(CLUSTER_OPERATORS.plain, named_baremetal)
    manager.declare(CLUSTER_OPERATORS, "get", selection=named_baremetal)

    async def decide(found: Ownership | None) -> HandoverDecision:
        exists = others.get(Key("", BAREMETAL)) is not None
        decision = machine_api_decision(found, baremetal_exists=exists, gated=build.gated)
        if not build.gated or decision not in NEEDS_CERTAINTY:
            return decision
        return machine_api_decision(found, baremetal_exists=await baremetal_exists())

    async def baremetal_exists() -> bool:
        try:
            await manager.client.get(CLUSTER_OPERATORS.plain, BAREMETAL)
        except KubeError as error:
            # Where the resource type is not served, the object may exist all the same.
            if isinstance(error, NotFound) and f'"{BAREMETAL}" not found' in error.message:
                return False
            raise CannotDecide(f"ClusterOperator {BAREMETAL}: {error}; retrying") from error
        return True

    report = partial(with_metal3, build)
    Metal3Part(manager, group, MACHINE_API, MACHINE_API_ROLE, decide, report, [Watch(others)])
