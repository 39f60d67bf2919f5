"""Removes secrets from a body before it is logged, at verbosity 8 and up.

It shows what is known to be harmless, and hides everything else: a text can hold a password in more
forms than a list can have.

- Of a Secret only its name; of a body that is not JSON or longer than MAX_PARSED only its size.
- A text is shown only if its field is on a list of harmless fields (names, types, times, images)
  and the text has such a form. Of every other text the length is shown: of messages, addresses,
  the data of ConfigMaps. Variables and options of commands have lists of their own.
- Everything in a field with the name of a secret is hidden, also numbers and the names of fields;
  of a reference the name of its object is shown.
- Other numbers, booleans and the names of fields are shown.

When in doubt a value is hidden: it can be read elsewhere, but a secret in a log cannot be taken
back. managedFields are left out too, because they are longer than the rest. Every step is linear in
the size of the body, which is bounded. A body of up to MAX_IN_LOOP bytes is looked through in the
event loop.
"""

import re
from typing import Any

import msgspec

MAX_LOGGED = 10_000
"""The most characters of a body that are logged."""
MAX_PARSED = 200_000
"""The most bytes of a body that are parsed; of a longer body only the size is logged."""
MAX_IN_LOOP = 20_000
"""The most bytes of a body that the event loop looks through; a larger one goes to a thread."""
MAX_TEXT = 253
"""The most characters of a text that is shown: the longest name."""
HIDDEN = "<hidden>"

_SECRET_PATHS = re.compile(
    r"/secrets(/|$|\?)|/token(\?|$)|/tokenreviews|/certificatesigningrequests"
    r"|/(user)?oauth(access|authorize)tokens"
)
_SECRET_NAMES = re.compile(
    r"passw(or)?d|passcode|pass(phrase)?$|pwd$|psk$|(?<!next)tokens?$|secrets?$"
    r"|(token|secret)[_-]?(value|data|text)s?$|secret[_-]?(access[_-]?)?key|bearer|cookie"
    r"|(?<!topology)(?<!public)(?<!label)(?<=.)[_-]?keys?$|client[_-]?key[_-]?data"
    r"|\.pem$|credential|authorization|^auth$|signature|\btotp|^otp|dockerc(on)?f|htpasswd|kubeconfig",
    re.IGNORECASE,
)
_HARMLESS_FIELDS = frozenset(
    """
    apiVersion kind name namespace uid resourceVersion generateName creationTimestamp
    deletionTimestamp finalizers group apiGroup version plural singular listKind shortNames
    categories scope resource resources resourceNames apiGroups verbs subresource fieldPath
    configMapName secretName claimName serviceAccountName serviceAccount serviceName nodeName
    priorityClassName runtimeClassName storageClassName holderIdentity manager operation
    type op operator effect phase protocol scheme medium mode strategy qosClass operations
    restartPolicy imagePullPolicy dnsPolicy schedulerName terminationMessagePath
    terminationMessagePolicy preemptionPolicy podManagementPolicy concurrencyPolicy
    completionMode podReplacementPolicy mountPropagation whenUnsatisfiable topologyKey
    failurePolicy matchPolicy sideEffects reinvocationPolicy admissionReviewVersions policyTypes
    sessionAffinity ipFamilies ipFamilyPolicy internalTrafficPolicy externalTrafficPolicy
    whenDeleted whenScaled volumeMode accessModes format required storedVersions
    image imageID mountPath containerPort port targetPort podIP hostIP clusterIP clusterIPs cpu
    memory storage ephemeral-storage maxSurge maxUnavailable schedule
    status reason state action startedTime completionTime startTime startedAt finishedAt
    eventTime acquireTime renewTime lastTransitionTime lastProbeTime lastUpdateTime
    lastHeartbeatTime reportingController reportingInstance versionHash
    operatorLogLevel featureSet enabled disabled channel clusterID architecture
    baselineCapabilitySet additionalEnabledCapabilities enabledCapabilities
    knownCapabilities
    """.split()  # noqa: SIM905 - a hundred quoted words are harder to read
)
"""Fields with names, types, policies, addresses of pods, quantities, times, states."""
_HARMLESS_MAPS = frozenset({"labels", "matchLabels", "nodeSelector", "selector"})
_HARMLESS_ANNOTATIONS = re.compile(
    r"((include|exclude)\.)?release\.openshift\.io/|capability\.openshift\.io/|quarterdeck\.dev/"
    r"|deployment\.kubernetes\.io/revision$|deprecated\.daemonset\.template\.generation$"
)
_REFERENCE_FIELDS = frozenset({"name", "namespace", "secretName"})
"""The fields that are shown in a field with the name of a secret: the object it refers to."""
_HARMLESS_VARIABLES = frozenset(
    {
        "CLUSTER_PROFILE",
        "KUBERNETES_SERVICE_HOST",
        "KUBERNETES_SERVICE_PORT",
        "LOG_LEVEL",
        "NODE_NAME",
        "OPERATOR_NAME",
        "POD_IP",
        "POD_NAME",
        "POD_NAMESPACE",
        "RELEASE_VERSION",
        "TZ",
    }
)
_HARMLESS_OPTIONS = frozenset(
    {
        "bind-address",
        "cluster-profile",
        "leader-elect",
        "log-format",
        "metrics-port",
        "namespace",
        "operator",
        "probes-port",
        "release-version",
        "releases",
        "v",
        "verbosity",
    }
)
_COMMANDS = frozenset({"args", "command"})
_OPAQUE = frozenset({"data", "binaryData", "stringData", "env", "environment", "headers"})
"""Maps of arbitrary content."""
_PLAIN = re.compile(r"(?!eyJ)[\w.:/+~*%-]*(@sha256:[0-9a-f]{64})?\Z")
"""A name, a type, a time, an image, a path: no blanks, no quotes, no token."""
_STATUS_FIELDS = ("kind", "apiVersion", "status", "reason", "code")
_CAUSE_FIELDS = ("reason", "field")


def is_secret(path: str) -> bool:
    """Whether the whole body of requests to this path is secret."""
    return _SECRET_PATHS.search(path) is not None


def names_secret(name: str) -> bool:
    """Whether a field, a variable or an option of this name has a secret."""
    return len(name) <= MAX_TEXT and _SECRET_NAMES.search(name) is not None


def loggable(path: str, body: bytes) -> str:
    """The body as text without secrets; only its size if the resource is secret."""
    if not body:
        return ""
    if is_secret(path):
        return f"<{len(body)} bytes, secret>"
    if len(body) > MAX_PARSED:
        return f"<{len(body)} bytes>"
    try:
        text = msgspec.json.encode(_shown("", msgspec.json.decode(body))).decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return f"<{len(body)} bytes, not JSON>"
    return text if len(text) <= MAX_LOGGED else f"{text[:MAX_LOGGED]}… ({len(text)} characters)"


def _shown(name: str, value: Any) -> Any:
    """The value of a field of this name, without secrets."""
    match value:
        case str():
            return _text(name, value)
        case list() if name in _COMMANDS:
            return [_argument(one) if isinstance(one, str) else _shown("", one) for one in value]
        case list() if names_secret(name):
            return [_hidden(one) for one in value]
        case list():
            return [_shown(name if isinstance(one, str) else "", one) for one in value]
        case dict() if value.get("kind") in ("Secret", "SecretList"):
            return _only_named(value)
        case dict() if value.get("kind") == "Status" and "metadata" in value:
            return _refusal(value)
        case dict() if names_secret(name):
            return _hidden(value)
        case dict() if name == "properties":
            # A schema's: the names in it are names of fields, and have no values.
            return {field: _shown("", inner) for field, inner in value.items()}
        case dict():
            return {
                field: _in_map(name, value, field, inner)
                for field, inner in value.items()
                if field != "managedFields"
            }
        case int() | float() if names_secret(name) and not isinstance(value, bool):
            return HIDDEN
        case _:
            return value


def _in_map(name: str, fields: dict[str, Any], field: str, value: Any) -> Any:
    """The value of one field of the map of this name, without secrets."""
    if name in _OPAQUE:
        return _size(value) if isinstance(value, str) else _unknown(value)
    if field == "value":
        return _named_value(fields, value)
    if field == "path" and "op" in fields and isinstance(value, str):
        return _plain(value)
    if not isinstance(value, str):
        return _shown(field, value)
    if name in _HARMLESS_MAPS:
        return HIDDEN if names_secret(field) else _plain(value)
    if name == "annotations":
        return _plain(value) if _HARMLESS_ANNOTATIONS.match(field) else _size(value)
    return _text(field, value)


def _text(name: str, value: str) -> str:
    if names_secret(name):
        return HIDDEN if value else value
    return _plain(value) if name in _HARMLESS_FIELDS else _size(value)


def _plain(value: str) -> str:
    is_name = len(value) <= MAX_TEXT and "://" not in value and _PLAIN.match(value)
    return value if is_name else _size(value)


def _hidden(value: Any) -> Any:
    """The value of a field with the name of a secret: only the object that it refers to."""
    match value:
        case dict():
            known = {
                field: inner
                for field, inner in value.items()
                if field in _REFERENCE_FIELDS and isinstance(inner, str)
            }
            rest = {"...": HIDDEN} if len(known) < len(value) else {}
            return {field: _plain(inner) for field, inner in known.items()} | rest
        case bool() | None:
            return value
        case _:
            return HIDDEN


def _unknown(value: Any) -> Any:
    """A value in a map of arbitrary content: texts as lengths; objects by their own fields.

    For example, the data of a ControllerRevision is a whole object.
    """
    match value:
        case str():
            return _size(value)
        case dict():
            return _shown("", value)
        case list():
            return [_unknown(one) for one in value]
        case _:
            return value


def _named_value(entry: dict[str, Any], value: Any) -> Any:
    """The value of an entry with a name (a variable, a header) or a path (a patch)."""
    if isinstance(path := entry.get("path"), str):
        return _at_path(path.replace("~1", "/").split("/"), value)
    name = entry.get("name")
    if isinstance(name, str) and name in _HARMLESS_VARIABLES and isinstance(value, str):
        return _plain(value)
    if isinstance(name, str) and names_secret(name):
        return _hidden(value)
    return _size(value) if isinstance(value, str) else _shown("", value)


def _at_path(path: list[str], value: Any) -> Any:
    """The value of a patch for this path, without secrets."""
    names = [name for name in path if name and name != "-" and not name.isdigit()]
    *above, field = names or [""]
    if any(map(names_secret, names)):
        return _hidden(value)
    if isinstance(value, str) and (_OPAQUE | _COMMANDS).intersection(names):
        return _size(value)
    if above and isinstance(value, str):
        return _in_map(above[-1], {}, field, value) if field != "value" else _size(value)
    # An item of a list of variables is one, wherever the list stands.
    return _shown("" if field in _OPAQUE and path[-1] != field else field, value)


def _argument(text: str) -> str:
    """An argument of a command; shown only if it is a harmless option."""
    option, equals, value = text.partition("=")
    name = option.removeprefix("--")
    if name != option and name in _HARMLESS_OPTIONS:
        return f"{option}{equals}{_plain(value)}"
    if equals and names_secret(name) and _PLAIN.match(option):
        return f"{option}={HIDDEN}"
    return _size(text)


def _only_named(secret: dict[str, Any]) -> dict[str, Any]:
    meta = secret.get("metadata")
    named = {
        field: meta[field]
        for field in ("namespace", "name")
        if isinstance(meta, dict) and isinstance(meta.get(field), str)
    }
    return {"kind": secret["kind"], "metadata": named, "data": HIDDEN}


def _refusal(status: dict[str, Any]) -> dict[str, Any]:
    """A Status with its reason and fields, without messages, which may quote values."""
    shown = {field: status[field] for field in _STATUS_FIELDS if field in status}
    if message := status.get("message"):
        shown["message"] = _size(str(message))
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    if isinstance(causes, list):
        shown["causes"] = [
            {field: cause[field] for field in _CAUSE_FIELDS if field in cause}
            for cause in causes
            if isinstance(cause, dict)
        ]
    return shown


def _size(text: str) -> str:
    return f"<{len(text)} characters>"
