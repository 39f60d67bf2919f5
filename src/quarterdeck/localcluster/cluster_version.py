"""The cluster version operator in a local cluster: from its own Deployment, with a log level.

Its FeatureGate and its ClusterVersionOperator are created where they are missing and left alone
otherwise, because they are the user's; the log level counts only for one that is created.
"""

import copy
import json

import yaml

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.localcluster.definitions import definitions_directory

NAMESPACE = "openshift-cluster-version"
DEPLOYMENT = "deployment/cluster-version-operator"
_LIMIT = 90


def deploy_cluster_version(plane: ControlPlane, log_level: str | None = None) -> None:
    """Put the operator into a cluster, and return when its replicas are ready."""
    directory = definitions_directory().parent / "cluster-version"
    for manifest in seeds((directory / "config.yaml").read_text(), log_level):
        create_if_missing(plane, manifest)
    for name in ("rbac.yaml", "deployment.yaml"):
        file = f"--filename={directory / name}"
        plane.kubectl("apply", "--server-side", "--force-conflicts", file)
    plane.kubectl(
        "rollout", "status", DEPLOYMENT, f"--namespace={NAMESPACE}", f"--timeout={_LIMIT}s"
    )


def seeds(delivered: str, log_level: str | None) -> list[Object]:
    """The delivered objects that belong to the user, with the log level that is asked for."""
    manifests: list[Object] = [copy.deepcopy(one) for one in yaml.safe_load_all(delivered)]
    for manifest in manifests:
        if log_level and manifest["kind"] == "ClusterVersionOperator":
            manifest["spec"]["operatorLogLevel"] = log_level
    return manifests


def create_if_missing(plane: ControlPlane, manifest: Object) -> None:
    """Create a cluster-scoped object, or leave alone the one that is there."""
    what = (manifest["kind"].lower(), manifest["metadata"]["name"])
    if not plane.kubectl("get", *what, "--ignore-not-found", "--output=name").stdout.strip():
        plane.kubectl("create", "--filename=-", input=json.dumps(manifest))
