"""A catalog: packages, their channels, and bundles, which are the versions of operators."""

import hashlib
from collections.abc import Mapping
from functools import cached_property

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.operators.subscriptions.catalog.manifests import PackedManifest, unpacked
from quarterdeck.versions import Range, Version


class CatalogFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of a catalog or a bundle."""

    file: str
    entry: str
    """The entry of the file, such as `olm.bundle etcdoperator.v0.9.4`; empty if unknown."""
    message: str
    remedy: str
    error: bool = True
    """Whether the catalog cannot be used because of it."""

    def __str__(self) -> str:
        place = f"{self.file}: {self.entry}" if self.entry else self.file
        return f"{place}: {self.message}; {self.remedy}"


class Place(msgspec.Struct, frozen=True):
    """Where an entry of a catalog was read."""

    file: str
    entry: str

    def __str__(self) -> str:
        return f"{self.file}: {self.entry}"

    def finding(self, message: str, remedy: str, *, error: bool = True) -> CatalogFinding:
        """A fault at this place."""
        return CatalogFinding(
            file=self.file, entry=self.entry, message=message, remedy=remedy, error=error
        )


class ChannelEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A version in a channel, and which versions it updates."""

    name: str
    replaces: str = ""
    skips: tuple[str, ...] = ()
    skip_range: Range | None = None

    @property
    def size(self) -> int:
        """The bytes in memory, about."""
        comparisons = sum(map(len, self.skip_range.groups)) if self.skip_range else 0
        texts = len(self.name) + len(self.replaces) + sum(map(len, self.skips))
        return texts + ENTRY_BYTES * (1 + len(self.skips) + comparisons)


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence of versions, each an update of the one before."""

    package: str
    name: str
    entries: tuple[ChannelEntry, ...]
    place: Place

    @property
    def size(self) -> int:
        """The bytes in memory of its entries, about."""
        return ENTRY_BYTES + sum(entry.size for entry in self.entries)


class RequiredPackage(msgspec.Struct, frozen=True):
    """Another operator that has to be installed before."""

    package: str
    versions: Range
    text: str
    """The range as the catalog has it."""

    def __str__(self) -> str:
        return f"{self.package} {self.text}"


class Bundle(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A version of an operator."""

    package: str
    name: str
    version: Version
    manifests: tuple[PackedManifest, ...]
    """Its objects."""
    place: Place
    required: tuple[RequiredPackage, ...] = ()

    @property
    def size(self) -> int:
        """The bytes in memory of its objects and requirements, about."""
        needs = sum(ENTRY_BYTES + len(one.package) + len(one.text) for one in self.required)
        return sum(len(manifest.data) for manifest in self.manifests) + needs

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all objects: the same for the same content."""
        total = hashlib.sha256()
        for manifest in self.manifests:
            total.update(hashlib.sha256(manifest.text()).digest())
        return total.hexdigest()

    def objects(self) -> list[Object]:
        """The objects, new ones at each call; `BadManifest` if one of them is not valid."""
        return unpacked(self.manifests)


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """An operator of a catalog."""

    name: str
    default_channel: str
    channels: Mapping[str, Channel]
    bundles: Mapping[str, Bundle]
    place: Place


ENTRY_BYTES = 100
"""About what an entry, a name that it skips, or a comparison of its range takes in memory."""


class Catalog(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All operators of a catalog, by name."""

    packages: Mapping[str, Package]

    @cached_property
    def size(self) -> int:
        """The bytes in memory of all bundles and channels, about."""
        packages = self.packages.values()
        bundles = sum(one.size + ENTRY_BYTES for each in packages for one in each.bundles.values())
        return bundles + sum(one.size for each in packages for one in each.channels.values())

    @property
    def bundle_count(self) -> int:
        """The number of versions of all packages."""
        return sum(len(package.bundles) for package in self.packages.values())


class LoadedCatalog(msgspec.Struct, frozen=True, kw_only=True):
    """A catalog, and what is wrong with it."""

    catalog: Catalog
    findings: tuple[CatalogFinding, ...]

    @property
    def errors(self) -> tuple[CatalogFinding, ...]:
        """The findings because of which the catalog is not used."""
        return tuple(finding for finding in self.findings if finding.error)


def describe(version: Version) -> str:
    """The version as text."""
    text = f"{version.major}.{version.minor}.{version.patch}"
    text += f"-{'.'.join(version.pre)}" if version.pre else ""
    return text + (f"+{version.build}" if version.build else "")
