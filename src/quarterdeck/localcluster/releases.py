"""The releases of a local cluster, and the cluster version operator that applies them.

Both releases have the same manifests, and differ in their version alone: an operator's version is
its RELEASE_VERSION, so one installation can be two releases. Only what the cluster version
operator itself needs is put into the cluster here; it applies the rest.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from quarterdeck.localcluster.cluster_version import create_if_missing, seeds
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.localcluster.definitions import definitions_directory
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.own_payload import RELEASES

FIRST, NEXT = "0.1.0", "0.2.0"
"""The release that a cluster begins with, and the one to update it to."""
LIMIT = 180.0
"""Seconds until a release that is not applied counts as stuck."""
FIELD_MANAGER = "quarterdeck-cluster-version"
"""The operator's own name: it goes on with what it is given here."""
DEPLOYMENTS = (
    ("openshift-cluster-version", "cluster-version-operator"),
    ("quarterdeck-sample", "sample-operator"),
)
_AS_OPERATOR = (
    *("--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}"),
    "--filename=-",
)


def write_releases(root: Path, payload: Path | None = None) -> None:
    """Write the releases directory: a payload for each version, and where each comes from."""
    payload = payload or definitions_directory().parent / "payload"
    for version, previous in ((FIRST, [NEXT]), (NEXT, [FIRST])):
        directory = root / version
        directory.mkdir(parents=True, exist_ok=True)
        for file in payload.iterdir():
            text = file.read_text().replace(RELEASES, str(root))
            (directory / file.name).write_text(text)
        metadata = {"kind": "cincinnati-metadata-v0", "version": version, "previous": previous}
        (directory / "release-metadata").write_text(json.dumps(metadata, indent=2) + "\n")


def bootstrap_manifests(root: Path, version: str = FIRST) -> str:
    """The cluster version operator's own manifests, of a release, ready to be applied."""
    files = sorted((root / version).glob("0000_00_cluster-version-operator_*"))
    text = "---\n".join(file.read_text() for file in files)
    return (
        text.replace("{{.ReleaseImage}}", f"quarterdeck:{version}")
        .replace("{{.ClusterProfile}}", "self-managed-high-availability")
        .replace("0.0.1-snapshot", version)
    )


def deploy_releases(
    plane: ControlPlane, show: Callable[[str], None], log_level: str | None = None
) -> None:
    """Start the cluster version operator, and return when it has applied its release."""
    root = plane.layout.root / "releases"
    write_releases(root)
    history = _status(plane).get("history") or [{"version": FIRST}]
    version = history[0]["version"] if (root / history[0]["version"]).is_dir() else FIRST
    if log_level:
        _seed_log_level(plane, root, version, log_level)
    plane.kubectl("apply", *_AS_OPERATOR, input=bootstrap_manifests(root, version))
    _wait_applied(plane, show)
    # A cluster that was stopped has its release, and its operators are still to come.
    show("waiting for the operators")
    for namespace, name in DEPLOYMENTS:
        flags = (f"--namespace={namespace}", f"--timeout={LIMIT:.0f}s")
        plane.kubectl("rollout", "status", f"deployment/{name}", *flags)


def _seed_log_level(plane: ControlPlane, root: Path, version: str, log_level: str) -> None:
    """Create the operator's configuration before the operator does, unless there is one."""
    (file,) = (root / version).glob("*_configuration.crd.yaml")
    plane.kubectl("apply", *_AS_OPERATOR, input=file.read_text())
    crd = f"crd/{yaml.safe_load(file.read_text())['metadata']['name']}"
    plane.kubectl("wait", crd, "--for=condition=Established", f"--timeout={LIMIT:.0f}s")
    delivered = (definitions_directory().parent / "cluster-version" / "config.yaml").read_text()
    for manifest in seeds(delivered, log_level):
        if manifest["kind"] == "ClusterVersionOperator":
            create_if_missing(plane, manifest)


def _wait_applied(plane: ControlPlane, show: Callable[[str], None]) -> None:
    """Return when a release is fully applied; what ClusterVersion says of it is shown."""
    deadline, told = time.monotonic() + LIMIT, ""
    while True:
        status = _status(plane)
        history = status.get("history") or [{"state": ""}]
        if history[0]["state"] == "Completed":
            return
        message = _message(status) or "waiting for the cluster version operator"
        if message != told:
            show(message)
            told = message
        if time.monotonic() > deadline:
            raise LocalClusterError(f"the release is not applied after {LIMIT:.0f} s: {message}")
        time.sleep(0.2)


def _status(plane: ControlPlane) -> dict[str, Any]:
    found = plane.kubectl(
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
