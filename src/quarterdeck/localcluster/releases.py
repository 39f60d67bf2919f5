"""The two releases of a local cluster, and the operator that applies them.

Both releases have the same manifests and differ only in their version: an operator's version is its
RELEASE_VERSION, so one installation can be two releases. This module applies only the manifests of
the operator that applies payloads; that operator applies the rest.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import structs

from quarterdeck.api.custom_resource import SELF_MANAGED
from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration, Deployed, HostPath
from quarterdeck.delivery.deliverable import troubles
from quarterdeck.delivery.files import payload_files
from quarterdeck.delivery.manifests import own_objects, replace_args
from quarterdeck.delivery.payload import component_prefix
from quarterdeck.delivery.registry import installed
from quarterdeck.delivery.yaml_text import text
from quarterdeck.localcluster.access import ClusterAccess
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.infrastructure import INFRASTRUCTURE_KIND, ensure_infrastructure
from quarterdeck.localcluster.operators import (
    create_if_missing,
    with_changes,
    with_local_replicas,
)
from quarterdeck.payload.files import RELEASE_METADATA
from quarterdeck.payload.model import ReleaseMetadata
from quarterdeck.payload.releases import load_release, metadata_text, read_releases
from quarterdeck.payload.seal import seal

MOUNT = "/releases"
"""Where the operator's pod finds the releases directory."""
FIRST, NEXT = "0.1.0", "0.2.0"
"""The first release of a cluster, and the one to which it can be updated."""
RELEASE_TIMEOUT = 180.0
"""Seconds after which a release that is not applied counts as failed."""
_CLUSTER_VERSION = "/apis/config.openshift.io/v1/clusterversions/version"


def payload_operators(operators: Iterable[Declaration] | None = None) -> list[Declaration]:
    """The operators in a payload: of the given ones, or of all installed and valid ones."""
    found = list(installed().operators.values() if operators is None else operators)
    broken = troubles(found)
    return [one for one in found if one.is_in_payload and one.name not in broken]


def payload_applier(operators: Iterable[Declaration]) -> Declaration:
    """The operator that applies payloads."""
    for declared in operators:
        if declared.applies_payload:
            return declared
    raise LocalClusterError("no operator that applies payloads is installed")


def write_releases(root: Path, operators: Iterable[Declaration] | None = None) -> None:
    """Write the releases directory: for each version a payload and its previous versions."""
    wanted = payload_operators(operators)
    for version, previous in ((FIRST, NEXT), (NEXT, FIRST)):
        write_release(root, version, (previous,), wanted)


def write_release(
    root: Path, version: str, previous: tuple[str, ...], operators: Iterable[Declaration]
) -> None:
    """Write one release of these operators into the releases directory."""
    directory = root / version
    directory.mkdir(parents=True, exist_ok=True)
    files = payload_files(_here(declared, root) for declared in operators)
    metadata = ReleaseMetadata(version=version, previous=previous)
    wanted = files | {RELEASE_METADATA: metadata_text(metadata)}
    # Files of an earlier start with other operators do not belong to this release.
    for path in directory.iterdir():
        if path.name not in wanted:
            path.unlink()
    for name, content in wanted.items():
        (directory / name).write_text(content)
    seal(directory)


def bootstrap_manifests(root: Path, version: str = FIRST) -> str:
    """A release's manifests of the operator that applies payloads, without placeholders."""
    offer = read_releases(root).by_version(version)
    if offer is None:
        raise LocalClusterError(f"{root} has no release {version}")
    own = component_prefix(payload_applier(payload_operators()))
    manifests = load_release(offer, SELF_MANAGED[0]).manifests
    return text(manifest.object for manifest in manifests if manifest.file.startswith(own))


def apply_as_operator(cluster: ClusterAccess, manifests: str) -> None:
    """Apply manifests with the operator's own field manager, so that it owns these fields later."""
    manager = payload_applier(payload_operators()).field_manager
    flags = ("--server-side", "--force-conflicts", f"--field-manager={manager}")
    cluster.kubectl("apply", *flags, "--filename=-", input=manifests)


def deploy_releases(
    cluster: ClusterAccess,
    show: Callable[[str], None],
    changes: Mapping[str, Object] | None = None,
) -> None:
    """Deploy the operator that applies payloads, and return when its release is applied."""
    operators = payload_operators()
    registry = installed()
    for left_out in registry.left_out:
        show(str(left_out))
    for name, why in troubles(registry.operators.values()).items():
        show(f"the operator {name} is left out: {why}")
    root = _releases(cluster)
    write_releases(root, operators)
    history = _status(cluster.requests()).get("history") or [{"version": FIRST}]
    version = history[0]["version"] if (root / history[0]["version"]).is_dir() else FIRST
    _apply_definition(cluster, root / version, INFRASTRUCTURE_KIND)
    ensure_infrastructure(cluster)
    _create_changed(cluster, root / version, operators, changes or {})
    apply_as_operator(cluster, bootstrap_manifests(root, version))
    wait_for_release(cluster, show)


def has_releases(cluster: ClusterAccess) -> bool:
    """Whether the cluster has a releases directory and the operator that applies payloads."""
    declared = payload_applier(payload_operators())
    where = (f"deployment/{declared.account}", f"--namespace={declared.namespace}")
    if not _releases(cluster).is_dir():
        return False
    return bool(cluster.kubectl("get", *where, "--ignore-not-found", "--output=name").stdout)


def wait_for_release(cluster: ClusterAccess, show: Callable[[str], None]) -> None:
    """Wait until the release is applied and its operators run."""
    _wait_applied(cluster, show)
    # After a restart of the cluster the release is applied, but its operators still start.
    show("waiting for the operators")
    wait_for_operators(cluster, payload_operators())


def wait_for_operators(cluster: ClusterAccess, operators: Iterable[Declaration]) -> None:
    """Wait until the Deployments of these operators are rolled out."""
    for declared in operators:
        flags = (f"--namespace={declared.namespace}", f"--timeout={RELEASE_TIMEOUT:.0f}s")
        cluster.kubectl("rollout", "status", f"deployment/{declared.account}", *flags)


def _releases(cluster: ClusterAccess) -> Path:
    return cluster.layout.root / "releases"


def _here(declared: Declaration, root: Path) -> Declaration:
    """The declaration as it is delivered on this machine.

    It has the arguments and replicas for a local cluster, and the operator that applies payloads
    has this machine's releases directory.
    """
    declared = with_local_replicas(declared)
    delivery = declared.delivery
    if not isinstance(delivery, Deployed) or delivery.in_payload is None:
        return declared
    in_payload = delivery.in_payload
    if declared.applies_payload:
        in_payload = structs.replace(
            in_payload,
            args=(f"--releases={MOUNT}", *in_payload.args),
            host_paths=(*in_payload.host_paths, HostPath("releases", str(root), MOUNT)),
        )
        # A standard would refuse the directory.
        declared = structs.replace(declared, pod_security="privileged")
    args = tuple(replace_args(delivery.args, declared.local.args))
    here = structs.replace(delivery, args=args, in_payload=in_payload)
    return structs.replace(declared, delivery=here)


def _create_changed(
    cluster: ClusterAccess,
    release: Path,
    operators: Sequence[Declaration],
    changes: Mapping[str, Object],
) -> None:
    """Create the objects with changes before the release does, unless they exist."""
    for declared in operators:
        for manifest in own_objects(declared):
            if manifest["kind"] not in changes:
                continue
            _apply_definition(cluster, release, manifest["kind"])
            create_if_missing(cluster, with_changes(manifest, changes))


def _apply_definition(cluster: ClusterAccess, release: Path, kind: str) -> None:
    """Apply the definition of a kind, and return when the kind is served."""
    for file in release.glob("*.crd.yaml"):
        definition = yaml.safe_load(file.read_text())
        if definition["spec"]["names"]["kind"] == kind:
            apply_as_operator(cluster, file.read_text())
            crd = f"crd/{definition['metadata']['name']}"
            cluster.kubectl(
                "wait", crd, "--for=condition=Established", f"--timeout={RELEASE_TIMEOUT:.0f}s"
            )


def _wait_applied(cluster: ClusterAccess, show: Callable[[str], None]) -> None:
    """Wait until a release is completed, and show ClusterVersion's messages meanwhile."""
    deadline, shown = time.monotonic() + RELEASE_TIMEOUT, ""
    requests = cluster.requests()
    while True:
        status = _status(requests)
        history = status.get("history") or [{"state": ""}]
        if history[0]["state"] == "Completed":
            return
        message = _message(status) or "waiting for the operator that applies the release"
        if message != shown:
            show(message)
            shown = message
        if time.monotonic() > deadline:
            raise LocalClusterError(
                f"the release is not applied after {RELEASE_TIMEOUT:.0f} s: {message}"
            )
        time.sleep(0.2)


def _status(requests: Requests) -> dict[str, Any]:
    """The status of ClusterVersion; empty if there is none yet, or nobody answers."""
    try:
        answer = requests.send("GET", _CLUSTER_VERSION)
    except OSError:
        return {}
    status: dict[str, Any] = (answer.json().get("status") or {}) if answer.ok else {}
    return status


def _message(status: dict[str, Any]) -> str:
    """The message of Progressing, as `kubectl get clusterversion` shows it."""
    for condition in status.get("conditions") or []:
        if condition["type"] == "Progressing":
            return str(condition["message"])
    return ""
