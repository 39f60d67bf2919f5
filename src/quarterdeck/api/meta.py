"""What all Kubernetes objects share: resource, key, metadata.

Our own kinds are typed (subclasses of `TypedObject`, made of `Part`s); all other kinds are
dictionaries, so that unknown fields are kept.

How typed fields are encoded, for all kinds:

- A field without a Python default is required in the CRD and when decoding, and always sent.
- An optional field is `T | None = None`. None means absent and is not sent; every other value is
  sent, also `""`, `0` and the server's default. So server-side apply owns exactly the fields
  that were set, and a value can be set back to its default.
- Lists and maps default to empty, and an empty one is not sent: it means absent. A field for
  which an empty list has another meaning is `tuple[T, ...] | None = None`.
- `always("")` is for text that is sent even if it is empty, as the message of a condition:
  applying a condition without a message would keep the message of another writer.
- A default of the API server is part of the schema (`schema.default`), never a Python default.
  If an absent value has a meaning, a property of the type returns it.
- Decoding is lenient: unknown fields are dropped, and enums, bounds and patterns are not checked,
  because the API server has checked them, perhaps with an older or newer CRD than ours.

A decoded object lacks the unknown fields: it is never sent with PUT, only applied or patched.
"""

from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar, dataclass_transform

import msgspec

Object = dict[str, Any]
"""An untyped object, as the API server sent it."""


class Key(NamedTuple):
    """Namespace and name of an object; the namespace is empty for a cluster-scoped one."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class OwnerReference(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """The owner of an object; when the owner is deleted, so is the object."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ManagedFields(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """The fields that a manager owns, and when it last changed one."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: datetime | None = None
    fields_type: str = ""
    fields_v1: msgspec.Raw = msgspec.field(name="fieldsV1", default=msgspec.Raw(b""))
    """Not decoded: it is as large as the object and rarely read."""
    subresource: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The tree of owned fields; decodes it at each call."""
        tree: dict[str, Any] = msgspec.json.decode(self.fields_v1) if self.fields_v1 else {}
        return tree


class ObjectMeta(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """The standard metadata that we use."""

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


V = TypeVar("V")


def always(value: V) -> V:
    """A default that is sent all the same; see the rules at the top of the module."""
    # msgspec leaves out a value that *is* the default, but not one that a factory made.
    made: V = msgspec.field(default_factory=lambda: value)
    return made


class _PartMeta(msgspec.StructMeta):
    """Gives every subclass the settings for the rules above."""

    # Subclasses inherit most settings from msgspec, but not `kw_only`, and type checkers see none
    # of them; so they are set here, and declared to type checkers on `Part`.
    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **given: Any
    ) -> Any:
        settings: dict[str, Any] = {
            "kw_only": True,
            "frozen": True,
            "rename": "camel",
            "omit_defaults": True,
        }
        return super().__new__(mcls, name, bases, namespace, **(settings | given))


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Part(msgspec.Struct, metaclass=_PartMeta, kw_only=True, frozen=True):
    """The base of the parts of our kinds: specs, statuses, list entries."""


class TypedObject(Part):
    """The base of our own kinds."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


T = TypeVar("T", bound="TypedObject | Object")


class Resource(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """An API type, and the Python type of its objects."""

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

    @property
    def plain(self) -> "Resource[Object]":
        """The same kind with its objects as dictionaries, which keep unknown fields."""
        return foreign(self.api_version, self.kind, self.plural, namespaced=self.namespaced)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of a collection, an object or a subresource.

        Without a namespace, the collection of a namespaced resource is that of all namespaces.
        """
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/" + "/".join(parts)


def foreign(api_version: str, kind: str, plural: str, *, namespaced: bool) -> Resource[Object]:
    """A kind that is not ours; its objects are dictionaries."""
    group, _, version = api_version.rpartition("/")
    return Resource(
        group=group, version=version, kind=kind, plural=plural, namespaced=namespaced, type=dict
    )


CONFIG_MAPS = foreign("v1", "ConfigMap", "configmaps", namespaced=True)
SECRETS = foreign("v1", "Secret", "secrets", namespaced=True)
PODS = foreign("v1", "Pod", "pods", namespaced=True)
NODES = foreign("v1", "Node", "nodes", namespaced=False)
NAMESPACES = foreign("v1", "Namespace", "namespaces", namespaced=False)
BUILT_IN_NAMESPACES = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
"""The namespaces of every cluster."""
SERVICE_ACCOUNTS = foreign("v1", "ServiceAccount", "serviceaccounts", namespaced=True)
SERVICES = foreign("v1", "Service", "services", namespaced=True)
DEPLOYMENTS = foreign("apps/v1", "Deployment", "deployments", namespaced=True)
LEASES = foreign("coordination.k8s.io/v1", "Lease", "leases", namespaced=True)
EVENTS = foreign("events.k8s.io/v1", "Event", "events", namespaced=True)
INGRESS_CLASSES = foreign(
    "networking.k8s.io/v1", "IngressClass", "ingressclasses", namespaced=False
)
CRDS = foreign(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
