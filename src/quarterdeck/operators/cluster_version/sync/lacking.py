"""Outcomes for objects whose kind or namespace is missing. Pure.

On a new cluster all manifests are applied at once, so an object may come before its kind or
namespace. If the same payload provides that, the object waits; otherwise it fails.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from quarterdeck.api.meta import Key
from quarterdeck.kube import NotFound
from quarterdeck.kube.kinds import (
    GroupVersionKind,
    kinds_of_definition,
)
from quarterdeck.operators.cluster_version.sync.plan import is_definition
from quarterdeck.operators.cluster_version.sync.progress import DONE, Failed, Outcome, Waiting
from quarterdeck.payload import annotations as known
from quarterdeck.payload.model import Manifest, ObjectIdentity

KIND_UNKNOWN, NO_NAMESPACE = "KindUnknown", "NamespaceNotFound"
LACKING = (KIND_UNKNOWN, NO_NAMESPACE)
"""Reasons that may end when a manifest is done for which `brings_others` is True."""


class Provided:
    """The kinds and namespaces that manifests provide."""

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        self.kinds: set[GroupVersionKind] = set()
        self.namespaces: set[str] = set()
        for manifest in manifests:
            if is_definition(manifest.identity):
                # A malformed definition provides nothing; the server reports what is wrong.
                with suppress(KeyError, TypeError, AttributeError):
                    self.kinds |= kinds_of_definition(manifest.object).keys()
            elif _is_namespace(manifest.identity):
                self.namespaces.add(manifest.identity.name)


def brings_others(identity: ObjectIdentity) -> bool:
    """Whether the object is a definition or a namespace, which other objects need."""
    return is_definition(identity) or _is_namespace(identity)


def without_kind(manifest: Manifest, versions: Sequence[str], provided: Provided) -> Outcome:
    """The outcome for a manifest whose kind the server does not serve in its version."""
    if manifest.annotations.get(known.DELETE) == "true":
        return DONE
    gvk = GroupVersionKind.of(manifest.object)
    if gvk in provided.kinds:
        return Waiting(KIND_UNKNOWN, "its definition, in this payload, is not served yet")
    message = f"the API server has no {gvk.kind} in {manifest.object['apiVersion']}"
    if versions:
        remedy = f"write it in a version that it has: {', '.join(versions)}"
    else:
        remedy = "install its definition, or leave it out"
    return Failed(KIND_UNKNOWN, f"{message}; {remedy}")


def without_place(key: Key, error: NotFound, provided: Provided) -> Outcome:
    """The outcome of a write to which the server answers 404."""
    if not key.namespace or not error.message.startswith("namespaces "):
        message = f"{error.message}; is its definition being removed?"
        return Failed(KIND_UNKNOWN, message)
    if key.namespace in provided.namespaces:
        message = f"namespace {key.namespace}, in this payload, is not there yet"
        return Waiting(NO_NAMESPACE, message)
    message = f"{error.message}; create namespace {key.namespace} or add it to the payload"
    return Failed(NO_NAMESPACE, message)


def _is_namespace(identity: ObjectIdentity) -> bool:
    return (identity.group, identity.kind) == ("", "Namespace")
