"""Routers as processes of `this-machine`, from the very Deployment that the operator wrote."""

from collections.abc import Iterator

import pytest
from tests.http_backend import free_ports
from tests.ingress_controllers import ROUTERS, to_container, to_syslog
from tests.integration.operators.ingress.routers import Routers, logs, on_host, request
from tests.integration.pods import needs_bubblewrap
from tests.objects import config_map, pod

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.operator_process import OperatorProcess
from quarterdeck.testing.waiting import eventually, until

pytestmark = needs_bubblewrap


def test_a_request_has_a_line_in_the_output_of_the_sidecar(
    node_agent: ControlPlane, real_operator: OperatorProcess, routers: Routers
) -> None:
    ports = free_ports(3)
    cookie = {"matchType": "Exact", "name": "foo", "maxLength": 9}
    routers.apply(
        "lines",
        endpointPublishingStrategy=on_host(ports),
        logging=to_container(httpCaptureCookies=[cookie]),
    )
    routers.wait_condition("lines", "AccessLoggingReady", "True")
    routers.wait_settled("lines")
    assert request(ports[0], "/hello", Cookie="foobar=123; foo=xyzzypop; foobaz=abc") == 503
    found = eventually(
        lambda: [
            line
            for line in logs(node_agent, "deployment/router-lines", "logs")
            if "GET /hello" in line
        ],
        "the line",
    )
    assert len(found) == 1
    assert " foo=xyzzy " in found[0]
    own = logs(node_agent, "deployment/router-lines", "router")
    assert any("haproxy runs" in line for line in own)
    assert not any("GET /hello" in line for line in own)


SYSLOG_CONF = """\
module(load="imudp")
input(type="imudp" address="127.0.0.1" port="{port}")
input(type="imudp" address="::1" port="{port}")
template(name="all" type="string" string="%pri% %msg%\\n")
*.* /dev/stdout;all
"""


@pytest.fixture
def syslog(node_agent: ControlPlane, routers: Routers) -> Iterator[int]:
    """The port of an rsyslog that is itself a pod."""
    port = free_ports(1)[0]
    routers.objects.apply(
        config_map(ROUTERS, "syslog", None, **{"rsyslog.conf": SYSLOG_CONF.format(port=port)})
    )
    container = {
        "name": "rsyslog",
        "image": "quarterdeck-router",
        "command": ["rsyslogd", "-n", "-iNONE", "-f", "/etc/rsyslog/rsyslog.conf"],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/rsyslog"}],
    }
    volumes = [{"name": "config", "configMap": {"name": "syslog"}}]
    made = pod("syslog", container, volumes=volumes, hostNetwork=True)
    made["metadata"]["namespace"] = ROUTERS
    routers.objects.apply(made)
    yield port
    routers.objects.delete("pod", "syslog")
    routers.objects.delete("configmap", "syslog")
    eventually(lambda: routers.objects.find("pod", "syslog") is None, "the pod is gone")


def test_lines_reach_an_rsyslog_that_is_a_pod(
    node_agent: ControlPlane, real_operator: OperatorProcess, routers: Routers, syslog: int
) -> None:
    ports = free_ports(3)
    for address, facility, number in (("127.0.0.1", "local2", 18), ("::1", "auth2", 10)):
        logging = to_syslog(address, syslog)
        logging["access"]["destination"]["syslog"]["facility"] = facility
        routers.apply("sent", endpointPublishingStrategy=on_host(ports), logging=logging)
        routers.wait_condition("sent", "AccessLoggingReady", "True")
        routers.wait_settled("sent")
        path = f"/over-{facility}"
        until(lambda: request(ports[0], path), lambda it: it == 503, "an answer")  # noqa: B023
        found = eventually(
            lambda: [
                line
                for line in logs(node_agent, "pod/syslog", "rsyslog")
                if f"GET {path} " in line  # noqa: B023
            ],
            "the line",
        )
        assert found[0].split()[0] == str(number * 8 + 6)
