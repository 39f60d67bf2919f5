"""The installation as files: plain YAML, a base for Kustomize, and a Helm chart. Pure.

All three have the objects of `installation`, so they differ only in form. What an administrator
chooses is a value of the chart, or a patch of an overlay.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

import quarterdeck
from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration, StaticPodDelivery
from quarterdeck.delivery.installation import (
    DEFAULT_IMAGE,
    Step,
    applier_steps,
    console_steps,
    operator_steps,
)
from quarterdeck.delivery.yaml_text import HEADER, text

PLAIN, CHART = "install", "chart"
KEEP = "helm.sh/resource-policy"
"""The annotation of what Helm leaves when it removes a release."""
_IMAGE = "IMAGE-OF-THE-VALUES"
"""Stands for the image until the template has its place."""
_TEMPLATE = '{{ include "quarterdeck.image" . }}'
_HELPERS = """\
{{- define "quarterdeck.image" -}}
{{- $remedy := "name the release image: --set image=REGISTRY/NAME@sha256:..." -}}
{{ required $remedy .Values.image | quote }}
{{- end -}}
"""
_VALUES = """\
# The release image, best by its digest: registry.example.test/quarterdeck-release@sha256:...
# You have to name one.
image: ""

# The only capabilities of the cluster, and so the operators that the release brings; all if empty.
capabilities: []

# Also run the web console.
console: false

# Clean up before `helm uninstall` removes the operators: objects of users go too.
uninstall: true
"""
_SCHEMA: Object = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "image": {"type": "string"},
        "capabilities": {"type": "array", "items": {"type": "string"}},
        "console": {"type": "boolean"},
        "uninstall": {"type": "boolean"},
        # What Helm adds if another chart depends on this one.
        "global": {"type": "object"},
    },
}
"""Helm refuses any other value, so that a misspelt name is not ignored."""
_CLUSTER_VERSION = """\
{{- if .Values.capabilities }}
{{- $found := lookup "config.openshift.io/v1" "ClusterVersion" "" "version" }}
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata:
  name: version
  annotations:
    helm.sh/resource-policy: keep
spec:
  clusterID: {{ dig "spec" "clusterID" (uuidv4) ($found | default dict) | quote }}
  capabilities:
    baselineCapabilitySet: None
    additionalEnabledCapabilities: {{ toJson .Values.capabilities }}
{{- end }}
"""
_NOTES = """\
The cluster version operator applies the release now. To follow it:

  kubectl get clusterversion --watch

If there is no ClusterVersion after a minute, its pods say why:

  kubectl describe pods --namespace openshift-cluster-version
"""


def installation_files(operators: Iterable[Declaration]) -> dict[str, str]:
    """The text of every file by its path below `deploy`."""
    operators = list(operators)
    return _plain_files(operators) | _chart_files(operators)


def default_steps(operators: Iterable[Declaration], image: str = DEFAULT_IMAGE) -> list[Step]:
    """What is installed without choices: the operator of releases, and the staleness checker."""
    steps: list[Step] = []
    for declared in sorted(operators, key=lambda one: (not one.applies_payload, one.name)):
        if declared.applies_payload:
            steps += applier_steps(declared, image)
        elif isinstance(declared.delivery, StaticPodDelivery) and (
            instead := declared.as_deployment()
        ):
            steps += operator_steps(instead, image)
    return steps


def _plain_files(operators: Sequence[Declaration]) -> dict[str, str]:
    objects = [obj for step in default_steps(operators) for obj in step.objects]
    kustomization: Object = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["quarterdeck.yaml"],
    }
    return {
        f"{PLAIN}/quarterdeck.yaml": HEADER + text(objects),
        f"{PLAIN}/kustomization.yaml": HEADER + text([kustomization]),
    }


def _chart_files(operators: Sequence[Declaration]) -> dict[str, str]:
    steps = default_steps(operators, _IMAGE)
    objects = [obj for step in steps for obj in step.objects]
    definitions = [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]
    others = [_kept(obj) for obj in objects if obj["kind"] != "CustomResourceDefinition"]
    console = [_kept(obj) for step in console_steps(_IMAGE) for obj in step.objects]
    chart: dict[str, Any] = {
        "apiVersion": "v2",
        "name": "quarterdeck",
        "description": "The operators that configure, watch, upgrade and hand over others.",
        "type": "application",
        "version": quarterdeck.__version__,
        "appVersion": quarterdeck.__version__,
        "kubeVersion": ">=1.31.0-0",
    }
    made = {
        "Chart.yaml": yaml.safe_dump(chart, sort_keys=False),
        "values.yaml": _VALUES,
        "values.schema.json": json.dumps(_SCHEMA, indent=2) + "\n",
        "templates/_helpers.tpl": _HELPERS,
        "templates/quarterdeck.yaml": _templated(others),
        "templates/cluster-version.yaml": _CLUSTER_VERSION,
        "templates/console.yaml": _only_if("console", _templated(console)),
        "templates/uninstall.yaml": _only_if("uninstall", _templated(_uninstall_objects())),
        "templates/NOTES.txt": _NOTES,
    }
    made |= {f"crds/{one['metadata']['name']}.yaml": text([one]) for one in definitions}
    return {
        f"{CHART}/{name}": HEADER + content if name.endswith(".yaml") else content
        for name, content in made.items()
    }


def _kept(obj: Object) -> Object:
    """The object, which Helm does not delete if it is a namespace: others may have objects in it.

    `quarterdeck uninstall`, which runs before, deletes those that nobody else uses.
    """
    if obj["kind"] != "Namespace":
        return obj
    annotations = {**obj["metadata"]["annotations"], KEEP: "keep"}
    return obj | {"metadata": obj["metadata"] | {"annotations": annotations}}


def _templated(objects: Iterable[Object]) -> str:
    return text(objects).replace(_IMAGE, _TEMPLATE).replace("'{{", "{{").replace("}}'", "}}")


def _only_if(value: str, content: str) -> str:
    return f"{{{{- if .Values.{value} }}}}\n{content}{{{{- end }}}}\n"


def _uninstall_objects() -> list[Object]:
    """A Job that removes the installation, with an account of its own: it removes the others."""
    name, namespace = "quarterdeck-uninstall", "{{ .Release.Namespace | quote }}"

    def metadata(weight: int, **more: str) -> Object:
        annotations = {
            "helm.sh/hook": "pre-delete",
            "helm.sh/hook-weight": str(weight),
            "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
        }
        return {"name": name, **more, "annotations": annotations}

    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    group = "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"}
    container: Object = {
        "name": "uninstall",
        "image": _IMAGE,
        "args": ["uninstall", "--yes"],
        "resources": {
            "requests": {"cpu": "10m", "memory": "64Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    pod: Object = {
        "serviceAccountName": name,
        "restartPolicy": "Never",
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata(0, namespace=namespace),
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata(1),
            "roleRef": role,
            "subjects": [subject],
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata(2, namespace=namespace),
            "spec": {"backoffLimit": 3, "template": {"spec": pod}},
        },
    ]
