"""The names by which both operators know metal3 and each other."""

from quarterdeck.api.meta import Key
from quarterdeck.api.metal3_v1alpha1 import PROVISIONING_NAME

NAMESPACE = "openshift-machine-api"
DEPLOYMENT = "metal3"
ACCOUNT = "metal3"
"""The ServiceAccount of metal3's pod: the same in every release, as a change would restart it."""
PASSWORD_SECRET = "metal3-mariadb-password"  # noqa: S105 - its name, not its content
PASSWORD_KEY = "password"  # noqa: S105
LABELS = {"api": "clusterapi", "k8s-app": "metal3"}

PROVISIONING_KEY = Key("", PROVISIONING_NAME)
DEPLOYMENT_KEY = Key(NAMESPACE, DEPLOYMENT)
SECRET_KEY = Key(NAMESPACE, PASSWORD_SECRET)

MACHINE_API = "machine-api"
BAREMETAL = "baremetal"
"""The ClusterOperators of the two operators."""
MACHINE_API_MANAGER = "quarterdeck-machine-api"
BAREMETAL_MANAGER = "quarterdeck-baremetal"
"""The field managers of the two operators."""
MACHINE_API_OWNS = "machine.openshift.io/owned"
BAREMETAL_OWNS = "baremetal.openshift.io/owned"
"""The annotations on the Deployment by which each says that it manages it."""
MACHINE_API_IMAGES = Key(NAMESPACE, "machine-api-operator-images")
BAREMETAL_IMAGES = Key(NAMESPACE, "cluster-baremetal-operator-images")
"""The ConfigMaps with metal3's images in a release."""
