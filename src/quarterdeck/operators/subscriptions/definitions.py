"""The CustomResourceDefinitions of bundles: written by the operator, never over those of others."""

from collections.abc import Iterator
from contextlib import contextmanager

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.nulls import without_nulls
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion
from quarterdeck.controller import Objects
from quarterdeck.controller.metadata import key_of
from quarterdeck.kube import AlreadyExists
from quarterdeck.operators.subscriptions.catalog.model import Bundle
from quarterdeck.operators.subscriptions.names import (
    CATALOG,
    MANAGED,
    PACKAGE,
    PACKAGE_VERSION,
    without_reserved,
)
from quarterdeck.versions import parse_version


class CannotInstall(Exception):  # noqa: N818 - reads as what it is
    """Why a plan cannot be carried out, for people."""


class DefinitionWriter:
    """Checks and writes the definitions of bundles."""

    def __init__(
        self, definitions: Objects[Object], csvs: Objects[ClusterServiceVersion], home: str
    ) -> None:
        """Let the catalogs of the namespace `home` have any definition that a bundle brought."""
        self._definitions = definitions
        self._csvs = csvs
        self._home = home

    def check(self, definition: Object, bundle: Bundle, source: Key, namespace: str) -> None:
        """Refuse to change a definition of another operator, by whatever name it goes."""
        name = definition["metadata"]["name"]
        live = self._definitions.get(Key("", name))
        if live is None or self._wins(source, live):
            return
        owner = _annotation(live, PACKAGE)
        if owner != bundle.package:
            raise CannotInstall(
                f"CustomResourceDefinition {name} belongs to the package {owner or 'of another'}"
            )
        # Any catalog can have a package of this name, also when nobody uses the first one any more.
        catalog = _annotation(live, CATALOG)
        if catalog == str(source):
            return
        users = self._users_elsewhere(name, namespace)
        if users or _namespace(catalog) not in ("", source.namespace):
            use = f", and {users[0]} uses it" if users else ""
            raise CannotInstall(
                f"CustomResourceDefinition {name} is from the CatalogSource {catalog}{use}; "
                "install this operator from that CatalogSource, or let an administrator delete "
                "the CustomResourceDefinition, and all objects of the kind with it"
            )

    def _wins(self, source: Key, live: Object | None) -> bool:
        """Whether this is a catalog of the cluster, and the definition from one of a namespace."""
        recorded = _namespace(_annotation(live, CATALOG))
        return source.namespace == self._home and recorded not in ("", self._home)

    def _users_elsewhere(self, definition: str, namespace: str) -> list[str]:
        """The ClusterServiceVersions of other namespaces that own the definition, and work."""
        return sorted(
            str(key_of(csv))
            for csv in self._csvs.all()
            if csv.metadata.namespace != namespace
            and csv.status.phase == "Succeeded"
            and any(one.name == definition for one in csv.spec.customresourcedefinitions.owned)
        )

    async def ensure(self, definition: Object, bundle: Bundle, source: Key) -> None:
        """Apply the definition, unless a newer version of the operator has done so."""
        name = definition["metadata"]["name"]
        live = self._definitions.get(Key("", name))
        newest = parse_version(_annotation(live, PACKAGE_VERSION))
        is_newer = newest is not None and newest > bundle.version
        if is_newer and not self._wins(source, live):
            return  # A newer version of the operator is in another namespace.
        with _foreign_definition(name):
            await self._definitions.ensure(desired_definition(definition, bundle, source))

    async def rehearse(self, definition: Object, bundle: Bundle, source: Key) -> None:
        """Let the server check a definition that is new; nothing is stored."""
        name = definition["metadata"]["name"]
        if self._definitions.get(Key("", name)) is None:
            with _foreign_definition(name):
                await self._definitions.rehearse_create(
                    desired_definition(definition, bundle, source)
                )


@contextmanager
def _foreign_definition(name: str) -> Iterator[None]:
    """Say whose definition it is that exists already."""
    try:
        yield
    except AlreadyExists as error:
        raise CannotInstall(
            f"CustomResourceDefinition {name} exists, and was not installed by a Subscription; "
            "delete it, or let the other operator have it"
        ) from error


def desired_definition(definition: Object, bundle: Bundle, source: Key) -> Object:
    """The CustomResourceDefinition, marked with its package."""
    meta = definition["metadata"]
    version = bundle.version
    text = f"{version.major}.{version.minor}.{version.patch}"
    text += f"-{'.'.join(version.pre)}" if version.pre else ""
    metadata = {
        "name": meta["name"],
        "labels": {**without_reserved(meta.get("labels")), **MANAGED},
        "annotations": {
            **without_reserved(meta.get("annotations")),
            PACKAGE: bundle.package,
            PACKAGE_VERSION: text,
            CATALOG: str(source),
        },
    }
    return {"metadata": metadata, "spec": without_nulls(definition["spec"])}


def _annotation(live: Object | None, name: str) -> str:
    found: str = ((live or {"metadata": {}})["metadata"].get("annotations") or {}).get(name, "")
    return found


def _namespace(catalog: str) -> str:
    return catalog.partition("/")[0]
