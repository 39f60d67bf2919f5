"""IngressController: a router for the cluster's Ingress objects, and how it is published.

`access_logging` has what it logs, `publishing` how it is reached.
"""

from typing import Annotated

from quarterdeck.api.custom_resource import (
    AGE,
    ALL_PROFILES,
    CATEGORY,
    Column,
    CustomResource,
    Scale,
    condition_column,
)
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.operator_v1.access_logging import IngressControllerLogging
from quarterdeck.api.operator_v1.condition import OperatorConditions
from quarterdeck.api.operator_v1.label_selector import OptionalSelector
from quarterdeck.api.operator_v1.publishing import EndpointPublishingStrategy, PublishingType
from quarterdeck.api.schema import ValidationRule, keywords, rules, text

DEFAULT_REPLICAS = 2
ACCESS_LOGGING_READY = "quarterdeck.dev/AccessLoggingReady"
"""The condition of a router's pod in which the router reports whether its access lines arrive."""
CONFIGURATION_ACCEPTED = "quarterdeck.dev/ConfigurationAccepted"
"""The condition of a router's pod that is False while HAProxy refuses the latest configuration."""

_INT32 = keywords(format="int32")
_DOMAIN_RULES = (
    ValidationRule(
        "!format.dns1123Subdomain().validate(self).hasValue()",
        "domain must be a DNS name: lower-case letters, digits, hyphens and dots, which begins and "
        "ends with a letter or a digit",
    ),
    ValidationRule(
        "self.split('.').all(label, size(label) <= 63)",
        "each part of domain between dots must have at most 63 characters",
    ),
)
_HOST_NAME = ValidationRule(
    "!has(self.spec) || !has(self.spec.domain) || "
    "size('router-' + self.metadata.name + '.' + self.spec.domain) <= 253",
    "the host name of the router, 'router-' + metadata.name + '.' + spec.domain, must have at most "
    "253 characters",
)


class Toleration(Part):
    """A taint of nodes that the router's pods tolerate."""

    key: str | None = None
    """The key of the taint; all keys if it is absent."""

    operator: str | None = None
    """Exists or Equal, which is the default."""

    value: str | None = None
    """The value of the taint, for Equal."""

    effect: str | None = None
    """The effect of the taint; all effects if it is absent."""

    toleration_seconds: int | None = None
    """How long a taint NoExecute is tolerated; forever if it is absent."""


class NodePlacement(Part):
    """The nodes that the router's pods may run on."""

    node_selector: OptionalSelector = None
    """The labels of the nodes."""

    tolerations: tuple[Toleration, ...] = ()
    """The taints of nodes that the pods tolerate."""


class IngressControllerSpec(Part):
    """The desired ingress controller."""

    domain: Annotated[str | None, text(max_length=244), rules(*_DOMAIN_RULES)] = None
    """The domain of the hosts that it serves; it names the router as `router-NAME.DOMAIN`."""

    replicas: Annotated[int | None, _INT32] = None
    """The number of the router's pods; two by default."""

    endpoint_publishing_strategy: EndpointPublishingStrategy | None = None
    """How it is reached from outside its pods; within the cluster only by default (Private)."""

    node_placement: NodePlacement | None = None
    """The nodes that its pods may run on; any Linux node by default."""

    namespace_selector: OptionalSelector = None
    """The namespaces whose Ingress objects it serves; all by default."""

    route_selector: OptionalSelector = None
    """The labels of the Ingress objects that it serves; all by default."""

    logging: IngressControllerLogging | None = None
    """What it logs, and where to. If it is absent, requests are not logged; what the router itself
    has to say is always in the output of its container."""


class IngressControllerStatus(Part):
    """The observed ingress controller."""

    available_replicas: Annotated[int | None, _INT32] = None
    """The number of available pods."""

    selector: str | None = None
    """The label selector of its pods, as text."""

    domain: str | None = None
    """The domain in use."""

    endpoint_publishing_strategy: EndpointPublishingStrategy | None = None
    """The strategy in use."""

    conditions: OperatorConditions = ()
    """Admitted: its spec is valid. Available: it serves. Progressing: it changes. Degraded: it
    needs attention. AccessLoggingReady: access lines arrive at their destination; absent if access
    logging is off. The other conditions are those that Degraded and Progressing follow from."""

    observed_generation: int | None = None
    """The `metadata.generation` that the status is about."""


class IngressController(TypedObject):
    """A router for the cluster's Ingress objects, with its pods, Service and IngressClass."""

    api_version: str = always("operator.openshift.io/v1")
    kind: str = always("IngressController")

    spec: IngressControllerSpec = IngressControllerSpec()
    """The desired ingress controller."""

    status: IngressControllerStatus = IngressControllerStatus()
    """The observed ingress controller."""

    @property
    def replicas(self) -> int:
        """The number of pods."""
        return DEFAULT_REPLICAS if self.spec.replicas is None else self.spec.replicas

    @property
    def strategy(self) -> EndpointPublishingStrategy:
        """How it is reached."""
        return self.spec.endpoint_publishing_strategy or EndpointPublishingStrategy(
            type=PublishingType.PRIVATE.value
        )


INGRESS_CONTROLLERS = CustomResource(
    group="operator.openshift.io",
    categories=(CATEGORY,),
    version="v1",
    kind="IngressController",
    plural="ingresscontrollers",
    namespaced=True,
    type=IngressController,
    columns=(
        condition_column("Admitted", "Whether its spec is valid."),
        condition_column("Available", "Whether it serves."),
        condition_column("Progressing", "Whether it changes."),
        condition_column("Degraded", "Whether it needs attention."),
        condition_column(
            "AccessLoggingReady",
            "Whether access lines arrive; empty if access logging is off.",
            name="Logging",
        ),
        Column("Replicas", ".status.availableReplicas", "The available pods.", "integer"),
        Column("Domain", ".status.domain", "The domain in use.", priority=1),
        AGE,
    ),
    rules=(_HOST_NAME,),
    scale=Scale(
        spec_replicas=".spec.replicas",
        status_replicas=".status.availableReplicas",
        selector=".status.selector",
    ),
    profiles=ALL_PROFILES,
)
