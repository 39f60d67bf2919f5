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


def bootstrap_manifests(root: Path) -> str:
    """The cluster version operator's own manifests, of the first release, ready to be applied."""
    files = sorted((root / FIRST).glob("0000_00_cluster-version-operator_*"))
    text = "---\n".join(file.read_text() for file in files)
    return (
        text.replace("{{.ReleaseImage}}", f"quarterdeck:{FIRST}")
        .replace("{{.ClusterProfile}}", "self-managed-high-availability")
        .replace("0.0.1-snapshot", FIRST)
    )


def deploy_releases(plane: ControlPlane, show: Callable[[str], None]) -> None:
    """Start the cluster version operator, and return when it has applied the first release."""
    root = plane.layout.root / "releases"
    write_releases(root)
    # A definition is served a moment after it is there; what needs it is applied by then.
    flags = ("--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}")
    plane.kubectl("apply", *flags, "--filename=-", input=bootstrap_manifests(root))
    deadline = time.monotonic() + LIMIT
    told = ""
    while True:
        status = _status(plane)
        if any(entry["state"] == "Completed" for entry in status.get("history") or []):
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
