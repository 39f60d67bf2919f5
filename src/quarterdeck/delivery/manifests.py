"""The objects that run an operator in a cluster, with one pattern for all.

- Probes and metrics are on all addresses of the pod, so that `kubectl port-forward` reaches them;
  a pod whose address is a loopback one shares a machine with others, and uses only its own.
- POD_NAME gives each replica its own identity, POD_NAMESPACE is its namespace,
  and that of its Lease.
- RELEASE_VERSION is the version that the operator reports: a payload sets it, outside a payload
  it is the program's version.
- The pod has a minute to start; it is ready when caches are synced, live while the event loop runs.
- The root file system is read-only; there are no Linux capabilities and no fixed user. The
  operator's namespace enforces that, unless its operands need more.
- Replicas run on different nodes and in different zones if they can, and a drain leaves one.
"""

from collections.abc import Iterable
from typing import Any

from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.meta import BUILT_IN_NAMESPACES, Object
from quarterdeck.delivery.declaration import (
    Declaration,
    Deployed,
    EmptyDir,
    HostPath,
    OptionalFiles,
    PayloadPart,
    StaticPodDelivery,
    load,
)
from quarterdeck.delivery.placement import (
    affinity,
    apart_by_zone,
    spread_over_nodes,
    tolerations,
)
from quarterdeck.delivery.rights import role_objects
from quarterdeck.delivery.setting_up import uses
from quarterdeck.payload.model import PLACEHOLDER_VERSION

PROBES_PORT = 8081
POD_SECURITY = "pod-security.kubernetes.io/enforce"
"""The label of a namespace that refuses pods below a standard."""
PART_OF = {"app.kubernetes.io/part-of": "quarterdeck"}
"""The label of every operator's pods, by which Prometheus finds their metrics."""
CREDENTIALS = "credentials"
"""The volume of a static pod that has its kubeconfig."""
RENEWAL = "--renew-certificate"
"""The option of a static pod with the lifetime of its certificates."""


def account_objects(declared: Declaration) -> list[Object]:
    """The operator's namespaces, account and roles."""
    objects = [_namespace(declared, name) for name in _own_namespaces(declared)]
    if isinstance(declared.delivery, Deployed):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(declared)}
        objects.append(account)
    asked_for = () if declared.cluster_admin else uses(declared)
    return [*objects, *role_objects(declared, asked_for)]


def foreign_namespaces(declared: Declaration) -> list[str]:
    """The namespaces in which the operator has rights and which are not delivered with it."""
    places = {obj["metadata"].get("namespace", "") for obj in account_objects(declared)}
    brought = {
        obj["metadata"]["name"] for obj in own_objects(declared) if obj["kind"] == "Namespace"
    }
    return sorted(places - brought - {*_own_namespaces(declared), "", *BUILT_IN_NAMESPACES})


def missing_namespace(declared: Declaration, namespace: str) -> str:
    """A message about a namespace that is not delivered with the operator."""
    return (
        f"the operator {declared.name} has rights in the namespace {namespace}, which does not "
        "come with it: add it to `other_namespaces` of the declaration, or create it before"
    )


def workload(declared: Declaration) -> Object | None:
    """The operator's Deployment or static pod; None if it has neither."""
    match declared.delivery:
        case Deployed() as delivery:
            return deployment(declared, delivery)
        case StaticPodDelivery() as delivery:
            return static_pod(declared, delivery)
        case None:
            return None


def own_objects(declared: Declaration) -> list[Object]:
    """The objects of the operator's parts, in their order."""
    return [obj for part in declared.parts if part.objects for obj in part_objects(part)]


def part_objects(part: PayloadPart) -> list[Object]:
    """The objects of a part of an operator."""
    found = list(load(part.objects))
    for obj in found:
        try:
            identity = obj["apiVersion"], obj["kind"], obj["metadata"]["name"]
        except (KeyError, TypeError):
            identity = (None, None, None)
        if not all(isinstance(word, str) and word for word in identity):
            raise TypeError(
                f"{part.objects}: {str(obj)[:100]!r}: make it an object with apiVersion, kind and "
                "metadata.name"
            )
    return found


def custom_resource(reference: str) -> CustomResource[Any]:
    """The resource type at `module:attribute`."""
    found = load(reference)
    if not isinstance(found, CustomResource):
        raise TypeError(f"{reference} is a {type(found).__name__}; make it a CustomResource")
    return found


def deployment(declared: Declaration, delivery: Deployed) -> Object:
    """The operator's Deployment."""
    args = ["run", f"--operator={declared.name}"]
    if delivery.leader_election:
        args.append("--leader-elect")
    args += [f"--namespace={name}" for name in declared.watched_namespaces]
    container = _container(
        delivery,
        "operator",
        [*args, f"--probe-address=:{PROBES_PORT}"],
        PROBES_PORT,
    )
    container["env"].append({"name": "RELEASE_VERSION", "value": PLACEHOLDER_VERSION})
    labels = {"app": declared.account}
    pod: Object = {
        "serviceAccountName": declared.account,
        **_placement(delivery, labels),
        "terminationGracePeriodSeconds": 30,
        "securityContext": _security_context(),
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**_named(declared), "labels": labels},
        "spec": {
            "replicas": delivery.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels | PART_OF},
                "spec": pod,
            },
        },
    }


def disruption_budgets(declared: Declaration) -> list[Object]:
    """The PodDisruptionBudget of a Deployment of several replicas; empty for others."""
    if not isinstance(declared.delivery, Deployed) or declared.delivery.replicas < 2:
        return []
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": _named(declared),
            "spec": {
                "minAvailable": 1,
                "selector": {"matchLabels": {"app": declared.account}},
                # A pod that is not ready does no work, and must not hold up a drain.
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        }
    ]


def static_pod(declared: Declaration, delivery: StaticPodDelivery) -> Object:
    """The operator's static pod; it needs only an API server on the same node."""
    directory = f"/etc/quarterdeck/{declared.name}"
    args = ["run", f"--operator={declared.name}", f"--kubeconfig={directory}/kubeconfig"]
    container = _container(
        delivery,
        delivery.container,
        [
            *args,
            f"{RENEWAL}={delivery.certificate_lifetime}",
            f"--probe-address=$(POD_IP):{delivery.port}",
        ],
        delivery.port,
    )
    credentials = HostPath(CREDENTIALS, directory, directory)
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": declared.name,
            "namespace": declared.namespace,
            "labels": {"app": declared.field_manager} | PART_OF,
        },
        "spec": {
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "terminationGracePeriodSeconds": 30,
            "securityContext": _security_context(),
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
        },
    }
    # It writes its next certificate there.
    add_host_path(pod["spec"], credentials, read_only=False)
    return pod


def _security_context() -> Object:
    """The security context of an operator's pod."""
    return {
        # No number: the image has one, and some clusters give each namespace its own.
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def add_host_path(pod_spec: Object, wanted: HostPath, *, read_only: bool = True) -> None:
    """Mount a directory of the node into the pod's container."""
    (container,) = pod_spec["containers"]
    mount: Object = {"name": wanted.name, "mountPath": wanted.mount}
    if read_only:
        mount["readOnly"] = True
    container.setdefault("volumeMounts", []).append(mount)
    host_path = {"path": wanted.path, "type": "Directory"}
    pod_spec.setdefault("volumes", []).append({"name": wanted.name, "hostPath": host_path})


def add_empty_dir(pod_spec: Object, wanted: EmptyDir) -> None:
    """Mount an empty directory into the pod's container, to write to."""
    (container,) = pod_spec["containers"]
    mount = {"name": wanted.name, "mountPath": wanted.mount}
    container.setdefault("volumeMounts", []).append(mount)
    empty_dir = {"sizeLimit": wanted.limit}
    pod_spec.setdefault("volumes", []).append({"name": wanted.name, "emptyDir": empty_dir})


def add_optional_files(pod_spec: Object, wanted: OptionalFiles) -> None:
    """Mount files of Secrets and ConfigMaps into the pod's container, as far as they are there."""
    (container,) = pod_spec["containers"]
    mount = {"name": wanted.name, "mountPath": wanted.mount, "readOnly": True}
    container.setdefault("volumeMounts", []).append(mount)
    sources = [
        {
            one.source: {
                "name": one.name,
                "items": [{"key": one.key, "path": one.path}],
                "optional": True,
            }
        }
        for one in wanted.files
    ]
    pod_spec.setdefault("volumes", []).append(
        {"name": wanted.name, "projected": {"sources": sources}}
    )


def replace_args(args: Iterable[str], others: Iterable[str]) -> list[str]:
    """The arguments with those of the same flag replaced, then the rest of the others."""
    wanted = {_flag(other): other for other in others}
    return [*(wanted.pop(_flag(arg), arg) for arg in args), *wanted.values()]


def _flag(arg: str) -> str:
    return arg.partition("=")[0]


def _own_namespaces(declared: Declaration) -> list[str]:
    """The namespaces to deliver; a static pod runs in an existing one."""
    deployed = isinstance(declared.delivery, Deployed)
    own = [declared.namespace] if deployed else []
    return list(dict.fromkeys([*own, *declared.other_namespaces]))


def _namespace(declared: Declaration, name: str) -> Object:
    metadata: Object = {"name": name}
    if name == declared.namespace:
        # "privileged" too: the namespace may have another standard from before, or by default.
        metadata["labels"] = {POD_SECURITY: declared.pod_security}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _named(declared: Declaration) -> Object:
    return {"name": declared.account, "namespace": declared.namespace}


def _placement(delivery: Deployed, labels: Object) -> Object:
    """The priority and the nodes of the pods; without the fields that are not declared."""
    nodes = affinity(preferred=delivery.preferred_nodes, required=delivery.required_nodes)
    several = delivery.replicas > 1
    declared = {
        "priorityClassName": delivery.priority_class,
        "affinity": nodes | (apart_by_zone(labels) if several else {}),
        "tolerations": tolerations(delivery.tolerated_taints),
        "topologySpreadConstraints": spread_over_nodes(labels) if several else [],
    }
    return {field: value for field, value in declared.items() if value}


def _container(
    delivery: Deployed | StaticPodDelivery, name: str, args: list[str], port: int
) -> Object:
    # An operator reads objects of others: the limit protects its node if they are too many.
    resources = {
        "requests": {"cpu": delivery.cpu, "memory": delivery.memory},
        "limits": {"memory": delivery.memory_limit},
    }
    fields = {
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
        "POD_IP": "status.podIP",
    }
    from_pod = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in fields.items()
    ]
    healthz = {"httpGet": {"path": "/healthz", "port": "probes"}}
    readyz = {"httpGet": {"path": "/readyz", "port": "probes"}}
    return {
        "name": name,
        "image": delivery.image,
        "args": [*args, *delivery.args],
        "env": [*from_pod, *({"name": name, "value": value} for name, value in delivery.env)],
        "ports": [{"name": "probes", "containerPort": port}],
        "startupProbe": healthz
        | {"initialDelaySeconds": 1, "periodSeconds": 1, "failureThreshold": 60},
        "readinessProbe": readyz | {"periodSeconds": 2, "timeoutSeconds": 2},
        "livenessProbe": healthz
        | {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3},
        "resources": resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
