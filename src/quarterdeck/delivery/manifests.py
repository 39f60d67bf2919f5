"""The objects that bring an operator into a cluster, all by one pattern.

- The pod's own address for probes and metrics, so that replicas do not collide on one machine.
- POD_NAME makes two replicas two candidates, POD_NAMESPACE says where their Lease is.
- RELEASE_VERSION, which a payload replaces, is the version that the operator reports; outside a
  payload that is the program's.
- A minute to start up; ready when caches are synced, alive while the event loop turns.
- Nothing to write to, no capabilities, no user in particular.
"""

from collections.abc import Iterable
from typing import Any

from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration, Deployed, HostPath, Part, StaticPod, load
from quarterdeck.delivery.rights import role_objects
from quarterdeck.delivery.setting_up import uses
from quarterdeck.payload.model import PLACEHOLDER_VERSION

PROBES_PORT = 8081
ALWAYS_THERE = ("default", "kube-node-lease", "kube-public", "kube-system")
"""The namespaces that every cluster has."""
PART_OF = {"app.kubernetes.io/part-of": "quarterdeck"}
"""The label of every operator's pods, by which Prometheus finds their metrics."""
CREDENTIALS = "credentials"
"""The volume of a static pod that has its kubeconfig."""


def account_objects(declared: Declaration) -> list[Object]:
    """The operator's namespaces and account, where it has them, and its rights."""
    objects = [_namespace(name) for name in _own_namespaces(declared)]
    if isinstance(declared.delivery, Deployed):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(declared)}
        objects.append(account)
    asked_for = () if declared.cluster_admin else uses(declared)
    return [*objects, *role_objects(declared, asked_for)]


def foreign_namespaces(declared: Declaration) -> list[str]:
    """The namespaces in which the operator has rights and which do not come with it."""
    places = {obj["metadata"].get("namespace", "") for obj in account_objects(declared)}
    brought = {
        obj["metadata"]["name"] for obj in own_objects(declared) if obj["kind"] == "Namespace"
    }
    return sorted(places - brought - {*_own_namespaces(declared), "", *ALWAYS_THERE})


def missing_namespace(declared: Declaration, namespace: str) -> str:
    """What to do about a namespace that does not come with the operator."""
    return (
        f"the operator {declared.name} has rights in the namespace {namespace}, which does not "
        "come with it: add it to `other_namespaces` of the declaration, or create it before"
    )


def workload(declared: Declaration) -> Object | None:
    """What runs the operator: its Deployment or its static pod; None where it has neither."""
    match declared.delivery:
        case Deployed() as delivery:
            return deployment(declared, delivery)
        case StaticPod() as delivery:
            return static_pod(declared, delivery)
        case None:
            return None


def own_objects(declared: Declaration) -> list[Object]:
    """The objects that the operator brings for the administrator, in the order of its parts."""
    return [obj for part in declared.parts if part.objects for obj in part_objects(part)]


def part_objects(part: Part) -> list[Object]:
    """The objects that a part of an operator brings."""
    found = list(load(part.objects))
    for obj in found:
        try:
            said = obj["apiVersion"], obj["kind"], obj["metadata"]["name"]
        except (KeyError, TypeError):
            said = (None, None, None)
        if not all(isinstance(word, str) and word for word in said):
            raise TypeError(
                f"{part.objects}: {str(obj)[:100]!r}: make it an object with apiVersion, kind and "
                "metadata.name"
            )
    return found


def custom_resource(reference: str) -> CustomResource[Any]:
    """The resource type that an operator names."""
    found = load(reference)
    if not isinstance(found, CustomResource):
        raise TypeError(f"{reference} is a {type(found).__name__}; make it a CustomResource")
    return found


def deployment(declared: Declaration, delivery: Deployed) -> Object:
    """The operator's Deployment."""
    args = ["run", f"--operator={declared.name}", "--leader-elect"]
    container = _container(
        delivery,
        "operator",
        [*args, f"--probe-address=$(POD_IP):{PROBES_PORT}"],
        PROBES_PORT,
    )
    container["env"].append({"name": "RELEASE_VERSION", "value": PLACEHOLDER_VERSION})
    labels = {"app": declared.account}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**_named(declared), "labels": labels},
        "spec": {
            "replicas": delivery.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels | PART_OF},
                "spec": {
                    "serviceAccountName": declared.account,
                    "terminationGracePeriodSeconds": 30,
                    "containers": [container],
                },
            },
        },
    }


def static_pod(declared: Declaration, delivery: StaticPod) -> Object:
    """The operator's static pod: it needs nothing of the cluster but an API server beside it."""
    directory = f"/etc/quarterdeck/{declared.name}"
    args = ["run", f"--operator={declared.name}", f"--kubeconfig={directory}/kubeconfig"]
    container = _container(
        delivery,
        delivery.container,
        [*args, f"--probe-address=$(POD_IP):{delivery.port}"],
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
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
        },
    }
    add_host_path(pod["spec"], credentials)
    return pod


def add_host_path(pod_spec: Object, wanted: HostPath) -> None:
    """Let the pod's container read a directory of the node."""
    (container,) = pod_spec["containers"]
    mount = {"name": wanted.name, "mountPath": wanted.mount, "readOnly": True}
    container.setdefault("volumeMounts", []).append(mount)
    host_path = {"path": wanted.path, "type": "Directory"}
    pod_spec.setdefault("volumes", []).append({"name": wanted.name, "hostPath": host_path})


def replace_args(args: Iterable[str], others: Iterable[str]) -> list[str]:
    """The arguments, each with the other one of the same flag in its place, then the rest."""
    wanted = {_flag(other): other for other in others}
    return [*(wanted.pop(_flag(arg), arg) for arg in args), *wanted.values()]


def _flag(arg: str) -> str:
    return arg.partition("=")[0]


def _own_namespaces(declared: Declaration) -> list[str]:
    """A static pod runs in a namespace that is there, and brings only the others."""
    deployed = isinstance(declared.delivery, Deployed)
    own = [declared.namespace] if deployed else []
    return list(dict.fromkeys([*own, *declared.other_namespaces]))


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _named(declared: Declaration) -> Object:
    return {"name": declared.account, "namespace": declared.namespace}


def _container(delivery: Deployed | StaticPod, name: str, args: list[str], port: int) -> Object:
    # What an operator reads is other people's; should a bound fail, it ends before its node does.
    resources = {
        "requests": {"cpu": "10m", "memory": delivery.memory},
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
