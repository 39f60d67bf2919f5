"""Who writes: the sample operator under its own account, a writer, and somebody else."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.controller.writer import Writer
from tests.places import DEPLOY

from quarterdeck.kube import Client, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.operator_process import OwnOperators, StartOperator

DEPLOYED = DEPLOY / "sample" / "rbac.yaml"
NAMESPACE = "quarterdeck-sample"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REPORTED = "/apis/config.openshift.io/v1/clusteroperators/sample"


def in_namespace(manifest: Any, namespace: str) -> Any:
    """A delivered manifest as it is for an operator in this namespace."""
    if isinstance(manifest, dict):
        return {key: in_namespace(value, namespace) for key, value in manifest.items()}
    if isinstance(manifest, list):
        return [in_namespace(value, namespace) for value in manifest]
    return namespace if manifest == NAMESPACE else manifest


@pytest.fixture
def sample_user(control_plane: ControlPlane, crds: list[str], namespace: str) -> Iterator[str]:
    """The sample operator's account with the delivered roles; that of its namespace is here.

    Its ClusterOperator is in no namespace: those rights it has everywhere, until the test ends.
    """
    user = f"system:serviceaccount:{namespace}:sample-operator"
    grant_reporting(control_plane, namespace, user)
    objects = ApiObjects(control_plane.requests(), namespace)
    for manifest in yaml.safe_load_all(DEPLOYED.read_text()):
        # One role for each test: some of them take rights away.
        if manifest["metadata"].get("namespace") == NAMESPACE:
            objects.apply(in_namespace(manifest, namespace))
    yield user
    for path in (f"{RBAC}/clusterroles/{user}", f"{RBAC}/clusterrolebindings/{user}", REPORTED):
        control_plane.requests().send("DELETE", path)


def grant_reporting(control_plane: ControlPlane, namespace: str, user: str) -> None:
    """Let the account report: the rules of the delivered role that are about ClusterOperators."""
    manifests = list(yaml.safe_load_all(DEPLOYED.read_text()))
    role = next(manifest for manifest in manifests if manifest["kind"] == "ClusterRole")
    rules = [rule for rule in role["rules"] if rule["apiGroups"] == ["config.openshift.io"]]
    metadata = {"name": user}
    group = role["apiVersion"].partition("/")[0]
    account = {"kind": "ServiceAccount", "name": "sample-operator", "namespace": namespace}
    binding = {
        "apiVersion": role["apiVersion"],
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": user},
        "subjects": [account],
    }
    control_plane.requests().apply(
        f"{RBAC}/clusterroles", {**role, "metadata": metadata, "rules": rules}
    )
    control_plane.requests().apply(f"{RBAC}/clusterrolebindings", binding)


@pytest.fixture
def run_sample(
    control_plane: ControlPlane, sample_user: str, namespace: str, own_operators: OwnOperators
) -> StartOperator:
    """Starts the sample operator in the test's namespace."""
    account = control_plane.kubeconfig_for_service_account(namespace, "sample-operator")
    where = (f"--namespace={namespace}", f"--lease-namespace={namespace}")
    return own_operators(control_plane, "sample", *where, account=account)


@pytest.fixture
def writer(control_plane: ControlPlane, crds: list[str], namespace: str) -> Writer:
    return Writer(control_plane, namespace)


@pytest.fixture
async def admin(kubeconfig: Path) -> AsyncIterator[Client]:
    """Somebody else."""
    async with Client(load_kubeconfig(kubeconfig)) as client:
        yield client
