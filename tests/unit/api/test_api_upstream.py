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
from quarterdeck.api.definition import root_schema, subresources
from quarterdeck.api.kinds import KINDS

DIRECTORIES = (
    FIXTURES / "upstream-crds",
    FIXTURES / "payload-4.7" / "cluster-baremetal-operator",
)
ONLY_OURS = {"samples.quarterdeck.dev"}
# Of these we have a few fields and keep the others; upstream's definitions are not among the
# fixtures.
KEPT_WHOLE = {"hypershift.openshift.io"}
NOT_COMPARED = {"OperatorGroup"}
"""Upstream's CRD is not among the fixtures."""
NAMED_AS_UPSTREAM = [
    kind
    for kind in KINDS
    if kind.group not in ONLY_OURS | KEPT_WHOLE and kind.kind not in NOT_COMPARED
]
COMPARED = [kind for kind in NAMED_AS_UPSTREAM if kind.group != "operators.coreos.com"]
CATALOG_KINDS = [kind for kind in NAMED_AS_UPSTREAM if kind.group == "operators.coreos.com"]

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
ALWAYS_64_BITS = "integers of ours say their size, so that a larger one is refused and not cut"
NUMBERS = (
    "spec.rootDeviceHints.minSizeGigabytes",
    "status.errorCount",
    "status.hardware.cpu.count",
    "status.hardware.nics[].speedGbps",
    "status.hardware.ramMebibytes",
    "status.provisioning.rootDeviceHints.minSizeGigabytes",
)
NOT_SUPPORTED = "the router cannot do this: kubectl refuses the field, and nobody relies on it"
NOT_REPORTED = "the status repeats no field of the spec"
NO_FORMAT = "upstream says no format; every number of ours has one"
CAPTURES = "spec.logging.access.httpCapture"
UNSUPPORTED_INGRESS = (
    "clientTLS",
    "closedClientConnectionPolicy",
    "defaultCertificate",
    "endpointPublishingStrategy.hostNetwork.protocol",
    "endpointPublishingStrategy.loadBalancer",
    "endpointPublishingStrategy.nodePort",
    "endpointPublishingStrategy.private",
    "haproxyVersion",
    "httpCompression",
    "httpEmptyRequestsPolicy",
    "httpErrorCodePages",
    "httpHeaders",
    "idleConnectionTerminationPolicy",
    "routeAdmission",
    "tlsSecurityProfile",
    "tuningOptions",
    "unsupportedConfigOverrides",
)

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
    **{Difference("BareMetalHost", field, "format"): ALWAYS_64_BITS for field in NUMBERS},
    Difference("Provisioning", "spec.watchAllNamespaces", "only here"): "of a later upstream",
    **{
        Difference("IngressController", f"spec.{field}", "only upstream"): NOT_SUPPORTED
        for field in UNSUPPORTED_INGRESS
    },
    **{
        Difference("IngressController", f"status.{field}", "only upstream"): NOT_REPORTED
        for field in (
            "effectiveHAProxyVersion",
            "endpointPublishingStrategy.hostNetwork.protocol",
            "endpointPublishingStrategy.loadBalancer",
            "endpointPublishingStrategy.nodePort",
            "endpointPublishingStrategy.private",
            "namespaceSelector",
            "routeSelector",
            "tlsProfile",
        )
    },
    **{
        Difference("IngressController", f"{CAPTURES}{field}.maxLength", "format"): NO_FORMAT
        for field in ("Cookies[]", "Headers.request[]", "Headers.response[]")
    },
    Difference("IngressController", f"{CAPTURES}Cookies[].maxLength", "required"): (
        "the operator has a default for a cookie without a length"
    ),
}


@cache
def upstream_spec(plural: str) -> dict[str, Any]:
    """The spec of upstream's CRD for a kind."""
    if not all(directory.is_dir() for directory in DIRECTORIES):
        pytest.skip("the upstream CRDs to compare with are not beside this clone")
    (path,) = (
        found
        for directory in DIRECTORIES
        for found in directory.glob("*.crd.yaml")
        if re.search(rf"[_-](metal3)?{plural}?\b", found.name)
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
    if found.get("type") == "array":
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
        # What is below such a field is missing with it.
        if not field.startswith(opaque) and _parent(field) in {"", *ours}
    }
    found |= {
        Difference(kind.kind, field, aspect)
        for field in ours.keys() & theirs.keys()
        for aspect in ours[field].keys() | theirs[field].keys()
        if ours[field].get(aspect) != theirs[field].get(aspect)
    }
    return found


def _parent(field: str) -> str:
    return field.removesuffix("[]") if field.endswith("[]") else field.rpartition(".")[0]


@pytest.mark.parametrize("kind", COMPARED, ids=lambda kind: str(kind.kind))
def test_every_field_that_both_have_is_the_same(kind: CustomResource[Any]) -> None:
    """Type, enum, default, required, bounds and list type, apart from what is on purpose."""
    meant = {difference for difference in ON_PURPOSE if difference.kind == kind.kind}
    found = differences(kind)
    assert found - meant == set(), "not listed in ON_PURPOSE"
    assert meant - found == set(), "listed in ON_PURPOSE, but no longer different"


NOT_SERVED = (
    "status.",
    "spec.config.",
)
"""Of the kinds of catalogs: upstream's status is another one, and its config is no list."""

CATALOG_DIFFERENCES = {
    ("Subscription", "spec.config", "type"): "the document has a list; upstream has one entry",
    ("Subscription", "spec.config", "x-kubernetes-list-type"): "as above",
    ("Subscription", "spec.config", "maxItems"): "as above",
    ("Subscription", "spec.config[]", "only here"): "as above",
    ("Subscription", "spec.name", "required"): "the document calls it `package`",
    ("Subscription", "spec.name", "minLength"): "an empty name is no package",
    ("Subscription", "spec.package", "only here"): "the document's name of the field",
    ("Subscription", "spec.source", "required"): "the only catalog with the package is enough",
    ("Subscription", "spec.sourceNamespace", "required"): "as above",
    ("ClusterServiceVersion", "spec", OPAQUE): "fields that we do not use are kept",
    ("ClusterServiceVersion", "spec.customresourcedefinitions.owned[]", OPAQUE): "as above",
    ("ClusterServiceVersion", "spec.customresourcedefinitions.required[]", OPAQUE): "as above",
    ("CatalogSource", "spec", OPAQUE): "as above",
    ("CatalogSource", "spec.directory", "only here"): "a catalog in a directory is ours",
    ("InstallPlan", "spec.bundleDigest", "only here"): "ties an approval to what was approved",
    ("InstallPlan", "spec.replaces", "only here"): "ties an InstallPlan to one hop",
    ("InstallPlan", "spec.clusterServiceVersionNames", "minItems"): "a plan is for one version",
    ("InstallPlan", "spec.clusterServiceVersionNames", "maxItems"): "as above",
    (
        "InstallPlan",
        "spec.generation",
        "only upstream",
    ): "we plan for one Subscription, not for all",
}


@pytest.mark.parametrize("kind", CATALOG_KINDS, ids=lambda kind: str(kind.kind))
def test_specs_of_the_catalog_kinds_are_the_same(kind: CustomResource[Any]) -> None:
    """Apart from the table above, and from defaults and list types of Kubernetes' own types.

    All lists there are atomic here, because a list with keys would refuse the duplicates that we
    merge; and a default would look as if the author of a bundle had set it.
    """
    template = "spec.install.spec.deployments[].spec."
    found = {
        tuple(difference)
        for difference in differences(kind)
        if difference.field != "metadata"
        and not difference.field.startswith(NOT_SERVED)
        and not difference.field.startswith("spec.config[].")
        and not (
            difference.field.startswith(template)
            and (
                difference.aspect
                in ("default", "x-kubernetes-list-type", "x-kubernetes-list-map-keys")
                or ".metadata" in difference.field
            )
        )
    }
    assert found == {one for one in CATALOG_DIFFERENCES if one[0] == kind.kind}


@pytest.mark.parametrize("kind", NAMED_AS_UPSTREAM, ids=lambda kind: str(kind.kind))
def test_served_under_the_same_names(kind: CustomResource[Any]) -> None:
    """Same scope and names; we may have short names besides upstream's."""
    spec, version = upstream_spec(kind.plural), upstream_version(kind)
    names = spec["names"]
    assert (names["kind"], names["plural"]) == (kind.kind, kind.plural)
    assert spec["scope"] == ("Namespaced" if kind.namespaced else "Cluster")
    assert set(names.get("shortNames", [])) <= set(kind.short_names)
    assert version["subresources"] == subresources(kind)


@pytest.mark.parametrize("kind", NAMED_AS_UPSTREAM, ids=lambda kind: str(kind.kind))
def test_upstreams_columns_come_first_and_in_order(kind: CustomResource[Any]) -> None:
    """Scripts that read columns by position find upstream's where they were."""
    version = upstream_version(kind)
    theirs = [
        (column["name"], column["jsonPath"], column["type"])
        for column in version.get("additionalPrinterColumns", [])
    ]
    ours = [(column.name, column.json_path, column.type) for column in kind.columns]
    assert ours[: len(theirs)] == theirs
