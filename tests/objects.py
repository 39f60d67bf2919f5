"""Objects as tests make them: one builder for each kind.

A namespace that is left out is that of whoever applies the object.
"""

from pathlib import Path
from typing import Any

from quarterdeck.api.meta import Object

CLUSTER_OPERATOR = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator"}
LONG_AGO = "2026-01-01T00:00:00Z"


def metadata(name: str, namespace: str = "", **more: Any) -> Object:
    """Name and namespace, and whatever else is not empty."""
    given = {"name": name, "namespace": namespace, **more}
    return {field: value for field, value in given.items() if value}


def config_map(
    namespace: str = "", name: str = "x", annotations: Object | None = None, **data: str
) -> Object:
    """A ConfigMap with these data."""
    meta = metadata(name, namespace, annotations=annotations)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def secret(namespace: str = "", name: str = "x", **data: str) -> Object:
    """A Secret with these data, in plain text."""
    meta = metadata(name, namespace)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}


def container(script: str, name: str = "main", **more: Any) -> Object:
    """A container of Quarterdeck's own image that runs a shell script."""
    return {"name": name, "image": "quarterdeck", "command": ["sh", "-c", script], **more}


def foreign_container(image: str = "example.test/main:1", **more: Any) -> Object:
    """A container of an image that is not ours, so that its pod runs on the node `simulated`."""
    return {"name": "main", "image": image, **more}


def pod(name: str, *containers: Object, **spec: Any) -> Object:
    """A pod of these containers, with five seconds to end unless it is said otherwise."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 5, "containers": list(containers), **spec},
    }


def sharing(made: Object, directory: Path, at: str = "/runs") -> Object:
    """The pod with a directory of this machine in all its containers."""
    spec = made["spec"]
    mount = {"name": "shared", "mountPath": at}
    for one in [*spec.get("initContainers", ()), *spec["containers"]]:
        one["volumeMounts"] = [*one.get("volumeMounts", ()), mount]
    volume = {"name": "shared", "hostPath": {"path": str(directory)}}
    return made | {"spec": spec | {"volumes": [*spec.get("volumes", ()), volume]}}


def deployment(
    name: str, template: Object, replicas: int = 1, *, namespace: str = "", **spec: Any
) -> Object:
    """A Deployment of pods like this one, found by its labels."""
    labels = template["metadata"]["labels"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(name, namespace),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": _template(template),
            **spec,
        },
    }


def job(name: str, template: Object, *, namespace: str = "", **spec: Any) -> Object:
    """A Job of pods like this one, which are not started again."""
    made = _template(template)
    made["spec"] = {"restartPolicy": "Never"} | made["spec"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(name, namespace),
        "spec": {"template": made, **spec},
    }


def _template(made: Object) -> Object:
    about = {key: value for key, value in made["metadata"].items() if key != "name"}
    return {"metadata": about, "spec": made["spec"]}


def cluster_operator(name: str, **versions: str) -> Object:
    """A ClusterOperator; as a manifest of a release, the versions that it has to report."""
    made = {**CLUSTER_OPERATOR, "metadata": {"name": name}, "spec": {}}
    if versions:
        told = [{"name": part, "version": version} for part, version in versions.items()]
        made["status"] = {"versions": told}
    return made


def condition(kind: str, status: str, message: str = "all is well", **more: str) -> Object:
    """A condition whose last transition was long ago."""
    made = {"type": kind, "status": status, "reason": "AsExpected", "message": message}
    return made | {"lastTransitionTime": LONG_AGO} | more


def note(name: str, text: str, namespace: str = "") -> Object:
    """A Note of the sample operator."""
    return {
        "apiVersion": "samples.quarterdeck.dev/v1alpha1",
        "kind": "Note",
        "metadata": metadata(name, namespace),
        "spec": {"text": text},
    }


def definition(group: str, kind: str, *versions: str, spec: Object | None = None) -> Object:
    """The CRD of a namespaced kind, stored as `v1`; without a schema its spec takes anything."""
    if spec is None:
        spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {"name": version, "served": True, "storage": version == "v1", "schema": schema}
                for version in versions or ("v1",)
            ],
        },
    }
