"""The names and labels of what a HostedCluster gets, and whose a namespace is. Pure."""

from quarterdeck.api.meta import Key, Object
from quarterdeck.controller import InvalidSpec
from quarterdeck.controller.metadata import is_being_deleted, key_of, labels_of
from quarterdeck.controller.ownership import owns_labels

NAMESPACE_LABEL = "quarterdeck.dev/hosted-cluster-namespace"
NAME_LABEL = "quarterdeck.dev/hosted-cluster-name"
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


def is_namespace_of(namespace: Object, cluster: Key, field_manager: str) -> bool:
    """Whether this operator made the namespace for this HostedCluster.

    Labels that somebody else wrote do not count: a deletion would remove the namespace.
    """
    wanted = labels(cluster)
    has = labels_of(namespace)
    return all(has.get(name) == value for name, value in wanted.items()) and owns_labels(
        namespace, field_manager, wanted
    )


def check_namespace(cluster: Object, namespace: Object | None, field_manager: str) -> None:
    """Raise `InvalidSpec` if the control plane cannot have the namespace of its name."""
    key = key_of(cluster)
    name = control_plane_namespace(key)
    if len(name) > MAX_NAMESPACE:
        raise InvalidSpec(
            "metadata.name",
            key.name,
            f"the namespace of its control plane would be {name}, of {len(name)} characters; "
            f"choose a name that leaves at most {MAX_NAMESPACE}",
        )
    if namespace is None:
        return
    if not is_namespace_of(namespace, key, field_manager):
        raise InvalidSpec(
            "metadata.name",
            key.name,
            f"its control plane needs the namespace {name}, which exists and is not its own; "
            "choose another name",
        )
    if is_being_deleted(namespace):
        raise InvalidSpec(
            "metadata.name",
            key.name,
            f"the namespace {name} is being deleted; wait until it is gone",
        )
