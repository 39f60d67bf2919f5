"""Creates the Infrastructure `cluster`, which names the platform, where nobody else does.

On OpenShift the installer writes it. On plain Kubernetes nobody does, and a release cannot: it
applies no status. One that names a platform is left alone.
"""

import json

from quarterdeck.api.config_v1 import INFRASTRUCTURES
from quarterdeck.api.config_v1.platforms import PlatformType
from quarterdeck.localcluster.access import ClusterAccess
from quarterdeck.localcluster.errors import LocalClusterError

INFRASTRUCTURE_KIND = INFRASTRUCTURES.kind
NAME = "cluster"


def ensure_infrastructure(cluster: ClusterAccess, platform: str = PlatformType.NONE) -> None:
    """Create the Infrastructure with this platform, unless one names a platform."""
    requests, path = cluster.requests(), INFRASTRUCTURES.path()
    found = requests.send("GET", f"{path}/{NAME}")
    if found.ok and _names_platform(found.json().get("status") or {}):
        return
    if not found.ok and found.status != 404:
        # It may name a platform, which would be lost.
        raise LocalClusterError(
            f"Infrastructure {NAME} cannot be read: the API server answers HTTP {found.status}"
        )
    if not found.ok:
        manifest = {
            "apiVersion": INFRASTRUCTURES.api_version,
            "kind": INFRASTRUCTURES.kind,
            "metadata": {"name": NAME},
            "spec": {},
        }
        requests.apply(path, manifest)
    status = {"status": {"platform": platform, "platformStatus": {"type": platform}}}
    answer = requests.send(
        "PATCH",
        f"{path}/{NAME}/status",
        json.dumps(status).encode(),
        "application/merge-patch+json",
    )
    if not answer.ok:
        raise LocalClusterError(
            f"the API server refused the status of Infrastructure {NAME}: HTTP {answer.status}"
        )


def _names_platform(status: dict[str, object]) -> bool:
    newer = status.get("platformStatus")
    return bool(status.get("platform") or (isinstance(newer, dict) and newer.get("type")))
