"""The ConfigMaps and Secrets to which a config entry refers. Pure."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.operators_v1alpha1 import ConfigEntry

Kind = Literal["ConfigMap", "Secret"]


class ConfigReference(msgspec.Struct, frozen=True, kw_only=True):
    """A reference of an entry, that has to resolve unless it is optional."""

    kind: Kind
    name: str
    key: str = ""
    """The key that the object needs to have; empty if the whole object is meant."""
    reason: str
    """The reason of the failure if it cannot be resolved."""
    field: str
    """The field of the entry, such as `env[0]`."""
    subject: str = ""
    """What the reference is for: the name of the variable."""


def references(entry: ConfigEntry) -> Iterator[ConfigReference]:
    """The references of an entry that have to resolve."""
    for position, item in enumerate(entry.env):
        source = item.get("valueFrom") or {}
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            yield from _reference(
                source.get(field),
                kind,
                "name",
                "EnvFailure",
                f"env[{position}]",
                subject=item.get("name", ""),
                with_key=True,
            )
    for position, item in enumerate(entry.env_from):
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            yield from _reference(
                item.get(field), kind, "name", "EnvFromFailure", f"envFrom[{position}]"
            )
    for position, volume in enumerate(entry.volumes):
        where = f"volumes[{position}]"
        yield from _volume_references(volume, "secretName", where)
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _volume_references(source, "name", where)


def _volume_references(volume: Object, secret_name: str, field: str) -> Iterator[ConfigReference]:
    for part, kind, name in (("configMap", "ConfigMap", "name"), ("secret", "Secret", secret_name)):
        source = volume.get(part)
        yield from _reference(source, kind, name, "VolumeFailure", field)
        for item in (source or {}).get("items") or ():
            keyed = {**(source or {}), "key": item.get("key", "")}
            yield from _reference(keyed, kind, name, "VolumeFailure", field, with_key=True)


def _reference(
    source: Object | None,
    kind: Any,
    name: str,
    reason: str,
    field: str,
    *,
    subject: str = "",
    with_key: bool = False,
) -> Iterator[ConfigReference]:
    if source and not source.get("optional") and source.get(name):
        key = source.get("key", "") if with_key else ""
        yield ConfigReference(
            kind=kind, name=source[name], key=key, reason=reason, field=field, subject=subject
        )


def why_unresolved(reference: ConfigReference, find: Callable[[Kind, str], Object | None]) -> str:
    """Why a reference cannot be resolved; empty if it can. `find` gives the object by its name."""
    subject = f'"{reference.subject}" couldn\'t be applied: ' if reference.subject else ""
    found = find(reference.kind, reference.name)
    if found is None:
        return f"{subject}there is no {reference.kind} {reference.name}"
    keys = {*(found.get("data") or {}), *(found.get("binaryData") or {})}
    if reference.key and reference.key not in keys:
        return f"{subject}{reference.kind} {reference.name} has no key {reference.key}"
    return ""
