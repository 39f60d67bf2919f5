"""Operators in a local cluster: put there from what they declare, and what they write.

As they are delivered elsewhere, but for what an operator declares for a local cluster, and for a
static pod's address, which is its own so that clusters side by side do not collide. Objects that
belong to the administrator are created where they are missing and left alone otherwise.
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
from quarterdeck.delivery.declaration import Declaration, Deployed, StaticPod
from quarterdeck.delivery.files import kinds, text
from quarterdeck.delivery.manifests import (
    CREDENTIALS,
    account_objects,
    deployment,
    foreign_namespaces,
    missing_namespace,
    own_objects,
    replace_args,
    static_pod,
)
from quarterdeck.delivery.registry import installed
from quarterdeck.delivery.soundness import trouble
from quarterdeck.localcluster import static_pods
from quarterdeck.localcluster.access import ClusterAccess
from quarterdeck.localcluster.components import THIS_MACHINE
from quarterdeck.localcluster.definitions import install_definitions
from quarterdeck.localcluster.errors import LocalClusterError, NotReady

READY_TIMEOUT = 90
"""Seconds until an operator that is not ready counts as failed."""
ELECTION_TIMEOUT = 10
"""Seconds in which replicas that are ready have elected one of them."""


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
    """Put an operator into a cluster, and return when it is ready.

    Its own objects are created with `changes`, which are by kind; `args` take the place of its
    arguments with the same flags.
    """
    declared = find_operator(name)
    if why := trouble(declared):
        raise LocalClusterError(f"the operator {name} is not brought: {why}")
    definitions = [definition(kind) for kind in kinds([declared])]
    install_definitions(cluster.requests(), definitions)
    for manifest in own_objects(declared):
        create_if_missing(cluster, with_changes(manifest, changes or {}))
    for namespace in foreign_namespaces(declared):
        if not _is_there(cluster, "namespace", namespace):
            raise LocalClusterError(missing_namespace(declared, namespace))
    apply(cluster, account_objects(declared))
    wanted = [*declared.local.args, *args]
    match declared.delivery:
        case Deployed() as delivery:
            workload = deployment(declared, delivery)
            _set_args(workload["spec"]["template"]["spec"], wanted)
            apply(cluster, [workload])
            where = (f"deployment/{declared.account}", f"--namespace={declared.namespace}")
            cluster.kubectl("rollout", "status", *where, f"--timeout={READY_TIMEOUT}s")
        case StaticPod() as delivery:
            pod = local_static_pod(static_pod(declared, delivery), wanted)
            _add_static_pod(cluster, pod, delivery.user)
            _wait_ready(cluster, declared)
        case None:
            raise LocalClusterError(
                f"the operator {name} is not delivered: run it with `quarterdeck run`"
            )


def local_static_pod(delivered: Object, args: Sequence[str]) -> Object:
    """The delivered static pod as it runs here."""
    pod = copy.deepcopy(delivered)
    pod["spec"].pop("hostNetwork")
    _set_args(pod["spec"], args)
    return pod


def with_changes(manifest: Object, changes: Mapping[str, Object]) -> Object:
    """A manifest with what is to be different in those of its kind."""
    changed: Object = _merged(manifest, changes.get(manifest["kind"], {}))
    return changed


def create_if_missing(cluster: ClusterAccess, manifest: Object) -> None:
    """Create an object, or leave alone the one that is there."""
    metadata = manifest["metadata"]
    group, _, version = manifest["apiVersion"].rpartition("/")
    # With its group: another one may have a kind of this name too.
    kind = f"{manifest['kind'].lower()}.{version}.{group}"
    where = (f"--namespace={metadata['namespace']}",) if "namespace" in metadata else ()
    if not _is_there(cluster, kind, metadata["name"], *where):
        cluster.kubectl("create", "--filename=-", input=json.dumps(manifest))


def apply(cluster: ClusterAccess, objects: Sequence[Object]) -> None:
    """Make objects so, whoever else had a part in them."""
    flags = ("--server-side", "--force-conflicts", "--filename=-")
    cluster.kubectl("apply", *flags, input=text(objects))


def log_target(declared: Declaration) -> tuple[str, ...]:
    """What `kubectl logs` is given to show the operator's log: that of all its replicas.

    kubectl would pick any one pod of a Deployment, and the one that leads has most to say.
    """
    namespace = f"--namespace={declared.namespace}"
    if isinstance(declared.delivery, StaticPod):
        return namespace, pod_name(declared)
    return namespace, f"--selector=app={declared.account}", "--prefix"


def pod_name(declared: Declaration) -> str:
    """The name by which the API server knows the operator's static pod."""
    return f"{declared.name}-{THIS_MACHINE}"


class Replica(msgspec.Struct, frozen=True):
    """A pod of an operator's Deployment."""

    name: str
    leads: bool


def replicas(declared: Declaration, cluster: ClusterAccess) -> list[Replica]:
    """The pods of an operator's Deployment, the one that leads first; some time for an election."""
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
        wanted = static_pods.StaticPod(manifest=manifest, user=user, volume=CREDENTIALS)
        cluster.add_static_pod(wanted)


def _wait_ready(cluster: ClusterAccess, declared: Declaration) -> None:
    """Return when the pod's mirror says that it is ready."""
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
