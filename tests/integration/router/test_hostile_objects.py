"""No object of a user keeps HAProxy from taking the configuration, or gets the host of another."""

import base64
import datetime
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.types import (
    CertificatePublicKeyTypes,
    PrivateKeyTypes,
)
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from quarterdeck.api.meta import Key, Object
from quarterdeck.haproxy.access_log import access_log
from quarterdeck.haproxy.check import run_check
from quarterdeck.haproxy.errors import InvalidVariableError, RefusedTextError
from quarterdeck.haproxy.model import Config
from quarterdeck.haproxy.render import render
from quarterdeck.router.certificates import self_signed
from quarterdeck.router.generations import Generations
from quarterdeck.router.observed import ObservedRoutes
from quarterdeck.router.planning import config_of
from quarterdeck.router.routing import Routing, routes
from quarterdeck.router.settings import Settings

NOW = datetime.datetime.now(datetime.UTC)
AUTHORITY = ec.generate_private_key(ec.SECP256R1())


def ingress(host: str, secret: str, hosts: list[str] | None = None) -> Object:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rules = [
        {"host": each, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
        for each in hosts or [host]
    ]
    return {
        "metadata": {"name": secret[:9], "namespace": "shop", "uid": host},
        "spec": {"rules": rules, "tls": [{"hosts": hosts or [host], "secretName": secret}]},
    }


def signed(key: CertificatePublicKeyTypes) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a.example")])
    builder = x509.CertificateBuilder(name, name, key, x509.random_serial_number())
    dated = builder.not_valid_before(NOW).not_valid_after(NOW + datetime.timedelta(days=1))
    return dated.sign(AUTHORITY, hashes.SHA256()).public_bytes(Encoding.PEM)


def secret(key: PrivateKeyTypes, *chain: PrivateKeyTypes) -> Object:
    public = [signed(one.public_key()) for one in (key, *chain)]  # type: ignore[arg-type]
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    data = {"tls.crt": b"".join(public), "tls.key": private}
    return {"data": {name: base64.b64encode(text).decode() for name, text in data.items()}}


GOOD = ec.generate_private_key(ec.SECP256R1())
SHORT = rsa.generate_private_key(65537, 1024)  # noqa: S505  # that is the point


async def taken(directory: Path, routing: Routing) -> Config:
    """The configuration of these routes, which HAProxy takes."""
    base = Config(
        http_bind="127.0.0.1:1",
        https_bind="127.0.0.1:2",
        sockets=str(directory),
        default_certificate=self_signed("default", NOW),
    )
    config = config_of(routing, base, None)
    path = Generations(directory).write(1, render(config, 1))
    assert await run_check(str(path)) == []
    return config


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(secret(SHORT), id="a short RSA key"),
        pytest.param(secret(GOOD, SHORT), id="a short RSA key in the chain"),
        pytest.param(secret(ec.generate_private_key(ec.SECP192R1())), id="a short curve"),
        pytest.param(secret(dsa.generate_private_key(2048)), id="DSA"),
        pytest.param(secret(x25519.X25519PrivateKey.generate()), id="a key that cannot sign"),
    ],
)
async def test_a_certificate_that_haproxy_refuses_is_skipped_and_the_others_served(
    tmp_path: Path, bad: Object
) -> None:
    seen = ObservedRoutes(
        ingresses=[ingress("a.example", "bad"), ingress("b.example", "good")],
        secrets={Key("shop", "bad"): bad, Key("shop", "good"): secret(GOOD)},
    )
    routing = routes(seen, Settings())
    config = await taken(tmp_path, routing)
    assert [one.server_names for one in config.certificates] == [("b.example",)]
    assert "CertificateNotUsed" in {one.reason for one in routing.problems}


@pytest.mark.parametrize(
    "key",
    [rsa.generate_private_key(65537, 2048), ed25519.Ed25519PrivateKey.generate()],
    ids=["RSA", "Ed25519"],
)
async def test_usual_certificates_are_served(tmp_path: Path, key: PrivateKeyTypes) -> None:
    secrets = {Key("shop", "good"): secret(key, GOOD)}
    seen = ObservedRoutes(ingresses=[ingress("a.example", "good")], secrets=secrets)
    assert len((await taken(tmp_path, routes(seen, Settings()))).certificates) == 1


async def test_a_certificate_may_have_many_hosts_and_a_secret_a_long_name(tmp_path: Path) -> None:
    hosts, name = [f"{number}.{'h' * 60}.example" for number in range(2100)], "s" * 253
    secrets = {Key("shop", name): secret(GOOD)}
    seen = ObservedRoutes(ingresses=[ingress("", name, hosts)], secrets=secrets)
    config = await taken(tmp_path, routes(seen, Settings()))
    assert sorted(config.certificates[0].server_names) == sorted(hosts)


HOSTILE = (
    "x\n    server evil 127.0.0.1:2379",
    "x\nbackend evil",
    "x\r\nbackend evil",
    "x\x00",
    "x\x85backend evil",
    "x\u2028backend evil",
    "x' 'y",
    "x'\n",
    'x"',
    "x\\",
    "x # y",
    "$HOME",
    "${HOME}",
    "$(id)",
    "%[env(HOME)]",
    "{{ 7 * 7 }}",
    "../../etc/passwd",
    "a b",
    "a,b",
    "\ud800",
    "",
    "x" * 20000,
)
FIELDS = ("host", "path", "service", "port", "secret name", "secret", "tls host", "annotation")


def hostile_ingress(field: str, value: str, number: int) -> Object:
    """An Ingress with this value in one of its fields."""
    given = {"host": f"h{number}.example", "path": f"/p{number}", "service": "web", "port": "http"}
    given |= {"secret name": "good", "tls host": f"h{number}.example", "annotation": "x"}
    given[field] = f"/{value}" if field == "path" else value
    backend = {"service": {"name": given["service"], "port": {"name": given["port"]}}}
    paths = [{"path": given["path"], "pathType": "Prefix", "backend": backend}]
    return {
        "metadata": {
            "name": f"i{number}",
            "namespace": "shop",
            "uid": str(number),
            "annotations": {"haproxy.router.openshift.io/balance": given["annotation"]},
        },
        "spec": {
            "rules": [{"host": given["host"], "http": {"paths": paths}}],
            "tls": [{"hosts": [given["tls host"]], "secretName": given["secret name"]}],
        },
    }


def heads(config: str) -> list[str]:
    """The head of each section, as HAProxy sees lines: only a line feed ends one."""
    return [line for line in config.split("\n") if line and not line[0].isspace()]


@pytest.mark.parametrize("field", FIELDS)
async def test_no_field_of_an_object_changes_the_structure(tmp_path: Path, field: str) -> None:
    good = secret(GOOD)
    secrets = {Key("shop", "good"): good}
    if field in ("secret name", "secret"):
        for number, value in enumerate(HOSTILE):
            encoded = base64.b64encode(value.encode(errors="replace")).decode()
            bad = {"data": {**good["data"], "tls.crt": good["data"]["tls.crt"] + encoded}}
            secrets[Key("shop", value)] = good if field == "secret name" else bad
            secrets[Key("shop", f"bad-{number}")] = {"data": {"tls.crt": value, "tls.key": value}}
    port = {"name": "http", "port": 80}
    services = {Key("shop", "web"): {"spec": {"ports": [port]}}}
    for value in HOSTILE:
        services[Key("shop", value)] = {"spec": {"ports": [{**port, "name": value}]}}
    seen = ObservedRoutes(
        ingresses=[
            *(hostile_ingress(field, value, number) for number, value in enumerate(HOSTILE)),
            ingress("good.example", "good"),
        ],
        services=services,
        secrets=secrets,
    )
    routing = routes(seen, Settings())
    config = await taken(tmp_path, routing)
    text = render(config, 1)["haproxy.cfg"]
    empty = render(msgspec.structs.replace(config, backends=()), 1)["haproxy.cfg"]
    assert heads(text) == [*heads(empty), *(f"backend {name}" for name in routing.backends)]
    # A backend is its head, two lines and its servers, whatever the objects say.
    lines = [line for line in text.split("\n") if line.strip()]
    own = [line for line in empty.split("\n") if line.strip()]
    assert len(lines) - len(own) == sum(3 + len(one.slots) for one in config.backends)
    assert ("good.example/", "shop:web:80") in config.path_prefixes
    assert "evil" not in "".join(name for _, name in config.path_prefixes)


@pytest.mark.parametrize(
    "variable",
    [
        "ROUTER_SYSLOG_ADDRESS",
        "ROUTER_LOG_FACILITY",
        "ROUTER_LOG_LEVEL",
        "ROUTER_LOG_MAX_LENGTH",
        "ROUTER_SYSLOG_FORMAT",
        "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS",
        "ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS",
        "ROUTER_CAPTURE_HTTP_COOKIE",
    ],
)
async def test_no_variable_changes_the_structure(tmp_path: Path, variable: str) -> None:
    """What an IngressController says is in variables: it adds one line at most, or is refused."""
    usual = {"ROUTER_SYSLOG_ADDRESS": "127.0.0.1:514", "ROUTER_LOG_LEVEL": "info"}
    captured = "CAPTURE" in variable
    base = Config(
        http_bind="127.0.0.1:1",
        https_bind="127.0.0.1:2",
        sockets=str(tmp_path),
        default_certificate=self_signed("default", NOW),
        access_log=access_log(usual),
    )
    expected = render(base, 1)["haproxy.cfg"]
    for value in HOSTILE:
        given = {**usual, variable: f"{value}:9" if captured else value}
        try:
            wanted = msgspec.structs.replace(base, access_log=access_log(given))
            text = render(wanted, 1)["haproxy.cfg"]
        except (InvalidVariableError, RefusedTextError):
            continue
        more = 0
        if captured and value:
            more = 2  # in each of the two frontends
        assert heads(text) == heads(expected)
        assert text.count("\n") - expected.count("\n") <= more, value
        path = Generations(tmp_path).write(1, render(wanted, 1))
        for complaint in await run_check(str(path)):
            # A format may be bad, but only as a format.
            assert variable == "ROUTER_SYSLOG_FORMAT", complaint
            assert "log-format" in complaint.words or "fetch" in complaint.words, complaint
