"""The names and labels of what a HostedCluster gets, and whose a namespace is. Pure.

A namespace belongs to the HostedCluster whose uid it has in a label. The operator writes that label
only when it creates a namespace, never into one that exists. managedFields would not last: the
server joins the entry of a create with others after ten more managers.
"""

from quarterdeck.api.meta import Key, Object
from quarterdeck.controller import InvalidSpec
from quarterdeck.controller.metadata import is_being_deleted, key_of, labels_of
from quarterdeck.controller.ownership import owns_labels

NAMESPACE_LABEL = "quarterdeck.dev/hosted-cluster-namespace"
NAME_LABEL = "quarterdeck.dev/hosted-cluster-name"
UID_LABEL = "quarterdeck.dev/hosted-cluster-uid"
FINALIZER = "quarterdeck.dev/hosted-control-plane"

DEPLOYMENT = "cluster-version-operator"
CONFIG_MAP = "cluster-version-operator-config"
KUBECONFIG = "cluster-version-operator-kubeconfig"
ROLE = "control-plane"
"""The name of the operator's role in the namespaces that it makes, after its own name."""
MAX_NAMESPACE = 63


def control_plane_namespace(cluster: Key) -> str:
    """The namespace of a HostedCluster's control plane; it may be too long."""
    return f"{cluster.namespace}-{cluster.name}".replace(".", "-")


def labels(cluster: Key) -> dict[str, str]:
    """The labels of everything that a HostedCluster gets."""
    return {NAMESPACE_LABEL: cluster.namespace, NAME_LABEL: cluster.name}


def namespace_labels(cluster: Object) -> dict[str, str]:
    """The labels of the namespace that is made for a HostedCluster."""
    return labels(key_of(cluster)) | {UID_LABEL: cluster["metadata"]["uid"]}


def is_namespace_of(namespace: Object, cluster: Object) -> bool:
    """Whether this operator made the namespace for this HostedCluster.

    One of the same name that was deleted had another uid.
    """
    uid: str = cluster["metadata"]["uid"]
    return labels_of(namespace).get(UID_LABEL) == uid


def is_left_over(namespace: Object, key: Key, cluster: Object | None, field_manager: str) -> bool:
    """Whether this operator made the namespace for an earlier HostedCluster of this key.

    Nobody protects it, so the labels have to be by our own hand: a backup may bring them back.
    """
    return (
        labels(key).items() <= labels_of(namespace).items()
        and owns_labels(namespace, field_manager, [UID_LABEL])
        and (cluster is None or not is_namespace_of(namespace, cluster))
    )


def check_namespace(cluster: Object, namespace: Object | None) -> None:
    """Raise `InvalidSpec` if the control plane cannot have the namespace of its name."""
    name = control_plane_namespace(key_of(cluster))
    if len(name) > MAX_NAMESPACE:
        raise _refused(
            cluster,
            f"the namespace of its control plane would be {name}, of {len(name)} characters; "
            f"choose a name that leaves at most {MAX_NAMESPACE}",
        )
    if namespace is None:
        return
    if not is_namespace_of(namespace, cluster):
        raise _refused(
            cluster,
            f"its control plane needs the namespace {name}, which exists and is not its own; "
            f"choose another name, or give it the namespace by the label "
            f"{UID_LABEL}={cluster['metadata']['uid']}",
        )
    if is_being_deleted(namespace):
        raise _refused(cluster, f"the namespace {name} is being deleted; wait until it is gone")


def _refused(cluster: Object, why: str) -> InvalidSpec:
    return InvalidSpec("metadata.name", cluster["metadata"]["name"], why)
