"""Deploys operators into a local cluster from their declarations, and finds their pods.

They are deployed as in any cluster, with some differences. An operator may declare arguments for a
local cluster. A static pod does not use the host's network, so that several clusters do not
collide. Objects of the administrator are created if they are missing, and never changed.
"""

import copy
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.api.definition import definition
from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import (
    Declaration,
    Deployed,
    PayloadPart,
    StaticPodDelivery,
)
from quarterdeck.delivery.deliverable import trouble
from quarterdeck.delivery.files import kinds
from quarterdeck.delivery.manifests import (
    CREDENTIALS,
    RENEWAL,
    account_objects,
    deployment,
    disruption_budgets,
    foreign_namespaces,
    missing_namespace,
    part_objects,
    replace_args,
    static_pod,
)
from quarterdeck.delivery.registry import installed
from quarterdeck.delivery.yaml_text import text
from quarterdeck.localcluster import static_pods
from quarterdeck.localcluster.access import ClusterAccess
from quarterdeck.localcluster.components import THIS_MACHINE
from quarterdeck.localcluster.definitions import install_definitions
from quarterdeck.localcluster.errors import LocalClusterError, NotReady

READY_TIMEOUT = 90
"""Seconds after which an operator that is not ready counts as failed."""
ELECTION_TIMEOUT = 10
"""Seconds after which ready replicas should have a leader."""


def find_operator(name: str) -> Declaration:
    """The installed operator of this name."""
    registry = installed()
    if name in registry.operators:
        return registry.operators[name]
    why = [str(one) for one in registry.left_out if one.name == name]
    raise LocalClusterError("; ".join(why) or f"no operator {name} is installed")


def deploy_operator(
    cluster: ClusterAccess,
    name: str,
    *,
    changes: Mapping[str, Object] | None = None,
    args: Sequence[str] = (),
) -> None:
    """Deploy an operator, and return when it is ready.

    `changes` are merged into its own objects, by kind. `args` replace its arguments with the same
    flags.
    """
    declared = find_operator(name)
    if why := trouble(declared):
        raise LocalClusterError(f"the operator {name} is not brought: {why}")
    definitions = [definition(kind) for kind in kinds([declared])]
    install_definitions(cluster.requests(), definitions)
    accounts = account_objects(declared)
    # Objects of its own may be in its namespaces, and rights in a namespace that is such an object.
    apply(cluster, [obj for obj in accounts if obj["kind"] == "Namespace"])
    for part in filter(lambda one: one.objects, declared.parts):
        _bring_objects(cluster, part, changes or {})
    for namespace in foreign_namespaces(declared):
        if not _is_there(cluster, "namespace", namespace):
            raise LocalClusterError(missing_namespace(declared, namespace))
    apply(cluster, accounts)
    wanted = [*declared.local.args, *args]
    declared = with_local_replicas(declared)
    match declared.delivery:
        case Deployed() as delivery:
            workload = deployment(declared, delivery)
            _set_args(workload["spec"]["template"]["spec"], wanted)
            apply(cluster, [workload, *disruption_budgets(declared)])
            where = (f"deployment/{declared.account}", f"--namespace={declared.namespace}")
            cluster.kubectl("rollout", "status", *where, f"--timeout={READY_TIMEOUT}s")
        case StaticPodDelivery() as delivery:
            pod = local_static_pod(static_pod(declared, delivery), wanted)
            _add_static_pod(cluster, pod, delivery.user)
            _wait_ready(cluster, declared)
        case None:
            raise LocalClusterError(
                f"the operator {name} is not delivered: run it with `quarterdeck run`"
            )


def with_local_replicas(declared: Declaration) -> Declaration:
    """The declaration with as many replicas as a local cluster has."""
    delivery, replicas = declared.delivery, declared.local.replicas
    if not isinstance(delivery, Deployed) or not replicas:
        return declared
    delivered = msgspec.structs.replace(delivery, replicas=replicas)
    return msgspec.structs.replace(declared, delivery=delivered)


def local_static_pod(delivered: Object, args: Sequence[str]) -> Object:
    """The delivered static pod as it runs in a local cluster."""
    pod = copy.deepcopy(delivered)
    pod["spec"].pop("hostNetwork")
    (container,) = pod["spec"]["containers"]
    # Its certificate is issued again at each start of the cluster.
    container["args"] = [arg for arg in container["args"] if not arg.startswith(f"{RENEWAL}=")]
    _set_args(pod["spec"], args)
    return pod


def with_changes(manifest: Object, changes: Mapping[str, Object]) -> Object:
    """A manifest with the changes for its kind merged in."""
    changed: Object = _merged(manifest, changes.get(manifest["kind"], {}))
    return changed


def create_if_missing(cluster: ClusterAccess, manifest: Object) -> None:
    """Create an object; do nothing if it exists."""
    metadata = manifest["metadata"]
    where = (f"--namespace={metadata['namespace']}",) if "namespace" in metadata else ()
    if not _is_there(cluster, full_kind(manifest), metadata["name"], *where):
        cluster.kubectl("create", "--filename=-", input=json.dumps(manifest))


def full_kind(manifest: Object) -> str:
    """The kind for kubectl, with its group: another group may have a kind of the same name."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    # A dot at the end names the group of Pods, which has no name.
    return f"{manifest['kind'].lower()}.{version}.{group}"


def is_deployed(cluster: ClusterAccess, declared: Declaration) -> bool:
    """Whether the cluster has the operator's Deployment or static pod."""
    namespace = f"--namespace={declared.namespace}"
    if isinstance(declared.delivery, StaticPodDelivery):
        return _is_there(cluster, "pod", pod_name(declared), namespace)
    return _is_there(cluster, "deployment", declared.account, namespace)


def apply(cluster: ClusterAccess, objects: Sequence[Object]) -> None:
    """Apply objects, and take over fields that other managers own."""
    if not objects:
        return  # kubectl refuses an empty input
    flags = ("--server-side", "--force-conflicts", "--filename=-")
    cluster.kubectl("apply", *flags, input=text(objects))


def _bring_objects(
    cluster: ClusterAccess, part: PayloadPart, changes: Mapping[str, Object]
) -> None:
    """Apply a part's objects, or create those that are missing if they are the administrator's."""
    wanted = [with_changes(manifest, changes) for manifest in part_objects(part)]
    if part.kept:
        apply(cluster, wanted)
        return
    for manifest in wanted:
        create_if_missing(cluster, manifest)


def log_target(declared: Declaration) -> tuple[str, ...]:
    """The arguments of `kubectl logs` for the logs of all the operator's replicas.

    For a Deployment kubectl would choose any one pod, and perhaps not the leader.
    """
    namespace = f"--namespace={declared.namespace}"
    if isinstance(declared.delivery, StaticPodDelivery):
        return namespace, pod_name(declared)
    return namespace, f"--selector=app={declared.account}", "--prefix"


def pod_name(declared: Declaration) -> str:
    """The name of the mirror pod of the operator's static pod."""
    return f"{declared.name}-{THIS_MACHINE}"


class Replica(msgspec.Struct, frozen=True):
    """A pod of an operator's Deployment."""

    name: str
    leads: bool


def replicas(declared: Declaration, cluster: ClusterAccess) -> list[Replica]:
    """The pods of an operator's Deployment, the leader first; waits a while for a leader."""
    space, deadline = f"--namespace={declared.namespace}", time.monotonic() + ELECTION_TIMEOUT
    selector, names = f"--selector=app={declared.account}", "jsonpath={.items[*].metadata.name}"
    holder = "jsonpath={.spec.holderIdentity}"
    while True:
        pods = cluster.kubectl("get", "pods", space, selector, f"--output={names}").stdout.split()
        lease = ("lease", declared.account, "--ignore-not-found")
        # The holder is a pod's name and a random part.
        leader = cluster.kubectl("get", *lease, space, f"--output={holder}").stdout.partition("_")[
            0
        ]
        if leader in pods or time.monotonic() > deadline:
            found = [Replica(pod, leads=pod == leader) for pod in pods]
            return sorted(found, key=lambda one: (not one.leads, one.name))
        time.sleep(0.2)


def _is_there(cluster: ClusterAccess, kind: str, name: str, *where: str) -> bool:
    found = cluster.kubectl("get", kind, name, "--ignore-not-found", "--output=name", *where)
    return bool(found.stdout.strip())


def _merged(value: Any, change: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(change, dict):
        return change
    merged = {key: _merged(value.get(key), change[key]) for key in change}
    return {**value, **merged}


def _set_args(pod_spec: Object, args: Sequence[str]) -> None:
    (container,) = pod_spec["containers"]
    container["args"] = replace_args(container["args"], args)


def _add_static_pod(cluster: ClusterAccess, pod: Object, user: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        manifest = Path(scratch) / "static-pod.yaml"
        manifest.write_text(text([pod]))
        wanted = static_pods.StaticPodRequest(manifest=manifest, user=user, volume=CREDENTIALS)
        cluster.add_static_pod(wanted)


def _wait_ready(cluster: ClusterAccess, declared: Declaration) -> None:
    """Wait until the mirror pod is ready."""
    namespace, name = log_target(declared)
    deadline = time.monotonic() + READY_TIMEOUT
    wanted = "--output=jsonpath={.status.conditions[?(@.type=='Ready')].status}"
    while True:
        answer = cluster.kubectl("get", "pod", name, namespace, wanted, check=False)
        if answer.stdout == "True":
            return
        if time.monotonic() > deadline:
            raise NotReady(
                f"the operator {declared.name} was not ready after {READY_TIMEOUT} s; see: "
                f"quarterdeck local kubectl logs {namespace} {name}",
                answer.stderr,
            )
        time.sleep(0.2)
