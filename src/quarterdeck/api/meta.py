"""What all Kubernetes objects share: where a kind is served, its key, its metadata.

Our own kinds are typed (subclasses of `TypedObject`); foreign kinds stay plain dictionaries,
so that fields we do not know survive.
"""

from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

Object = dict[str, Any]
"""A foreign object as the API server sent it."""


class Key(NamedTuple):
    """Which object of a kind; the namespace of a cluster-scoped one is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class OwnerReference(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Another object that this one goes with; when it is deleted, so is this."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ManagedFields(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Which fields one manager owns, and when it last changed one of them."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: datetime | None = None
    fields_type: str = ""
    fields_v1: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)
    subresource: str = ""


class ObjectMeta(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """The standard metadata, as far as we use it."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []
    managed_fields: list[ManagedFields] = []


class TypedObject(msgspec.Struct, kw_only=True, rename="camel"):
    """The base of our own kinds."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


T = TypeVar("T", bound="TypedObject | Object")


class Resource(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """Where a kind is served, and the type its objects are decoded into."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    type: type[T]

    @property
    def api_version(self) -> str:
        """`group/version`, or only the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of a collection, an object or a subresource of it.

        A namespaced resource without a namespace is the collection over all namespaces.
        """
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/" + "/".join(parts)


def foreign(api_version: str, kind: str, plural: str, *, namespaced: bool) -> Resource[Object]:
    """A kind that is not ours; its objects stay plain dictionaries."""
    group, _, version = api_version.rpartition("/")
    return Resource(
        group=group, version=version, kind=kind, plural=plural, namespaced=namespaced, type=dict
    )


CONFIG_MAPS = foreign("v1", "ConfigMap", "configmaps", namespaced=True)
SECRETS = foreign("v1", "Secret", "secrets", namespaced=True)
PODS = foreign("v1", "Pod", "pods", namespaced=True)
NODES = foreign("v1", "Node", "nodes", namespaced=False)
NAMESPACES = foreign("v1", "Namespace", "namespaces", namespaced=False)
SERVICE_ACCOUNTS = foreign("v1", "ServiceAccount", "serviceaccounts", namespaced=True)
DEPLOYMENTS = foreign("apps/v1", "Deployment", "deployments", namespaced=True)
LEASES = foreign("coordination.k8s.io/v1", "Lease", "leases", namespaced=True)
EVENTS = foreign("events.k8s.io/v1", "Event", "events", namespaced=True)
CRDS = foreign(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
