"""Our CRDs against upstream's: every field that both have is the same on the wire.

What differs on purpose is in `ON_PURPOSE`, each with its reason, and nothing else may.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
import yaml
from tests.places import FIXTURES

from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.definition import root_schema
from quarterdeck.api.kinds import KINDS

FIXTURES = FIXTURES / "upstream-crds"
ONLY_OURS = {"samples.quarterdeck.dev"}
COMPARED = [kind for kind in KINDS if kind.group not in ONLY_OURS]

ASPECTS = (
    "type",
    "format",
    "enum",
    "default",
    "nullable",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
)


class Difference(NamedTuple):
    """One aspect of one field that is not the same."""

    kind: str
    field: str
    aspect: str


NOT_MODELLED = "an operator of ours has no use for this platform's details; they are kept"
UPSTREAM_SLIP = "upstream put the entries' format on the list, where the API server ignores it"
PLATFORMS = (
    "alibabaCloud",
    "aws",
    "azure",
    "equinixMetal",
    "external",
    "gcp",
    "ibmcloud",
    "kubevirt",
    "nutanix",
    "openstack",
    "ovirt",
    "powervs",
    "vsphere",
)
OPAQUE = "x-kubernetes-preserve-unknown-fields"

ON_PURPOSE = {
    **{
        Difference("Infrastructure", f"{block}.{platform}", OPAQUE): NOT_MODELLED
        for block in ("spec.platformSpec", "status.platformStatus")
        for platform in PLATFORMS
    },
    Difference(
        "Infrastructure", "status.platformStatus.baremetal.apiServerInternalIPs", "format"
    ): UPSTREAM_SLIP,
    Difference(
        "Infrastructure", "status.platformStatus.baremetal.ingressIPs", "format"
    ): UPSTREAM_SLIP,
}


@cache
def upstream_spec(plural: str) -> dict[str, Any]:
    """The spec of upstream's CRD for a kind."""
    if not FIXTURES.is_dir():
        pytest.skip("the upstream CRDs to compare with are not beside this clone")
    (path,) = (
        found for found in FIXTURES.glob("*.yaml") if re.search(rf"[_-]{plural}\b", found.name)
    )
    spec: dict[str, Any] = yaml.load(path.read_bytes(), yaml.CSafeLoader)["spec"]
    return spec


def upstream_version(kind: CustomResource[Any]) -> dict[str, Any]:
    """The version of upstream's CRD that we have too."""
    versions = upstream_spec(kind.plural)["versions"]
    return next(version for version in versions if version["name"] == kind.version)


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field below a schema with the aspects that are compared."""
    for name, below in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here, aspects(below) | {"required": name in schema.get("required", [])}
        yield from fields(below, here)
    if "items" in schema:
        yield f"{path}[]", aspects(schema["items"])
        yield from fields(schema["items"], f"{path}[]")


def aspects(schema: dict[str, Any]) -> dict[str, Any]:
    found = {aspect: schema[aspect] for aspect in ASPECTS if aspect in schema}
    if found["type"] == "array":
        # What the API server takes for granted where nothing is said.
        found.setdefault("x-kubernetes-list-type", "atomic")
    if "enum" in found:
        found["enum"] = set(found["enum"])
    return found


def differences(kind: CustomResource[Any]) -> set[Difference]:
    """Where our schema of a kind and upstream's disagree."""
    ours = dict(fields(root_schema(kind)))
    theirs = dict(fields(upstream_version(kind)["schema"]["openAPIV3Schema"]))
    opaque = tuple(f"{field}." for field, found in ours.items() if found.get(OPAQUE))
    found = {Difference(kind.kind, field, "only here") for field in ours.keys() - theirs.keys()}
    found |= {
        Difference(kind.kind, field, "only upstream")
        for field in theirs.keys() - ours.keys()
        if not field.startswith(opaque)
    }
    found |= {
        Difference(kind.kind, field, aspect)
        for field in ours.keys() & theirs.keys()
        for aspect in ours[field].keys() | theirs[field].keys()
        if ours[field].get(aspect) != theirs[field].get(aspect)
    }
    return found


@pytest.mark.parametrize("kind", COMPARED, ids=lambda kind: str(kind.kind))
def test_every_field_that_both_have_is_the_same(kind: CustomResource[Any]) -> None:
    """Type, enum, default, required, bounds and list type, apart from what is on purpose."""
    meant = {difference for difference in ON_PURPOSE if difference.kind == kind.kind}
    found = differences(kind)
    assert found - meant == set(), "not listed in ON_PURPOSE"
    assert meant - found == set(), "listed in ON_PURPOSE, but no longer different"


@pytest.mark.parametrize("kind", COMPARED, ids=lambda kind: str(kind.kind))
def test_served_under_the_same_names(kind: CustomResource[Any]) -> None:
    """Same scope and names; we may have short names besides upstream's."""
    spec, version = upstream_spec(kind.plural), upstream_version(kind)
    names = spec["names"]
    assert (names["kind"], names["plural"]) == (kind.kind, kind.plural)
    assert spec["scope"] == ("Namespaced" if kind.namespaced else "Cluster")
    assert set(names.get("shortNames", [])) <= set(kind.short_names)
    assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("kind", COMPARED, ids=lambda kind: str(kind.kind))
def test_upstreams_columns_come_first_and_in_order(kind: CustomResource[Any]) -> None:
    """Scripts that read columns by position find upstream's where they were."""
    version = upstream_version(kind)
    theirs = [
        (column["name"], column["jsonPath"], column["type"])
        for column in version.get("additionalPrinterColumns", [])
    ]
    ours = [(column.name, column.json_path, column.type) for column in kind.columns]
    assert ours[: len(theirs)] == theirs
