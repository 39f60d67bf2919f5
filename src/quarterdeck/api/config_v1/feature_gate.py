"""FeatureGate: which features are enabled.

The gates of a feature set are a table in the release, which the cluster version operator evaluates.
Here are only the spec and the status.
"""

from enum import StrEnum
from typing import Annotated

from quarterdeck.api.conditions import Conditions
from quarterdeck.api.custom_resource import ALL_PROFILES, CATEGORY, Column, CustomResource
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.schema import NULLABLE, ValidationRule, list_map, one_of, rules, text


class FeatureSet(StrEnum):
    """A named set of features. Default is an empty string."""

    CUSTOM_NO_UPGRADE = "CustomNoUpgrade"
    DEV_PREVIEW_NO_UPGRADE = "DevPreviewNoUpgrade"
    TECH_PREVIEW_NO_UPGRADE = "TechPreviewNoUpgrade"
    OKD = "OKD"
    DEFAULT = ""


FeatureGateName = Annotated[str, text(pattern=r"^([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+\.?$")]

IRREVERSIBLE_CHANGES = (
    ValidationRule(
        "oldSelf != 'CustomNoUpgrade' || self == oldSelf", "CustomNoUpgrade may not be changed"
    ),
    ValidationRule(
        "oldSelf != 'TechPreviewNoUpgrade' || self == oldSelf",
        "TechPreviewNoUpgrade may not be changed",
    ),
    ValidationRule(
        "oldSelf != 'DevPreviewNoUpgrade' || self == oldSelf",
        "DevPreviewNoUpgrade may not be changed",
    ),
    ValidationRule("oldSelf != 'OKD' || self != ''", "OKD cannot transition to Default"),
)
"""The rules against changes of the feature set that cannot be undone."""

FEATURE_SET_STAYS = ValidationRule(
    "!has(oldSelf.featureSet) || has(self.featureSet)",
    ".spec.featureSet cannot be removed",
    ".featureSet",
)


class CustomFeatureGates(Part):
    """Individually enabled and disabled gates."""

    enabled: tuple[FeatureGateName, ...] = ()
    """Gates to enable."""

    disabled: tuple[FeatureGateName, ...] = ()
    """Gates to disable."""


class FeatureGateSpec(Part):
    """The features that are wanted."""

    feature_set: Annotated[str | None, one_of(FeatureSet), rules(*IRREVERSIBLE_CHANGES)] = None
    """The enabled set of features; empty is the default set. A set with NoUpgrade in its name
    cannot be changed again, and blocks minor updates for the lifetime of the cluster."""

    custom_no_upgrade: Annotated[CustomFeatureGates | None, NULLABLE] = None
    """Individually enabled and disabled gates, in effect only if the feature set is
    CustomNoUpgrade."""

    @property
    def effective_feature_set(self) -> str:
        """The feature set; if absent, the default one."""
        return self.feature_set or FeatureSet.DEFAULT


class FeatureGateAttributes(Part):
    """A gate that a version knows."""

    name: FeatureGateName
    """The gate's name."""


class FeatureGateDetails(Part):
    """The gates of one version of the cluster."""

    version: str
    """The version of the gates, as in ClusterVersion's `status.desired.version`."""

    enabled: tuple[FeatureGateAttributes, ...] = ()
    """Enabled gates."""

    disabled: tuple[FeatureGateAttributes, ...] = ()
    """Disabled gates."""


class FeatureGateStatus(Part):
    """The enabled features."""

    conditions: Conditions = ()
    """The state of this object. The only type is DeterminationDegraded."""

    feature_gates: Annotated[tuple[FeatureGateDetails, ...], list_map("version")] = ()
    """The gates of each version that runs in the cluster. A component reads the entry of its own
    version; without one, all its gates are disabled."""


class FeatureGate(TypedObject):
    """The enabled features of the cluster. The only object in effect is `cluster`."""

    api_version: str = always("config.openshift.io/v1")
    kind: str = always("FeatureGate")

    spec: Annotated[FeatureGateSpec, rules(FEATURE_SET_STAYS)]
    """The features that are wanted."""

    status: FeatureGateStatus = FeatureGateStatus()
    """The enabled features."""


FEATURE_GATES = CustomResource(
    group="config.openshift.io",
    categories=(CATEGORY,),
    version="v1",
    kind="FeatureGate",
    plural="featuregates",
    namespaced=False,
    type=FeatureGate,
    columns=(Column("Feature-Set", ".spec.featureSet", "The enabled set of features."),),
    profiles=ALL_PROFILES,
)
