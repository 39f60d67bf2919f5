"""The objects that a release delivers with the operator that runs metal3.

metal3's account may read and write the BareMetalHosts beside it and the Secrets that they name.
With `watchAllNamespaces` it needs the same rights in all namespaces: an administrator grants them.
"""

from quarterdeck.api.meta import Object
from quarterdeck.metal3.images import desired_config_map
from quarterdeck.metal3.names import ACCOUNT, BAREMETAL_IMAGES, MACHINE_API_IMAGES, NAMESPACE

RBAC = "rbac.authorization.k8s.io"
METADATA = {"name": ACCOUNT, "namespace": NAMESPACE}
ALL_BUT_DELETE = ["get", "list", "watch", "create", "update", "patch"]

ACCOUNT_OBJECT: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": METADATA}
ROLE: Object = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "Role",
    "metadata": METADATA,
    "rules": [
        {
            "apiGroups": ["metal3.io"],
            "resources": ["baremetalhosts"],
            "verbs": ["get", "list", "watch", "update", "patch"],
        },
        {
            "apiGroups": ["metal3.io"],
            "resources": ["baremetalhosts/status", "baremetalhosts/finalizers"],
            "verbs": ["get", "update", "patch"],
        },
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "verbs": ["get", "list", "watch", "update", "patch"],
        },
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ALL_BUT_DELETE},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ALL_BUT_DELETE},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ],
}
BINDING: Object = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "RoleBinding",
    "metadata": METADATA,
    "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": ACCOUNT},
    "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
}

OPERAND: tuple[Object, ...] = (ACCOUNT_OBJECT, ROLE, BINDING)
"""metal3's account and its rights."""
BAREMETAL_IMAGES_OBJECTS: tuple[Object, ...] = (desired_config_map(BAREMETAL_IMAGES),)
MACHINE_API_IMAGES_OBJECTS: tuple[Object, ...] = (desired_config_map(MACHINE_API_IMAGES),)
