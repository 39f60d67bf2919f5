"""All kinds of ours, for those who deal with every one: the generator, installation, tests."""

from typing import Any

from quarterdeck.api.config_v1 import (
    CLUSTER_OPERATORS,
    CLUSTER_VERSIONS,
    FEATURE_GATES,
    INFRASTRUCTURES,
    PROXIES,
)
from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.operator_v1alpha1 import CLUSTER_VERSION_OPERATORS
from quarterdeck.api.samples_v1alpha1 import NOTES

KINDS: tuple[CustomResource[Any], ...] = (
    CLUSTER_OPERATORS,
    CLUSTER_VERSIONS,
    FEATURE_GATES,
    INFRASTRUCTURES,
    PROXIES,
    CLUSTER_VERSION_OPERATORS,
    NOTES,
)
