"""The labels, annotations and names of what the operator creates. Pure."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from quarterdeck.api.meta import Key, Object, TypedObject
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion
from quarterdeck.controller.metadata import key_of
from quarterdeck.kube import LabelSelector

MANAGED = {"quarterdeck.dev/managed": "subscriptions"}
"""On everything that the operator creates, so that its caches hold nothing else."""
OWNER = "quarterdeck.dev/csv"
"""The ClusterServiceVersion of an object: a label with its name, shortened if it is long, and an
annotation with its namespace and name."""
OWNER_NAMESPACE = "quarterdeck.dev/csv-namespace"
SUBSCRIPTION = "quarterdeck.dev/subscription"
"""On a ClusterServiceVersion: the Subscription that installed it."""
REPLACES = "quarterdeck.dev/replaces"
"""On a ClusterServiceVersion: the one that was installed before."""
SERVICES = "quarterdeck.dev/services"
"""On a ClusterServiceVersion: the Services of its bundle, packed."""
PACKAGE = "quarterdeck.dev/package"
PACKAGE_VERSION = "quarterdeck.dev/package-version"
"""On a CustomResourceDefinition: the package and version that brought it."""
CATALOG = "quarterdeck.dev/catalog"
"""On a CustomResourceDefinition: its CatalogSource, as namespace and name."""
FINALIZER = "quarterdeck.dev/csv"

RESERVED = "quarterdeck.dev/"
"""Labels and annotations with this prefix have a meaning here. A bundle cannot set them."""
LONGEST_LABEL = 63
LONGEST_NAME = 253
NAME_REMEDY = "use lower-case letters, digits, hyphens and dots"
_LABEL = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*\Z")


def short_hash(value: Any) -> str:
    """Ten hexadecimal digits that follow from the value."""
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:10]


def is_object_name(name: str) -> bool:
    """Whether an object can have this name; such a name is also safe in paths and selectors."""
    return len(name) <= LONGEST_NAME and _NAME.match(name) is not None


def label_value(name: str) -> str:
    """The name as the value of a label; a long one ends in a hash.

    No two names have the same value: only that of a long name has the greatest length, and nobody
    finds two names with the same 80 bits of a hash.
    """
    if len(name) < LONGEST_LABEL:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:20]
    return f"{name[: LONGEST_LABEL - len(digest) - 2]}.x{digest}"


def without_reserved(found: Mapping[str, Any] | None) -> dict[str, str]:
    """The labels or annotations of a bundle's object, without those that only we may set."""
    return {
        key: value
        for key, value in (found or {}).items()
        if value is not None and not key.startswith(RESERVED)
    }


def owner_labels(csv: ClusterServiceVersion) -> dict[str, str]:
    """The labels of what belongs to a ClusterServiceVersion."""
    return {
        **MANAGED,
        OWNER: label_value(csv.metadata.name),
        OWNER_NAMESPACE: csv.metadata.namespace,
    }


def owner_index(obj: Object) -> list[str]:
    """The ClusterServiceVersion in the labels of an object, for an index."""
    labels = obj["metadata"].get("labels") or {}
    return [f"{labels.get(OWNER_NAMESPACE)}/{labels[OWNER]}"] if OWNER in labels else []


def owner_value(csv: ClusterServiceVersion) -> str:
    """The value under which the index of owners has what belongs to a ClusterServiceVersion."""
    return f"{csv.metadata.namespace}/{label_value(csv.metadata.name)}"


def owned_selector(csv: ClusterServiceVersion) -> LabelSelector:
    """Selects what belongs to a ClusterServiceVersion."""
    return LabelSelector(match_labels=owner_labels(csv))


def owner_of(obj: Object) -> Key | None:
    """The key of the ClusterServiceVersion that an object belongs to; None if it has none."""
    text = (obj["metadata"].get("annotations") or {}).get(OWNER) or ""
    namespace, slash, name = text.partition("/")
    return Key(namespace, name) if slash else None


def to_csv(obj: Object) -> Iterable[Key]:
    """The key of the ClusterServiceVersion, for a watch."""
    owner = owner_of(obj)
    return () if owner is None else (owner,)


def plan_name(
    subscription: str, uid: str, csv: str, digest: str, *, source: Key, replaces: str
) -> str:
    """The name of the InstallPlan for one step: the same at each attempt."""
    identity = [uid, csv, digest, str(source), replaces]
    return f"install-{subscription[:40].rstrip('-.')}-{short_hash(identity)}"


def namespace_of(obj: TypedObject | Object) -> list[str]:
    """The namespace of an object, for an index."""
    return [key_of(obj).namespace]
