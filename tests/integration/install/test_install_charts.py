"""Plain YAML, Kustomize and Helm give the same objects, and Helm can install and remove them."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.all_objects import all_objects
from tests.documents import Shell
from tests.installed_release import own_release, push
from tests.integration.install.test_install_docs import documented, like
from tests.integration.pods import needs_bubblewrap
from tests.objects import metadata
from tests.places import DEPLOY
from tests.registry_process import running_registry

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import (
    Binaries,
    BinariesUnavailable,
    BinarySettings,
    ensure_binaries,
)

IMAGE = "registry.example.test/quarterdeck@sha256:" + "0" * 64
PLAIN = (DEPLOY / "install" / "quarterdeck.yaml").read_text()
SECTION = "Plain YAML, Kustomize and Helm"


@pytest.fixture(scope="session")
def helm() -> Path:
    """Helm from the cache; `make test` builds it once, which takes some minutes."""
    try:
        return ensure_binaries(BinarySettings.from_environment(os.environ), ["helm"]).paths["helm"]
    except BinariesUnavailable as error:
        pytest.skip(f"Helm cannot be built here: {error}")


def by_identity(texts: Iterable[str]) -> dict[tuple[str, str, str], Any]:
    """The objects in YAML by kind, namespace and name, each once; hooks are not installed.

    What only Helm reads is left out: that it does not delete a namespace.
    """
    found: dict[tuple[str, str, str], Any] = {}
    for obj in (one for text in texts for one in yaml.safe_load_all(text) if one):
        meta = obj["metadata"]
        if "helm.sh/hook" in (meta.get("annotations") or {}):
            continue
        if obj["kind"] == "Namespace":
            meta["annotations"].pop("helm.sh/resource-policy", None)
        key = (obj["kind"], meta.get("namespace", ""), meta["name"])
        assert key not in found
        found[key] = obj
    return found


def output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_kustomize_gives_the_plain_objects(control_plane_binaries: Binaries) -> None:
    built = output(control_plane_binaries.kubectl, "kustomize", DEPLOY / "install")
    assert by_identity([built]) == by_identity([PLAIN])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_chart_gives_the_plain_objects(helm: Path) -> None:
    chart = DEPLOY / "chart"
    made = output(
        helm, "template", "quarterdeck", chart, "--include-crds", "--set", f"image={IMAGE}"
    )
    assert by_identity([made]) == by_identity([PLAIN.replace("quarterdeck:0.1.0", IMAGE)])
    assert IMAGE in made
    assert "quarterdeck:0.1.0" not in made
    assert "kind: Job" in made
    output(helm, "lint", "--strict", chart)

    values = f"image={IMAGE},console=true,uninstall=false,capabilities={{Ingress}}"
    more = output(helm, "template", "quarterdeck", chart, "--set", values)
    objects = by_identity([more])
    assert ("Deployment", "quarterdeck-console", "console") in objects
    spec = objects["ClusterVersion", "", "version"]["spec"]
    assert spec["capabilities"]["additionalEnabledCapabilities"] == ["Ingress"]
    assert spec["clusterID"]
    assert "kind: Job" not in more


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("values", "told"),
    [
        pytest.param("console=true", "name the release image: --set image=", id="no image"),
        pytest.param(f"imgae={IMAGE}", "additional properties 'imgae' not allowed", id="misspelt"),
        pytest.param(f"image={IMAGE},console=on", "got string, want boolean", id="another type"),
    ],
)
def test_a_value_that_is_missing_or_misspelt_is_refused(helm: Path, values: str, told: str) -> None:
    """Otherwise Helm would ignore it, and the pods would wait for an image that does not exist."""
    command = f"template quarterdeck {DEPLOY / 'chart'} --set {values}"
    done = subprocess.run([helm, *command.split()], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert told in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
@needs_bubblewrap
def test_helm_installs_and_removes_as_the_page_says(
    newcomer: Shell, helm: Path, tmp_path: Path
) -> None:
    """After `helm uninstall` all objects are those of before, but for Helm's own namespace."""
    (tmp_path / "programs" / "helm").symlink_to(helm)
    (tmp_path / "deploy").symlink_to(DEPLOY)
    included = {"include.release.openshift.io/self-managed-high-availability": "true"}
    meta = {**metadata("cargo", "default"), "annotations": included}
    cargo = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    manifests = {"0000_10_cargo_00.yaml": yaml.safe_dump(cargo)}
    newcomer.succeed("quarterdeck local up")
    kubeconfig = tmp_path / "home/.local/state/quarterdeck/local/kubeconfig"
    newcomer(f"export KUBECONFIG={kubeconfig}")
    with running_registry(tmp_path / "registry") as real:
        shutil.copy(real.secret, tmp_path / "pull-secret.json")
        shutil.copy(real.tls.ca, tmp_path / "ca.crt")
        newcomer(f"export RELEASE={push(real, own_release(tmp_path / 'r', '1.0.0', manifests))}")
        before = all_objects(kubeconfig)
        for command, shown in documented(SECTION):
            done = newcomer.succeed(command)
            assert like(shown, done.stdout), f"{command}: {done.stdout}{done.stderr}"
            if command.startswith("quarterdeck uninstall"):
                assert all_objects(kubeconfig) == before
        newcomer.succeed("kubectl delete namespace quarterdeck-helm")
        assert all_objects(kubeconfig) == before


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_helm_installed_is_left_to_it_and_can_be_removed(
    plane: ControlPlane, shell: Shell, helm: Path
) -> None:
    """A namespace whose name is a number in YAML, too."""
    before = all_objects(plane.kubeconfig)
    where = "--namespace=1234"
    chart = f"{DEPLOY / 'chart'} {where} --create-namespace --set image={IMAGE}"
    shell.succeed(f"{helm} install quarterdeck {chart}")
    installed = all_objects(plane.kubeconfig)
    done = shell.succeed(f"quarterdeck install --image {IMAGE} --no-wait")
    assert "left to Helm, which has it as the release quarterdeck in the namespace 1234" in (
        done.stdout
    )
    now = all_objects(plane.kubeconfig)
    assert {key: now[key] for key in installed} == installed
    shell.succeed(f"{helm} upgrade quarterdeck {chart}")

    space = "openshift-cluster-version"
    plane.kubectl("create", "configmap", "treasure", f"--namespace={space}")
    done = shell.succeed("quarterdeck uninstall --yes")
    assert "helm uninstall quarterdeck --namespace 1234" in done.stdout
    shell.succeed(f"{helm} uninstall quarterdeck {where} --no-hooks")
    assert plane.kubectl("get", "configmap", "treasure", f"--namespace={space}").stdout
    plane.kubectl("delete", "configmap", "treasure", f"--namespace={space}")
    shell.succeed("quarterdeck uninstall --yes")
    plane.kubectl("delete", "namespace", "1234")
    assert all_objects(plane.kubeconfig) == before
