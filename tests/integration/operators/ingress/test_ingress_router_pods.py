"""Routers as processes of `this-machine`, from the very Deployments that the operator wrote.

Several IngressControllers run at once: each has another destination, and several parameters.
"""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.http_backend import free_ports, http_backend
from tests.ingress_controllers import ROUTERS, to_container, to_syslog
from tests.integration.operators.ingress.routers import (
    Routers,
    kill_in_pod,
    logs,
    on_host,
    restarts,
)
from tests.integration.operators.ingress.test_ingress_logs import Follower
from tests.integration.pods import needs_bubblewrap
from tests.objects import config_map, pod
from tests.router_process import external, ingress

from quarterdeck.api.meta import Object
from quarterdeck.haproxy.access_log import FACILITIES
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.operator_process import OperatorProcess
from quarterdeck.testing.waiting import eventually, until

pytestmark = needs_bubblewrap

TEXT = "  two  blanks $HOME $(POD_NAME) $$(X) $$ \"quotes\" 'more' # \\ \\n {} [a] é ^~`|<>;&*?! "
"""What a shell, Kubernetes, HAProxy and rsyslog could each take for something of theirs."""
TYPED = TEXT + "%HM %HU 100%% "
LONG = "/" + "x" * 9000
LAST = "/last"
"""The path of the last request: when its line is there, all others are."""


class Sent:
    """The lines of one IngressController, after the same requests to each."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def about(self, path: str) -> str:
        """The only line of a request."""
        (found,) = [line for line in self.lines if f"GET {path} " in line]
        return found


def syslog(address: str, port: int, destination: Object, **parameters: Any) -> Object:
    """Access logs to a syslog endpoint with parameters of the destination."""
    made = to_syslog(address, port, **parameters)
    made["access"]["destination"]["syslog"] |= destination
    return made


def cookie(match: str, **fields: Any) -> list[Object]:
    return [{"matchType": match, **fields}]


HEADERS = {
    "request": [{"name": "Host", "maxLength": 15}, {"name": "Referer", "maxLength": 4}],
    "response": [{"name": "Content-length", "maxLength": 9}, {"name": "Server", "maxLength": 4}],
}


def loggings(port: int) -> dict[str, Object]:
    """The field `logging` of each IngressController."""
    container = to_container(httpCaptureCookies=cookie("Prefix", namePrefix="foo"))
    container["access"]["destination"]["container"] = {"maxLength": 8192}
    return {
        "v4": syslog(
            "127.0.0.1",
            port,
            {"facility": "local2", "maxLength": 4096},
            httpCaptureHeaders=HEADERS,
            httpCaptureCookies=cookie("Exact", name="foo", maxLength=9),
        ),
        "v6": syslog(
            "::1", port, {"facility": "auth2", "maxLength": 480}, logEmptyRequests="Ignore"
        ),
        "typed": syslog("::ffff:127.0.0.1", port, {}, httpLogFormat=f"{TYPED}udp"),
        "sidecar": container,
        "typed-sidecar": to_container(httpLogFormat=f"{TYPED}sidecar"),
    }


SYSLOG_CONF = """\
module(load="imudp")
input(type="imudp" address="127.0.0.1" port="{port}")
input(type="imudp" address="::1" port="{port}")
template(name="all" type="string" string="%rawmsg%\\n")
*.* /dev/stdout;all
"""


@pytest.fixture(scope="module")
def routers(node_agent: ControlPlane, account: Path) -> Iterator[Routers]:
    """The IngressControllers of this file."""
    made = Routers(node_agent)
    yield made
    made.remove_all()
    assert made.refusals() == []


@pytest.fixture(scope="module")
def syslog_port(routers: Routers) -> Iterator[int]:
    """The port of an rsyslog that is itself a pod."""
    port = free_ports(1)[0]
    text = SYSLOG_CONF.format(port=port)
    routers.objects.apply(config_map(ROUTERS, "syslog", None, **{"rsyslog.conf": text}))
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


@pytest.fixture(scope="module")
def shop(routers: Routers) -> Iterator[None]:
    """A host that has a backend on this machine, for one of the IngressControllers."""
    with http_backend("web") as port:
        paths = ("/", "Prefix", "web")
        route = ingress("shop", "shop.example", paths, ingressClassName="quarterdeck-v4")
        for one in (external("web", port), route):
            one["metadata"]["namespace"] = ROUTERS
            routers.objects.apply(one)
        yield
        routers.objects.delete("ingress", "shop")
        routers.objects.delete("service", "web")


def ask(port: int, path: str, host: str = "shop.example") -> int:
    """The status of a request with cookies and a referrer."""
    head = (
        f"GET {path} HTTP/1.1\r\nHost: {host}\r\nReferer: elsewhere\r\nConnection: close\r\n"
        "Cookie: foobar=123; foo=xyzzypop; foobaz=abc\r\n\r\n"
    )
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(head.encode())
            answer = client.makefile("rb").read()
    except OSError:
        return 0
    return int(answer.split()[1]) if answer else 0


def wait_ready(routers: Routers, names: list[str]) -> None:
    for name in names:
        routers.wait_condition(name, "AccessLoggingReady", "True")
        routers.wait_settled(name)


@pytest.fixture(scope="module")
def sent(
    node_agent: ControlPlane,
    real_operator: OperatorProcess,
    routers: Routers,
    syslog_port: int,
    shop: None,
) -> dict[str, Sent]:
    """The lines of each IngressController after the same requests to all of them."""
    ports = {}
    for name, logging in loggings(syslog_port).items():
        own = free_ports(3)
        ports[name] = own[0]
        routers.apply(name, endpointPublishingStrategy=on_host(own), logging=logging)
    wait_ready(routers, list(ports))
    eventually(lambda: ask(ports["v4"], "/ready") == 200, "the route is there")
    for name, port in ports.items():
        with socket.create_connection(("127.0.0.1", port)):
            pass  # an empty request
        for path in (f"/{name}", f"{LONG}{name}", f"/{name}{LAST}"):
            assert ask(port, path) == (200 if name == "v4" else 503)

    def lines(name: str) -> list[str]:
        if name not in PRIORITIES:
            found = logs(node_agent, f"deployment/router-{name}", "logs")
            return [line for line in found if " haproxy[" in line]
        found = logs(node_agent, "pod/syslog", "rsyslog")
        return [line for line in found if line.startswith(PRIORITIES[name])]

    def complete(name: str) -> list[str]:
        found = lines(name)
        return found if any(f"/{name}{LAST}" in line for line in found) else []

    return {
        name: Sent(eventually(lambda: complete(name), f"the last line of {name}"))  # noqa: B023
        for name in ports
    }


PRIORITIES = {"v4": f"<{18 * 8 + 6}>", "v6": f"<{10 * 8 + 6}>", "typed": f"<{17 * 8 + 6}>"}
"""The facility's number and the severity info, of those that log to the syslog endpoint."""


def test_each_request_has_one_line(sent: dict[str, Sent]) -> None:
    for name, found in sent.items():
        assert sum(f"/{name} " in line for line in found.lines) == 1


def test_headers_and_cookies_are_captured(sent: dict[str, Sent]) -> None:
    line = sent["v4"].about("/v4")
    assert " foo=xyzzy " in line
    assert " {shop.example|else} {8|Base} " in line
    assert " foobar=123 " in sent["sidecar"].about("/sidecar")


def test_lines_are_cut_at_their_maximum_lengths(sent: dict[str, Sent]) -> None:
    def long_line(name: str) -> str:
        (found,) = [line for line in sent[name].lines if "x" * 300 in line]
        return found

    assert len(long_line("v6")) == 480
    assert len(long_line("v4")) == 4096
    # Measured: through a ring, HAProxy cuts the text without its header, at one byte less.
    assert len(long_line("sidecar").partition("]: ")[2]) == 8191


def test_empty_requests_have_lines_unless_they_are_ignored(sent: dict[str, Sent]) -> None:
    empty = {name: sum("<BADREQ>" in line for line in it.lines) for name, it in sent.items()}
    assert (empty["v4"], empty["sidecar"], empty["v6"]) == (1, 1, 0)


@pytest.mark.parametrize(("name", "kind"), [("typed", "udp"), ("typed-sidecar", "sidecar")])
def test_a_format_comes_out_as_typed(sent: dict[str, Sent], name: str, kind: str) -> None:
    wanted = TYPED.replace("%HM", "GET").replace("%HU", f"/{name}").replace("%%", "%") + kind
    assert [line.partition("]: ")[2] for line in sent[name].lines].count(wanted) == 1


def test_operational_messages_are_apart(sent: dict[str, Sent], node_agent: ControlPlane) -> None:
    own = logs(node_agent, "deployment/router-sidecar", "router")
    assert any("haproxy runs" in line for line in own)
    assert not any("GET /sidecar" in line for line in own)
    assert not any("stopped" in line for line in sent["sidecar"].lines)


def test_a_pod_that_ends_has_the_lines_of_its_last_requests(
    sent: dict[str, Sent], node_agent: ControlPlane, routers: Routers, tmp_path: Path
) -> None:
    """The sidecar ends after the router, whose last request ends after its SIGTERM."""
    (ending,) = routers.pods("sidecar")
    name, port = ending["metadata"]["name"], http_port(routers, "sidecar")
    follower = Follower(routers, tmp_path, "sidecar")
    try:
        eventually(lambda: follower.count(f"GET /sidecar{LAST} "), "the lines that there are")
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(b"GET /at-the-end HTTP/1.1\r\nHost: a\r\n")
            routers.objects.delete("pod", name)
            eventually(
                lambda: "stopping" in " ".join(logs(node_agent, f"pod/{name}", "router")),
                "the router is told to stop",
            )
            client.sendall(b"\r\n")
            assert b" 503 " in client.recv(4096)
        eventually(lambda: follower.count("GET /at-the-end "), "the line")
    finally:
        follower.kill()


def http_port(routers: Routers, name: str) -> int:
    """The port of this machine on which a router serves HTTP."""
    strategy = routers.get(name)["spec"]["endpointPublishingStrategy"]
    return int(strategy["hostNetwork"]["httpPort"])


def is_router(words: list[bytes]) -> bool:
    """Whether a command line is that of the router, and not of bubblewrap around it."""
    return words[-1] == b"router" and b"python" in words[0]


def test_a_router_that_is_killed_in_its_pod_serves_and_logs_again(
    sent: dict[str, Sent], node_agent: ControlPlane, routers: Routers
) -> None:
    """It is the first process of its container, so HAProxy ends with it; the sidecar stays."""
    (pod,) = routers.pods("typed-sidecar")
    port = http_port(routers, "typed-sidecar")
    kill_in_pod(node_agent, pod, is_router)
    eventually(
        lambda: restarts(routers.objects.get("pod", pod["metadata"]["name"]), "router") == 1,
        "the router runs again",
    )
    until(lambda: ask(port, "/again"), lambda status: status == 503, "it serves")

    def arrived() -> list[str]:
        lines = logs(node_agent, "deployment/router-typed-sidecar", "logs")
        return [line for line in lines if "GET /again " in line]

    eventually(arrived, "its line")
    assert restarts(routers.objects.get("pod", pod["metadata"]["name"])) == 0
    wait_ready(routers, ["typed-sidecar"])


BATCH = 6


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, len(FACILITIES), BATCH))
def test_each_facility_has_its_number(
    node_agent: ControlPlane,
    real_operator: OperatorProcess,
    routers: Routers,
    syslog_port: int,
    first: int,
) -> None:
    ports = {}
    for number, facility in enumerate(FACILITIES[first : first + BATCH], first):
        own, name = free_ports(3), f"facility-{number}"
        ports[name] = own[0]
        logging = syslog("127.0.0.1", syslog_port, {"facility": facility})
        routers.apply(name, endpointPublishingStrategy=on_host(own), logging=logging)
    wait_ready(routers, list(ports))
    for name, port in ports.items():
        assert ask(port, f"/{name}") == 503

    wanted = {(number, number) for number in range(first, first + BATCH)}

    def found() -> set[tuple[int, int]]:
        """The facility of each line, and the one that was asked for."""
        said = logs(node_agent, "pod/syslog", "rsyslog")
        matches = [re.match(r"<(\d+)>.*GET /facility-(\d+) ", line) for line in said]
        pairs = {(int(it[1]) // 8, int(it[2])) for it in matches if it}
        return {pair for pair in pairs if pair[1] in range(first, first + BATCH)}

    until(found, lambda pairs: len(pairs) == BATCH, "a line of each")
    assert found() == wanted
    for name in ports:
        routers.delete(name)
