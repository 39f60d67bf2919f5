"""Who is let in, and where: the API server, etcd, and the components' own accounts."""

import http.client
import json
import os
import ssl
from pathlib import Path

import pytest

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.certificates import certificate_path, key_path
from quarterdeck.localcluster.components import COMPONENTS, GO_SETTINGS
from quarterdeck.testing.plugin import Kubectl


def status_of(port: int, path: str, authority: Path, pki: Path, user: str | None = None) -> int:
    """The HTTP status of a GET, with the certificate of a user or none."""
    context = ssl.create_default_context(cafile=str(authority))
    if user is not None:
        context.load_cert_chain(certificate_path(pki, user), key_path(pki, user))
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_components_see_nothing_of_the_users_environment_but_gos_own_settings(
    control_plane: ControlPlane,
) -> None:
    settings = {name: os.environ[name] for name in GO_SETTINGS if name in os.environ}
    for component in COMPONENTS:
        process = Path(f"/proc/{control_plane.processes[component].pid}/environ")
        variables = dict(one.split("=", 1) for one in process.read_text().split("\0") if "=" in one)
        variables.pop("LC_CTYPE", None)  # Python sets it in a process that has no locale.
        own = {"HOME": str(control_plane.layout.root), "PATH": os.defpath}
        assert variables == own | settings, component


@pytest.mark.parametrize("path", ["/api", "/version", "/readyz", "/livez", "/metrics"])
def test_the_api_server_answers_nobody_without_a_name(
    control_plane: ControlPlane, path: str
) -> None:
    pki, port = control_plane.layout.pki, control_plane.setup.ports.kube_apiserver
    assert status_of(port, path, certificate_path(pki, "ca"), pki) == 401
    assert status_of(port, path, certificate_path(pki, "ca"), pki, "admin") == 200


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(None, id="no certificate"),
        pytest.param("admin", id="a certificate of the cluster's authority"),
    ],
)
def test_etcd_refuses_who_is_not_its_own(control_plane: ControlPlane, user: str | None) -> None:
    """It ends the connection; with its own authority's certificate the same request succeeds."""
    pki, port = control_plane.layout.pki, control_plane.setup.ports.etcd_client
    authority = certificate_path(pki, "etcd-ca")
    with pytest.raises(OSError, match=r"certificate|reset|EOF|alert"):
        status_of(port, "/version", authority, pki, user)
    assert status_of(port, "/version", authority, pki, "etcd-client") == 200


@pytest.mark.parametrize(
    ("component", "port"),
    [
        ("kube-controller-manager", "kube_controller_manager"),
        ("kube-scheduler", "kube_scheduler"),
    ],
)
def test_metrics_of_components_are_not_for_everybody(
    control_plane: ControlPlane, component: str, port: str
) -> None:
    pki = control_plane.layout.pki
    number = getattr(control_plane.setup.ports, port)
    authority = certificate_path(pki, "ca")
    assert status_of(number, "/metrics", authority, pki) in (401, 403)
    assert status_of(number, "/metrics", authority, pki, "admin") == 200


@pytest.mark.parametrize(
    ("verb", "resource", "allowed"),
    [
        pytest.param("list", "pods", True, id="it watches pods"),
        pytest.param("patch", "pods/status", True, id="it plays pods"),
        pytest.param("patch", "nodes/status", False, id="it plays no node but its own"),
        pytest.param("get", "secrets", False, id="it reads no secret"),
        pytest.param("create", "pods", False, id="it makes no pod"),
        pytest.param("update", "leases.coordination.k8s.io", False, id="it takes no other lease"),
    ],
)
def test_kwok_may_do_only_what_it_does(
    control_plane: ControlPlane, kubectl: Kubectl, verb: str, resource: str, allowed: bool
) -> None:
    resource, _, subresource = resource.partition("/")
    question = ["auth", "can-i", verb, resource, f"--subresource={subresource}", "-n", "default"]
    result = kubectl(*question, check=False, kubeconfig=control_plane.layout.kubeconfig_of("kwok"))
    assert result.stdout.strip() == ("yes" if allowed else "no"), result.stderr


def test_a_kubeconfig_for_a_user_is_that_user(control_plane: ControlPlane, namespace: str) -> None:
    """The name and the groups are those asked for, and RBAC gives it nothing by itself."""
    kubeconfig = control_plane.kubeconfig_for("alice", ["team-a"])
    who = control_plane.kubectl("auth", "whoami", "-o", "json", kubeconfig=kubeconfig).stdout
    user = json.loads(who)["status"]["userInfo"]
    assert user["username"] == "alice"
    assert set(user["groups"]) == {"team-a", "system:authenticated"}
    refused = control_plane.kubectl(
        "get", "pods", "-n", namespace, check=False, kubeconfig=kubeconfig
    )
    assert "is forbidden" in refused.stderr
    assert kubeconfig.stat().st_mode & 0o777 == 0o600


def test_a_kubeconfig_for_a_service_account_has_its_rights(
    control_plane: ControlPlane, namespace: str, kubectl: Kubectl
) -> None:
    """What an operator's integration tests run as."""
    kubectl("create", "serviceaccount", "operator", "-n", namespace)
    kubectl("create", "role", "reader", "--verb=list", "--resource=pods", "-n", namespace)
    account = f"--serviceaccount={namespace}:operator"
    kubectl("create", "rolebinding", "reader", "--role=reader", account, "-n", namespace)
    kubeconfig = control_plane.kubeconfig_for_service_account(namespace, "operator")
    assert kubectl("get", "pods", "-n", namespace, kubeconfig=kubeconfig).returncode == 0
    refused = kubectl("get", "secrets", "-n", namespace, check=False, kubeconfig=kubeconfig)
    assert f"system:serviceaccount:{namespace}:operator" in refused.stderr


def test_mutating_admission_policies_are_served(kubectl: Kubectl) -> None:
    """Version v1 is on by default in this Kubernetes; placing pods will rest on it."""
    listed = kubectl("api-resources", "--api-group=admissionregistration.k8s.io", "-o", "name")
    assert "mutatingadmissionpolicies.admissionregistration.k8s.io" in listed.stdout
    answer = kubectl("get", "mutatingadmissionpolicies.v1.admissionregistration.k8s.io")
    # There is one where a test before this had a node that runs pods.
    assert "quarterdeck-placement" in answer.stdout or "No resources found" in answer.stderr
