"""What access logging adds to a router's pod: the vectors of the design, and each parameter."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ingress_controllers import ingress_controller, logging, to_container, to_syslog, typed

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1 import CaptureCookie
from quarterdeck.localcluster.node.pod.environment import expand
from quarterdeck.operators.ingress.logging.access.destination.syslog import endpoint
from quarterdeck.operators.ingress.logging.access.http_capture_cookies import cookie_capture
from quarterdeck.operators.ingress.operands import desired_operands
from quarterdeck.operators.ingress.router_pod import literal
from quarterdeck.operators.ingress.settings import Settings

THE_NINE = {
    "ROUTER_LOG_LEVEL",
    "ROUTER_SYSLOG_ADDRESS",
    "ROUTER_SYSLOG_FORMAT",
    "ROUTER_LOG_FACILITY",
    "ROUTER_LOG_MAX_LENGTH",
    "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS",
    "ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS",
    "ROUTER_CAPTURE_HTTP_COOKIE",
    "ROUTER_DONT_LOG_NULL",
}
FORMAT = "%ci:%cp [%t] %ft %b/%s %B %bq %HM %HU %HV"
SOCKET = "/var/lib/rsyslog/rsyslog.sock"


class Written:
    """What the operator writes for an IngressController."""

    def __init__(self, annotations: Object | None = None, **spec: Any) -> None:
        made = typed(ingress_controller("it", annotations, **spec))
        operands = desired_operands(made, Settings(router_image="r:1"))
        self.config_maps = operands.config_maps
        self.pod = operands.deployment["spec"]["template"]["spec"]
        self.annotations = operands.deployment["spec"]["template"]["metadata"].get("annotations")
        self.router = self.container("router")
        self.env = {one["name"]: one.get("value") for one in self.router["env"]}
        self.volumes = {one["name"]: one for one in self.pod["volumes"]}

    def container(self, name: str) -> Object:
        """The container of this name."""
        (found,) = (one for one in self.pod["containers"] if one["name"] == name)
        return dict(found)

    @property
    def containers(self) -> list[str]:
        """The names of the containers."""
        return [one["name"] for one in self.pod["containers"]]


def test_without_logging_the_router_has_none_of_the_nine_variables() -> None:
    written = Written()
    assert THE_NINE.isdisjoint(written.env)
    assert "ROUTER_LOG_SOCKET" not in written.env
    assert written.containers == ["router"]
    assert list(written.volumes) == ["router-state"]
    assert (written.config_maps, written.annotations) == ({}, None)


@pytest.mark.parametrize("absent", [None, {}], ids=["no logging", "logging without access"])
def test_logging_is_off_without_access(absent: Object | None) -> None:
    assert THE_NINE.isdisjoint(Written(logging=absent).env)


def test_container_with_a_format_a_cookie_prefix_and_no_empty_requests() -> None:
    written = Written(
        logging=to_container(
            httpLogFormat=FORMAT,
            httpCaptureCookies=[{"matchType": "Prefix", "namePrefix": "foo"}],
            logEmptyRequests="Ignore",
        )
    )
    nine = {name: value for name, value in written.env.items() if name in THE_NINE}
    assert nine == {
        "ROUTER_LOG_LEVEL": "info",
        "ROUTER_SYSLOG_ADDRESS": SOCKET,
        "ROUTER_SYSLOG_FORMAT": FORMAT,
        "ROUTER_CAPTURE_HTTP_COOKIE": "foo:256",
        "ROUTER_DONT_LOG_NULL": "true",
    }
    assert written.env["ROUTER_LOG_SOCKET"] == "stream"
    assert written.containers == ["router", "logs"]
    assert written.volumes["rsyslog-socket"]["emptyDir"] == {}
    assert written.volumes["rsyslog-config"]["configMap"] == {"name": "rsyslog-conf-it"}


def test_syslog_with_facility_length_headers_and_an_exact_cookie() -> None:
    syslog = {"address": "1.2.3.4", "port": 12345, "facility": "local2", "maxLength": 4096}
    written = Written(
        logging=logging(
            {"type": "Syslog", "syslog": syslog},
            httpCaptureHeaders={
                "request": [
                    {"name": "Host", "maxLength": 15},
                    {"name": "Referer", "maxLength": 15},
                ],
                "response": [
                    {"name": "Content-length", "maxLength": 9},
                    {"name": "Location", "maxLength": 15},
                ],
            },
            httpCaptureCookies=[{"matchType": "Exact", "name": "foo", "maxLength": 15}],
        )
    )
    nine = {name: value for name, value in written.env.items() if name in THE_NINE}
    assert nine == {
        "ROUTER_LOG_LEVEL": "info",
        "ROUTER_SYSLOG_ADDRESS": "1.2.3.4:12345",
        "ROUTER_LOG_FACILITY": "local2",
        "ROUTER_LOG_MAX_LENGTH": "4096",
        "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS": "Host:15,Referer:15",
        "ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS": "Content-length:9,Location:15",
        "ROUTER_CAPTURE_HTTP_COOKIE": "foo=:15",
    }
    assert written.containers == ["router"]
    assert list(written.volumes) == ["router-state"]
    assert written.config_maps == {}


def test_the_sidecar_shares_only_the_sockets_with_the_router() -> None:
    written = Written(logging=to_container())
    logs = written.container("logs")
    sockets = {"name": "rsyslog-socket", "mountPath": "/var/lib/rsyslog"}
    assert sockets in logs["volumeMounts"]
    assert sockets in written.router["volumeMounts"]
    paths = {one["mountPath"]: one["name"] for one in logs["volumeMounts"]}
    assert paths["/etc/rsyslog"] == "rsyslog-config"
    assert "rsyslog-config" not in {one["name"] for one in written.router["volumeMounts"]}
    assert logs["command"] == ["rsyslogd", "-n", "-iNONE", "-f", "/etc/rsyslog/rsyslog.conf"]
    assert logs["resources"]["requests"] == {"cpu": "100m", "memory": "256Mi"}
    assert logs["image"] == "r:1"
    assert list(written.config_maps["rsyslog-conf-it"]) == ["rsyslog.conf"]


@pytest.mark.parametrize(
    ("container", "length"),
    [
        pytest.param(None, None, id="no length without parameters"),
        pytest.param({}, "1024", id="1024 is the default"),
        pytest.param({"maxLength": 8192}, "8192", id="the longest"),
    ],
)
def test_container_length(container: Object | None, length: str | None) -> None:
    destination = {"type": "Container"} | ({} if container is None else {"container": container})
    assert Written(logging=logging(destination)).env.get("ROUTER_LOG_MAX_LENGTH") == length


def test_the_annotation_selects_the_datagram_socket() -> None:
    chosen = {"quarterdeck.dev/access-log-socket": "datagram"}
    env = Written(chosen, logging=to_container()).env
    assert (env["ROUTER_LOG_SOCKET"], env["ROUTER_SYSLOG_ADDRESS"]) == ("datagram", SOCKET)


@pytest.mark.parametrize(
    ("address", "port", "written"),
    [
        pytest.param("192.0.2.1", 514, "192.0.2.1:514", id="IPv4"),
        pytest.param("2001:db8::1", 514, "[2001:db8::1]:514", id="IPv6 in brackets"),
        pytest.param("::ffff:192.0.2.1", 1, "[::ffff:192.0.2.1]:1", id="IPv4-mapped IPv6"),
    ],
)
def test_endpoint(address: str, port: int, written: str) -> None:
    assert endpoint(address, port) == written
    assert Written(logging=to_syslog(address, port)).env["ROUTER_SYSLOG_ADDRESS"] == written


@pytest.mark.parametrize(
    ("cookie", "capture"),
    [
        pytest.param(
            CaptureCookie(match_type="Exact", name="foo", max_length=15),
            "foo=:15",
            id="exact keeps its length",
        ),
        pytest.param(
            CaptureCookie(match_type="Prefix", name_prefix="foo"),
            "foo:256",
            id="unset length is 256",
        ),
    ],
)
def test_cookie_capture(cookie: CaptureCookie, capture: str) -> None:
    assert cookie_capture(cookie) == capture


def test_lists_may_be_null() -> None:
    written = Written(
        logging=to_container(
            httpCaptureHeaders={"request": None, "response": []}, httpCaptureCookies=None
        )
    )
    assert not {name for name in written.env if "CAPTURE" in name}


def test_a_changed_configuration_changes_the_pods() -> None:
    by_file = Written(logging=to_container()).annotations
    assert by_file
    made = typed(ingress_controller("it", logging=to_container()))
    other = desired_operands(made, Settings(router_image="r:1", omstdout=True))
    assert other.deployment["spec"]["template"]["metadata"]["annotations"] != by_file


@given(st.text(), st.dictionaries(st.sampled_from(["A", "B", "POD_NAME"]), st.text()))
def test_kubernetes_expands_nothing_in_a_value(typed_text: str, others: dict[str, str]) -> None:
    assert expand(literal(typed_text), others) == typed_text


def test_references_in_a_format_reach_the_router_as_typed() -> None:
    env = Written(logging=to_container(httpLogFormat="$(POD_NAME) $HOME $$ %ci")).env
    assert env["ROUTER_SYSLOG_FORMAT"] == "$$(POD_NAME) $$HOME $$$$ %ci"
