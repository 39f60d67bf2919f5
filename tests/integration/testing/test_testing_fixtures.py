"""The pytest plugin on a real control plane."""

import json
import socket

import pytest
from tests.objects import cluster_operator

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.testing.audit import writes_by
from quarterdeck.testing.cluster_scope import added, remove_added, snapshot
from quarterdeck.testing.namespaces import create_namespace, delete_namespace
from quarterdeck.testing.plugin import Kubectl, NewControlPlane
from quarterdeck.testing.stored import served, stored_keys

ADMINISTRATOR = "quarterdeck-admin"


def test_a_namespace_is_there_and_takes_pods_at_once(namespace: str, kubectl: Kubectl) -> None:
    """The namespace has its default ServiceAccount, so a bare pod is admitted and runs."""
    kubectl("run", "web", "--image=example.test/web", "--namespace", namespace)
    kubectl("wait", "pod/web", "--for=condition=Ready", "--namespace", namespace, "--timeout=60s")


def test_what_was_added_is_removed_and_the_rest_is_not(
    control_plane: ControlPlane, kubectl: Kubectl
) -> None:
    """Objects with finalizers that nobody serves, namespaces and definitions are all gone."""
    kubectl("create", "clusterrole", "was-there-before", "--verb=get", "--resource=pods")
    before = snapshot(control_plane)
    kubectl("create", "clusterrole", "added", "--verb=get", "--resource=pods")
    patch = json.dumps({"metadata": {"finalizers": ["example.test/nobody"]}})
    kubectl("patch", "clusterrole", "added", "--type=merge", f"--patch={patch}")
    kubectl("create", "namespace", "added")
    remove_added(control_plane, before)
    # The namespace of an earlier test may have gone meanwhile, so nothing is said about less.
    assert added(control_plane, before) == []
    assert kubectl("get", "clusterrole", "added", check=False).returncode == 1
    assert kubectl("get", "namespace", "added", check=False).returncode == 1
    kubectl("delete", "clusterrole", "was-there-before")  # which fails when it is gone


def test_a_removed_namespace_is_not_for_the_controller_manager(
    control_plane: ControlPlane, kubectl: Kubectl
) -> None:
    """Otherwise it would delete objects of the next namespace of this name, five seconds later."""
    before = snapshot(control_plane)
    kubectl("create", "namespace", "again")
    kubectl("create", "serviceaccount", "mine", "--namespace=again")
    remove_added(control_plane, before)
    writes = [
        (one.verb, one.resource)
        for one in writes_by(control_plane.audit_log, ADMINISTRATOR)
        if one.namespace == "again"
    ]
    # It ignores a namespace without finalizers; they are gone before the deletion begins.
    deleted = writes.index(("delete", "namespaces"))
    assert writes.index(("update", "namespaces/finalize")) < deleted
    assert writes.index(("delete", "serviceaccounts")) < deleted
    kubectl("create", "namespace", "again")
    assert kubectl("get", "serviceaccount", "mine", "--namespace=again", check=False).returncode
    remove_added(control_plane, before)


def test_our_definitions_are_served(crds: list[str], kubectl: Kubectl) -> None:
    assert "clusteroperators.config.openshift.io" in crds
    assert kubectl("get", "clusteroperators").returncode == 0


def test_singletons_of_our_kinds_are_seen(
    control_plane: ControlPlane, crds: list[str], kubectl: Kubectl, clean_cluster: None
) -> None:
    """The clean-up looks at kinds that were defined a moment ago, too."""
    before = snapshot(control_plane)
    kubectl("apply", "-f", "-", input=json.dumps(cluster_operator("example")))
    (found,) = added(control_plane, before)
    assert found.path == "/apis/config.openshift.io/v1/clusteroperators/example"


# Their keys do not begin with the names of their resources.
ODD = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: odd}, spec: {ports: [{port: 80}]}}
- {apiVersion: v1, kind: Endpoints, metadata: {name: odd}}
- apiVersion: v1
  kind: ReplicationController
  metadata: {name: odd}
  spec:
    replicas: 0
    selector: {app: odd}
    template:
      metadata: {labels: {app: odd}}
      spec: {containers: [{name: main, image: example.test/odd}]}
- apiVersion: networking.k8s.io/v1
  kind: Ingress
  metadata: {name: odd}
  spec: {defaultBackend: {service: {name: odd, port: {number: 80}}}}
- {apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: odd}}
"""
NOT_STORED = "/api/v1/componentstatuses"


def test_every_object_is_found_by_its_key(
    control_plane: ControlPlane, crds: list[str], kubectl: Kubectl, namespace: str
) -> None:
    """All that the API server lists is found in its store, with the same path; but for events."""
    kubectl("apply", "--filename=-", "--namespace", namespace, input=ODD)
    requests = control_plane.requests()
    kinds, keys = served(requests), set(stored_keys(control_plane.etcd_requests()))
    collections = {*kinds.cluster_scoped.values(), *kinds.namespaced.values()} - {NOT_STORED}
    listed = set()
    with requests.connected():
        for collection in sorted(collections):
            answer = requests.send("GET", collection.replace("/namespaces/{}", ""))
            if answer.ok and not collection.endswith("/events"):
                for item in answer.json().get("items", []):
                    meta = item["metadata"]
                    listed.add(f"{collection.format(meta.get('namespace'))}/{meta['name']}")
    keys |= stored_keys(control_plane.etcd_requests())
    found = {one.path for one in map(kinds.find, keys) if one is not None}
    assert f"/api/v1/namespaces/{namespace}/services/odd" in listed
    assert listed - found == set()


def test_a_namespace_is_gone_at_once_unless_it_has_pods(
    control_plane: ControlPlane, kubectl: Kubectl
) -> None:
    """With its objects, whoever holds them; a Deployment is left to the controller manager."""
    requests, etcd = control_plane.requests(), control_plane.etcd_requests()
    create_namespace(requests, "quickly")
    held = {"name": "held", "namespace": "quickly", "finalizers": ["example.test/nobody"]}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": held}
    kubectl("create", "--filename=-", input=json.dumps(config_map))
    delete_namespace(control_plane, "quickly")
    assert stored_keys(etcd, "quickly") == frozenset()
    assert requests.send("GET", "/api/v1/namespaces/quickly").status == 404

    create_namespace(requests, "later")
    kubectl("create", "deployment", "web", "--image=example.test/web", "--namespace=later")
    delete_namespace(control_plane, "later")
    answer = requests.send("GET", "/api/v1/namespaces/later")
    assert answer.json()["spec"]["finalizers"] == ["kubernetes"]
    assert answer.json()["metadata"]["deletionTimestamp"]


def test_a_get_uses_the_connection_of_the_one_before(control_plane: ControlPlane) -> None:
    """A connection that the server has closed is replaced, and none is left open."""
    requests = control_plane.requests()
    assert requests.ready("/readyz")
    (kept,) = requests._idle
    assert requests.ready("/readyz")
    assert requests._idle == [kept]
    kept.sock.shutdown(socket.SHUT_RDWR)
    assert requests.ready("/readyz")
    (new,) = requests._idle
    assert new is not kept
    del requests
    assert new.sock is None


def test_a_second_control_plane_is_another_cluster(
    new_control_plane: NewControlPlane, control_plane: ControlPlane
) -> None:
    """It has its own address, authority and objects."""
    second = new_control_plane()
    assert second.url != control_plane.url
    control_plane.kubectl("create", "configmap", "only-in-the-first")
    assert second.kubectl("get", "configmap", "only-in-the-first", check=False).returncode == 1
    control_plane.kubectl("delete", "configmap", "only-in-the-first")


SUITE = """
def test_uses_the_fixtures(namespace, kubectl, clean_cluster, kubeconfig):
    kubectl("create", "configmap", "mine", "-n", namespace)
    kubectl("create", "clusterrole", "left-behind", "--verb=get", "--resource=pods")
    assert kubeconfig.exists()

def test_finds_nothing_of_the_one_before(namespace, kubectl):
    assert kubectl("get", "configmaps", "-n", namespace, "-o", "name").stdout.split() == [
        "configmap/kube-root-ca.crt"
    ]
    assert kubectl("get", "clusterrole", "left-behind", check=False).returncode == 1
"""


def test_somebody_elses_suite_uses_the_plugin(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    control_plane_binaries: Binaries,
) -> None:
    """Installed is enough: the fixtures are found, and tests do not see each other's objects."""
    # The suite runs with a home directory of its own, where no cache is.
    programs = pytester.mkdir("programs")
    for name, path in control_plane_binaries.paths.items():
        (programs / name).symlink_to(path)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(programs))
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)
