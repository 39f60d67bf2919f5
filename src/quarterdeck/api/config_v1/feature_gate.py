"""FeatureGate: which features are on.

Which gates a feature set turns on is a table in the release, and the cluster version operator's
work; here is only how it is asked for and reported.
"""

from enum import StrEnum
from typing import Annotated

from quarterdeck.api.conditions import Conditions
from quarterdeck.api.custom_resource import ALL_PROFILES, Column, CustomResource
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.schema import NULLABLE, Rule, list_map, one_of, rules, text


class FeatureSet(StrEnum):
    """Which features a cluster wants, as a whole. Default is written as an empty string."""

    CUSTOM_NO_UPGRADE = "CustomNoUpgrade"
    DEV_PREVIEW_NO_UPGRADE = "DevPreviewNoUpgrade"
    TECH_PREVIEW_NO_UPGRADE = "TechPreviewNoUpgrade"
    OKD = "OKD"
    DEFAULT = ""


FeatureGateName = Annotated[str, text(pattern=r"^([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+\.?$")]

NO_WAY_BACK = (
    Rule("oldSelf != 'CustomNoUpgrade' || self == oldSelf", "CustomNoUpgrade may not be changed"),
    Rule(
        "oldSelf != 'TechPreviewNoUpgrade' || self == oldSelf",
        "TechPreviewNoUpgrade may not be changed",
    ),
    Rule(
        "oldSelf != 'DevPreviewNoUpgrade' || self == oldSelf",
        "DevPreviewNoUpgrade may not be changed",
    ),
    Rule("oldSelf != 'OKD' || self != ''", "OKD cannot transition to Default"),
)
"""Changes of the feature set that a cluster could not take back."""

STAYS = Rule(
    "!has(oldSelf.featureSet) || has(self.featureSet)",
    ".spec.featureSet cannot be removed",
    ".featureSet",
)


class CustomFeatureGates(Part):
    """Gates turned on and off one by one."""

    enabled: tuple[FeatureGateName, ...] = ()
    """Gates to turn on."""

    disabled: tuple[FeatureGateName, ...] = ()
    """Gates to turn off."""


class FeatureGateSpec(Part):
    """The features that are wanted."""

    feature_set: Annotated[str | None, one_of(FeatureSet), rules(*NO_WAY_BACK)] = None
    """Which set of features is on; empty is the default set. A set with NoUpgrade in its name
    cannot be left again, and holds back minor updates for as long as the cluster lives."""

    custom_no_upgrade: Annotated[CustomFeatureGates | None, NULLABLE] = None
    """Gates turned on and off one by one. It counts only where the feature set is
    CustomNoUpgrade."""

    @property
    def effective_feature_set(self) -> str:
        """The feature set, where absent means the default one."""
        return self.feature_set or FeatureSet.DEFAULT


class FeatureGateAttributes(Part):
    """A gate that is known to a version."""

    name: FeatureGateName
    """The gate's name."""


class FeatureGateDetails(Part):
    """What the gates are for one version of the cluster."""

    version: str
    """The version for which this holds, as in ClusterVersion's `status.desired.version`."""

    enabled: tuple[FeatureGateAttributes, ...] = ()
    """Gates that are on."""

    disabled: tuple[FeatureGateAttributes, ...] = ()
    """Gates that are off."""


class FeatureGateStatus(Part):
    """The features that are on."""

    conditions: Conditions = ()
    """The state of this object, one condition per aspect. Known so far: DeterminationDegraded."""

    feature_gates: Annotated[tuple[FeatureGateDetails, ...], list_map("version")] = ()
    """For each version that runs somewhere in the cluster, its gates. A component reads the entry
    of its own version; where there is none, all its gates are as if off."""


class FeatureGate(TypedObject):
    """Which features are on in the cluster. The one that counts is named `cluster`."""

    api_version: str = always("config.openshift.io/v1")
    kind: str = always("FeatureGate")

    spec: Annotated[FeatureGateSpec, rules(STAYS)]
    """The features that are wanted."""

    status: FeatureGateStatus = FeatureGateStatus()
    """The features that are on."""


FEATURE_GATES = CustomResource(
    group="config.openshift.io",
    version="v1",
    kind="FeatureGate",
    plural="featuregates",
    namespaced=False,
    type=FeatureGate,
    columns=(Column("Feature-Set", ".spec.featureSet", "The set of features that is on."),),
    profiles=ALL_PROFILES,
)
