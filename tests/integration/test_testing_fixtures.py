"""The pytest plugin on a real control plane."""

import json

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.plugin import Kubectl, NewControlPlane


def test_a_namespace_is_there_and_takes_pods_at_once(namespace: str, kubectl: Kubectl) -> None:
    """The namespace has its default ServiceAccount, so a bare pod is admitted and runs."""
    kubectl("run", "web", "--image=example.test/web", "--namespace", namespace)
    kubectl("wait", "pod/web", "--for=condition=Ready", "--namespace", namespace, "--timeout=60s")


def test_clean_cluster_makes(clean_cluster: None, kubectl: Kubectl) -> None:
    """A cluster-scoped object with a finalizer that nobody serves, for the next test."""
    kubectl("create", "clusterrole", "left-behind", "--verb=get", "--resource=pods")
    patch = json.dumps({"metadata": {"finalizers": ["example.test/nobody"]}})
    kubectl("patch", "clusterrole", "left-behind", "--type=merge", f"--patch={patch}")
    kubectl("create", "namespace", "left-behind")


def test_clean_cluster_finds_nothing(kubectl: Kubectl) -> None:
    """What the test before has made is gone, a finalizer notwithstanding."""
    assert kubectl("get", "clusterrole", "left-behind", check=False).returncode == 1
    assert kubectl("get", "namespace", "left-behind", check=False).returncode == 1


def test_a_second_control_plane_is_another_cluster(
    new_control_plane: NewControlPlane, control_plane: ControlPlane
) -> None:
    """It has its own address, authority and objects."""
    second = new_control_plane()
    assert second.url != control_plane.url
    control_plane.kubectl("create", "configmap", "only-in-the-first")
    assert second.kubectl("get", "configmap", "only-in-the-first", check=False).returncode == 1
    control_plane.kubectl("delete", "configmap", "only-in-the-first")
