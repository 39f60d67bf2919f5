"""Makes a catalog from bundle directories.

A bundle directory has the objects in `manifests`, and `metadata/annotations.yaml` with the package
and its channels. `metadata/dependencies.yaml` can name the packages that it requires.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.operators.subscriptions.catalog.files import directory_files
from quarterdeck.operators.subscriptions.catalog.load import (
    BUNDLE_OBJECT,
    PACKAGE_PROPERTY,
    REQUIRED_PROPERTY,
)
from quarterdeck.operators.subscriptions.catalog.model import CatalogFinding
from quarterdeck.operators.subscriptions.names import NAME_REMEDY, is_object_name
from quarterdeck.strict_yaml import Document, Refusal, decode_json, decode_yaml
from quarterdeck.versions import Version, parse_version

_ANNOTATION = "operators.operatorframework.io.bundle."
_SKIP_RANGE = "olm.skipRange"


class BundleDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle as its directory has it."""

    directory: str
    package: str
    channels: tuple[str, ...]
    default_channel: str
    name: str
    version: Version
    replaces: str
    skips: tuple[str, ...]
    skip_range: str
    objects: tuple[Object, ...]
    required: tuple[Object, ...] = ()
    """The packages that have to be installed before: `packageName` and `versionRange`."""


def bundle_directories(roots: Iterable[Path]) -> list[Path]:
    """The bundle directories in these directories, which may be bundles themselves."""
    found = []
    for root in roots:
        manifests = sorted(root.rglob("manifests")) if root.is_dir() else []
        inside = [path.parent for path in manifests if (path.parent / "metadata").is_dir()]
        found += inside or [root]
    return found


def read_bundle(directory: Path) -> BundleDirectory | CatalogFinding:
    """The bundle in a directory, or why it cannot be read."""
    shown = str(directory)
    metadata = _documents(directory / "metadata")
    objects = _documents(directory / "manifests")
    if isinstance(metadata, CatalogFinding):
        return _with(metadata, shown)
    if isinstance(objects, CatalogFinding):
        return _with(objects, shown)
    annotations: dict[str, Any] = {}
    for document in metadata:
        found = document.get("annotations") or {}
        if not isinstance(found, dict):
            return _finding(shown, "the annotations in its metadata are no map", "write a map")
        annotations |= found
    package = annotations.get(f"{_ANNOTATION}package.v1")
    channels = annotations.get(f"{_ANNOTATION}channels.v1")
    if not package or not channels:
        message = "metadata/annotations.yaml names no package or no channels"
        return _finding(shown, message, f"add {_ANNOTATION}package.v1 and {_ANNOTATION}channels.v1")
    csvs = [one for one in objects if one.get("kind") == "ClusterServiceVersion"]
    if len(csvs) != 1:
        message = f"has {len(csvs)} ClusterServiceVersions"
        return _finding(shown, message, "a bundle has one")
    (csv,) = csvs
    spec, meta = csv.get("spec"), csv.get("metadata")
    if not isinstance(spec, dict) or not isinstance(meta, dict):
        message = "its ClusterServiceVersion has no metadata or no spec"
        return _finding(shown, message, "give it both")
    version = parse_version(str(spec.get("version")))
    if version is None or not meta.get("name"):
        message = f"its ClusterServiceVersion has no name or no version: {spec.get('version')!r}"
        return _finding(shown, message, "give it a name and a semantic version")
    for text in (str(package), str(meta["name"])):
        if not is_object_name(text):
            return _finding(shown, f"{text[:100]!r} is no name", NAME_REMEDY)
    return BundleDirectory(
        directory=shown,
        package=str(package),
        channels=tuple(name.strip() for name in str(channels).split(",") if name.strip()),
        default_channel=str(annotations.get(f"{_ANNOTATION}channel.default.v1") or ""),
        name=str(meta["name"]),
        version=version,
        replaces=str(spec.get("replaces") or ""),
        skips=tuple(map(str, spec.get("skips") or ())),
        skip_range=str((meta.get("annotations") or {}).get(_SKIP_RANGE) or ""),
        objects=tuple(objects),
        required=tuple(_required(metadata)),
    )


def _required(metadata: Iterable[Object]) -> Iterator[Object]:
    """The packages in the file `dependencies.yaml`, as a catalog has them."""
    for document in metadata:
        dependencies = document.get("dependencies")
        for one in dependencies if isinstance(dependencies, list) else ():
            match one:
                case {"type": "olm.package", "value": dict(value)}:
                    package, versions = value.get("packageName"), value.get("version")
                    yield {"packageName": package, "versionRange": versions}


def catalog_entries(bundles: Sequence[BundleDirectory]) -> dict[str, list[Object]]:
    """The entries of the catalog, by the file that has them."""
    files: dict[str, list[Object]] = {}
    for package in sorted({bundle.package for bundle in bundles}):
        own = sorted(
            (bundle for bundle in bundles if bundle.package == package),
            key=lambda bundle: bundle.version,
        )
        files[f"{package}/catalog.json"] = list(_package_entries(package, own))
        for bundle in own:
            files[f"{package}/{bundle.name}.json"] = [_bundle_entry(bundle)]
    return files


def _package_entries(package: str, bundles: Sequence[BundleDirectory]) -> Iterator[Object]:
    channels: dict[str, list[BundleDirectory]] = {}
    for bundle in bundles:
        for channel in bundle.channels:
            channels.setdefault(channel, []).append(bundle)
    # The latest bundle decides; without a word from it, the first of its channels.
    default = bundles[-1].default_channel or bundles[-1].channels[0]
    yield {"schema": "olm.package", "name": package, "defaultChannel": default}
    for name, members in sorted(channels.items()):
        entries = [_channel_entry(bundle) for bundle in members]
        yield {"schema": "olm.channel", "package": package, "name": name, "entries": entries}


def _channel_entry(bundle: BundleDirectory) -> Object:
    entry: Object = {"name": bundle.name}
    if bundle.replaces:
        entry["replaces"] = bundle.replaces
    if bundle.skips:
        entry["skips"] = list(bundle.skips)
    if bundle.skip_range:
        entry["skipRange"] = bundle.skip_range
    return entry


def _bundle_entry(bundle: BundleDirectory) -> Object:
    stated = {"packageName": bundle.package, "version": _csv_version(bundle)}
    properties: list[Object] = [{"type": PACKAGE_PROPERTY, "value": stated}]
    properties += [{"type": REQUIRED_PROPERTY, "value": one} for one in bundle.required]
    for obj in bundle.objects:
        text = json.dumps(obj, separators=(",", ":"), sort_keys=True)
        data = base64.b64encode(text.encode()).decode()
        properties.append({"type": BUNDLE_OBJECT, "value": {"data": data}})
    return {
        "schema": "olm.bundle",
        "package": bundle.package,
        "name": bundle.name,
        "properties": properties,
    }


def _csv_version(bundle: BundleDirectory) -> str:
    (csv,) = (one for one in bundle.objects if one["kind"] == "ClusterServiceVersion")
    return str(csv["spec"]["version"])


def _documents(directory: Path) -> list[Object] | CatalogFinding:
    found: list[Object] = []
    for file in directory_files(directory):
        if isinstance(file, CatalogFinding):
            return file
        name, text = file
        decode = decode_json if name.endswith(".json") else decode_yaml
        for document in decode(text):
            match document:
                case Refusal(line=line, message=message, remedy=remedy):
                    return _finding(f"{directory.name}/{name}:{line}", message, remedy)
                case Document(value=dict() as value):
                    found.append(value)
                case Document(line=line, value=None):
                    pass
                case Document(line=line):
                    place = f"{directory.name}/{name}:{line}"
                    return _finding(place, "is no object", "write a mapping")
    return found


def _with(finding: CatalogFinding, directory: str) -> CatalogFinding:
    return msgspec.structs.replace(finding, file=f"{directory}: {finding.file}")


def _finding(file: str, message: str, remedy: str) -> CatalogFinding:
    return CatalogFinding(file=file, entry="", message=message, remedy=remedy)
