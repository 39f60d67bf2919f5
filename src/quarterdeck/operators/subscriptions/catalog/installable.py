"""Whether a bundle can be installed here, and what is installed. Pure.

A bundle has one ClusterServiceVersion, CustomResourceDefinitions, and perhaps Services. With
objects of other kinds it is refused, not installed in part.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from quarterdeck.api.definition import root_schema
from quarterdeck.api.meta import Object
from quarterdeck.api.nulls import without_nulls
from quarterdeck.api.operators_v1alpha1 import CLUSTER_SERVICE_VERSIONS, ClusterServiceVersion
from quarterdeck.api.type_faults import type_faults
from quarterdeck.operators.subscriptions.catalog.definitions import (
    V1,
    V1BETA1,
    Unconvertible,
    convert_definition,
)
from quarterdeck.operators.subscriptions.catalog.manifests import BadManifest
from quarterdeck.operators.subscriptions.catalog.model import Bundle, describe
from quarterdeck.operators.subscriptions.names import is_object_name

CSV_API = "operators.coreos.com/v1alpha1"
PLATFORM_GROUPS = frozenset(
    ("config.openshift.io", "operator.openshift.io", "operators.coreos.com", "quarterdeck.dev")
)
"""API groups whose kinds configure the cluster and its operators."""

MAX_DEPLOYMENTS = 50
"""The most Deployments of a version: the config is merged into each."""


class Installable(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle installs."""

    csv: Object
    """The ClusterServiceVersion, as the bundle has it."""
    typed: ClusterServiceVersion
    definitions: tuple[Object, ...]
    services: tuple[Object, ...] = ()
    conversions: tuple[str, ...] = ()
    """What was converted, for people."""


class NotInstallable(msgspec.Struct, frozen=True):
    """Why a bundle cannot be installed here, for people."""

    why: str


def installable(bundle: Bundle) -> Installable | NotInstallable:
    """What the bundle installs, or why it cannot be installed."""
    csvs: list[Object] = []
    definitions: list[Object] = []
    services: list[Object] = []
    conversions: list[str] = []
    try:
        objects = bundle.objects()
    except BadManifest as error:
        return NotInstallable(f"{bundle.place}: {error}")
    for obj in objects:
        name = obj["metadata"]["name"]
        match obj.get("apiVersion"), obj["kind"]:
            case (str(api), "ClusterServiceVersion") if api == CSV_API:
                csvs.append(obj)
            case (str(api), "CustomResourceDefinition") if api == V1:
                definitions.append(obj)
            case (str(api), "CustomResourceDefinition") if api == V1BETA1:
                try:
                    made = convert_definition(obj)
                except (Unconvertible, KeyError, TypeError, AttributeError) as error:
                    why = f"CustomResourceDefinition {name} is v1beta1 and cannot be converted"
                    return NotInstallable(f"{why}: {error}")
                definitions.append(made.definition)
                conversions.append(f"{name}: {', '.join(made.changes)}")
            case "v1", "Service" if isinstance(obj.get("spec"), dict):
                services.append(obj)
            case api, kind:
                return NotInstallable(f"it has a {kind} ({api}), which is not supported: {name}")
    if len(csvs) != 1:
        return NotInstallable(f"it has {len(csvs)} ClusterServiceVersions, not one")
    (csv,) = csvs
    if fault := next(type_faults(csv, _csv_schema()), ""):
        return NotInstallable(f"its ClusterServiceVersion is not valid: {fault}")
    try:
        typed = msgspec.convert(without_nulls(csv), ClusterServiceVersion)
    except msgspec.ValidationError as error:
        return NotInstallable(f"its ClusterServiceVersion is not valid: {error}")
    made_of = Installable(
        csv=csv,
        typed=typed,
        definitions=tuple(definitions),
        services=tuple(services),
        conversions=tuple(conversions),
    )
    why = next((found for rule in RULES if (found := rule(bundle, made_of))), "")
    return NotInstallable(why) if why else made_of


class _Described(msgspec.Struct):
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None


class _Complete(msgspec.Struct):
    metadata: _Described
    spec: dict[str, Any]


@cache
def _csv_schema() -> Mapping[str, Any]:
    return root_schema(CLUSTER_SERVICE_VERSIONS)


def too_many_deployments(csv: ClusterServiceVersion) -> str:
    """Why the version has too many Deployments; empty if it has not."""
    details = csv.spec.install.spec
    if details is None or len(details.deployments) <= MAX_DEPLOYMENTS:
        return ""
    return f"it has more than {MAX_DEPLOYMENTS} Deployments"


def repeated_deployments(csv: ClusterServiceVersion) -> list[str]:
    """The names that several Deployments have: each would undo what the other one is."""
    details = csv.spec.install.spec
    return _repeated(one.name for one in details.deployments) if details else []


def _other_name(bundle: Bundle, found: Installable) -> str:
    name = found.typed.metadata.name
    if name == bundle.name:
        return ""
    return f"its ClusterServiceVersion is {name}, the bundle {bundle.name}"


def _other_version(bundle: Bundle, found: Installable) -> str:
    stated, version = describe(bundle.version), found.typed.spec.version or ""
    if version == stated:
        return ""
    return f"its ClusterServiceVersion has the version {version}, the bundle {stated}"


def _other_strategy(_bundle: Bundle, found: Installable) -> str:
    install = found.typed.spec.install
    if install.strategy == "deployment" and install.spec is not None:
        return ""
    return f"its install strategy {install.strategy!r} is not `deployment`"


def _many_deployments(_bundle: Bundle, found: Installable) -> str:
    return too_many_deployments(found.typed)


def _repeated_names(_bundle: Bundle, found: Installable) -> str:
    """Objects of one kind and name, each of which would undo what the other one is."""
    for kind, repeated in (
        ("Deployments", repeated_deployments(found.typed)),
        ("Services", _repeated(one["metadata"]["name"] for one in found.services)),
        (
            "CustomResourceDefinitions",
            _repeated(one["metadata"]["name"] for one in found.definitions),
        ),
    ):
        if repeated:
            return f"it has several {kind} of the name {', '.join(repeated)[:200]}"
    return ""


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _definitions_not_owned(_bundle: Bundle, found: Installable) -> str:
    owned = {one.name for one in found.typed.spec.customresourcedefinitions.owned}
    foreign = sorted({one["metadata"]["name"] for one in found.definitions} - owned)
    return f"its ClusterServiceVersion does not own {', '.join(foreign)}" if foreign else ""


def _webhook_conversion(_bundle: Bundle, found: Installable) -> str:
    """A definition whose conversion sends all objects of its kind to an address of its choice."""
    for one in found.definitions:
        spec = one.get("spec")
        conversion = spec.get("conversion") if isinstance(spec, dict) else None
        strategy = conversion.get("strategy") if isinstance(conversion, dict) else conversion
        if strategy not in (None, "None"):
            name = one["metadata"]["name"]
            return f"CustomResourceDefinition {name} has a conversion webhook, not supported"
    return ""


def _platform_definition(_bundle: Bundle, found: Installable) -> str:
    """A definition in an API group of the platform, which no operator of a catalog brings."""
    for one in found.definitions:
        name = one["metadata"]["name"]
        group = name.partition(".")[2]
        if group in PLATFORM_GROUPS or group.endswith(".quarterdeck.dev"):
            return f"CustomResourceDefinition {name} is in the group {group}, which is reserved"
    return ""


def _bad_object_name(_bundle: Bundle, found: Installable) -> str:
    objects = (found.csv, *found.definitions, *found.services)
    bad = [one for one in objects if not is_object_name(one["metadata"]["name"])]
    return f"{bad[0]['metadata']['name'][:100]!r} is no name of an object" if bad else ""


def _bad_form(_bundle: Bundle, found: Installable) -> str:
    """A definition or Service with labels that are none, or without a spec."""
    for one in (*found.definitions, *found.services):
        try:
            msgspec.convert(one, _Complete)
        except msgspec.ValidationError as error:
            return f"{one['kind']} {one['metadata']['name']} is not valid: {error}"
    return ""


def _not_supported(_bundle: Bundle, found: Installable) -> str:
    for part in ("webhookdefinitions", "apiservicedefinitions"):
        value = found.csv["spec"].get(part)
        if value and (not isinstance(value, dict) or value.get("owned")):
            return f"it has {part}, which are not supported"
    return ""


RULES = (
    _bad_object_name,
    _bad_form,
    _other_name,
    _other_version,
    _other_strategy,
    _many_deployments,
    _repeated_names,
    _definitions_not_owned,
    _platform_definition,
    _webhook_conversion,
    _not_supported,
)
