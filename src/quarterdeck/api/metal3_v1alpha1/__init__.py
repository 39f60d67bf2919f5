"""The kinds of bare metal: `metal3.io/v1alpha1`.

`Provisioning` configures metal3; `BareMetalHost` is a machine that metal3 manages.
"""

from quarterdeck.api.metal3_v1alpha1.bare_metal_host import (
    BARE_METAL_HOSTS,
    BareMetalHost,
    BareMetalHostSpec,
    BareMetalHostStatus,
)
from quarterdeck.api.metal3_v1alpha1.provisioning import (
    PROVISIONING_NAME,
    PROVISIONINGS,
    OperatorCondition,
    Provisioning,
    ProvisioningNetwork,
    ProvisioningSpec,
    ProvisioningStatus,
)

__all__ = [
    "BARE_METAL_HOSTS",
    "PROVISIONINGS",
    "PROVISIONING_NAME",
    "BareMetalHost",
    "BareMetalHostSpec",
    "BareMetalHostStatus",
    "OperatorCondition",
    "Provisioning",
    "ProvisioningNetwork",
    "ProvisioningSpec",
    "ProvisioningStatus",
]
