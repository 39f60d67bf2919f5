"""The manifests of the web console: no replica until somebody wants one.

The pod has no credentials: its ServiceAccount has no rights and its token is not mounted. Users log
in with their own. It listens on its loopback address, where `kubectl port-forward` reaches it; an
Ingress needs `--address`, `--host-name` and TLS, at the Ingress or at the console.
"""

from quarterdeck.api.meta import Object

NAME = "console"
NAMESPACE = "quarterdeck-console"
PORT = 8443
TRUST = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where the certificates of the API server are in every pod."""


def console_objects() -> list[Object]:
    """The namespace, the account and the Deployment."""
    labels = {"app": NAME}
    metadata = {"name": NAME, "namespace": NAMESPACE}
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": NAMESPACE,
                "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata,
            "automountServiceAccountToken": False,
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {**metadata, "labels": labels},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": {**labels, "app.kubernetes.io/part-of": "quarterdeck"}},
                    "spec": _pod(),
                },
            },
        },
    ]


def _pod() -> Object:
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": NAME,
                "image": "quarterdeck",
                "args": ["console", f"--port={PORT}"],
                "ports": [{"name": "http", "containerPort": PORT}],
                "resources": {
                    "requests": {"cpu": "10m", "memory": "80Mi"},
                    "limits": {"memory": "512Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": True,
                },
                "volumeMounts": [{"name": "trust", "mountPath": TRUST, "readOnly": True}],
            }
        ],
        "volumes": [{"name": "trust", "configMap": {"name": "kube-root-ca.crt"}}],
    }
