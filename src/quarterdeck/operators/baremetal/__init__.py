"""The cluster baremetal operator: it runs metal3 on bare metal, and is disabled elsewhere."""

from quarterdeck.delivery.declaration import (
    Declaration,
    Deployed,
    Local,
    PayloadPart,
    SeldomUsed,
)
from quarterdeck.delivery.placement import CONTROL_PLANE, CONTROL_PLANE_ROLES

OPERATOR = Declaration(
    name="baremetal",
    part_of="quarterdeck",
    title="The cluster baremetal operator",
    setup="quarterdeck.operators.baremetal.controller:setup",
    settings="quarterdeck.operators.baremetal.settings:Settings",
    namespace="openshift-machine-api",
    # metal3 uses the host's network.
    pod_security="privileged",
    account="cluster-baremetal-operator",
    component="cluster-baremetal-operator",
    cluster_operator="baremetal",
    # After the machine API operator, whose namespace it shares.
    run_level=31,
    capability="baremetal",
    delivery=Deployed(
        priority_class="system-node-critical",
        preferred_nodes=CONTROL_PLANE,
        tolerated_taints=CONTROL_PLANE_ROLES,
        other_images=(
            "baremetal-operator",
            "ironic",
            "ironic-inspector",
            "ironic-ipa-downloader",
            "ironic-machine-os-downloader",
            "ironic-static-ip-manager",
        ),
    ),
    kinds=(
        "quarterdeck.api.metal3_v1alpha1:PROVISIONINGS",
        "quarterdeck.api.metal3_v1alpha1:BARE_METAL_HOSTS",
    ),
    parts=(
        PayloadPart(
            name="metal3", run_level=31, objects="quarterdeck.metal3.delivered:OPERAND", kept=True
        ),
        PayloadPart(
            name="metal3-images",
            run_level=31,
            objects="quarterdeck.metal3.delivered:BAREMETAL_IMAGES_OBJECTS",
            kept=True,
        ),
    ),
    seldom_used=(
        SeldomUsed(
            group="metal3.io",
            resource="provisionings/status",
            verbs=("patch",),
            why="after a handover the status is there already; it is written when the spec changes",
        ),
    ),
    local=Local(replicas=1, text=", disabled unless the platform is BareMetal"),
)
