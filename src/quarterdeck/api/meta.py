"""What all Kubernetes objects share: where a kind is served, its key, its metadata.

Our own kinds are typed (subclasses of `TypedObject`, made of `Part`s); foreign kinds stay plain
dictionaries, so that fields we do not know survive.

How a typed field goes over the wire, decided once for all kinds:

- A field without a Python default is required: in the CRD, when decoding, and always sent.
- An optional field is `T | None = None`. None is "not there" and is not sent; every other value
  is sent, also `""`, `0` and one that equals the server's default. So server-side apply owns
  exactly what was set, and a value can be put back to its default.
- Lists and maps default to empty, and an empty one is not sent: it means the same as none. A
  field where an empty list says something of its own is `tuple[T, ...] | None = None`.
- `always("")` is for text that is sent even when it is empty. A condition's message is such a
  field: applying a condition without it would leave there what somebody else has written.
- The default that the API server fills in is part of the schema (`schema.default`), never a
  Python default. Where an absent value has a meaning, a property of the type says which.
- Decoding is lenient: unknown fields are dropped, and enums, bounds and patterns are not checked
  again, because the API server has done that, maybe by an older or newer CRD than ours.

A decoded object has lost the fields we do not know: it is never PUT back, only applied or patched.
"""

from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar, dataclass_transform

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
    fields_v1: msgspec.Raw = msgspec.field(name="fieldsV1", default=msgspec.Raw(b""))
    """Left as it came: it is as large as the object, and few look into it."""
    subresource: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The tree of owned fields, decoded now."""
        tree: dict[str, Any] = msgspec.json.decode(self.fields_v1) if self.fields_v1 else {}
        return tree


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


V = TypeVar("V")


def always(value: V) -> V:
    """A field's default that is sent nevertheless; see the module's rules."""
    # msgspec leaves out a value that *is* the default; what a factory makes is no default to it.
    made: V = msgspec.field(default_factory=lambda: value)
    return made


class _WireMeta(msgspec.StructMeta):
    """Gives every subclass the settings that make up the rules above."""

    # msgspec hands down most settings to subclasses, but not `kw_only`, and type checkers take
    # none of them over; so they are set here, and said to type checkers on `Part`.
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
class Part(msgspec.Struct, metaclass=_WireMeta, kw_only=True, frozen=True):
    """The base of what our kinds are made of: specs, statuses, list entries."""


class TypedObject(Part):
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

    @property
    def plain(self) -> "Resource[Object]":
        """The same kind with its objects as plain dictionaries: what a type would drop is kept."""
        return foreign(self.api_version, self.kind, self.plural, namespaced=self.namespaced)

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
