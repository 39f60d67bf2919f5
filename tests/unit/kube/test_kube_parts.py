"""The small pure parts: selectors, quantities, back-off, redaction, errors."""

import json
import time
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.kube import (
    AlreadyExists,
    Backoff,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Retries,
    ServerError,
    TooManyRequests,
    Unauthorized,
)
from quarterdeck.kube.defaults import is_server_default
from quarterdeck.kube.errors import ApiError, api_error
from quarterdeck.kube.quantity import holds_quantity, parse_quantity
from quarterdeck.kube.redact import MAX_LOGGED, MAX_PARSED, loggable
from quarterdeck.kube.selector import LabelRequirement, LabelSelector, parse_selector


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("!a", {"a": "x"}, False),
        ("a=x", {"a": "x"}, True),
        ("a==x", {"a": "y"}, False),
        ("a!=x", {}, True),
        ("a!=x", {"a": "x"}, False),
        ("a=", {"a": ""}, True),
        ("a in (x, y)", {"a": "y"}, True),
        ("a in (x,y),b", {"a": "y"}, False),
        ("a notin (x,y)", {}, True),
        ("a notin (x,y)", {"a": "x"}, False),
        ("example.com/a = x , b", {"example.com/a": "x", "b": "1"}, True),
    ],
)
def test_selector(selector: str, labels: dict[str, str], matches: bool) -> None:
    assert parse_selector(selector).matches(labels) is matches


def test_a_selector_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="is none of"):
        parse_selector("a > 3 b")


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param(LabelSelector(), "", id="everything"),
        pytest.param(
            LabelSelector(match_labels={"b": "2", "a": "1"}), "a=1,b=2", id="in a fixed order"
        ),
        pytest.param(
            LabelSelector(
                match_expressions=(
                    LabelRequirement("t", "NotIn", ("y", "x")),
                    LabelRequirement("s", "In", ("y", "x")),
                    LabelRequirement("r", "Exists"),
                    LabelRequirement("q", "DoesNotExist"),
                )
            ),
            "!q,r,s in (x,y),t notin (x,y)",
            id="each operator",
        ),
    ],
)
def test_a_selector_has_one_text(selector: LabelSelector, text: str) -> None:
    assert str(selector) == text
    assert str(parse_selector(text)) == text


def test_a_selector_is_read_as_objects_have_it() -> None:
    said = {
        "matchLabels": {"a": "1"},
        "matchExpressions": [{"key": "b", "operator": "In", "values": ["x"]}],
    }
    selector = msgspec.convert(said, LabelSelector)
    assert str(selector) == "a=1,b in (x)"
    assert msgspec.json.decode(msgspec.json.encode(selector)) == said


NAMES = st.sampled_from(["a", "b", "example.test/c"])
VALUES = st.sampled_from(["", "x", "y"])
REQUIREMENTS = st.one_of(
    st.builds(
        LabelRequirement,
        NAMES,
        st.sampled_from(["In", "NotIn"]),
        st.lists(VALUES, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(LabelRequirement, NAMES, st.sampled_from(["Exists", "DoesNotExist"])),
)


@given(
    st.builds(
        LabelSelector,
        match_labels=st.dictionaries(NAMES, VALUES),
        match_expressions=st.lists(REQUIREMENTS, max_size=4).map(tuple),
    ),
    st.dictionaries(NAMES, VALUES),
)
def test_a_selector_selects_the_same_after_its_text(
    selector: LabelSelector, labels: dict[str, str]
) -> None:
    assert parse_selector(str(selector)).matches(labels) is selector.matches(labels)


@pytest.mark.parametrize(("operator", "values"), [("In", ()), ("NotIn", ()), ("Exists", ("x",))])
def test_a_requirement_with_the_wrong_number_of_values_is_refused(
    operator: Any, values: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match="values"):
        LabelRequirement("a", operator, values)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("a", "x,b", id="a second requirement in the value"),
        pytest.param("a", "x y", id="a blank in the value"),
        pytest.param("a", "x" * 64, id="a value that is too long"),
        pytest.param("a", "-x", id="a value that begins with a hyphen"),
        pytest.param("a,b", "x", id="a second requirement in the name"),
        pytest.param("a>1", "x", id="a comparison"),
        pytest.param("", "x", id="no name"),
        pytest.param("a" * 64, "x", id="a name that is too long"),
        pytest.param("Example.com/a", "x", id="a domain in capitals"),
        pytest.param(f"{'a.' * 127}a/b", "x", id="a domain that is too long"),
        pytest.param("a/b/c", "x", id="two slashes"),
        pytest.param("a\n", "x", id="a line break"),
    ],
)
def test_what_can_be_no_label_is_refused(key: str, value: str) -> None:
    """Its text would be another selector: `a=x,b` asks for the label b too."""
    with pytest.raises(ValueError, match="is no"):
        LabelSelector(match_labels={key: value})
    with pytest.raises(ValueError, match="is no"):
        LabelRequirement(key, "In", (value,))


@pytest.mark.parametrize("text", ["a>1", "a<1", "a in (x y)", "a=x/y"])
def test_a_text_that_the_server_would_not_take_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        parse_selector(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("0.5", "500m"),
        ("1e3", "1k"),
        ("1E3", "1k"),
        ("1E", "1000P"),
        ("1Ei", "1024Pi"),
        (1, "1"),
        ("1000000n", "1m"),
        ("+1.50", "1500m"),
        ("1e-3", "1m"),
    ],
)
def test_equal_quantities(one: str | int, other: str) -> None:
    assert parse_quantity(one) == parse_quantity(other) is not None


@pytest.mark.parametrize("text", ["", "m", "1 Gi", "1KI", "one", "1.2.3", "0x10"])
def test_not_a_quantity(text: str) -> None:
    assert parse_quantity(text) is None


@pytest.mark.parametrize("text", ["1e101", "1e-101", "1E999999999", "1" * 65, 10**100])
def test_absurd_quantities_are_none(text: str | int) -> None:
    """To compute with them would take very long."""
    assert parse_quantity(text) is None
    assert parse_quantity("1e100") == 10**100


@given(st.integers(0, 10**12))
def test_a_quantity_in_thousandths_is_the_same(number: int) -> None:
    assert parse_quantity(f"{number}m") == Fraction(number, 1000)


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        (("resources", "limits", "cpu"), True),
        (("spec", "hard", "pods"), True),
        (("emptyDir", "sizeLimit"), True),
        (("data", "cpu"), False),
        (("metadata", "annotations", "limits"), False),
        ((), False),
    ],
)
def test_where_quantities_live(path: tuple[str, ...], holds: bool) -> None:
    assert holds_quantity(path) is holds


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("host:5000/a", "Always"),
        ("a:1", "IfNotPresent"),
        ("a@sha256:00", "IfNotPresent"),
    ],
)
def test_the_default_pull_policy_depends_on_the_image(image: str, policy: str) -> None:
    assert is_server_default(("containers", "*", "imagePullPolicy"), policy, {"image": image})


def test_a_number_is_not_a_boolean_default() -> None:
    assert not is_server_default(("enableServiceLinks",), 1)


def test_backoff_doubles_up_to_its_limit_and_starts_again() -> None:
    backoff = Retries(Backoff(base=1, limit=5), dice=lambda: 0.0)
    assert [backoff.next() for _ in range(5)] == [1, 2, 4, 5, 5]
    backoff.reset()
    assert backoff.next() == 1


@given(st.floats(0, 1), st.integers(0, 5000))
def test_jitter_takes_at_most_a_half(jitter: float, failures: int) -> None:
    backoff = Retries(Backoff(base=0.1, limit=30, jitter=0.5), dice=lambda: jitter)
    backoff.failures = failures
    assert 0.05 <= backoff.next() <= 30


KEY = "-----BEGIN RSA PRIVATE KEY-----\\nMIIEow\\n-----END RSA PRIVATE KEY-----"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("path", "body", "hidden"),
    [
        ("/api/v1/namespaces/a/secrets/b", '{"data":{"x":"aGlkZGVu"}}', "aGlkZGVu"),
        ("/api/v1/secrets", '{"kind":"SecretList","items":[{"data":{"x":"hidden"}}]}', "hidden"),
        ("/x", '{"kind":"Secret","stringData":{"x":"plain"}}', "plain"),
        ("/api/v1/namespaces/a/serviceaccounts/b/token", f'{{"token":"{TOKEN}"}}', TOKEN),
        ("/apis/authentication.k8s.io/v1/tokenreviews", '{"spec":{"token":"abc"}}', "abc"),
        ("/api/v1/configmaps", f'{{"data":{{"key":"{KEY}"}}}}', "MIIEow"),
        ("/api/v1/configmaps", f'{{"data":{{"note":"see {TOKEN}"}}}}', TOKEN),
        (
            "/api/v1/configmaps",
            '{"data":{"config":"users:\\n- user:\\n    token: abcdef123\\n"}}',
            "abcdef123",
        ),
        ("/api/v1/configmaps", '{"data":{"c":"{\\"password\\": \\"hunter2\\"}"}}', "hunter2"),
        ("/api/v1/configmaps", '{"data":{"c":"client-key-data: TFMwdExT"}}', "TFMwdExT"),
        (
            "/api/v1/x",
            '{"kind": "List", "items": [{"kind": "Secret", "data": {"x": "aGlkZGVu"}}]}',
            "aGlkZGVu",
        ),
        ("/x", '{"a":{"b":[{"kind":"Secret","metadata":{"annotations":{"l":"deep"}}}]}}', "deep"),
        (
            "/api/v1/configmaps",
            '{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":'
            '"{\\"kind\\":\\"Secret\\",\\"stringData\\":{\\"x\\":\\"deep\\"}}"}}}',
            "deep",
        ),
        ("/x", '{"data":{"m":"apiVersion: v1\\nkind: Secret\\ndata:\\n  x: aGlk"}}', "aGlk"),
        ("/x", '{"env":[{"name":"DB_PASSWORD","value":"hunter2"}]}', "hunter2"),
        ("/x", '{"httpHeaders":[{"name":"Authorization","value":"Bearer abcdefg"}]}', "abcdefg"),
        ("/x", '{"command":["sh","-c","curl -H \'Authorization: Bearer s3cr3tt0ken\'"]}', "s3cr"),
        ("/x", '{"args":["--token=abcdef"]}', "abcdef"),
        ("/x", '{"url":"https://me:hunter2@example.com/x"}', "hunter2"),
        ("/x", '[{"op":"replace","path":"/data/token","value":"abcdef"}]', "abcdef"),
        ("/x", '{"data":{"token":"abcdef"}}', "abcdef"),
        ("/x", '{"data":{"tls.key":"abcdef"}}', "abcdef"),
        ("/x", '{"data":{".dockerconfigjson":"abcdef"}}', "abcdef"),
        ("/x", '{"clientSecret":"abcdef"}', "abcdef"),
        ("/x", "not JSON, token: abcdef", "abcdef"),
        ("/apis/oauth.openshift.io/v1/oauthaccesstokens/sha256~abcdef", '{"x":"y1"}', "y1"),
        ("/x", '{"args":["--password","hunter2"]}', "hunter2"),
        ("/x", '{"containers":[{"command":["login","hunter2"]}]}', "hunter2"),
        ("/x", '{"env":[{"name":"MYSQL_PASS","value":"hunter2"}]}', "hunter2"),
        ("/x", '{"env":[{"name":"DB_PWD","value":"hunter2"}]}', "hunter2"),
        ("/x", '{"env":[{"name":"ENCRYPTION_KEY","value":"hunter2"}]}', "hunter2"),
        ("/x", '{"env":[{"name":"WORD_OF_THE_DAY","value":"hunter2"}]}', "hunter2"),
        ("/x", '{"encryptionKey":"hunter2"}', "hunter2"),
        ("/x", '{"tokens":["abcdef","abcdef"]}', "abcdef"),
        ("/x", '{"data":{"app.conf":"password = hunter2"}}', "hunter2"),
        ("/x", '{"data":{".env":"A=1\\nDB=hunter2"}}', "hunter2"),
        ("/x", '{"data":{"greeting":"hunter2"}}', "hunter2"),
        ("/x", '[{"op":"add","path":"/data/greeting","value":"hunter2"}]', "hunter2"),
        ("/x", '[{"op":"add","path":"/data","value":{"greeting":"hunter2"}}]', "hunter2"),
        ("/x", '[{"op":"add","path":"/spec/args/0","value":"hunter2"}]', "hunter2"),
        ("/x", '{"spec":{"note":"password = hunter2"}}', "hunter2"),
        ("/x", '{"spec":{"note":"see --password hunter2 there"}}', "hunter2"),
        ("/x", '{"spec":{"note":"line\\nhunter2"}}', "hunter2"),
        ("/x", '{"u":"postgres://u:a/hunter2@host/db"}', "hunter2"),
        ("/x", '{"u":"postgres://u:a,hunter2@host/db"}', "hunter2"),
        ("/x", '{"u":"https://h/x?a=1&access_token=hunter2"}', "hunter2"),
        ("/x", '{"u":"https://h/x?se=1&sig=hunter2"}', "hunter2"),
        ("/x", '{"u":"user:hunter2@tcp(h:3306)/db"}', "hunter2"),
        ("/x", '{"u":"https://hooks.example.test/services/T0/hunter2"}', "hunter2"),
        ("/x", '{"n":"Authorization: Token hunter2"}', "hunter2"),
        ("/x", '{"n":"Cookie: session=hunter2"}', "hunter2"),
        ("/x", '{"n":"machine h login u password hunter2"}', "hunter2"),
        ("/x", '{"n":"curl -u me:hunter2 h"}', "hunter2"),
        ("/x", '{"n":"CREATE USER u IDENTIFIED BY hunter2"}', "hunter2"),
        ("/x", '{"metadata":{"annotations":{"example.test/dsn":"dXNlcjpo"}}}', "dXNlcjpo"),
        ("/x", '{"metadata":{"labels":{"token":"hunter2"}}}', "hunter2"),
        ("/x", '{"name":"https://u:hunter2@h"}', "hunter2"),
        ("/x", '{"password":8675309}', "8675309"),
        ("/x", '{"password":{"value":"hunter2"}}', "hunter2"),
        ("/x", '{"token":{"inline":{"type":"hunter2"}}}', "hunter2"),
        ("/x", '{"tokens":[["hunter2"]]}', "hunter2"),
        ("/x", '{"tokens":{"hunter2":"somebody"}}', "hunter2"),
        ("/x", '{"passwords":[{"value":"hunter2"}]}', "hunter2"),
        ("/x", '{"env":{"FOO":"hunter2"}}', "hunter2"),
        ("/x", '{"env":["FOO=hunter2"]}', "hunter2"),
        ("/x", '{"headers":{"X-Foo":"hunter2"}}', "hunter2"),
        ("/x", '{"command":"login hunter2"}', "hunter2"),
        ("/x", '{"data":{"a":{"b":["hunter2"]}}}', "hunter2"),
        ("/x", '{"params":[{"key":"db","value":"hunter2"}]}', "hunter2"),
        ("/x", '{"connectionString":"hunter2"}', "hunter2"),
        ("/x", '{"httpGet":{"path":"/hook/hunter2"}}', "hunter2"),
        ("/x", '[{"op":"add","path":"/spec/httpHeaders/0/value","value":"hunter2"}]', "hunter2"),
        ("/x", '[{"op":"add","path":"/spec/env/-","value":{"name":"A","value":"hunter2"}}]', "hun"),
        ("/x", '[{"op":"add","path":"/spec/tokens/0","value":"hunter2"}]', "hunter2"),
        ("/x", '[{"op":"add","path":"/spec/password","value":{"v":"hunter2"}}]', "hunter2"),
        ("/x", '{"note":"spec.password: Invalid value: \\"hunter2\\": too short"}', "hunter2"),
        (
            "/x",
            '{"kind":"Status","metadata":{},"status":"Failure","message":"x: got hunter2",'
            '"details":{"causes":[{"field":"f","message":"Invalid value: hunter2"}]}}',
            "hunter2",
        ),
    ],
)
def test_secrets_are_not_logged(path: str, body: str, hidden: str) -> None:
    assert hidden in body
    assert hidden not in loggable(path, body.encode())


def test_of_a_secret_among_others_its_name_is_logged() -> None:
    body = b'{"items":[{"kind":"Secret","metadata":{"name":"n","uid":"u"},"data":{"a":"b"}}]}'
    hidden = '{"kind":"Secret","metadata":{"name":"n"},"data":"<hidden>"}'
    assert loggable("/x", body) == f'{{"items":[{hidden}]}}'


@given(st.text(st.characters(codec="utf-8"), min_size=8), st.sampled_from(["data", "stringData"]))
def test_no_value_of_a_secret_is_logged_wherever_the_secret_stands(value: str, field: str) -> None:
    """Whatever the value: in a list, in another object, as the text of a field."""
    secret = {"kind": "Secret", "metadata": {"name": "n"}, field: {"key": f"<<{value}>>"}}
    text = json.dumps(secret, ensure_ascii=False)
    bare = {"kind": "SecretList", "items": [{"metadata": {}, field: {"key": f"<<{value}>>"}}]}
    for body in ({"items": [secret]}, {"spec": {"template": secret}}, {"data": {"m": text}}, bare):
        assert "<<" not in loggable("/x", json.dumps(body, ensure_ascii=False).encode())


def test_a_body_too_long_to_be_looked_through_is_only_counted() -> None:
    body = b'{"data":"' + b"x" * MAX_PARSED + b'"}'
    assert loggable("/x", body) == f"<{len(body)} bytes>"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("-" * 32_000, id="dashes"),
        pytest.param("a" * 900 + "://", id="an address that does not end"),
        pytest.param("eyJ" * 300, id="the beginning of a token again and again"),
        pytest.param("--password=" * 90, id="options"),
        pytest.param("token:" * 150, id="fields"),
        pytest.param("=" * 900, id="signs"),
    ],
)
@pytest.mark.parametrize("field", ["spec", "data"])
def test_a_hostile_body_is_looked_through_at_once(text: str, field: str) -> None:
    """As often as it goes into a body; quadratic expressions took minutes for it."""
    count = (MAX_PARSED - 100) // (len(text) + 12)
    body = json.dumps({field: {f"k{number}": text for number in range(count)}}).encode()
    assert MAX_PARSED / 2 < len(body) <= MAX_PARSED
    began = time.process_time()
    loggable("/x", body)
    assert time.process_time() - began < 1.0


def test_what_is_harmless_is_shown() -> None:
    variable = {"name": "RELEASE_VERSION", "value": "1.0.0"}
    container = {"args": ["--v=2", "--quiet"], "env": [variable], "image": "example.test/a:1"}
    meta = {"name": "x", "uid": "0b8d2f3e-6a0f-4a6e-9a53-1c2d3e4f5a6b"}
    body = {"kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}
    seen = json.loads(loggable("/x", json.dumps(body).encode()))
    assert seen["metadata"] == meta
    assert seen["spec"]["containers"] == [container | {"args": ["--v=2", "<7 characters>"]}]


def test_of_a_reference_to_a_secret_the_name_is_shown() -> None:
    body = {"valueFrom": {"secretKeyRef": {"name": "database", "key": "word", "optional": True}}}
    seen = json.loads(loggable("/x", json.dumps(body).encode()))
    assert seen == {"valueFrom": {"secretKeyRef": {"name": "database", "...": "<hidden>"}}}


def test_schemas_are_logged_whole() -> None:
    """Names of fields are no secrets: only texts are hidden."""
    body = b'{"properties":{"password":{"type":"string"}},"token":{},"n":1}'
    assert loggable("/x", body) == body.decode()


def test_bookkeeping_is_left_out() -> None:
    body = b'{"metadata":{"name":"x","managedFields":[{"manager":"me","fieldsV1":{"f:a":{}}}]}}'
    assert loggable("/x", body) == '{"metadata":{"name":"x"}}'


@pytest.mark.parametrize("code", [400, 422, 500])
def test_an_error_about_a_secret_does_not_quote_it(code: int) -> None:
    cause = {"field": "data.x", "message": "Invalid value: hunter2", "reason": "FieldValueInvalid"}
    details = {"causes": [cause]}
    said = {"kind": "Status", "message": ".data.x: got hunter2", "details": details}
    error = api_error("PATCH", "/api/v1/namespaces/a/secrets/b", code, json.dumps(said).encode())
    assert "hunter2" not in str(error)
    assert "hunter2" not in error.message + error.causes[0].message
    assert error.causes[0].field == "data.x"
    assert "left out" in str(error)


@pytest.mark.parametrize(
    ("message", "causes"),
    [
        ('X "x" is invalid: spec.password: Invalid value: "hunter2"', ["spec.password"]),
        ("x is invalid: hunter2", ["spec.users[0].token"]),
        ('.spec.apiKey: expected string, got &value.Unstructured{Value:"hunter2"}', []),
        ("failed to create typed patch object: .spec.auth[0].clientSecret: got hunter2", []),
    ],
)
def test_an_error_about_a_field_that_has_a_secret_does_not_quote_it(
    message: str, causes: list[str]
) -> None:
    """It goes into conditions and events, which many may read."""
    details = {"causes": [{"field": field, "message": "hunter2"} for field in causes]}
    said = {"kind": "Status", "message": message, "details": details}
    error = api_error("PATCH", "/apis/x/v1/things/y", 422, json.dumps(said).encode())
    assert "hunter2" not in str(error)
    other = api_error("PATCH", "/x", 422, b'{"kind":"Status","message":"spec.size: 3 is too much"}')
    assert "3 is too much" in str(other)


def test_other_bodies_are_logged_up_to_a_length() -> None:
    assert loggable("/api/v1/pods", b'{"kind":"Pod"}') == '{"kind":"Pod"}'
    assert len(loggable("/api/v1/pods", b"x" * 2 * MAX_LOGGED)) < MAX_LOGGED + 50


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerError),
        (503, "ServiceUnavailable", ServerError),
        (405, "MethodNotAllowed", ApiError),
    ],
)
def test_a_refusal_is_an_exception_of_its_kind(
    code: int, reason: str, kind: type[ApiError]
) -> None:
    status = {"kind": "Status", "reason": reason, "message": "because\n  of this"}
    error = api_error("PUT", "/path", code, msgspec.json.encode(status), "3")
    assert type(error) is kind
    assert str(error) == f"PUT /path: {code} {reason}: because of this"
    assert error.retry_after == 3


POLICY = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"


@pytest.mark.parametrize("code", [401, 403, 404, 409, 410])
@pytest.mark.parametrize("reason", ["NotFound", "Conflict", "AlreadyExists", ""])
@pytest.mark.parametrize(
    "message",
    [
        'admission webhook "w.example.com" denied the request: no',
        'admission webhook "w.example.com" denied the request without explanation',
        f'things.example.com "it" is forbidden: {POLICY}',
    ],
)
def test_a_denial_says_nothing_about_the_object_whatever_its_code(
    code: int, reason: str, message: str
) -> None:
    """A webhook's 404 does not make an object gone, and its 409 does not make it changed."""
    status = {"kind": "Status", "reason": reason, "message": message}
    error = api_error("PUT", "/path", code, msgspec.json.encode(status))
    assert type(error) is Forbidden
    assert not error.by_role


def test_a_field_manager_cannot_call_itself_a_denial() -> None:
    name = 'admission webhook \\"w\\" denied the request'
    message = f'Apply failed with 1 conflict: conflict with "{name}": .spec.size'
    status = {"kind": "Status", "reason": "Conflict", "message": message}
    assert type(api_error("PATCH", "/path", 409, msgspec.json.encode(status))) is Conflict


def test_an_answer_that_is_no_status_is_quoted() -> None:
    error = api_error("GET", "/path", 502, b"<html>\n<h1>Bad gateway</h1>")
    assert str(error) == "GET /path: 502: <html> <h1>Bad gateway</h1>"
