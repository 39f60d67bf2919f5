"""Access lines to the sidecar `logs`, whose rsyslog writes them to its output."""

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1 import ContainerDestination
from quarterdeck.api.operator_v1.access_logging import DEFAULT_MAX_LENGTH
from quarterdeck.haproxy.access_log import DATAGRAM_SOCKET, DIRECTORY
from quarterdeck.haproxy.sidecar import STANDARD_OUTPUT, rsyslog_conf
from quarterdeck.operators.ingress.logging.additions import AdditionContext, Additions

SIDECAR = "logs"
CONFIG_DIRECTORY = "/etc/rsyslog"
CONFIG_FILE = "rsyslog.conf"
SOCKET_VOLUME = "rsyslog-socket"
CONFIG_VOLUME = "rsyslog-config"
WAIT_FOR_END = "--wait-for-end"
"""The option by which `quarterdeck router` waits for the router of its pod."""
OMSTDOUT = ":omstdout:"
"""The output rule of the document, which needs a module that Debian's rsyslog has not."""


def additions(container: ContainerDestination | None, context: AdditionContext) -> Additions:
    """The sidecar with its configuration, and the directory of sockets that it shares."""
    environment = {
        "ROUTER_SYSLOG_ADDRESS": DATAGRAM_SOCKET,
        "ROUTER_LOG_SOCKET": "datagram" if context.datagram else "stream",
    }
    if container is not None:
        environment["ROUTER_LOG_MAX_LENGTH"] = str(container.max_length or DEFAULT_MAX_LENGTH)
    output = OMSTDOUT if context.omstdout else STANDARD_OUTPUT
    config_map = f"rsyslog-conf-{context.controller}"
    sockets = {"name": SOCKET_VOLUME, "mountPath": DIRECTORY}
    return Additions(
        environment=environment,
        volumes=(
            {"name": SOCKET_VOLUME, "emptyDir": {}},
            {"name": CONFIG_VOLUME, "configMap": {"name": config_map}},
        ),
        mounts=(sockets,),
        sidecars=(_sidecar(context.image, sockets),),
        config_maps={config_map: {CONFIG_FILE: rsyslog_conf(output)}},
    )


def _sidecar(image: str, sockets: Object) -> Object:
    return {
        "name": SIDECAR,
        "image": image,
        # No pid file: the root file system is read-only.
        "command": ["rsyslogd", "-n", "-iNONE", "-f", f"{CONFIG_DIRECTORY}/{CONFIG_FILE}"],
        # Both get SIGTERM at once, but the router still has requests, and their lines.
        "lifecycle": {"preStop": {"exec": {"command": ["quarterdeck", "router", WAIT_FOR_END]}}},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "volumeMounts": [
            sockets,
            {"name": CONFIG_VOLUME, "mountPath": CONFIG_DIRECTORY, "readOnly": True},
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
