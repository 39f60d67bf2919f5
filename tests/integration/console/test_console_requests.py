"""The console against a real API server, without a browser: who asks, who is refused."""

import base64
import io
import os
import signal
import ssl
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.console_objects import CONFIG, conditions, operator
from tests.console_server import (
    READ_ALL,
    ConsoleServer,
    console_server,
    put_with_status,
    send,
    user_token,
)
from tests.integration.console.http_user import HttpUser, events, next_update

from quarterdeck.console import account, feed, rights
from quarterdeck.console.limits import ATTEMPTS
from quarterdeck.console.pages.live import MAX_STREAMS
from quarterdeck.console.security import session_cookie
from quarterdeck.kube import in_cluster, load_kubeconfig
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.testing.audit import requests_by, requests_from, writes_by
from quarterdeck.testing.waiting import eventually

READER = "system:serviceaccount:default:reader"
PAGES = (
    "/",
    "/operators/ingress",
    "/log-level",
    "/release",
    "/ingress",
    "/subscriptions",
    "/baremetal",
    "/ingress/openshift-ingress-operator/default",
    "/subscriptions/monitoring/prometheus",
)
LEVEL_WRITER = "system:serviceaccount:default:level-writer"
WRITE_LEVEL = {
    "apiGroups": ["operator.openshift.io"],
    "resources": ["clusterversionoperators"],
    "verbs": ["patch", "create", "update"],
}
READ_LOGS = {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}


@pytest.fixture(scope="module")
def reader_token(filled: ControlPlane) -> str:
    """A token of somebody who may read everything, and change nothing."""
    return user_token(filled.requests(), "reader", READ_ALL, READ_LOGS)


@pytest.fixture
def reader(console: ConsoleServer, reader_token: str) -> HttpUser:
    """The reader, logged in."""
    user = HttpUser(console)
    assert user.log_in(reader_token).status == 303
    return user


@pytest.mark.parametrize("path", PAGES)
def test_a_reader_sees_each_page(reader: HttpUser, path: str) -> None:
    answer = reader.get(path)
    assert answer.status == 200
    assert "The same on the command line" in answer.text
    assert READER in answer.text


def test_every_request_has_the_users_own_identity(
    filled: ControlPlane, kubeconfig: Path, reader_token: str
) -> None:
    """Nothing is asked with the administrator's kubeconfig that the console was started with."""
    agent = "console-with-a-name/1"
    connection = msgspec.structs.replace(load_kubeconfig(kubeconfig, env={}), user_agent=agent)
    writer_token = user_token(filled.requests(), "level-writer", READ_ALL, WRITE_LEVEL)
    with console_server(connection) as named:
        reader, writer = HttpUser(named), HttpUser(named)
        assert reader.log_in(reader_token).status == 303
        assert writer.log_in(writer_token).status == 303
        for path in PAGES:
            reader.get(path)
        with events(reader, "/live/overview") as stream:
            next_update(stream)
        form = {"csrf": writer.csrf(), "level": "Debug", "for": ""}
        assert writer.post("/log-level", form).status == 303

    def asked() -> set[tuple[str, str, str]]:
        entries = requests_from(filled.audit_log, agent)
        return {(one.user, one.verb, one.resource) for one in entries}

    # A watch is in the log once it has ended, a moment after the console.
    eventually(lambda: (READER, "watch", "clusteroperators") in asked(), "the watch in the log")
    assert {user for user, _, _ in asked()} == {READER, LEVEL_WRITER}
    assert (READER, "create", "selfsubjectaccessreviews") in asked()
    assert (LEVEL_WRITER, "patch", "clusterversionoperators") in asked()
    assert not writes_by(filled.audit_log, READER)


def test_somebody_without_rights_sees_nothing_although_the_kubeconfig_is_an_administrators(
    console: ConsoleServer, filled: ControlPlane
) -> None:
    nobody = HttpUser(console)
    assert nobody.log_in(user_token(filled.requests(), "nobody")).status == 303
    answer = nobody.get("/")
    assert answer.status == 403
    assert "may not list clusteroperators.config.openshift.io" in answer.text
    assert "RouterAvailable" not in answer.text
    asked = requests_by(filled.audit_log, "system:serviceaccount:default:nobody")
    assert {one.resource for one in asked} <= {"selfsubjectreviews", "selfsubjectaccessreviews"}


def test_a_write_that_is_forbidden_is_not_made(reader: HttpUser, filled: ControlPlane) -> None:
    before = filled.requests().send("GET", f"{CONFIG}/clusterversions/version").json()
    form = {"csrf": reader.csrf(), "version": "0.3.0", "sure": "yes"}
    answer = reader.post("/release", form)
    assert answer.status == 403
    assert "cannot patch resource" in answer.text
    assert filled.requests().send("GET", f"{CONFIG}/clusterversions/version").json() == before


def test_a_token_that_is_not_accepted_is_refused_and_shown_nowhere(
    console: ConsoleServer, console_log: io.StringIO
) -> None:
    user = HttpUser(console)
    answer = user.log_in("not-a-token-of-anybody")
    assert answer.status == 401
    assert "does not accept this token" in answer.text
    assert "not-a-token-of-anybody" not in answer.text + str(answer.headers)
    assert "log-in refused" in console_log.getvalue()
    assert "not-a-token-of-anybody" not in console_log.getvalue()
    assert user.get("/").headers["Location"] == "/login"


def test_a_token_is_in_no_page_no_header_and_no_log(
    reader: HttpUser, reader_token: str, console_log: io.StringIO
) -> None:
    for path in PAGES:
        answer = reader.get(path)
        assert reader_token not in answer.text + str(answer.headers)
    assert reader_token not in "".join(reader.set_cookies)
    assert "selfsubjectreviews" in console_log.getvalue()  # each request is in this log
    assert reader_token not in console_log.getvalue()


@pytest.mark.parametrize("token", ["a\r\nX-Evil: 1", "a\nb", "ü", "a b\tc", ""])
def test_a_token_that_no_header_can_have_is_refused(console: ConsoleServer, token: str) -> None:
    assert HttpUser(console).log_in(token).status in (400, 401)


def _cookie(user: HttpUser) -> str:
    return session_cookie(user.host, encrypted=False)


def test_cookies_are_for_the_server_alone(reader: HttpUser) -> None:
    session = [one for one in reader.set_cookies if one.startswith(_cookie(reader))]
    assert len(session) == 1
    assert "HttpOnly" in session[0]
    assert "SameSite=Strict" in session[0]
    assert "Path=/" in session[0]
    assert "Secure" not in session[0]  # plain HTTP on loopback


def test_a_session_that_was_planted_is_worth_nothing(
    console: ConsoleServer, reader_token: str
) -> None:
    user = HttpUser(console)
    user.cookies[_cookie(user)] = "planted"
    user.log_in(reader_token)
    first = user.cookies[_cookie(user)]
    assert first != "planted"
    user.log_in(reader_token)  # without a page of its own: the session is there already
    planted = HttpUser(console)
    planted.cookies[_cookie(planted)] = "planted"
    assert planted.get("/").status == 303


def test_logging_out_ends_the_session(reader: HttpUser) -> None:
    kept = dict(reader.cookies)
    assert reader.post("/logout", {"csrf": reader.csrf()}).status == 303
    reader.cookies = kept
    assert reader.get("/").headers["Location"] == "/login"


@pytest.mark.parametrize(
    "path",
    [
        "/log-level",
        "/release",
        "/logout",
        "/ingress/openshift-ingress-operator/default",
        "/subscriptions/monitoring/prometheus",
    ],
)
def test_a_form_without_the_token_of_the_session_is_refused(reader: HttpUser, path: str) -> None:
    for form in ({}, {"csrf": ""}, {"csrf": "x"}):
        assert reader.post(path, {"level": "Debug", **form}).status == 403
    assert reader.get("/").status == 200


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.test"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}],
)
def test_a_form_of_another_site_is_refused(reader: HttpUser, headers: dict[str, str]) -> None:
    form = {"csrf": reader.csrf(), "level": "Debug", "for": ""}
    assert reader.post("/log-level", form, **headers).status == 403


def test_a_log_in_form_belongs_to_the_browser_that_got_it(
    console: ConsoleServer, reader_token: str
) -> None:
    secret = HttpUser(console).get("/login").hidden("secret")
    answer = HttpUser(console).post("/login", {"secret": secret, "token": reader_token})
    assert answer.status == 403


@pytest.mark.parametrize("path", ["/", "/login", "/nowhere", "/healthz", "/static/x/console.css"])
def test_every_answer_has_the_headers(reader: HttpUser, path: str) -> None:
    headers = reader.get(path).headers
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Server"] is None


@pytest.mark.parametrize(
    "target", ["//evil.test", "https://evil.test/", "/%0d%0aX-Evil: 1", "/\\e"]
)
def test_a_log_in_continues_on_this_console(
    console: ConsoleServer, reader_token: str, target: str
) -> None:
    answer = HttpUser(console).log_in(reader_token, target)
    assert answer.headers["Location"] == "/"
    assert answer.headers["X-Evil"] is None


def test_a_log_in_continues_where_it_began(console: ConsoleServer, reader_token: str) -> None:
    user = HttpUser(console)
    at = user.get("/operators/dns").headers["Location"]
    assert at == "/login?next=/operators/dns"
    target = user.get(at).hidden("next")
    assert user.log_in(reader_token, target).headers["Location"] == "/operators/dns"


@pytest.mark.parametrize("host", ["evil.test", "localhost.evil.test", "169.254.1.1"])
def test_another_name_for_this_machine_is_refused(console: ConsoleServer, host: str) -> None:
    assert HttpUser(console, host).get("/login").status == 403


def test_attempts_are_limited(filled: ControlPlane, reader_token: str) -> None:
    with console_server(filled.kubeconfig) as own:
        user = HttpUser(own)
        statuses = [user.log_in("wrong").status for _ in range(ATTEMPTS)]
        assert statuses == [401] * ATTEMPTS
        answer = user.log_in(reader_token)
        assert answer.status == 429
        assert int(answer.headers["Retry-After"]) > 0


def test_plain_http_under_a_name_shows_no_form(filled: ControlPlane, reader_token: str) -> None:
    with console_server(filled.kubeconfig, host_names=frozenset({"console.test"})) as own:
        user = HttpUser(own, "console.test")
        page = user.get("/login")
        assert page.status == 403
        assert 'name="token"' not in page.text
        form = {"secret": user.cookies["quarterdeck-login"], "token": reader_token}
        assert user.post("/login", form).status == 403


def test_behind_an_ingress_with_tls(filled: ControlPlane, reader_token: str) -> None:
    names = frozenset({"console.test"})
    with console_server(filled.kubeconfig, host_names=names, behind_tls=True) as own:
        forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"}
        user = HttpUser(own, "console.test", **forwarded)
        assert user.log_in(reader_token).status == 303
        assert user.get("/").status == 200
        assert user.get("/").headers["Strict-Transport-Security"]
        session = next(one for one in user.set_cookies if "__Host-quarterdeck-session=" in one)
        assert "Secure" in session
        known = user.cookies["__Host-quarterdeck-session"]
        user.cookies = {"quarterdeck-session-80": known, "quarterdeck-session": known}
        assert user.get("/").status == 303  # only the name that nobody can plant counts
        plain = HttpUser(own, "console.test", **{"X-Forwarded-Proto": "http"})
        assert plain.get("/login").status == 403


def test_a_pod_without_a_token_serves_those_who_have_one(
    filled: ControlPlane, reader_token: str, tmp_path: Path
) -> None:
    file = yaml.safe_load(filled.kubeconfig.read_text())
    cluster = file["clusters"][0]["cluster"]
    trusted = cluster.get("certificate-authority-data")
    authority = cluster.get("certificate-authority", "")
    (tmp_path / "ca.crt").write_bytes(
        base64.b64decode(trusted) if trusted else Path(authority).read_bytes()
    )
    port = cluster["server"].rpartition(":")[2]
    pod = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
    with console_server(in_cluster(pod, tmp_path, identified=False)) as own:
        user = HttpUser(own)
        assert user.log_in(reader_token).status == 303
        assert READER in user.get("/").text


def test_a_link_logs_in_once(console: ConsoleServer) -> None:
    path = console.link().removeprefix(console.url)
    user = HttpUser(console)
    page = user.get(path)
    assert user.get("/").status == 303  # looking at the link does not log in
    form = {"secret": user.get(path).hidden("secret"), "code": page.hidden("code")}
    assert user.post("/link/", form).status == 303
    assert "quarterdeck-admin" in user.get("/").text
    assert HttpUser(console).get(path).status == 410


def test_a_link_stays_good_while_the_api_server_does_not_answer(
    console: ConsoleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = console.link().removeprefix(console.url)
    user = HttpUser(console)
    page = user.get(path)
    form = {"secret": page.hidden("secret"), "code": page.hidden("code")}
    real = console.console.connection
    monkeypatch.setattr(
        console.console, "connection", msgspec.structs.replace(real, server="http://127.0.0.1:1")
    )
    assert user.post("/link/", form).status == 503
    monkeypatch.setattr(console.console, "connection", real)
    form["secret"] = user.get(path).hidden("secret")
    assert user.post("/link/", form).status == 303


WORD = st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), max_size=40)


@given(parts=st.lists(WORD, max_size=4), query=WORD)
@settings(
    max_examples=120,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_path_is_answered_without_a_fault(
    reader: HttpUser, parts: list[str], query: str
) -> None:
    for root in ("/", "/operators/", "/ingress/default/", "/live/", "/link/", "/static/"):
        path = f"{root}{'/'.join(parts)}?q={query}".replace("#", "")
        if not path.startswith("/live/overview"):
            assert reader.get(path).status < 500


@pytest.mark.parametrize(
    "path",
    [
        "/operators/..%2f..%2fsecrets",
        "/operators/%00",
        "/operators/.",
        "/operators/" + "a" * 300,
        "/ingress/..%2f/x",
        "/operators/a%0d%0aX:1",
        "/live/operators/%2e%2e",
        "/%ff",
    ],
)
def test_a_path_that_could_leave_its_place_is_not_found(reader: HttpUser, path: str) -> None:
    assert reader.get(path).status in (400, 404)


FIELDS = st.dictionaries(
    st.sampled_from(
        [
            "level",
            "for",
            "version",
            "sure",
            "destination",
            "port",
            "format",
            "request_headers",
            "action",
            "plan",
            "uid",
            "cookie",
        ]
    ),
    st.sampled_from(["apply", "Syslog", "²", "9" * 30, "yes", "1"]) | st.text(max_size=30),
)


@pytest.fixture
def writer(console: ConsoleServer, filled: ControlPlane) -> HttpUser:
    """Somebody who may do everything, logged in."""
    user = HttpUser(console)
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    assert user.log_in(user_token(filled.requests(), "writer", everything)).status == 303
    return user


@given(fields=FIELDS)
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_form_is_answered_without_a_fault(
    reader: HttpUser, writer: HttpUser, fields: dict[str, str]
) -> None:
    for user in (reader, writer):
        csrf = user.csrf()
        for path in (
            "/log-level",
            "/release",
            "/ingress/openshift-ingress-operator/default",
            "/subscriptions/monitoring/prometheus",
        ):
            assert user.post(path, {**fields, "csrf": csrf}).status < 500


COOKIE_TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=20)


@given(text=COOKIE_TEXT)
@example(text="\xff")
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_any_cookie_is_answered_without_a_fault(console: ConsoleServer, text: str) -> None:
    user = HttpUser(console)
    for name in ("quarterdeck-login", _cookie(user)):
        user.cookies = {name: text}
        assert user.get("/").status < 500
        assert user.post("/login", {"secret": "x", "token": "y"}).status < 500


def test_a_preview_needs_the_right_to_change(reader: HttpUser) -> None:
    form = {"csrf": reader.csrf(), "destination": "Container", "action": "preview"}
    answer = reader.post("/ingress/openshift-ingress-operator/default", form)
    assert answer.status == 403
    assert "may not patch ingresscontrollers" in answer.text


def test_a_preview_shows_nothing_of_the_consoles_environment(
    writer: HttpUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSOLE_SECRET", "not-for-users")
    form = {"csrf": writer.csrf(), "destination": "Container", "action": "preview"}
    form["format"] = "seen:%[env(CONSOLE_SECRET)]:%ST"
    answer = writer.post("/ingress/openshift-ingress-operator/default", form)
    assert answer.status == 200
    assert ":200" in answer.text  # HAProxy wrote the line
    assert "not-for-users" not in answer.text


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"\xff\xfe", "application/x-www-form-urlencoded"),
        (b"csrf=%ff", "application/x-www-form-urlencoded"),
        (b"&".join([b"a=b"] * 100), "application/x-www-form-urlencoded"),
        (b"a=" + b"b" * 70000, "application/x-www-form-urlencoded"),
        (b'{"csrf": 1}', "application/json"),
        (b"--x\r\n", "multipart/form-data; boundary=x"),
        (b"a=b", "application/x-www-form-urlencoded; charset=nonsense"),
        (b"a=b", "nonsense"),
    ],
)
def test_a_body_that_is_no_form_is_refused(
    reader: HttpUser, body: bytes, content_type: str
) -> None:
    assert 400 <= reader.send("POST", "/log-level", body, content_type).status < 500


def test_a_change_of_one_operator_is_sent_as_one_row(
    console: ConsoleServer, reader: HttpUser, filled: ControlPlane
) -> None:
    with events(reader, "/live/overview") as stream:
        first = {one["id"] for one in next_update(stream)}
        assert {"row-ingress", "row-sample", "summary"} <= first
        message = "5 notes are kept as ConfigMaps"
        changed = operator("sample", conditions(message=message))
        put_with_status(filled.requests(), f"{CONFIG}/clusteroperators", changed)
        update = next_update(stream)
        assert [one["id"] for one in update] == ["row-sample"]
        assert message in update[0]["html"]


def test_many_viewers_cost_one_watch_for_each_kind(
    console: ConsoleServer, reader: HttpUser
) -> None:
    reader.get("/")
    before = console.watches()
    with ExitStack() as stack:
        for _ in range(30):
            next_update(stack.enter_context(events(reader, "/live/overview")))
        assert console.watches() == before


def test_the_pages_of_all_operators_share_one_watch_of_events(
    console: ConsoleServer, reader: HttpUser
) -> None:
    reader.get("/operators/ingress")
    before = console.watches()
    with ExitStack() as stack:
        for name in ("ingress", "dns", "sample", "machine-api"):
            path = f"/live/operators/{name}"
            next_update(stack.enter_context(events(reader, path)))
        assert console.watches() == before


def test_a_page_is_made_without_a_request_to_the_api_server(
    console: ConsoleServer, reader: HttpUser, filled: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "RIGHT_LIFETIME", 600.0)
    monkeypatch.setattr(rights, "RIGHT_FRESH", 600.0)
    paths = ("/", "/operators/ingress", "/release", "/ingress", "/subscriptions")
    for path in paths:
        reader.get(path)

    def asked() -> list[object]:
        # The console asks now and then, by itself, whether the token is still accepted.
        return [
            one
            for one in requests_by(filled.audit_log, READER)
            if one.verb != "watch" and one.resource != "selfsubjectreviews"
        ]

    before = asked()
    for path in paths:
        assert reader.get(path).status == 200
    assert asked()[len(before) :] == []


def test_a_live_page_ends_with_its_session(console: ConsoleServer, reader: HttpUser) -> None:
    csrf = reader.csrf()
    with events(reader, "/live/overview") as stream:
        next_update(stream)
        reader.post("/logout", {"csrf": csrf})
        rest = stream.read().decode()
    assert "event: ended" in rest


def test_what_was_revoked_is_not_shown_any_more(
    console: ConsoleServer, filled: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "RIGHT_LIFETIME", 0.2)
    monkeypatch.setattr(feed, "LOOK_PERIOD", 0.2)
    user = HttpUser(console)
    user.log_in(user_token(filled.requests(), "leaver", READ_ALL))
    assert "RouterAvailable" in user.get("/operators/ingress").text
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/console-leaver"
    with events(user, "/live/overview") as stream:
        next_update(stream)
        send(filled.requests(), "DELETE", binding)
        stream.read()  # it ends
    answer = user.get("/")
    assert answer.status == 403
    assert "may not list clusteroperators" in answer.text
    assert user.get("/live/overview").status == 403


def test_old_objects_are_not_shown_as_current(
    console: ConsoleServer, filled: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = HttpUser(console)
    user.log_in(user_token(filled.requests(), "patient", READ_ALL))
    assert user.get("/").status == 200
    # As after an outage: no cache is current enough.
    monkeypatch.setattr(account, "WATCH_GRACE_PERIOD", -1.0)
    answer = user.get("/")
    assert answer.status == 503
    assert "clusteroperators are not followed any more" in answer.text
    assert user.get("/live/overview").status == 503
    monkeypatch.undo()
    assert user.get("/").status == 200


def test_a_session_has_a_limit_of_live_pages(console: ConsoleServer, reader: HttpUser) -> None:
    with ExitStack() as stack:
        for _ in range(MAX_STREAMS):
            stack.enter_context(events(reader, "/live/overview"))
        assert reader.get("/live/overview").status == 429
    assert reader.get("/").status == 200


def test_a_live_page_needs_a_session(console: ConsoleServer) -> None:
    assert HttpUser(console).get("/live/overview").status == 403


def _certificate(directory: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = directory / "tls.crt", directory / "tls.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


def test_the_command_serves_tls_and_prints_a_link(kubeconfig: Path, tmp_path: Path) -> None:
    certificate, key = _certificate(tmp_path)
    command = [
        sys.executable,
        "-m",
        "quarterdeck",
        "console",
        f"--kubeconfig={kubeconfig}",
        "--port=0",
        f"--tls-cert={certificate}",
        f"--tls-key={key}",
        "--one-time-link",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().rpartition(" ")[2].strip()
        link = process.stdout.readline().rpartition(" ")[2].strip()
        trusted = ssl.create_default_context(cafile=str(certificate))
        page = eventually(
            lambda: urllib.request.urlopen(link, context=trusted).read().decode(),  # noqa: S310
            "the link is answered",
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert url.startswith("https://localhost:")
    assert link.startswith(f"{url}link/")
    assert "This link logs you in once" in page


def test_a_certificate_without_its_key_is_refused(kubeconfig: Path, tmp_path: Path) -> None:
    certificate, _ = _certificate(tmp_path)
    command = [sys.executable, "-m", "quarterdeck", "console", f"--tls-cert={certificate}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "--tls-key" in done.stderr
