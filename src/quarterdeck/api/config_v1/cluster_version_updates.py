"""The possible updates of a ClusterVersion, and their known risks."""

from enum import StrEnum
from typing import Annotated

from quarterdeck.api.conditions import Conditions
from quarterdeck.api.meta import Part
from quarterdeck.api.schema import LIST_SET, items, list_map, one_of, text


class Architecture(StrEnum):
    """The architectures of a release: several, or (empty) that of the cluster."""

    MULTI = "Multi"
    SINGLE = ""


class RiskRuleType(StrEnum):
    """How to determine whether a risk applies to a cluster."""

    ALWAYS = "Always"
    PROMQL = "PromQL"


class Update(Part):
    """A release to update to, by version or by image."""

    architecture: Annotated[str | None, one_of(Architecture)] = None
    """Multi updates to the release for several architectures; it needs a version and no image.
    Empty or absent keeps the architecture of the cluster."""

    version: str | None = None
    """The release's version. If an image is set too, it must have this version."""

    image: str | None = None
    """The release's image, for a release that is not among the known updates."""

    force: bool | None = None
    """Update even if the release fails verification or the cluster is not upgradeable. This can
    break the cluster beyond repair."""


class Release(Part):
    """A release: its version, its image, and its documentation."""

    architecture: Annotated[str | None, one_of(Architecture)] = None
    """Multi for a release for several architectures."""

    version: str
    """The release's version."""

    image: str
    """The release's image."""

    url: str | None = None
    """The URL of the release's documentation."""

    channels: Annotated[tuple[str, ...], LIST_SET] = ()
    """The channels that this release is part of."""


class PromQLClusterCondition(Part):
    """A query to the cluster's monitoring."""

    promql: str
    """The query. 1 means that the cluster matches, 0 that it does not; any other result means
    unknown."""


class ClusterCondition(Part):
    """A rule that matches some clusters."""

    type: Annotated[str, one_of(RiskRuleType)]
    """Always matches every cluster; PromQL queries the cluster's monitoring."""

    promql: PromQLClusterCondition | None = None
    """The query, for the type PromQL."""


class ConditionalUpdateRisk(Part):
    """A known problem of a release on some clusters."""

    url: Annotated[str, text(format="uri", min_length=1)]
    """The URL of the risk's documentation."""

    name: Annotated[str, text(min_length=1)]
    """The risk's name, in CamelCase."""

    message: Annotated[str, text(min_length=1)]
    """What goes wrong and for which clusters, for people."""

    matching_rules: Annotated[tuple[ClusterCondition, ...], items(min_items=1)]
    """The clusters to which the risk applies. The rules are evaluated in order; the first with a
    result decides."""


class ConditionalUpdate(Part):
    """An update that is recommended only for clusters to which its known risks do not apply."""

    release: Release
    """The release."""

    risks: Annotated[
        tuple[ConditionalUpdateRisk, ...], items(min_items=1, max_items=200), list_map("name")
    ]
    """The known risks. If one applies to the cluster, the update is not recommended."""

    conditions: Conditions = ()
    """The result for this cluster. The only type is Recommended."""
