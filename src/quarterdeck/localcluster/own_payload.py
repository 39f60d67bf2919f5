"""Quarterdeck's own release payload, made from what is in `deploy`; `make generate` writes it.

A payload's manifests need names that say their order, annotations that say for which clusters
they count, and, for the cluster version operator, the place where it finds releases. All else is
as it is delivered: nothing is written twice by hand.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

RELEASES = "/var/lib/quarterdeck/releases"
"""Where the operator's node has the releases directory, unless whoever installs says otherwise."""

_PROFILES = ("self-managed-high-availability", "single-node-developer")
_OWN = "0000_00_cluster-version-operator"
PARTS = {
    f"{_OWN}_01_clusterversions.crd.yaml": "crds/clusterversions.config.openshift.io.yaml",
    f"{_OWN}_01_clusteroperators.crd.yaml": "crds/clusteroperators.config.openshift.io.yaml",
    f"{_OWN}_01_configuration.crd.yaml": (
        "crds/clusterversionoperators.operator.openshift.io.yaml"
    ),
    f"{_OWN}_02_rbac.yaml": "cluster-version/rbac.yaml",
    f"{_OWN}_03_deployment.yaml": "cluster-version/deployment.yaml",
    "0000_10_config_01_featuregates.crd.yaml": "crds/featuregates.config.openshift.io.yaml",
    "0000_10_config_01_infrastructures.crd.yaml": "crds/infrastructures.config.openshift.io.yaml",
    "0000_10_config_01_proxies.crd.yaml": "crds/proxies.config.openshift.io.yaml",
    "0000_10_config_02_objects.yaml": "cluster-version/config.yaml",
    "0000_50_sample_01_notes.crd.yaml": "crds/notes.samples.quarterdeck.dev.yaml",
    "0000_50_sample_02_rbac.yaml": "sample/rbac.yaml",
    "0000_50_sample_03_deployment.yaml": "sample/deployment.yaml",
}
"""File in the payload to the file in `deploy` that it comes from."""

REPORTS = {"0000_50_sample_04_clusteroperator.yaml": "sample"}
"""File in the payload to the cluster operator whose report is waited for."""

_IMAGES = {
    "kind": "ImageStream",
    "apiVersion": "image.openshift.io/v1",
    "spec": {"tags": [{"name": "quarterdeck", "from": {"name": "quarterdeck"}}]},
}
"""The one image that all operators are in, as their manifests call it."""


def files(deploy: Path) -> dict[str, str]:
    """Every file of the payload, by name."""
    made = {
        name: _text(f"deploy/{source}", map(_counted, _documents(deploy / source)))
        for name, source in PARTS.items()
    }
    made |= {
        name: _text("its operator's name", [_counted(_report(operator))])
        for name, operator in REPORTS.items()
    }
    made["image-references"] = _text("this list", [_IMAGES])
    return dict(sorted(made.items()))


def write(deploy: Path) -> list[str]:
    """Write what has changed into `deploy/payload`, remove what went, and name both."""
    directory, wanted = deploy / "payload", files(deploy)
    directory.mkdir(exist_ok=True)
    there = {path.name: path.read_text() for path in directory.iterdir()}
    for name in there.keys() - wanted.keys():
        (directory / name).unlink()
    changed = [name for name, text in wanted.items() if there.get(name) != text]
    for name in changed:
        (directory / name).write_text(wanted[name])
    return sorted({*changed, *(there.keys() - wanted.keys())})


def _documents(file: Path) -> Iterator[Object]:
    for document in yaml.load_all(file.read_bytes(), Loader=yaml.CSafeLoader):
        if document:
            yield document


def _counted(obj: Object) -> Object:
    """The manifest with the annotations by which it counts, unless it has its own."""
    metadata = obj["metadata"]
    if not any(name.startswith("include.") for name in metadata.get("annotations") or {}):
        include = {f"include.release.openshift.io/{profile}": "true" for profile in _PROFILES}
        obj = obj | {"metadata": metadata | {"annotations": include}}
    if (obj["kind"], metadata["name"]) == ("Deployment", "cluster-version-operator"):
        _give_releases(obj)
    return obj


def _give_releases(deployment: Object) -> None:
    """Let the cluster version operator be of its release, and see all of them."""
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container["image"] = "{{.ReleaseImage}}"
    container["args"] += ["--releases=/releases", "--cluster-profile={{.ClusterProfile}}"]
    variables = [one for one in container["env"] if one["name"] != "RELEASE_VERSION"]
    container["env"] = [*variables, {"name": "RELEASE_VERSION", "value": "0.0.1-snapshot"}]
    container["volumeMounts"] = [{"name": "releases", "mountPath": "/releases", "readOnly": True}]
    pod["volumes"] = [{"name": "releases", "hostPath": {"path": RELEASES, "type": "Directory"}}]


def _report(operator: str) -> Object:
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterOperator",
        "metadata": {"name": operator},
        "spec": {},
        "status": {"versions": [{"name": "operator", "version": "0.0.1-snapshot"}]},
    }


def _text(source: str, objects: Any) -> str:
    body = yaml.dump_all(objects, Dumper=yaml.CSafeDumper, sort_keys=False, width=100)
    return f"# Made from {source} by `make generate`; change it there.\n{body}"


if __name__ == "__main__":
    for changed in write(Path(sys.argv[1])):
        sys.stdout.write(f"{changed}\n")
