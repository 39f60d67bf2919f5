"""The unions and formats of IngressController on a real API server: what is refused, by name."""

import json
from typing import Any

import pytest
from tests.ingress_controllers import HOME, ingress_controller, logging, to_container, to_syslog

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1 import INGRESS_CONTROLLERS
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.api_request import ComponentResponse

DESTINATION = "spec.logging.access.destination"
COOKIE = "spec.logging.access.httpCaptureCookies[0]"
SYSLOG = {"address": "192.0.2.1", "port": 514}


@pytest.fixture(scope="module")
def home(control_plane: ControlPlane, crds: list[str]) -> ControlPlane:
    """The control plane with the namespace of IngressControllers."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    control_plane.requests().apply("/api/v1/namespaces", namespace)
    return control_plane


def tried(plane: ControlPlane, obj: Object) -> ComponentResponse:
    """The server's answer to a dry run."""
    path = f"{INGRESS_CONTROLLERS.path(HOME)}?dryRun=All&fieldValidation=Strict"
    return plane.requests().send("POST", path, json.dumps(obj).encode())


def cookie(**fields: Any) -> Object:
    return to_container(httpCaptureCookies=[fields])


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        pytest.param(
            logging({"type": "Syslog"}),
            f"{DESTINATION}.syslog",
            "syslog is required when type is Syslog",
            id="Syslog without syslog",
        ),
        pytest.param(
            logging({"type": "Container", "syslog": SYSLOG}),
            f"{DESTINATION}.syslog",
            "syslog is forbidden unless type is Syslog",
            id="Container with syslog",
        ),
        pytest.param(
            logging({"type": "Syslog", "syslog": SYSLOG, "container": {}}),
            f"{DESTINATION}.container",
            "container is forbidden unless type is Container",
            id="Syslog with container",
        ),
        pytest.param(
            logging({"syslog": SYSLOG}), f"{DESTINATION}.type", "Required value", id="no type"
        ),
        pytest.param(
            cookie(matchType="Exact", maxLength=9),
            f"{COOKIE}.name",
            "name is required when matchType is Exact",
            id="Exact without name",
        ),
        pytest.param(
            cookie(matchType="Exact", name="", maxLength=9),
            f"{COOKIE}.name",
            "name is required when matchType is Exact",
            id="Exact with an empty name",
        ),
        pytest.param(
            cookie(matchType="Prefix", maxLength=9),
            f"{COOKIE}.namePrefix",
            "namePrefix is required when matchType is Prefix",
            id="Prefix without namePrefix",
        ),
        pytest.param(
            cookie(matchType="Prefix", namePrefix="a", name="b", maxLength=9),
            f"{COOKIE}.name",
            "name is forbidden unless matchType is Exact",
            id="Prefix with name",
        ),
        pytest.param(
            cookie(matchType="Exact", namePrefix="a", name="b", maxLength=9),
            f"{COOKIE}.namePrefix",
            "namePrefix is forbidden unless matchType is Prefix",
            id="Exact with namePrefix",
        ),
        pytest.param(
            to_syslog("log.example.com"), f"{DESTINATION}.syslog.address", "", id="a host name"
        ),
        pytest.param(to_syslog("192.0.2"), f"{DESTINATION}.syslog.address", "", id="no address"),
        pytest.param(
            to_container(httpCaptureHeaders={"request": [{"name": "a:b", "maxLength": 1}]}),
            "spec.logging.access.httpCaptureHeaders.request[0].name",
            "should match",
            id="a header name that is no token",
        ),
        pytest.param(
            to_container(httpCaptureHeaders={"response": [{"name": "a", "maxLength": 0}]}),
            "spec.logging.access.httpCaptureHeaders.response[0].maxLength",
            "greater than or equal to 1",
            id="a header without length",
        ),
    ],
)
def test_a_wrong_logging_is_refused_with_the_name_of_the_field(
    home: ControlPlane, given: Object, field: str, message: str
) -> None:
    answer = tried(home, ingress_controller(logging=given))
    assert answer.status == 422, answer.body
    assert f"{field}: " in answer.json()["message"]
    assert message in answer.json()["message"]


def changed(destination: Object, **fields: Any) -> Object:
    """Access logs to a destination with other parameters."""
    member = destination["type"].lower()
    return logging(destination | {member: {**destination.get(member, {}), **fields}})


TO_SYSLOG = {"type": "Syslog", "syslog": SYSLOG}
TO_CONTAINER = {"type": "Container"}
TWO_COOKIES = [{"matchType": "Exact", "name": name, "maxLength": 9} for name in ("a", "b")]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        pytest.param(changed(TO_SYSLOG, port=0), "destination.syslog.port", id="port 0"),
        pytest.param(changed(TO_SYSLOG, port=65536), "destination.syslog.port", id="port 65536"),
        pytest.param(changed(TO_SYSLOG, maxLength=479), "destination.syslog.maxLength", id="479"),
        pytest.param(changed(TO_SYSLOG, maxLength=4097), "destination.syslog.maxLength", id="4097"),
        pytest.param(
            changed(TO_SYSLOG, facility="local8"), "destination.syslog.facility", id="local8"
        ),
        pytest.param(
            changed(TO_CONTAINER, maxLength=479), "destination.container.maxLength", id="short"
        ),
        pytest.param(
            changed(TO_CONTAINER, maxLength=8193), "destination.container.maxLength", id="long"
        ),
        pytest.param(logging({"type": "Pigeon"}), "destination.type", id="no destination"),
        pytest.param(
            to_container(httpCaptureCookies=TWO_COOKIES), "httpCaptureCookies", id="two cookies"
        ),
        pytest.param(
            cookie(matchType="Exact", name="a", maxLength=0),
            "httpCaptureCookies[0].maxLength",
            id="a cookie of no length",
        ),
        pytest.param(
            cookie(matchType="Exact", name="a", maxLength=1025),
            "httpCaptureCookies[0].maxLength",
            id="a long cookie",
        ),
        pytest.param(
            cookie(matchType="Suffix", name="a", maxLength=9),
            "httpCaptureCookies[0].matchType",
            id="no match type",
        ),
        pytest.param(to_container(logEmptyRequests="Maybe"), "logEmptyRequests", id="Maybe"),
    ],
)
def test_a_value_out_of_its_range_is_refused_with_the_name_of_the_field(
    home: ControlPlane, given: Object, field: str
) -> None:
    answer = tried(home, ingress_controller(logging=given))
    assert answer.status == 422, answer.body
    assert f"spec.logging.access.{field}: " in answer.json()["message"]


FACILITIES = (
    "kern user mail daemon auth syslog lpr news uucp cron auth2 ftp ntp audit alert cron2"
    " local0 local1 local2 local3 local4 local5 local6 local7"
)


def test_the_ends_of_each_range_and_all_facilities_are_accepted(home: ControlPlane) -> None:
    for given in (
        *(changed(TO_SYSLOG, port=port) for port in (1, 65535)),
        *(changed(TO_SYSLOG, maxLength=length) for length in (480, 4096)),
        *(changed(TO_CONTAINER, maxLength=length) for length in (480, 8192)),
        *(changed(TO_SYSLOG, facility=facility) for facility in FACILITIES.split()),
        *(cookie(matchType="Exact", name="a", maxLength=length) for length in (1, 1024)),
    ):
        answer = tried(home, ingress_controller(logging=given))
        assert answer.ok, answer.body


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="no access logs"),
        pytest.param(to_container(), id="Container without parameters"),
        pytest.param(logging({"type": "Container", "container": {}}), id="Container with some"),
        pytest.param(to_syslog(), id="IPv4"),
        pytest.param(to_syslog("2001:db8::1"), id="IPv6"),
        pytest.param(to_syslog("::ffff:192.0.2.1"), id="an IPv4-mapped IPv6 address"),
        pytest.param(cookie(matchType="Exact", name="foo", maxLength=15), id="an exact cookie"),
        pytest.param(cookie(matchType="Prefix", namePrefix="f", name=""), id="a prefix"),
        pytest.param(to_container(httpCaptureCookies=None), id="null where upstream takes it"),
    ],
)
def test_a_right_logging_is_accepted(home: ControlPlane, given: Object) -> None:
    answer = tried(home, ingress_controller(logging=given))
    assert answer.ok, answer.body


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        pytest.param(
            logging({"type": "Container", "container": {}}), {"maxLength": 1024}, id="Container"
        ),
        pytest.param(
            to_syslog(), {**SYSLOG, "address": "192.0.2.9", "maxLength": 1024}, id="Syslog"
        ),
    ],
)
def test_lengths_have_a_default(home: ControlPlane, given: Object, stored: Object) -> None:
    access = tried(home, ingress_controller(logging=given)).json()["spec"]["logging"]["access"]
    destination = access["destination"]
    assert destination[destination["type"].lower()] == stored
    assert access["logEmptyRequests"] == "Log"


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        pytest.param(ingress_controller(domain="Apps.example.com"), "a DNS name", id="capitals"),
        pytest.param(
            ingress_controller(domain=f"{'a' * 64}.com"), "at most 63 characters", id="a long part"
        ),
        pytest.param(
            ingress_controller("n" * 60, domain=".".join(["a" * 50] * 4)),
            "at most 253 characters",
            id="a long host name",
        ),
    ],
)
def test_a_wrong_domain_is_refused(home: ControlPlane, obj: Object, words: str) -> None:
    answer = tried(home, obj)
    assert answer.status == 422, answer.body
    assert words in answer.json()["message"]


def test_an_ingress_controller_without_a_spec_is_accepted(home: ControlPlane) -> None:
    obj = ingress_controller()
    del obj["spec"]
    assert tried(home, obj).ok
