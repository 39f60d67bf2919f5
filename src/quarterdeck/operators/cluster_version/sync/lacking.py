"""What an object needs before it can be there: its kind and its namespace. Pure.

On a new cluster everything is applied at once, so that an object may be tried before what it needs
is there. That is no fault if the same payload brings it; then it is waited for.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from quarterdeck.api.meta import Key
from quarterdeck.kube import NotFound
from quarterdeck.operators.cluster_version.sync.kinds import (
    GroupVersionKind,
    kinds_of_definition,
)
from quarterdeck.operators.cluster_version.sync.plan import is_definition
from quarterdeck.operators.cluster_version.sync.progress import DONE, Failed, Outcome, Waiting
from quarterdeck.payload import annotations as known
from quarterdeck.payload.model import Identity, Manifest

KIND_UNKNOWN, NO_NAMESPACE = "KindUnknown", "NamespaceNotFound"
LACKING = (KIND_UNKNOWN, NO_NAMESPACE)
"""Reasons that may go away when another manifest is done: one that `brings_others`."""


class Coming:
    """The kinds and namespaces that manifests bring."""

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        self.kinds: set[GroupVersionKind] = set()
        self.namespaces: set[str] = set()
        for manifest in manifests:
            if is_definition(manifest.identity):
                # What a broken one brings nobody knows; the server will say what is wrong with it.
                with suppress(KeyError, TypeError, AttributeError):
                    self.kinds |= kinds_of_definition(manifest.object).keys()
            elif _is_namespace(manifest.identity):
                self.namespaces.add(manifest.identity.name)


def brings_others(identity: Identity) -> bool:
    """Whether there can be objects because of this one: of its kind, or in its namespace."""
    return is_definition(identity) or _is_namespace(identity)


def without_kind(manifest: Manifest, versions: Sequence[str], coming: Coming) -> Outcome:
    """What comes of a manifest whose kind the server does not have, in its version at least."""
    if manifest.annotations.get(known.DELETE) == "true":
        return DONE
    gvk = GroupVersionKind.of(manifest.object)
    if gvk in coming.kinds:
        return Waiting(KIND_UNKNOWN, "its definition, in this payload, is not served yet")
    message = f"the API server has no {gvk.kind} in {manifest.object['apiVersion']}"
    if versions:
        remedy = f"write it in a version that it has: {', '.join(versions)}"
    else:
        remedy = "install its definition, or leave it out"
    return Failed(KIND_UNKNOWN, f"{message}; {remedy}")


def without_place(key: Key, error: NotFound, coming: Coming) -> Outcome:
    """What comes of a write that found no place for its object: a 404 from the server."""
    if not key.namespace or not error.message.startswith("namespaces "):
        message = f"{error.message}; is its definition being removed?"
        return Failed(KIND_UNKNOWN, message)
    if key.namespace in coming.namespaces:
        message = f"namespace {key.namespace}, in this payload, is not there yet"
        return Waiting(NO_NAMESPACE, message)
    message = f"{error.message}; create namespace {key.namespace} or add it to the payload"
    return Failed(NO_NAMESPACE, message)


def _is_namespace(identity: Identity) -> bool:
    return (identity.group, identity.kind) == ("", "Namespace")
