"""The annotations by which a manifest says where it belongs, and how their values are read."""

from typing import Any

INCLUDE = "include.release.openshift.io/"
EXCLUDE = "exclude.release.openshift.io/"
FEATURE_SET = "release.openshift.io/feature-set"
FEATURE_GATE = "release.openshift.io/feature-gate"
MAJOR_VERSION = "release.openshift.io/major-version"
CAPABILITY = "capability.openshift.io/name"
CREATE_ONLY = "release.openshift.io/create-only"
DELETE = "release.openshift.io/delete"

CONFIG_OPERATOR_ONLY = "false-except-for-the-config-operator"
"""An include value by which FeatureGate manifests name their profile without being applied."""


def names(value: Any, separator: str = ",") -> tuple[str, ...]:
    """The entries of a list in an annotation, blanks around them removed, empty ones kept."""
    return tuple(part.strip() for part in str(value).split(separator))


def feature_sets(value: Any) -> tuple[str, ...]:
    """The feature sets that an annotation lists; an empty entry is the Default set."""
    return tuple(name or "Default" for name in names(value))


def gates(value: Any) -> tuple[tuple[str, bool], ...]:
    """The gates that an annotation lists, each with whether it must be on."""
    return tuple(
        (gate.removeprefix("-"), not gate.startswith("-")) for gate in names(value) if gate
    )
