"""The schemas of Kubernetes' own types are those of the API server that we build on."""

import json

from quarterdeck.api.kubernetes_types import ROOTS, TYPES, collected
from quarterdeck.localcluster.controlplane import ControlPlane

DOCUMENTS = ("api/v1", "apis/apps/v1", "apis/rbac.authorization.k8s.io/v1")


def test_the_schemas_are_up_to_date(control_plane: ControlPlane) -> None:
    """If not, `scripts/kubernetes_types.py` writes them again."""
    requests = control_plane.requests()
    documents = [requests.send("GET", f"/openapi/v3/{one}").json() for one in DOCUMENTS]
    assert collected(documents, ROOTS) == json.loads(TYPES.read_bytes())
