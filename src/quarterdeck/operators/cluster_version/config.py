"""The configuration objects of the cluster version operator, as delivered.

A release creates them if they are missing, and never writes them again: administrators own them.
"""

from quarterdeck.api.config_v1 import FEATURE_GATES
from quarterdeck.api.custom_resource import ALL_PROFILES, SELF_MANAGED
from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1alpha1 import CLUSTER_VERSION_OPERATORS
from quarterdeck.payload.annotations import FEATURE_GATE, INCLUDE

FEATURE_GATE_CLUSTER: Object = {
    "apiVersion": FEATURE_GATES.api_version,
    "kind": FEATURE_GATES.kind,
    "metadata": {
        "name": "cluster",
        "annotations": {
            **{f"{INCLUDE}{profile}": "true" for profile in ALL_PROFILES},
        },
    },
    "spec": {},
}

# Not for hosted clusters (no annotation for their profile): there the administrator of the
# management cluster sets the log level.
CONFIGURATION: Object = {
    "apiVersion": CLUSTER_VERSION_OPERATORS.api_version,
    "kind": CLUSTER_VERSION_OPERATORS.kind,
    "metadata": {
        "name": "cluster",
        "annotations": {
            **{f"{INCLUDE}{profile}": "true" for profile in SELF_MANAGED},
            FEATURE_GATE: CLUSTER_VERSION_OPERATORS.feature_gate,
        },
    },
    "spec": {"operatorLogLevel": "Normal"},
}

OBJECTS: tuple[Object, ...] = (FEATURE_GATE_CLUSTER, CONFIGURATION)
