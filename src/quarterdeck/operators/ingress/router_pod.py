"""The pod of a router: its containers, environment and volumes. Pure.

`logging` says what access logs add to it, `placement` where it runs.
"""

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1 import IngressController, PublishingType
from quarterdeck.operators.ingress import names
from quarterdeck.operators.ingress.admission import selector
from quarterdeck.operators.ingress.logging import additions
from quarterdeck.operators.ingress.logging.additions import AdditionContext, Additions
from quarterdeck.operators.ingress.placement import desired_placement
from quarterdeck.operators.ingress.settings import Settings

ROUTER = "router"
"""The name of the router's container."""
POD_PORTS = (8080, 8443, 1936)
"""The ports for HTTP, HTTPS and statistics in a pod with its own address."""
FIRST_UNPRIVILEGED_PORT = 1024
STATE_DIRECTORY = "/var/lib/haproxy"
"""Where the router writes its configuration and sockets: the root file system is read-only."""
STATE_VOLUME = "router-state"
GRACE_PERIOD = 60
"""Seconds in which a router that is stopped finishes its connections, after its delay."""
STOP_DELAY = "ROUTER_GRACEFUL_SHUTDOWN_DELAY"


def logging_additions(controller: IngressController, settings: Settings) -> Additions:
    """What the logging of this controller adds to its pods."""
    context = AdditionContext(
        controller=controller.metadata.name,
        image=settings.router_image,
        datagram=controller.metadata.annotations.get(names.LOG_SOCKET) == "datagram",
        omstdout=settings.omstdout,
    )
    return additions(controller.spec.logging, context)


def desired_pod_template(
    controller: IngressController, added: Additions, settings: Settings
) -> Object:
    """The template of the router's pods."""
    on_host = controller.strategy.type == PublishingType.HOST_NETWORK
    spec: Object = {
        "serviceAccountName": names.ROUTER_ACCOUNT,
        "terminationGracePeriodSeconds": GRACE_PERIOD + _stop_delay(controller, settings),
        **desired_placement(controller.spec.node_placement),
        "containers": [_router(controller, added, settings), *added.sidecars],
        "volumes": [{"name": STATE_VOLUME, "emptyDir": {}}, *added.volumes],
    }
    if on_host:
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    metadata: Object = {"labels": {names.POD_LABEL: controller.metadata.name}}
    if added.config_maps:
        metadata["annotations"] = {names.CONFIG_HASH: config_hash(added.config_maps)}
    return {"metadata": metadata, "spec": spec}


def config_hash(config_maps: Mapping[str, Mapping[str, str]]) -> str:
    """A hash of the content of ConfigMaps, whatever their order."""
    ordered = msgspec.json.encode(config_maps, order="deterministic")
    return sha256(ordered).hexdigest()[:16]


EXTERNAL_NAMES = "ROUTER_ALLOW_EXTERNAL_NAMES"
LOOPBACK_BACKENDS = "ROUTER_ALLOW_LOOPBACK_BACKENDS"


def router_variables(
    controller: IngressController, added: Additions, settings: Settings
) -> dict[str, str]:
    """The router's variables, as the router is to read them."""
    http, https, stats = ports(controller)
    name, spec = controller.metadata.name, controller.spec
    variables = {
        "ROUTER_SERVICE_NAME": name,
        "ROUTER_SERVICE_NAMESPACE": names.NAMESPACE,
        "ROUTER_INGRESS_CLASS": names.ingress_class(name).name,
        "ROUTER_SERVICE_HTTP_PORT": str(http),
        "ROUTER_SERVICE_HTTPS_PORT": str(https),
        "STATS_PORT": str(stats),
    }
    if controller.strategy.type != PublishingType.HOST_NETWORK:
        variables[STOP_DELAY] = f"{_stop_delay(controller, settings)}s"
    if spec.domain:
        variables["ROUTER_CANONICAL_HOSTNAME"] = f"router-{name}.{spec.domain}"
    if spec.route_selector:
        variables["ROUTE_LABELS"] = str(selector("spec.routeSelector", spec.route_selector))
    if spec.namespace_selector:
        chosen = selector("spec.namespaceSelector", spec.namespace_selector)
        variables["NAMESPACE_LABELS"] = str(chosen)
    if settings.external_names:
        variables[EXTERNAL_NAMES] = "true"
    if settings.loopback_backends:
        variables[LOOPBACK_BACKENDS] = "true"
    return variables | dict(added.environment)


def _stop_delay(controller: IngressController, settings: Settings) -> int:
    """Seconds; none on the host's network, where the next pod waits for the ports."""
    on_host = controller.strategy.type == PublishingType.HOST_NETWORK
    return 0 if on_host else int(settings.router_stop_delay.total_seconds())


def ports(controller: IngressController) -> tuple[int, int, int]:
    """The ports on which the router listens: HTTP, HTTPS, statistics."""
    if controller.strategy.type == PublishingType.HOST_NETWORK:
        return controller.strategy.host_ports
    return POD_PORTS


def literal(value: str) -> str:
    """The value of a variable of which Kubernetes expands nothing.

    It takes `$(NAME)` for a reference and `$$` for one `$`, so each `$` is doubled.
    """
    return value.replace("$", "$$")


def _router(controller: IngressController, added: Additions, settings: Settings) -> Object:
    http, https, stats = ports(controller)
    on_host = controller.strategy.type == PublishingType.HOST_NETWORK
    capabilities: Object = {"drop": ["ALL"]}
    if on_host and min(http, https, stats) < FIRST_UNPRIVILEGED_PORT:
        capabilities["add"] = ["NET_BIND_SERVICE"]
    health = {"httpGet": {"path": "/healthz", "port": "metrics"}}
    ready = {"httpGet": {"path": "/healthz/ready", "port": "metrics"}}
    variables = router_variables(controller, added, settings)
    return {
        "name": ROUTER,
        "image": settings.router_image,
        "args": ["router"],
        "env": [
            *_FROM_POD,
            *({"name": name, "value": literal(value)} for name, value in variables.items()),
        ],
        "ports": [
            _port("http", http, on_host=on_host),
            _port("https", https, on_host=on_host),
            _port("metrics", stats, on_host=on_host),
        ],
        "startupProbe": health | {"periodSeconds": 1, "failureThreshold": 120},
        "readinessProbe": ready | {"periodSeconds": 2, "timeoutSeconds": 2},
        "livenessProbe": health | {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "volumeMounts": [{"name": STATE_VOLUME, "mountPath": STATE_DIRECTORY}, *added.mounts],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": capabilities,
        },
    }


_FROM_POD = tuple(
    {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
    for name, path in (
        ("POD_NAME", "metadata.name"),
        ("POD_NAMESPACE", "metadata.namespace"),
        ("POD_IP", "status.podIP"),
    )
)


def _port(name: str, number: int, *, on_host: bool) -> Object:
    # On the host's network the API server sets the host port; said here, it is no difference.
    host_port = {"hostPort": number} if on_host else {}
    return {"name": name, "containerPort": number, **host_port, "protocol": "TCP"}
