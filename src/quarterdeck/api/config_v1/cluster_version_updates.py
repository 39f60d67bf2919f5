"""The releases a ClusterVersion can move to, and what is known against them."""

from enum import StrEnum
from typing import Annotated

from quarterdeck.api.conditions import Conditions
from quarterdeck.api.meta import Part
from quarterdeck.api.schema import LIST_SET, items, list_map, one_of, text


class Architecture(StrEnum):
    """The architectures of a release: several, or (empty) the one the cluster has."""

    MULTI = "Multi"
    SINGLE = ""


class RiskRuleType(StrEnum):
    """How it is found out whether a risk applies to a cluster."""

    ALWAYS = "Always"
    PROMQL = "PromQL"


class Update(Part):
    """A release to move to. Either a version or an image says which."""

    architecture: Annotated[str | None, one_of(Architecture)] = None
    """Multi moves the cluster to the release for several architectures; needs a version, and no
    image. Empty or absent keeps what the cluster has."""

    version: str | None = None
    """The release's version. With an image too, the image must have this version."""

    image: str | None = None
    """The release's image, for one that is not among the known updates."""

    force: bool | None = None
    """Move even if the release fails its verification or the cluster says that it is not
    upgradeable. This can break the cluster beyond repair."""


class Release(Part):
    """A release: its version, its image, and where to read about it."""

    architecture: Annotated[str | None, one_of(Architecture)] = None
    """Multi for a release for several architectures."""

    version: str
    """The release's version."""

    image: str
    """The release's image."""

    url: str | None = None
    """Where to read about the release."""

    channels: Annotated[tuple[str, ...], LIST_SET] = ()
    """The streams of releases that this one is part of."""


class PromQLClusterCondition(Part):
    """A question about the cluster, asked of its monitoring."""

    promql: str
    """The query. 1 means that the cluster matches, 0 that it does not; any other answer means that
    nobody knows."""


class ClusterCondition(Part):
    """A rule that matches some clusters."""

    type: Annotated[str, one_of(RiskRuleType)]
    """Always matches every cluster; PromQL asks the cluster's monitoring."""

    promql: PromQLClusterCondition | None = None
    """The question, for the type PromQL."""


class ConditionalUpdateRisk(Part):
    """Something that is known to go wrong on some clusters with a release."""

    url: Annotated[str, text(format="uri", min_length=1)]
    """Where to read about the risk."""

    name: Annotated[str, text(min_length=1)]
    """The risk's name, in CamelCase."""

    message: Annotated[str, text(min_length=1)]
    """What goes wrong, and for whom, for people."""

    matching_rules: Annotated[tuple[ClusterCondition, ...], items(min_items=1)]
    """Which clusters the risk applies to. The rules are tried in order, and the first that gives
    an answer decides."""


class ConditionalUpdate(Part):
    """A release that is recommended only where its known risks do not apply."""

    release: Release
    """The release."""

    risks: Annotated[
        tuple[ConditionalUpdateRisk, ...], items(min_items=1, max_items=200), list_map("name")
    ]
    """What is known against it. Where one of them applies, the release is not recommended."""

    conditions: Conditions = ()
    """What was found out for this cluster. Known so far: Recommended."""
