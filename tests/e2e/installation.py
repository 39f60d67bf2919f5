"""What an installed cluster says of its release and its operators."""

from typing import Any

from tests.e2e.cluster import RealCluster, conditions


def version(cluster: RealCluster) -> dict[str, Any]:
    """The ClusterVersion."""
    found: dict[str, Any] = cluster.get("clusterversion", "version")
    return found


def is_at(cluster: RealCluster, wanted: str) -> bool:
    """Whether the cluster has settled at a version."""
    status = version(cluster)
    (newest, *_) = status["status"]["history"]
    settled = conditions(status)
    return (
        newest["version"] == wanted
        and newest["state"] == "Completed"
        and settled["Available"] == "True"
        and settled["Progressing"] == "False"
    )


def healthy(cluster: RealCluster, wanted: str) -> bool:
    """Whether every operator is Available, not Degraded, and at this version."""
    for one in cluster.get("clusteroperators")["items"]:
        found = conditions(one)
        versions = {entry["name"]: entry["version"] for entry in one["status"].get("versions", [])}
        if (
            found.get("Available") != "True"
            or found.get("Degraded") != "False"
            or versions.get("operator") != wanted
        ):
            return False
    return True
