"""The machine API operator: the part of it that manages metal3, until the baremetal operator does.

`build` says which releases it comes from, and how it behaves in each.
"""

from quarterdeck.delivery.declaration import Declaration, Deployed, Local, PayloadPart
from quarterdeck.delivery.placement import CONTROL_PLANE, CONTROL_PLANE_ROLES

OPERATOR = Declaration(
    name="machine-api",
    part_of="quarterdeck",
    title="The machine API operator",
    setup="quarterdeck.operators.machine_api.controller:setup",
    settings="quarterdeck.operators.machine_api.settings:Settings",
    namespace="openshift-machine-api",
    # metal3 uses the host's network.
    pod_security="privileged",
    account="machine-api-operator",
    component="machine-api-operator",
    cluster_operator="machine-api",
    run_level=30,
    capability="MachineAPI",
    delivery=Deployed(
        priority_class="system-node-critical",
        preferred_nodes=CONTROL_PLANE,
        tolerated_taints=CONTROL_PLANE_ROLES,
    ),
    parts=(
        PayloadPart(
            name="machine-api-images",
            run_level=30,
            objects="quarterdeck.metal3.delivered:MACHINE_API_IMAGES_OBJECTS",
            kept=True,
        ),
    ),
    local=Local(replicas=1),
)
