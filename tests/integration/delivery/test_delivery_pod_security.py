"""The API server's strictest pod security standard accepts the pods of every Deployment."""

import json

from tests.objects import metadata

from quarterdeck.delivery.declaration import Deployed
from quarterdeck.delivery.manifests import deployment
from quarterdeck.delivery.registry import installed
from quarterdeck.localcluster import ControlPlane

DEPLOYED = [one for one in installed().operators.values() if isinstance(one.delivery, Deployed)]


def test_every_operator_runs_under_the_restricted_standard(
    control_plane: ControlPlane, namespace: str
) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    control_plane.kubectl("label", "namespace", namespace, label)
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
