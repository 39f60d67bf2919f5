"""No object of a user keeps HAProxy from taking the configuration, or gets the host of another."""

import base64
import datetime
from pathlib import Path

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
from quarterdeck.haproxy.check import run_check
from quarterdeck.haproxy.model import Config
from quarterdeck.haproxy.render import render
from quarterdeck.router.certificates import self_signed
from quarterdeck.router.generations import Generations
from quarterdeck.router.observed import Observed
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
    seen = Observed(
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
    seen = Observed(ingresses=[ingress("a.example", "good")], secrets=secrets)
    assert len((await taken(tmp_path, routes(seen, Settings()))).certificates) == 1


async def test_a_certificate_may_have_many_hosts_and_a_secret_a_long_name(tmp_path: Path) -> None:
    hosts, name = [f"{number}.{'h' * 60}.example" for number in range(2100)], "s" * 253
    secrets = {Key("shop", name): secret(GOOD)}
    seen = Observed(ingresses=[ingress("", name, hosts)], secrets=secrets)
    config = await taken(tmp_path, routes(seen, Settings()))
    assert sorted(config.certificates[0].server_names) == sorted(hosts)
