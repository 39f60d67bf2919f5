"""The ingress operator's own options of `quarterdeck run`."""

from datetime import timedelta
from typing import Annotated

import msgspec

from quarterdeck.delivery.options import option


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the ingress operator runs."""

    router_image: Annotated[str, option(env="ROUTER_IMAGE")] = "quarterdeck-router"
    """The image of the router's pods; it has HAProxy and rsyslog."""
    omstdout: bool = False
    """Whether rsyslog in the router's image has the module omstdout, which Debian's has not."""
    external_names: bool = False
    """Whether the routers route to Services of type ExternalName."""
    loopback_backends: bool = False
    """Whether such a Service may lead to a loopback address; only for a cluster on one machine."""
    router_stop_delay: Annotated[timedelta, option(zero=True)] = timedelta(seconds=5)
    """How long a router behind a Service takes new connections after it is told to stop: load
    balancers need a moment to learn of it."""
    pods_grace_period: Annotated[timedelta, option(zero=True)] = timedelta(seconds=30)
    """How long a router's pod may fail before the IngressController is Degraded."""
    min_replicas_grace_period: Annotated[timedelta, option(zero=True)] = timedelta(seconds=60)
    """How long fewer than the least number of replicas may be available before the
    IngressController is Degraded."""
    all_replicas_grace_period: Annotated[timedelta, option(zero=True)] = timedelta(minutes=60)
    """How long some replicas may be unavailable before the IngressController is Degraded."""
