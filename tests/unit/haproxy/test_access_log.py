import pytest

from quarterdeck.haproxy.access_log import AccessLog, Capture, access_log
from quarterdeck.haproxy.access_log_lines import access_log_lines
from quarterdeck.haproxy.errors import InvalidVariableError

SIDECAR = {"ROUTER_SYSLOG_ADDRESS": "/var/lib/rsyslog/rsyslog.sock", "ROUTER_LOG_LEVEL": "info"}


def test_without_an_address_there_is_no_access_log() -> None:
    assert access_log({}) is None
    assert access_log({"ROUTER_SYSLOG_ADDRESS": "", "ROUTER_LOG_LEVEL": "info"}) is None
    lines = access_log_lines(None)
    assert not any((lines.global_section, lines.ring_section, lines.defaults, lines.frontend))


def test_every_variable_is_read() -> None:
    environment = {
        "ROUTER_SYSLOG_ADDRESS": "1.2.3.4:12345",
        "ROUTER_LOG_LEVEL": "info",
        "ROUTER_LOG_FACILITY": "local2",
        "ROUTER_LOG_MAX_LENGTH": "4096",
        "ROUTER_SYSLOG_FORMAT": "%ci:%cp",
        "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS": "Host:15,Referer:15",
        "ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS": "Content-length:9,Location:15",
        "ROUTER_CAPTURE_HTTP_COOKIE": "foo=:15",
        "ROUTER_DONT_LOG_NULL": "true",
    }
    assert access_log(environment) == AccessLog(
        address="1.2.3.4:12345",
        level="info",
        facility="local2",
        max_length=4096,
        format="%ci:%cp",
        request_headers=(Capture("Host", 15), Capture("Referer", 15)),
        response_headers=(Capture("Content-length", 9), Capture("Location", 15)),
        cookie=Capture("foo=", 15),
        ignore_empty_requests=True,
    )


def test_the_lines_of_an_endpoint() -> None:
    log = access_log(
        {
            "ROUTER_SYSLOG_ADDRESS": "[::1]:514",
            "ROUTER_LOG_LEVEL": "info",
            "ROUTER_CAPTURE_HTTP_COOKIE": "foo:256",
            "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS": "Host:15",
        }
    )
    lines = access_log_lines(log)
    assert lines.global_section == (
        "log [::1]:514 len 1024 local1 info",
        "log-send-hostname",
        "tune.http.cookielen 256",
    )
    assert lines.ring_section == ()
    assert lines.defaults == ("log global", "option httplog")
    assert lines.frontend == (
        "capture request header 'Host' len 15",
        "capture cookie 'foo' len 256",
    )


def test_the_sidecar_gets_lines_through_a_ring_or_datagrams() -> None:
    stream = access_log_lines(access_log(SIDECAR | {"ROUTER_LOG_SOCKET": "stream"}))
    assert stream.global_section[0] == "log ring@access len 1024 local1 info"
    following = access_log_lines(access_log(SIDECAR | {"ROUTER_LOG_SOCKET": "stream"}), 2)
    assert following.global_section[0] == "log ring@access len 1024 local0 info"
    assert "server rsyslog '/var/lib/rsyslog/stream.sock' log-proto octet-count" in (
        stream.ring_section
    )
    datagram = access_log_lines(access_log(SIDECAR | {"ROUTER_LOG_SOCKET": "datagram"}))
    assert datagram.global_section[0] == (
        "log '/var/lib/rsyslog/rsyslog.sock' len 1024 local1 info"
    )
    assert datagram.ring_section == ()
    assert access_log_lines(access_log(SIDECAR)) == datagram


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ROUTER_SYSLOG_ADDRESS", "example.com:514"),
        ("ROUTER_SYSLOG_ADDRESS", "1.2.3.4"),
        ("ROUTER_SYSLOG_ADDRESS", "::1:514"),
        ("ROUTER_SYSLOG_ADDRESS", "1.2.3.4:0"),
        ("ROUTER_SYSLOG_ADDRESS", "1.2.3.4:514\nlog 9.9.9.9:9"),
        ("ROUTER_LOG_LEVEL", "info\n"),
        ("ROUTER_LOG_FACILITY", "local9"),
        ("ROUTER_LOG_MAX_LENGTH", "80"),
        ("ROUTER_LOG_MAX_LENGTH", "many"),
        ("ROUTER_LOG_SOCKET", "tcp"),
        ("ROUTER_CAPTURE_HTTP_REQUEST_HEADERS", "Host"),
        ("ROUTER_CAPTURE_HTTP_REQUEST_HEADERS", "Host:0"),
        ("ROUTER_CAPTURE_HTTP_REQUEST_HEADERS", "Ho st:9"),
        ("ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS", "A:1,B'\n:2"),
        ("ROUTER_CAPTURE_HTTP_COOKIE", "a;b:3"),
    ],
)
def test_a_bad_variable_is_refused_with_its_name(name: str, value: str) -> None:
    with pytest.raises(InvalidVariableError) as refused:
        access_log(SIDECAR | {name: value})
    assert refused.value.name == name


def test_a_capture_is_never_longer_than_a_header_can_be() -> None:
    log = access_log(SIDECAR | {"ROUTER_CAPTURE_HTTP_REQUEST_HEADERS": f"Host:{10**12}"})
    assert log is not None
    assert log.request_headers == (Capture("Host", 16384),)
