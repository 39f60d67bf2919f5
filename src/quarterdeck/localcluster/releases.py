"""The releases of a local cluster, and the operator that applies them.

Both releases have the same manifests, and differ in their version alone: an operator's version is
its RELEASE_VERSION, so one installation can be two releases. Only what the operator that applies
them needs is put into the cluster here; it brings the rest.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import structs

from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration, Deployed
from quarterdeck.delivery.files import payload_files
from quarterdeck.delivery.manifests import own_objects
from quarterdeck.delivery.payload import component_prefix
from quarterdeck.delivery.registry import installed
from quarterdeck.delivery.soundness import troubles
from quarterdeck.localcluster.access import ClusterAccess
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.operators import create_if_missing, with_changes
from quarterdeck.payload.model import PLACEHOLDER_VERSION
from quarterdeck.payload.seal import seal

FIRST, NEXT = "0.1.0", "0.2.0"
"""The release that a cluster begins with, and the one to update it to."""
LIMIT = 180.0
"""Seconds until a release that is not applied counts as stuck."""


def delivered(operators: Iterable[Declaration] | None = None) -> list[Declaration]:
    """The operators that a payload has: of these, or of all that are installed and sound."""
    found = list(installed().operators.values() if operators is None else operators)
    broken = troubles(found)
    return [one for one in found if isinstance(one.delivery, Deployed) and one.name not in broken]


def applier(operators: Iterable[Declaration]) -> Declaration:
    """The operator that applies payloads."""
    for declared in operators:
        if declared.applies_payload:
            return declared
    raise LocalClusterError("no operator that applies payloads is installed")


def write_releases(root: Path, operators: Iterable[Declaration] | None = None) -> None:
    """Write the releases directory: a payload for each version, and where each comes from."""
    files = payload_files(_here(declared, root) for declared in delivered(operators))
    for version, previous in ((FIRST, [NEXT]), (NEXT, [FIRST])):
        directory = root / version
        directory.mkdir(parents=True, exist_ok=True)
        metadata = {"kind": "cincinnati-metadata-v0", "version": version, "previous": previous}
        wanted = files | {"release-metadata": json.dumps(metadata, indent=2) + "\n"}
        # What an earlier start had, with other operators, is not of this release.
        for path in directory.iterdir():
            if path.name not in wanted:
                path.unlink()
        for name, content in wanted.items():
            (directory / name).write_text(content)
        seal(directory)


def bootstrap_manifests(root: Path, version: str = FIRST) -> str:
    """The manifests of the operator that applies payloads, of a release, ready to be applied."""
    files = sorted((root / version).glob(f"{component_prefix(applier(delivered()))}*"))
    joined = "---\n".join(file.read_text() for file in files)
    return (
        joined.replace("{{.ReleaseImage}}", f"quarterdeck:{version}")
        .replace("{{.ClusterProfile}}", "self-managed-high-availability")
        .replace(PLACEHOLDER_VERSION, version)
    )


def apply_as_operator(cluster: ClusterAccess, manifests: str) -> None:
    """Apply manifests under the operator's own name: it goes on with what it is given here."""
    manager = applier(delivered()).field_manager
    flags = ("--server-side", "--force-conflicts", f"--field-manager={manager}")
    cluster.kubectl("apply", *flags, "--filename=-", input=manifests)


def deploy_releases(
    cluster: ClusterAccess,
    show: Callable[[str], None],
    changes: Mapping[str, Object] | None = None,
) -> None:
    """Start the operator that applies payloads, and return when it has applied its release."""
    operators = delivered()
    registry = installed()
    for left_out in registry.left_out:
        show(str(left_out))
    for name, why in troubles(registry.operators.values()).items():
        show(f"the operator {name} is left out: {why}")
    root = _releases(cluster)
    write_releases(root, operators)
    history = _status(cluster).get("history") or [{"version": FIRST}]
    version = history[0]["version"] if (root / history[0]["version"]).is_dir() else FIRST
    _create_changed(cluster, root / version, operators, changes or {})
    apply_as_operator(cluster, bootstrap_manifests(root, version))
    wait_for_release(cluster, show)


def has_releases(cluster: ClusterAccess) -> bool:
    """Whether a release was brought, and the operator that applies it is there."""
    declared = applier(delivered())
    where = (f"deployment/{declared.account}", f"--namespace={declared.namespace}")
    if not _releases(cluster).is_dir():
        return False
    return bool(cluster.kubectl("get", *where, "--ignore-not-found", "--output=name").stdout)


def wait_for_release(cluster: ClusterAccess, show: Callable[[str], None]) -> None:
    """Return when the release is applied and its operators run."""
    _wait_applied(cluster, show)
    # A cluster that was stopped has its release, and its operators are still to come.
    show("waiting for the operators")
    wait_for_operators(cluster, delivered())


def wait_for_operators(cluster: ClusterAccess, operators: Iterable[Declaration]) -> None:
    """Return when the Deployments of these operators are rolled out."""
    for declared in operators:
        flags = (f"--namespace={declared.namespace}", f"--timeout={LIMIT:.0f}s")
        cluster.kubectl("rollout", "status", f"deployment/{declared.account}", *flags)


def _releases(cluster: ClusterAccess) -> Path:
    return cluster.layout.root / "releases"


def _here(declared: Declaration, root: Path) -> Declaration:
    """The operator that applies payloads with this machine's releases in place of a real node's."""
    delivery = declared.delivery
    if not declared.applies_payload or not isinstance(delivery, Deployed):
        return declared
    moved = tuple(
        structs.replace(host_path, path=str(root)) for host_path in delivery.in_payload.host_paths
    )
    in_payload = structs.replace(delivery.in_payload, host_paths=moved)
    return structs.replace(declared, delivery=structs.replace(delivery, in_payload=in_payload))


def _create_changed(
    cluster: ClusterAccess,
    release: Path,
    operators: Sequence[Declaration],
    changes: Mapping[str, Object],
) -> None:
    """Create what was asked to be different before the release does, unless it is there."""
    for declared in operators:
        for manifest in own_objects(declared):
            if manifest["kind"] not in changes:
                continue
            _apply_definition(cluster, release, manifest["kind"])
            create_if_missing(cluster, with_changes(manifest, changes))


def _apply_definition(cluster: ClusterAccess, release: Path, kind: str) -> None:
    """Bring a kind's definition, and return when the kind is served."""
    for file in release.glob("*.crd.yaml"):
        definition = yaml.safe_load(file.read_text())
        if definition["spec"]["names"]["kind"] == kind:
            apply_as_operator(cluster, file.read_text())
            crd = f"crd/{definition['metadata']['name']}"
            cluster.kubectl("wait", crd, "--for=condition=Established", f"--timeout={LIMIT:.0f}s")


def _wait_applied(cluster: ClusterAccess, show: Callable[[str], None]) -> None:
    """Return when a release is fully applied; what ClusterVersion says of it is shown."""
    deadline, told = time.monotonic() + LIMIT, ""
    while True:
        status = _status(cluster)
        history = status.get("history") or [{"state": ""}]
        if history[0]["state"] == "Completed":
            return
        message = _message(status) or "waiting for the operator that applies the release"
        if message != told:
            show(message)
            told = message
        if time.monotonic() > deadline:
            raise LocalClusterError(f"the release is not applied after {LIMIT:.0f} s: {message}")
        time.sleep(0.2)


def _status(cluster: ClusterAccess) -> dict[str, Any]:
    found = cluster.kubectl(
        "get", "clusterversion", "version", "--ignore-not-found", "--output=json", check=False
    ).stdout
    status: dict[str, Any] = (json.loads(found).get("status") or {}) if found else {}
    return status


def _message(status: dict[str, Any]) -> str:
    """What Progressing says, which is what `kubectl get clusterversion` shows."""
    for condition in status.get("conditions") or []:
        if condition["type"] == "Progressing":
            return str(condition["message"])
    return ""
