"""Runs metal3 on bare metal; on other platforms it is disabled, and watches only the platform."""

from quarterdeck.api.config_v1 import CLUSTER_OPERATORS
from quarterdeck.api.meta import Key
from quarterdeck.controller import Manager, Selection, Watch
from quarterdeck.metal3.handover import HandoverDecision, Ownership, baremetal_decision
from quarterdeck.metal3.names import BAREMETAL
from quarterdeck.metal3.operand import BAREMETAL_ROLE
from quarterdeck.metal3.part import Metal3Part
from quarterdeck.operators.baremetal.conditions import report
from quarterdeck.operators.baremetal.settings import Settings


def setup(manager: Manager, settings: Settings) -> None:
    """Add the part that manages metal3, with its switch and the operator's reporter."""
    # The reporter's own selection, so it costs no further watch.
    own = manager.objects(CLUSTER_OPERATORS.plain, Selection(name=BAREMETAL, optional=True))

    async def decide(found: Ownership | None) -> HandoverDecision:
        return baremetal_decision(found, own_exists=own.get(Key("", BAREMETAL)) is not None)

    timeout = settings.deploy_timeout
    group = manager.group(f"metal3 of {BAREMETAL}")
    Metal3Part(manager, group, BAREMETAL, BAREMETAL_ROLE, decide, report, [Watch(own)], timeout)
