"""The configuration of operators: `operator.openshift.io/v1`."""

from quarterdeck.api.operator_v1.access_logging import (
    AccessLogging,
    CaptureCookie,
    CaptureHeader,
    CaptureHeaders,
    ContainerDestination,
    CookieMatchType,
    EmptyRequests,
    Facility,
    IngressControllerLogging,
    LoggingDestination,
    SyslogDestination,
)
from quarterdeck.api.operator_v1.condition import OperatorCondition
from quarterdeck.api.operator_v1.ingress_controller import (
    INGRESS_CONTROLLERS,
    IngressController,
    IngressControllerSpec,
    IngressControllerStatus,
    NodePlacement,
    Toleration,
)
from quarterdeck.api.operator_v1.label_selector import LabelSelectorPart, LabelSelectorRequirement
from quarterdeck.api.operator_v1.publishing import (
    EndpointPublishingStrategy,
    HostNetworkStrategy,
    PublishingType,
)

__all__ = [
    "INGRESS_CONTROLLERS",
    "AccessLogging",
    "CaptureCookie",
    "CaptureHeader",
    "CaptureHeaders",
    "ContainerDestination",
    "CookieMatchType",
    "EmptyRequests",
    "EndpointPublishingStrategy",
    "Facility",
    "HostNetworkStrategy",
    "IngressController",
    "IngressControllerLogging",
    "IngressControllerSpec",
    "IngressControllerStatus",
    "LabelSelectorPart",
    "LabelSelectorRequirement",
    "LoggingDestination",
    "NodePlacement",
    "OperatorCondition",
    "PublishingType",
    "SyslogDestination",
    "Toleration",
]
