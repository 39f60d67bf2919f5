"""The annotations that select the clusters of a manifest, and how to read their values."""

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
"""An include value with which a FeatureGate manifest names its profile but is not applied."""


def names(value: Any, separator: str = ",") -> tuple[str, ...]:
    """The entries of a list in an annotation, without blanks around them; empty ones are kept."""
    return tuple(part.strip() for part in str(value).split(separator))


def feature_sets(value: Any) -> tuple[str, ...]:
    """The feature sets that an annotation lists; an empty entry is the Default set."""
    return tuple(name or "Default" for name in names(value))


def gates(value: Any) -> tuple[tuple[str, bool], ...]:
    """The gates that an annotation lists, and for each whether it must be on."""
    return tuple(
        (gate.removeprefix("-"), not gate.startswith("-")) for gate in names(value) if gate
    )
