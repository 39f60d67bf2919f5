"""Decides what belongs to an installation, and in which order it is removed. Pure.

An object belongs to us if only our operators have written it, or if it has our annotation and is
one that an installation makes: who copies an object copies its annotations. An object that somebody
else made and we changed stays, and is listed at the end. That holds for definitions too; the
objects of a kind that our operators serve are cleaned up in any case, because nobody else does. A
namespace of ours stays if it has objects of others.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from quarterdeck.api.meta import BUILT_IN_NAMESPACES, Object, Resource
from quarterdeck.delivery.declaration import Declaration
from quarterdeck.delivery.installation import (
    all_in_one_steps,
    applier_steps,
    console_steps,
    operator_steps,
)
from quarterdeck.delivery.manifests import custom_resource
from quarterdeck.install.facts import Identity, identity
from quarterdeck.install.plan import FIELD_MANAGER, trust_files
from quarterdeck.status.definitions import OWNER

_BY_HAND = ("annotate", "edit", "label", "patch", "replace", "rollout", "scale", "set")
NEUTRAL = ("kube-", "kubelet", *(f"kubectl-{verb}" for verb in _BY_HAND))
"""How the field managers of Kubernetes itself begin, and of small changes by hand: what they write
says nothing of who made the object."""
ROUTER = "quarterdeck-router"
COMMANDS = "quarterdeck-cli"
"""The field manager of our own commands, as `quarterdeck update`."""
LOCAL = "quarterdeck-local"
"""The field manager of a local cluster; what it made belongs to that."""
USER_AGENT = "quarterdeck"
"""The field manager of writes without another: the operators' Leases."""
_CREATED = "f:kubernetes.io/metadata.name"
"""The label of a namespace that its creator owns."""
SKIPPED_KINDS = frozenset({"Event", "Node", "CustomResourceDefinition", "Namespace"})
"""Kinds that are not searched: they expire, or have their own turn."""
_HELM = "meta.helm.sh/release-"
_HELM_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,61}[a-z0-9])?")
_NOT_REMOVED = "Namespace"
"""How the types of the conditions begin that say what keeps a namespace: objects in it, their
finalizers, or an API that does not answer."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An object in the cluster."""

    resource: Resource[Object]
    object: Object

    @property
    def namespace(self) -> str:
        """Its namespace; empty without one."""
        return str(self.object["metadata"].get("namespace") or "")

    @property
    def name(self) -> str:
        """Its name, after its namespace if it has one."""
        metadata = self.object["metadata"]
        namespace = metadata.get("namespace")
        return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.name}"


class Own(msgspec.Struct, frozen=True, kw_only=True):
    """How the objects of an installation are known."""

    managers: frozenset[str]
    """The field managers that write them."""
    names: frozenset[Identity]
    """The objects that an installation makes."""
    brought: frozenset[Identity] = frozenset()
    """The objects that an administrator may bring for it."""


def own(operators: Iterable[Declaration]) -> Own:
    """How the objects of these operators are known."""
    operators = list(operators)
    deployed = [one for one in (each.as_deployment() for each in operators) if one is not None]
    appliers = [one for one in operators if one.applies_payload]
    steps = [
        *console_steps(),
        *all_in_one_steps(deployed),
        *(step for one in appliers for step in applier_steps(one)),
        *(step for one in deployed for step in operator_steps(one)),
    ]
    names = {identity(obj) for step in steps for obj in step.objects}
    names |= {("Lease", one.namespace, one.account) for one in deployed}
    return Own(
        managers=frozenset(
            {one.field_manager for one in operators} | {FIELD_MANAGER, ROUTER, COMMANDS}
        ),
        names=frozenset(names),
        brought=frozenset(
            ("Secret" if file.source == "secret" else "ConfigMap", one.namespace, file.name)
            for one in appliers
            for file in trust_files(one)
        ),
    )


def is_ours(obj: Object, own: Own) -> bool:
    """Whether an object belongs to the installation."""
    metadata = obj["metadata"]
    entries = metadata.get("managedFields") or []
    if any(one.get("manager") == LOCAL for one in entries):
        return False
    writers = [str(one.get("manager")) for one in entries if not one.get("subresource")]
    others = [one for one in writers if not one.startswith(NEUTRAL)]
    made = identity(obj) in own.names
    marked = bool((metadata.get("annotations") or {}).get(OWNER)) and made
    if obj["kind"] == "Namespace":
        return _is_our_namespace(obj, own, others, marked=marked)
    if obj["kind"] == "Lease":
        return made and set(others) == {USER_AGENT}
    return marked or (bool(others) and all(one in own.managers for one in others))


def _is_our_namespace(obj: Object, own: Own, others: Sequence[str], *, marked: bool) -> bool:
    """Whether we made it; a mark by somebody else than its creator says nothing."""
    metadata = obj["metadata"]
    if metadata["name"] in BUILT_IN_NAMESPACES:
        return False
    entries = metadata.get("managedFields") or []
    creators = {one.get("manager") for one in entries if _CREATED in _fields(one, "f:labels")}
    markers = {
        one.get("manager") for one in entries if f"f:{OWNER}" in _fields(one, "f:annotations")
    }
    if creators:
        return creators <= own.managers or (marked and markers <= creators)
    # An apply does not record who created the namespace.
    return marked or (bool(others) and all(one in own.managers for one in others))


def content(obj: Object) -> object:
    """What of an object is lost with it, beside names and rights."""
    return [obj.get(field) for field in ("data", "binaryData", "spec")]


def is_of_others(obj: Object, own: Own, everywhere: Mapping[tuple[str, str], object]) -> bool:
    """Whether an object in a namespace of ours is somebody else's, and keeps that namespace.

    `everywhere` has what every namespace gets: the content by kind and name.
    """
    metadata = obj["metadata"]
    if not metadata.get("uid") or is_dependent(obj) or metadata.get("deletionTimestamp"):
        return False  # computed by a server, or it goes by itself
    key = (obj["kind"], metadata["name"])
    if identity(obj) in own.brought or (key in everywhere and everywhere[key] == content(obj)):
        return False
    entries = metadata.get("managedFields") or []
    writers = [str(one.get("manager")) for one in entries if not one.get("subresource")]
    if writers and all(one.startswith("kube-") for one in writers):
        return False
    if any(one.partition("-")[0] == USER_AGENT for one in writers):
        return False  # by our command line, or by an operator without a name of its own
    return not is_ours(obj, own)


def helm_release(obj: Object) -> str:
    """The release of Helm that an object belongs to, with its namespace; empty without one.

    Its name becomes part of a command for people, so what Helm would refuse as a name is none.
    """
    metadata = obj["metadata"]
    if (metadata.get("labels") or {}).get("app.kubernetes.io/managed-by") != "Helm":
        return ""
    annotations = metadata.get("annotations") or {}
    name, namespace = annotations.get(f"{_HELM}name"), annotations.get(f"{_HELM}namespace")
    if not (_HELM_NAME.fullmatch(str(name)) and _HELM_NAME.fullmatch(str(namespace))):
        return ""
    return f"{name} in the namespace {namespace}"


def is_touched(obj: Object, own: Own) -> bool:
    """Whether our operators have written fields of an object, beside its status."""
    entries = obj["metadata"].get("managedFields") or []
    return any(one.get("manager") in own.managers and not one.get("subresource") for one in entries)


def is_dependent(obj: Object) -> bool:
    """Whether the object goes with its owner."""
    return bool(obj["metadata"].get("ownerReferences"))


def _fields(entry: Object, part: str) -> Object:
    """The fields of a part of the metadata, as labels, that an entry owns."""
    fields = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
    found: Object = fields.get(part) or {}
    return found


def operand_kinds(operators: Iterable[Declaration]) -> list[Sequence[str]]:
    """The names of the definitions of each operator whose objects have to be cleaned up.

    The last to be applied is the first to be removed. The kinds of the operator that applies
    releases have nothing to clean up.
    """
    ordered = sorted(operators, key=lambda one: (-one.run_level, one.name))
    return [
        [custom_resource(reference).crd_name for reference in declared.kinds]
        for declared in ordered
        if declared.kinds and not declared.applies_payload
    ]


def waits_for(found: Found) -> str:
    """What keeps an object that is being deleted, with what to do."""
    metadata = found.object["metadata"]
    finalizers = metadata.get("finalizers") or []
    if found.resource.kind == "Namespace":
        conditions = (found.object.get("status") or {}).get("conditions") or []
        told = [
            str(one.get("message"))
            for one in conditions
            if str(one.get("type")).startswith(_NOT_REMOVED) and one.get("status") == "True"
        ]
        if told:
            return f"{found}: {' '.join(told)}"
    if not finalizers:
        return f"{found} is still there"
    if finalizers == ["foregroundDeletion"]:
        return (
            f"{found} waits until its pods have ended; if their node is lost, delete them with "
            f"--force: kubectl get pods --namespace={found.namespace} --output=wide"
        )
    if found.resource.kind == "CustomResourceDefinition":
        return (
            f"{found} waits for its objects, which something keeps; see their finalizers: "
            f"kubectl get {metadata['name']} --all-namespaces --output yaml"
        )
    return (
        f"{found} waits for the finalizers {', '.join(finalizers)}: the operator that set them has "
        "to run; see its log, or remove them if there is nothing to clean up"
    )
