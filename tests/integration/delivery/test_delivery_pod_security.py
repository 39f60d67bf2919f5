"""The API server's strictest pod security standard accepts the pods of every Deployment."""

import json
from pathlib import Path

import yaml
from tests.objects import metadata

from quarterdeck.delivery.declaration import Deployed
from quarterdeck.delivery.manifests import deployment
from quarterdeck.delivery.registry import installed
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.releases import bootstrap_manifests, write_releases

ENFORCE = "pod-security.kubernetes.io/enforce"
DEPLOYED = [one for one in installed().operators.values() if isinstance(one.delivery, Deployed)]


def test_every_operator_runs_under_the_restricted_standard(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.kubectl("label", "namespace", namespace, f"{ENFORCE}=restricted")
    assert len(DEPLOYED) > 4
    for declared in DEPLOYED:
        assert isinstance(declared.delivery, Deployed)
        template = deployment(declared, declared.delivery)["spec"]["template"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata(declared.name, namespace),
            "spec": {**template["spec"], "serviceAccountName": "default"},
        }
        control_plane.kubectl("create", "--dry-run=server", "--filename=-", input=json.dumps(pod))


def test_a_local_release_lifts_the_standard_that_its_namespace_had(tmp_path: Path) -> None:
    """There the operator mounts a directory; its pods were refused if it ran without one before."""
    write_releases(tmp_path)
    objects = list(yaml.safe_load_all(bootstrap_manifests(tmp_path)))
    (found,) = (obj["metadata"]["labels"] for obj in objects if obj["kind"] == "Namespace")
    assert found == {ENFORCE: "privileged"}
