"""Beside what is there: definitions of others are left alone, and what is off is told."""

import json
from collections.abc import Sequence
from pathlib import Path

import yaml
from tests.all_objects import all_objects
from tests.documents import Shell
from tests.places import DEPLOY, FIXTURES

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.waiting import eventually

IMAGE = "registry.example.test/ship/quarterdeck:1.0.0"
OPENSHIFT_VERSION = """
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
spec: {clusterID: 7ea8a1d5-1d0f-4b0e-9f57-3f3f7e8f8a11}
status:
  availableUpdates: []
  desired: {version: 4.20.0, image: "example.test/openshift@sha256:0"}
  observedGeneration: 1
  versionHash: x
  history:
  - {version: 4.20.0, image: "example.test/openshift@sha256:0", state: Completed, verified: false,
     startedTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T00:30:00Z"}
"""
OTHERS = ("clusterversions", "clusteroperators", "ingresscontrollers", "subscriptions")
"""The kinds that another cluster version operator has installed."""


def definitions(plane: ControlPlane) -> dict[str, str]:
    """The resource version of each definition, which every write changes."""
    listed = json.loads(plane.kubectl("get", "crds", "--output=json").stdout)["items"]
    return {
        one["metadata"]["name"]: f"{one['metadata']['uid']} {one['metadata']['generation']} "
        f"{[entry['manager'] for entry in one['metadata'].get('managedFields', [])]}"
        for one in listed
    }


def own_definitions() -> list[Path]:
    """Definitions with the names of OpenShift's, and our schemas."""
    return [file for plural in OTHERS for file in DEPLOY.glob(f"crds/{plural}.*.yaml")]


def apply_foreign(plane: ControlPlane, files: Sequence[Path]) -> list[str]:
    """Install definitions as another cluster version operator does; return their names."""
    flags = ("--server-side", "--field-manager=cluster-version-operator")
    if not files:
        return []
    given = [f"--filename={file}" for file in files]
    plane.kubectl("apply", *flags, *given)
    names = [yaml.safe_load(file.read_text())["metadata"]["name"] for file in files]
    wait = (*(f"crd/{name}" for name in names), "--for=condition=Established", "--timeout=60s")
    plane.kubectl("wait", *wait)
    return names


def test_without_rights_or_an_image_nothing_is_changed(plane: ControlPlane, shell: Shell) -> None:
    before = all_objects(plane.kubeconfig)
    done = shell("quarterdeck install")
    assert done.returncode == 1
    assert "no image: name the release image with --image, or a --registry" in done.stderr
    done = shell(f"quarterdeck install --image {IMAGE} --operators ingress,harbour")
    assert done.returncode == 1
    assert "--operators: 'harbour': there is no such operator, only baremetal," in done.stderr
    assert shell("quarterdeck install --image 'no image'").returncode == 2

    plane.kubectl("create", "serviceaccount", "deckhand")
    token = plane.kubectl("create", "token", "deckhand").stdout.strip()
    view = plane.kubectl("config", "view", "--raw", "--output=json").stdout
    config = json.loads(view)
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    other = plane.kubeconfig.parent / "deckhand"
    other.write_text(json.dumps(config))
    done = shell(f"quarterdeck install --image {IMAGE} --kubeconfig {other}")
    assert done.returncode == 1
    assert "you may not: create, get, list, patch customresourcedefinitions.apiext" in done.stderr
    assert "bind clusterroles.rbac.authorization.k8s.io cluster-admin" in done.stderr

    kind = "--resource=customresourcedefinitions"
    plane.kubectl("create", "clusterrole", "deckhand", "--verb=list", kind)
    whom = ("--clusterrole=deckhand", "--serviceaccount=default:deckhand")
    plane.kubectl("create", "clusterrolebinding", "deckhand", *whom)
    done = shell(f"quarterdeck uninstall --yes --kubeconfig {other}")
    other.unlink()
    assert done.returncode == 2, "what may not be read is not taken for nothing"
    assert "you may not: list " in done.stderr
    for kind in ("clusterrolebinding", "clusterrole", "serviceaccount"):
        plane.kubectl("delete", kind, "deckhand")
    assert all_objects(plane.kubeconfig) == before


def test_an_image_that_cannot_be_pulled_is_named_and_another_replaces_it(
    plane: ControlPlane, shell: Shell
) -> None:
    """The test says what a kubelet would say of the pod."""
    before = all_objects(plane.kubeconfig)
    started = shell(f"quarterdeck install --image {IMAGE} --no-wait")
    assert started.stdout.endswith("run this again without --no-wait\n")
    where = ("--namespace=openshift-cluster-version", "--selector=app=cluster-version-operator")
    pods = eventually(
        lambda: plane.kubectl("get", "pods", *where, "--output=name").stdout.split(),
        "the pods of the operator",
    )
    waiting = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{IMAGE}"'}
    status = {
        "name": "operator",
        "image": IMAGE,
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": waiting},
    }
    patch = json.dumps({"status": {"containerStatuses": [status]}})
    flags = ("--subresource=status", "--type=merge", f"--patch={patch}")
    for name in pods:
        plane.kubectl("patch", name, where[0], *flags)
    done = shell(f"quarterdeck install --image {IMAGE} --timeout 2s")
    assert done.returncode == 1
    assert f"ImagePullBackOff: {waiting['message']}; check its name" in done.stderr
    assert done.stderr.endswith("you can run this again to follow it\n")

    another = IMAGE.replace("1.0.0", "1.0.1")
    assert shell(f"quarterdeck install --image {another} --no-wait").returncode == 0
    path = "jsonpath={.items[0].spec.template.spec.containers[0].image}"
    found = plane.kubectl("get", "deployments", where[0], f"--output={path}").stdout
    assert found == another
    assert shell("quarterdeck uninstall --yes").returncode == 0
    assert all_objects(plane.kubeconfig) == before


def test_definitions_of_others_stay_and_their_operators_are_off(
    plane: ControlPlane, shell: Shell
) -> None:
    """On OpenShift only what is not there is installed, and all of that goes again.

    With the definitions of OpenShift itself, if they lie beside the repository, and with its
    release, its namespace and an operator of its own.
    """
    names = apply_foreign(plane, sorted((FIXTURES / "upstream-crds").glob("*.yaml")))
    if not names:
        names = apply_foreign(plane, own_definitions())
    space = "openshift-cluster-version"
    plane.kubectl("create", "namespace", space)
    plane.kubectl("create", "deployment", "cluster-version-operator", "--image=o", f"-n={space}")
    theirs = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "spec": {}}
    theirs |= {"metadata": {"name": "machine-api"}}
    plane.kubectl("create", "--filename=-", input=json.dumps(theirs))
    version = yaml.safe_load(OPENSHIFT_VERSION)
    plane.kubectl("create", "--filename=-", input=json.dumps(version))
    status = json.dumps({"status": version["status"]})
    change = ("patch", "clusterversion", "version", "--subresource=status", "--type=merge")
    plane.kubectl(*change, f"--patch={status}")
    before, were = all_objects(plane.kubeconfig), definitions(plane)
    refused = shell("quarterdeck install --no-wait")
    assert refused.returncode == 1
    assert "no image: name the release image" in refused.stderr, "not the image of OpenShift"

    done = shell(f"quarterdeck install --image {IMAGE} --no-wait --monitoring --console")
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert (
        "The ingress operator is switched off: ingresscontrollers.operator.openshift.io belongs to "
        "another (cluster-version-operator), which serves it here" in told
    )
    assert "The operator of Subscriptions is switched off" in told
    assert "The machine API operator is switched off: another operator reports in" in told
    assert "OpenShift found: the cluster version operator and its release are switched off" in told
    assert "quarterdeck update" not in told
    assert "left as they are, because others installed them: clusteroperators.config." in told
    now = all_objects(plane.kubeconfig)
    assert {key: now[key] for key in before} == before
    added = now.keys() - before.keys()
    deployments = {name for kind, _, name in added if kind == "Deployment.apps"}
    assert deployments >= {"staleness-checker", "console"}
    assert not deployments & {"ingress-operator", "machine-api-operator", "subscription-operator"}
    assert space not in {namespace for _, namespace, _ in added}
    assert {name: now for name, now in definitions(plane).items() if name in were} == were

    plane.kubectl(
        *("apply", "--server-side", "--subresource=status", "--filename=-"),
        "--field-manager=quarterdeck-staleness",
        input=json.dumps({"status": {"conditions": []}, **theirs}),
    )
    again = shell(f"quarterdeck install --image {IMAGE} --no-wait")
    assert again.returncode == 0, again.stderr
    assert "The machine API operator is switched off" in again.stdout, "the checker is no owner"
    assert all_objects(plane.kubeconfig) == now
    done = shell("quarterdeck uninstall --yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert all_objects(plane.kubeconfig) == before
    assert definitions(plane) == were
    assert "nothing of Quarterdeck is installed" in shell("quarterdeck uninstall").stdout


def test_an_object_that_does_not_go_is_named_and_a_second_call_continues(
    plane: ControlPlane, shell: Shell
) -> None:
    """A finalizer whose operator does not run, and a namespace that somebody else made."""
    before = all_objects(plane.kubeconfig)
    assert shell(f"quarterdeck install --image {IMAGE} --no-wait").returncode == 0
    note = {
        "apiVersion": "samples.quarterdeck.dev/v1alpha1",
        "kind": "Note",
        "metadata": {"name": "held", "namespace": "default", "finalizers": ["example.test/hold"]},
        "spec": {"text": "Hold"},
    }
    plane.kubectl("create", "--filename=-", input=json.dumps(note))
    listed = shell("quarterdeck uninstall --dry-run").stdout
    assert "  CustomResourceDefinition notes.samples.quarterdeck.dev\n" in listed
    assert "  Deployment quarterdeck-sample/sample-operator\n" in listed
    assert listed.endswith("  Note default/held\nnothing was changed (--dry-run)\n")
    done = shell("quarterdeck uninstall")
    assert done.returncode == 1
    assert "give --yes" in done.stderr
    assert "Note default/held" in done.stdout
    done = shell("quarterdeck uninstall --yes --timeout 2s")
    assert done.returncode == 1
    assert "Note default/held waits for the finalizers example.test/hold" in done.stderr
    plane.kubectl("patch", "note", "held", "--type=merge", '--patch={"metadata":{"finalizers":[]}}')
    done = shell("quarterdeck uninstall --yes")
    assert done.returncode == 0, done.stderr
    assert all_objects(plane.kubeconfig) == before
