"""Routers as processes of `this-machine`, from the very Deployment that the operator wrote."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.http_backend import free_ports
from tests.ingress_controllers import ROUTERS, to_container, to_syslog
from tests.integration.operators.ingress.routers import Routers
from tests.integration.pods import needs_bubblewrap
from tests.objects import config_map, pod

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.operator_process import OperatorProcess, OwnOperators
from quarterdeck.testing.waiting import eventually, until

pytestmark = needs_bubblewrap


@pytest.fixture(scope="module")
def real_operator(
    node_agent: ControlPlane, account: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """An operator whose routers run."""
    operators = OwnOperators(tmp_path_factory.mktemp("ingress"))
    yield operators(node_agent, "ingress", account=account)()
    operators.kill()


def on_host(ports: list[int]) -> Object:
    """A strategy with these ports of the machine."""
    names = ("httpPort", "httpsPort", "statsPort")
    return {"type": "HostNetwork", "hostNetwork": dict(zip(names, ports, strict=True))}


def request(port: int, path: str, **headers: str) -> int:
    """The status of a request to a port of this machine."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def logs(plane: ControlPlane, name: str, container: str) -> list[str]:
    """The lines of a container of a router, or of a pod."""
    arguments = ("logs", name, f"--container={container}", f"--namespace={ROUTERS}")
    return plane.kubectl(*arguments).stdout.splitlines()


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
