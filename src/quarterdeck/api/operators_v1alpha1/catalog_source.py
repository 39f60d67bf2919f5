"""CatalogSource: a catalog of operators, in a ConfigMap or in a directory."""

from typing import Annotated

from quarterdeck.api.conditions import Conditions
from quarterdeck.api.custom_resource import (
    AGE,
    CATEGORY,
    SELF_MANAGED,
    Column,
    CustomResource,
    condition_column,
)
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.schema import OPAQUE, number


class CatalogSourceSpec(Part):
    """Where the catalog is. Fields that are not listed here are kept as they are."""

    source_type: str
    """`configmap` (or `internal`, an older name for it), or `directory`. Catalogs in images
    (`grpc`) are not supported."""

    config_map: str | None = None
    """The ConfigMap with the catalog, in the namespace of the CatalogSource. Each of its keys is a
    file of the catalog; a key of `binaryData` that ends in `.gz` is decompressed."""

    directory: str | None = None
    """The directory with the catalog, below the operator's `--catalog-root`."""

    display_name: str | None = None
    """The catalog's name for people."""

    publisher: str | None = None
    """The publisher of the catalog, for people."""

    description: str | None = None
    """The description of the catalog, for people."""


class CatalogSourceStatus(Part):
    """The state of the catalog."""

    message: str | None = None
    """Why the catalog cannot be used, for people."""

    reason: str | None = None
    """Why the catalog cannot be used, one CamelCase word for programs."""

    packages: Annotated[int | None, number(minimum=0)] = None
    """The number of packages."""

    bundles: Annotated[int | None, number(minimum=0)] = None
    """The number of versions of all packages."""

    observed_generation: Annotated[int | None, number(minimum=0)] = None
    """The `metadata.generation` that was last acted on."""

    conditions: Conditions = ()
    """The conditions of the catalog. The only type is Ready."""


class CatalogSource(TypedObject):
    """A catalog of operators."""

    api_version: str = always("operators.coreos.com/v1alpha1")
    kind: str = always("CatalogSource")

    spec: Annotated[CatalogSourceSpec, OPAQUE]
    """Where the catalog is."""

    status: CatalogSourceStatus = CatalogSourceStatus()
    """The state of the catalog."""


CATALOG_SOURCES = CustomResource(
    group="operators.coreos.com",
    version="v1alpha1",
    kind="CatalogSource",
    plural="catalogsources",
    namespaced=True,
    type=CatalogSource,
    short_names=("catsrc",),
    categories=("olm", CATEGORY),
    columns=(
        Column("Display", ".spec.displayName", "The catalog's name for people."),
        Column("Type", ".spec.sourceType", "Where the catalog is."),
        Column("Publisher", ".spec.publisher", "The publisher of the catalog."),
        AGE,
        condition_column("Ready", "Whether the catalog can be used."),
    ),
    profiles=SELF_MANAGED,
)
