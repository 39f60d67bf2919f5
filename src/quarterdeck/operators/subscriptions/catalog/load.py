"""Makes a catalog from the texts of its files. Pure.

An entry that cannot be read is a finding; `lint` checks the entries against each other.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from quarterdeck.operators.subscriptions.catalog.files import TextFile
from quarterdeck.operators.subscriptions.catalog.lint import lint
from quarterdeck.operators.subscriptions.catalog.manifests import (
    BadManifest,
    PackedManifest,
    packed,
)
from quarterdeck.operators.subscriptions.catalog.model import (
    Bundle,
    Catalog,
    CatalogFinding,
    Channel,
    ChannelEntry,
    LoadedCatalog,
    Package,
    Place,
    RequiredPackage,
)
from quarterdeck.operators.subscriptions.names import NAME_REMEDY, is_object_name
from quarterdeck.strict_yaml import Document, Refusal, decode_json, decode_yaml
from quarterdeck.versions import parse_range, parse_version

BUNDLE_OBJECT = "olm.bundle.object"
PACKAGE_PROPERTY = "olm.package"
REQUIRED_PROPERTY = "olm.package.required"
MAX_OBJECTS = 500
"""The most objects of a bundle."""
MAX_REQUIRED = 100
"""The most packages that a bundle requires."""
MAX_CHANNEL = 5_000
"""The most versions in a channel."""
MAX_SKIPS = 20_000
"""The most versions that the entries of a channel skip, together."""
MAX_CHANNELS = 200
"""The most channels of a package."""


class _Property(msgspec.Struct):
    type: str
    value: Any = None


class _PackageEntry(msgspec.Struct, tag_field="schema", tag="olm.package", rename="camel"):
    name: str
    default_channel: str = ""


class _EntryOfChannel(msgspec.Struct, rename="camel"):
    name: str
    replaces: str = ""
    skips: tuple[str, ...] = ()
    skip_range: str = ""


class _ChannelEntry(msgspec.Struct, tag_field="schema", tag="olm.channel"):
    name: str
    package: str
    entries: tuple[_EntryOfChannel, ...] = ()


class _BundleEntry(msgspec.Struct, tag_field="schema", tag="olm.bundle"):
    name: str
    package: str
    properties: tuple[_Property, ...] = ()


_ENTRIES = _PackageEntry | _ChannelEntry | _BundleEntry
_SCHEMAS = ("olm.package", "olm.channel", "olm.bundle")


class _Parts:
    """What was read so far."""

    def __init__(self) -> None:
        self.packages: dict[str, tuple[_PackageEntry, Place]] = {}
        self.channels: dict[tuple[str, str], Channel] = {}
        self.bundles: dict[tuple[str, str], Bundle] = {}
        self.channel_counts: Counter[str] = Counter()
        self.findings: list[CatalogFinding] = []


def load(files: Iterable[TextFile | CatalogFinding]) -> LoadedCatalog:
    """The catalog in these files, and what is wrong with it."""
    parts = _Parts()
    for file in files:
        if isinstance(file, CatalogFinding):
            parts.findings.append(file)
            continue
        for place, value in _entries(*file, parts.findings):
            _add(parts, place, value)
    catalog = _assembled(parts)
    return LoadedCatalog(catalog=catalog, findings=(*parts.findings, *lint(catalog)))


def _entries(name: str, text: str, findings: list[CatalogFinding]) -> Iterator[tuple[Place, Any]]:
    decode = decode_json if name.endswith(".json") else decode_yaml
    for document in decode(text):
        match document:
            case Refusal(line=line, message=message, remedy=remedy):
                findings.append(Place(name, f"line {line}").finding(message, remedy))
            case Document(value=None):
                pass
            case Document(line=line, value=value):
                if not isinstance(value, dict) or not isinstance(value.get("schema"), str):
                    message = "is no entry of a file-based catalog"
                    findings.append(
                        Place(name, f"line {line}").finding(message, "give it a schema and a name")
                    )
                    continue
                yield Place(name, f"{value['schema']} {value.get('name')}"), value


def _add(parts: _Parts, place: Place, value: Mapping[str, Any]) -> None:
    if value["schema"] not in _SCHEMAS:
        return  # A schema of somebody else, such as olm.deprecations.
    try:
        entry = msgspec.convert(value, _ENTRIES)
    except msgspec.ValidationError as error:
        parts.findings.append(place.finding(f"is not valid: {error}", "correct the field"))
        return
    if fault := _bad_name(entry):
        parts.findings.append(place.finding(*fault))
        return
    match entry:
        case _PackageEntry():
            _put(parts, parts.packages, entry.name, (entry, place), place)
        case _ChannelEntry():
            parts.channel_counts[entry.package] += 1
            if parts.channel_counts[entry.package] > MAX_CHANNELS:
                message = f"is one of more than {MAX_CHANNELS} channels of {entry.package}"
                parts.findings.append(place.finding(message, "remove old ones"))
                return
            channel = _channel(entry, place, parts.findings)
            _put(parts, parts.channels, (entry.package, entry.name), channel, place)
        case _BundleEntry():
            if (bundle := _bundle(entry, place, parts.findings)) is not None:
                _put(parts, parts.bundles, (entry.package, entry.name), bundle, place)


def _bad_name(entry: _PackageEntry | _ChannelEntry | _BundleEntry) -> tuple[str, str] | None:
    """A name that could not be that of an object or a file, and the remedy."""
    package = entry.name if isinstance(entry, _PackageEntry) else entry.package
    names = [package]
    if isinstance(entry, _BundleEntry):
        names.append(entry.name)
    for name in names:
        if not is_object_name(name):
            return f"{name[:100]!r} is no name", NAME_REMEDY
    return _too_many(entry) if isinstance(entry, _ChannelEntry) else None


def _too_many(entry: _ChannelEntry) -> tuple[str, str] | None:
    """What a channel has too many of, and the remedy."""
    if len(entry.entries) > MAX_CHANNEL:
        return f"has more than {MAX_CHANNEL:,} entries", "remove old ones"
    if sum(len(one.skips) for one in entry.entries) > MAX_SKIPS:
        return f"its entries skip more than {MAX_SKIPS:,} versions", "use skipRange"
    return None


def _put(parts: _Parts, known: dict[Any, Any], key: Any, value: Any, place: Place) -> None:
    if key in known:
        parts.findings.append(place.finding("is in the catalog twice", "remove one of the two"))
    known[key] = value


def _channel(entry: _ChannelEntry, place: Place, findings: list[CatalogFinding]) -> Channel:
    entries = []
    for one in entry.entries:
        skip_range = parse_range(one.skip_range) if one.skip_range else None
        if one.skip_range and skip_range is None:
            message = f"entry {one.name}: {one.skip_range!r} is no range of versions"
            findings.append(place.finding(message, "write it as '>=1.0.0 <1.2.0'"))
        entries.append(
            ChannelEntry(
                name=one.name, replaces=one.replaces, skips=one.skips, skip_range=skip_range
            )
        )
    return Channel(package=entry.package, name=entry.name, entries=tuple(entries), place=place)


def _bundle(entry: _BundleEntry, place: Place, findings: list[CatalogFinding]) -> Bundle | None:
    versions = [one.value for one in entry.properties if one.type == PACKAGE_PROPERTY]
    if len(versions) != 1 or not isinstance(versions[0], dict):
        message = f"has {len(versions)} properties {PACKAGE_PROPERTY}"
        findings.append(place.finding(message, "give it one, with packageName and version"))
        return None
    stated = versions[0]
    version = parse_version(str(stated.get("version")))
    if version is None:
        message = f"{stated.get('version')!r} is no semantic version"
        findings.append(place.finding(message, "write it as 1.2.3"))
        return None
    if stated.get("packageName") != entry.package:
        message = f"is in the package {entry.package}, its property in {stated.get('packageName')}"
        findings.append(place.finding(message, "make them the same"))
    manifests, required = _manifests(entry, place, findings), _required(entry, place, findings)
    if manifests is None or required is None:
        return None
    return Bundle(
        package=entry.package,
        name=entry.name,
        version=version,
        manifests=manifests,
        place=place,
        required=required,
    )


def _required(
    entry: _BundleEntry, place: Place, findings: list[CatalogFinding]
) -> tuple[RequiredPackage, ...] | None:
    values = [one.value for one in entry.properties if one.type == REQUIRED_PROPERTY]
    if len(values) > MAX_REQUIRED:
        findings.append(place.finding(f"requires more than {MAX_REQUIRED} packages", "remove some"))
        return None
    made = []
    for value in values:
        match value:
            case {"packageName": str(package), "versionRange": str(text)} if (
                is_object_name(package) and (versions := parse_range(text)) is not None
            ):
                made.append(RequiredPackage(package, versions, text))
            case _:
                message = f"its property {REQUIRED_PROPERTY} names no package or no range"
                remedy = "give it packageName, and a versionRange as '>=1.0.0 <1.2.0'"
                findings.append(place.finding(message, remedy))
                return None
    return tuple(made)


def _manifests(
    entry: _BundleEntry, place: Place, findings: list[CatalogFinding]
) -> tuple[PackedManifest, ...] | None:
    objects = [one.value for one in entry.properties if one.type == BUNDLE_OBJECT]
    if len(objects) > MAX_OBJECTS:
        findings.append(place.finding(f"has more than {MAX_OBJECTS} objects", "split the operator"))
        return None
    made = []
    for position, value in enumerate(objects):
        data = value.get("data") if isinstance(value, dict) else None
        where = f"{BUNDLE_OBJECT}[{position}]"
        if not isinstance(data, str):
            findings.append(
                place.finding(f"{where} has no data", "put the object there, as JSON in base64")
            )
            return None
        try:
            # msgspec's decoder is as strict as the standard library's, in a quarter of the time.
            made.append(packed(msgspec.convert(data, bytes)))
        except msgspec.ValidationError as error:
            findings.append(place.finding(f"{where}: {error}", "encode JSON in base64"))
            return None
        except BadManifest as error:
            findings.append(place.finding(f"{where} {error.message}", error.remedy))
            return None
    return tuple(made)


def _assembled(parts: _Parts) -> Catalog:
    channels: dict[str, dict[str, Channel]] = {name: {} for name in parts.packages}
    bundles: dict[str, dict[str, Bundle]] = {name: {} for name in parts.packages}
    for (package, name), channel in parts.channels.items():
        channels.setdefault(package, {})[name] = channel
    for (package, name), bundle in parts.bundles.items():
        bundles.setdefault(package, {})[name] = bundle
    packages = {
        name: Package(
            name=name,
            default_channel=entry.default_channel,
            channels=channels[name],
            bundles=bundles[name],
            place=place,
        )
        for name, (entry, place) in parts.packages.items()
    }
    places = [
        *((one.package, one.place) for one in parts.channels.values()),
        *((one.package, one.place) for one in parts.bundles.values()),
    ]
    for package, place in places:
        if package not in packages:
            message = f"is in the package {package}, which the catalog does not have"
            parts.findings.append(place.finding(message, "add an entry olm.package"))
    return Catalog(packages=packages)
