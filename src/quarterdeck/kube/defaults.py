"""The defaults of the API server, as far as a comparison needs them.

The server records all fields of an object that we created with POST as ours, its own defaults too.
A field with the server's default need not be removed: the server would set it again. The table need
not be complete: if a default is missing here, an object is written once more after its create, and
is settled then.
"""

from typing import Any

from quarterdeck.api.meta import Object

# By the last parts of the path; the longest match counts.
_DEFAULTS: dict[tuple[str, ...], Any] = {
    ("fieldRef", "apiVersion"): "v1",
    ("resourceFieldRef", "divisor"): "0",
    ("terminationMessagePath",): "/dev/termination-log",
    ("terminationMessagePolicy",): "File",
    ("dnsPolicy",): "ClusterFirst",
    ("restartPolicy",): "Always",
    ("schedulerName",): "default-scheduler",
    ("terminationGracePeriodSeconds",): 30,
    ("securityContext",): {},
    ("resources",): {},
    ("emptyDir",): {},
    ("enableServiceLinks",): True,
    ("preemptionPolicy",): "PreemptLowerPriority",
    ("progressDeadlineSeconds",): 600,
    ("revisionHistoryLimit",): 10,
    ("replicas",): 1,
    ("strategy", "type"): "RollingUpdate",
    ("strategy", "rollingUpdate", "maxSurge"): "25%",
    ("strategy", "rollingUpdate", "maxUnavailable"): "25%",
    ("updateStrategy", "type"): "RollingUpdate",
    ("updateStrategy", "rollingUpdate", "maxSurge"): 0,
    ("updateStrategy", "rollingUpdate", "maxUnavailable"): 1,
    ("updateStrategy", "rollingUpdate", "partition"): 0,
    ("podManagementPolicy",): "OrderedReady",
    ("persistentVolumeClaimRetentionPolicy", "whenDeleted"): "Retain",
    ("persistentVolumeClaimRetentionPolicy", "whenScaled"): "Retain",
    ("volumeMode",): "Filesystem",
    ("defaultMode",): 420,
    ("serviceAccountToken", "expirationSeconds"): 3600,
    ("timeoutSeconds",): 1,
    ("periodSeconds",): 10,
    ("successThreshold",): 1,
    ("failureThreshold",): 3,
    ("httpGet", "scheme"): "HTTP",
    ("grpc", "service"): "",
    ("hostPath", "type"): "",
    ("ports", "*", "protocol"): "TCP",
    ("type",): "Opaque",
    ("spec", "type"): "ClusterIP",
    ("sessionAffinity",): "None",
    ("internalTrafficPolicy",): "Cluster",
    ("externalTrafficPolicy",): "Cluster",
    ("allocateLoadBalancerNodePorts",): True,
    ("ipFamilyPolicy",): "SingleStack",
    ("roleRef", "apiGroup"): "rbac.authorization.k8s.io",
    ("subjects", "*", "apiGroup"): "rbac.authorization.k8s.io",
    ("webhooks", "*", "failurePolicy"): "Fail",
    ("webhooks", "*", "matchPolicy"): "Equivalent",
    ("webhooks", "*", "timeoutSeconds"): 10,
    ("webhooks", "*", "namespaceSelector"): {},
    ("webhooks", "*", "objectSelector"): {},
    ("webhooks", "*", "reinvocationPolicy"): "Never",
    ("webhooks", "*", "rules", "*", "scope"): "*",
    ("clientConfig", "service", "port"): 443,
    ("backoffLimit",): 6,
    ("completions",): 1,
    ("parallelism",): 1,
    ("completionMode",): "NonIndexed",
    ("podReplacementPolicy",): "TerminatingOrFailed",
    ("manualSelector",): False,
    ("suspend",): False,
    ("concurrencyPolicy",): "Allow",
    ("successfulJobsHistoryLimit",): 3,
    ("failedJobsHistoryLimit",): 1,
    ("spec", "conversion", "strategy"): "None",
}
_LONGEST = max(len(path) for path in _DEFAULTS)


def is_server_default(path: tuple[str, ...], value: Any, parent: Object | None = None) -> bool:
    """Whether this value is the server's default for the field.

    In a path `*` is an item of a list; `parent` is the object that contains the field.
    """
    if parent is not None and _follows_sibling(path[-1], value, parent):
        return True
    for length in range(min(len(path), _LONGEST), 0, -1):
        end = path[-length:]
        if end in _DEFAULTS:
            default = _DEFAULTS[end]
            return bool(value == default and type(value) is type(default))
    return False


def _follows_sibling(field: str, value: Any, parent: Object) -> bool:
    """Defaults that depend on another field of the same object."""
    match field:
        case "imagePullPolicy":
            return bool(value == _pull_policy(str(parent.get("image", ""))))
        case "serviceAccount":  # the old name of the other field
            return bool(value == parent.get("serviceAccountName"))
        case "targetPort":
            return bool(value == parent.get("port"))
        case "clusterIPs":
            return bool(value == [parent.get("clusterIP")])
        case "policyTypes":
            return bool(value == ["Ingress", *(["Egress"] if "egress" in parent else [])])
        case "listKind":
            return bool(value == f"{parent.get('kind')}List")
        case "singular":
            return bool(value == str(parent.get("kind")).lower())
        case "deprecated.daemonset.template.generation" | "kubernetes.io/metadata.name":
            return True
        case _:
            return False


def _pull_policy(image: str) -> str:
    """The default imagePullPolicy of an image: Always for the tag `latest`."""
    name, digest, _ = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if not digest and tag in ("", "latest") else "IfNotPresent"
