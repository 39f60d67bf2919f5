"""Where the fields of a merged Deployment come from, and what they replaced. Pure.

A field here is a unit of the merge: one environment variable, one volume, one toleration, the whole
nodeSelector. Fields that no rule of the merge knows are units of their own.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from quarterdeck.api.meta import Object

CSV = "CSV"
PROXY = "proxy"
OLM = "OLM"


def config_source(index: int) -> str:
    """The source of what an entry of the Subscription's config sets."""
    return f"config[{index}]"


class FieldOrigin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The source of one field."""

    field: str
    """The path of the field; entries of lists are named by what identifies them."""
    source: str
    """`CSV`, `config[0]`, `proxy` or `OLM`."""
    value: Any = None
    """The value in the Deployment; None if the field was removed."""
    replaced: Any = None
    """The value before the last source that set it; None if there was none."""
    removed: bool = False


class Ledger:
    """Records which source set or removed which field; the last one counts."""

    def __init__(self) -> None:
        self._sources: dict[str, tuple[str, Any]] = {}

    def record(self, field: str, source: str, replaced: Any) -> None:
        """The source has set or removed the field, which had this value before."""
        self._sources[field] = (source, replaced)

    def source(self, field: str) -> str:
        """The source of the field; the CSV unless another was recorded."""
        return self._sources.get(field, (CSV, None))[0]

    def origins(self, final: Object) -> tuple[FieldOrigin, ...]:
        """The origin of every field of the Deployment, and of those that were removed."""
        fields = dict(units(final))
        removed = [field for field in self._sources if field not in fields]
        kept = [self._origin(field, value) for field, value in fields.items()]
        return (
            *kept,
            *(
                FieldOrigin(
                    field=field,
                    source=self._sources[field][0],
                    replaced=self._sources[field][1],
                    removed=True,
                )
                for field in removed
            ),
        )

    def _origin(self, field: str, value: Any) -> FieldOrigin:
        source, replaced = self._sources.get(field, (CSV, None))
        return FieldOrigin(field=field, source=source, value=value, replaced=replaced)


POD = "spec.template.spec"
ANNOTATIONS = "metadata.annotations"


def container_path(container: Object, *, init: bool = False) -> str:
    """The path of a container, by its name."""
    return f"{POD}.{'initContainers' if init else 'containers'}[{container.get('name', '')}]"


def item_path(path: str, key: object) -> str:
    """The path of an entry of a list or a map, by what identifies it."""
    return f"{path}[{key}]"


def unkeyed(item: Object) -> str:
    """What identifies an entry of a list without a key: its content."""
    return msgspec.json.encode(item, order="deterministic").decode()


LIST_KEYS = {"env": "name", "volumes": "name", "volumeMounts": "mountPath"}
UNKEYED_LISTS = ("envFrom", "tolerations")


def units(deployment: Object) -> Iterator[tuple[str, Any]]:
    """Every unit of a Deployment, with its path."""
    for key, value in _entries(ANNOTATIONS, deployment["metadata"].get("annotations")):
        yield key, value
    for key, value in _entries("metadata.labels", deployment["metadata"].get("labels")):
        yield key, value
    spec = deployment["spec"]
    for name, value in spec.items():
        if name != "template":
            yield f"spec.{name}", value
    template = spec.get("template") or {}
    for part, value in (template.get("metadata") or {}).items():
        path = f"spec.template.metadata.{part}"
        if isinstance(value, dict):
            yield from _entries(path, value)
        else:
            yield path, value
    for name, value in (template.get("spec") or {}).items():
        if name in ("containers", "initContainers"):
            for container in value:
                yield from _container_units(container, init=name == "initContainers")
        else:
            yield from _field_units(f"{POD}.{name}", name, value)


def _container_units(container: Object, *, init: bool) -> Iterator[tuple[str, Any]]:
    path = container_path(container, init=init)
    for name, value in container.items():
        yield from _field_units(f"{path}.{name}", name, value)


def _field_units(path: str, name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if name in LIST_KEYS:
        for item in value or ():
            yield item_path(path, item.get(LIST_KEYS[name], "")), item
    elif name in UNKEYED_LISTS:
        for item in value or ():
            yield item_path(path, unkeyed(item)), item
    elif name == "affinity":
        for part, inner in (value or {}).items():
            yield f"{path}.{part}", inner
    else:
        yield path, value


def _entries(path: str, found: Object | None) -> Iterator[tuple[str, Any]]:
    for key, value in (found or {}).items():
        yield item_path(path, key), value
