"""The admission policy by which the API server chooses the node of a pod.

Pods whose images are all ours run on `this-machine`, the others on `simulated`; the DaemonSet
controller places its own pods. Only `this-machine` has a taint. The policy adds the toleration and
the node selector, because a toleration alone does not attract a pod.
"""

import json
from typing import Any

from quarterdeck.localcluster.api_request import Requests
from quarterdeck.localcluster.components import SIMULATED_NODE, THIS_MACHINE
from quarterdeck.localcluster.node.images import PATTERN

LABEL = "quarterdeck.dev/node"
TAINT = {"key": LABEL, "value": "processes", "effect": "NoSchedule"}
POLICY = "quarterdeck-placement"

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"

_OURS = (
    "(object.spec.containers + object.spec.?initContainers.orValue([]))"
    f".all(c, c.?image.orValue('').matches({json.dumps(PATTERN)}))"
)
_SELECT = (
    "has(object.spec.nodeSelector) ? "
    f"JSONPatch{{op: 'add', path: '/spec/nodeSelector/' + jsonpatch.escapeKey('{LABEL}'), "
    "value: variables.node} : "
    f"JSONPatch{{op: 'add', path: '/spec/nodeSelector', value: {{'{LABEL}': variables.node}}}}"
)
_TOLERATION = (
    f"{{'key': '{LABEL}', 'operator': 'Equal', 'value': '{TAINT['value']}', "
    f"'effect': '{TAINT['effect']}'}}"
)
_TOLERATE = (
    "has(object.spec.tolerations) ? "
    f"JSONPatch{{op: 'add', path: '/spec/tolerations/-', value: {_TOLERATION}}} : "
    f"JSONPatch{{op: 'add', path: '/spec/tolerations', value: [{_TOLERATION}]}}"
)


def desired_node() -> dict[str, Any]:
    """The Node, with the role labels that real payloads select; the agent writes its status."""
    labels = {
        "kubernetes.io/hostname": THIS_MACHINE,
        "kubernetes.io/os": "linux",
        "node-role.kubernetes.io/control-plane": "",
        "node-role.kubernetes.io/master": "",
        LABEL: THIS_MACHINE,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": THIS_MACHINE, "labels": labels},
        "spec": {"taints": [TAINT]},
    }


def desired_policy() -> dict[str, Any]:
    """The policy that chooses the node of each new pod."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ]
            },
            "matchConditions": [
                {
                    "name": "not-of-a-daemon-set",
                    "expression": "!object.metadata.?ownerReferences.orValue([])"
                    ".exists(o, o.kind == 'DaemonSet')",
                },
                {
                    "name": "not-bound-yet",
                    "expression": "object.spec.?nodeName.orValue('') == ''",
                },
                {
                    "name": "not-placed-by-its-author",
                    "expression": f"!('{LABEL}' in object.spec.?nodeSelector.orValue({{}}))",
                },
            ],
            "variables": [
                {"name": "ours", "expression": _OURS},
                {
                    "name": "node",
                    "expression": f"variables.ours ? '{THIS_MACHINE}' : '{SIMULATED_NODE}'",
                },
            ],
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{_SELECT}]"}},
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {"expression": f"variables.ours ? [{_TOLERATE}] : []"},
                },
            ],
        },
    }


def desired_binding() -> dict[str, Any]:
    """The binding that applies the policy to all pods."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": POLICY},
        "spec": {"policyName": POLICY},
    }


def prepare_node(requests: Requests) -> None:
    """Apply the objects that the agent and its pods need."""
    requests.apply("/api/v1/nodes", desired_node())
    requests.apply(f"{_ADMISSION}/mutatingadmissionpolicies", desired_policy())
    requests.apply(f"{_ADMISSION}/mutatingadmissionpolicybindings", desired_binding())


def is_in_force(requests: Requests) -> bool:
    """Whether the policy is in force, tested by a dry-run pod."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "is-the-policy-in-force"},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "quarterdeck"}],
        },
    }
    path = "/api/v1/namespaces/default/pods?dryRun=All"
    answer = requests.send("POST", path, json.dumps(pod).encode())
    selector = answer.json()["spec"].get("nodeSelector", {}) if answer.ok else {}
    return bool(selector.get(LABEL) == THIS_MACHINE)


def is_ready(requests: Requests) -> bool:
    """Whether the node is ready and the policy places pods on it."""
    try:
        node = requests.send("GET", f"/api/v1/nodes/{THIS_MACHINE}")
        conditions = node.json().get("status", {}).get("conditions", []) if node.ok else []
        ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
        return ready and is_in_force(requests)
    except OSError:
        return False
