"""The pytest plugin on a real control plane."""

import json

import pytest
from tests.objects import cluster_operator

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.testing.audit import writes_by
from quarterdeck.testing.cluster_scope import remove_added, snapshot
from quarterdeck.testing.plugin import Kubectl, NewControlPlane

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
    before = snapshot(control_plane.requests())
    kubectl("create", "clusterrole", "added", "--verb=get", "--resource=pods")
    patch = json.dumps({"metadata": {"finalizers": ["example.test/nobody"]}})
    kubectl("patch", "clusterrole", "added", "--type=merge", f"--patch={patch}")
    kubectl("create", "namespace", "added")
    remove_added(control_plane.requests(), before)
    # The namespace of an earlier test may have gone meanwhile, so nothing is said about less.
    assert snapshot(control_plane.requests()) - before == frozenset()
    assert kubectl("get", "clusterrole", "added", check=False).returncode == 1
    assert kubectl("get", "namespace", "added", check=False).returncode == 1
    kubectl("delete", "clusterrole", "was-there-before")  # which fails when it is gone


def test_a_removed_namespace_is_not_for_the_controller_manager(
    control_plane: ControlPlane, kubectl: Kubectl
) -> None:
    """Otherwise it would delete objects of the next namespace of this name, five seconds later."""
    before = snapshot(control_plane.requests())
    kubectl("create", "namespace", "again")
    kubectl("create", "serviceaccount", "mine", "--namespace=again")
    remove_added(control_plane.requests(), before)
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
    remove_added(control_plane.requests(), before)


def test_our_definitions_are_served(crds: list[str], kubectl: Kubectl) -> None:
    assert "clusteroperators.config.openshift.io" in crds
    assert kubectl("get", "clusteroperators").returncode == 0


def test_singletons_of_our_kinds_are_seen(
    control_plane: ControlPlane, crds: list[str], kubectl: Kubectl, clean_cluster: None
) -> None:
    """The clean-up looks at kinds that were defined a moment ago, too."""
    before = snapshot(control_plane.requests())
    kubectl("apply", "-f", "-", input=json.dumps(cluster_operator("example")))
    (added,) = snapshot(control_plane.requests()) - before
    assert added.name == "example"
    assert added.collection == "/apis/config.openshift.io/v1/clusteroperators"


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
