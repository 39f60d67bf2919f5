"""Which servers are trusted: by authorities without key identifiers, and by a file that changes."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.integration.kube.scripted_server import ScriptedServer, answer, config_map, scripted

from quarterdeck.api.meta import CONFIG_MAPS
from quarterdeck.kube import Client, Connection, ConnectionFailed
from quarterdeck.kube.auth import load_pem_pair
from quarterdeck.kube.connection import verified_tls
from quarterdeck.localcluster.certificates import (
    LOCAL_HOSTS,
    CertificateSpec,
    KeyPair,
    issue,
    new_authority,
)

NOW = datetime.now(UTC)
SERVER = CertificateSpec(name="api", common_name="api", server=True, hosts=LOCAL_HOSTS)


def serving(pair: KeyPair) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pem_pair(tls, pair.certificate.decode(), pair.key.decode())
    return tls


def trusting(server: ScriptedServer, pem: bytes, **more: Any) -> Connection:
    tls = verified_tls(ca_data=pem.decode())
    url = f"https://127.0.0.1:{server.port}"
    return msgspec.structs.replace(server.connection, server=url, tls=tls, **more)


def without_key_identifiers() -> tuple[bytes, KeyPair]:
    """An authority, and a server's certificate from it, as some providers of clusters make them."""
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("ca", "api")]
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in names]
    made = []
    for name, key in zip(names, keys, strict=True):
        builder = (
            x509.CertificateBuilder()
            .issuer_name(names[0])
            .subject_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - timedelta(days=1))
            .not_valid_after(NOW + timedelta(days=1))
            .add_extension(x509.BasicConstraints(name is names[0], None), critical=True)
        )
        if key is not keys[0]:
            host = x509.IPAddress(ip_address("127.0.0.1"))
            builder = builder.add_extension(x509.SubjectAlternativeName([host]), critical=False)
        certificate = builder.sign(keys[0], hashes.SHA256())
        made.append(certificate.public_bytes(serialization.Encoding.PEM))
    key_pem = keys[1].private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return made[0], KeyPair(made[1], key_pem)


@pytest.fixture
def _strict_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python 3.13 and newer are, also when this runs on an older one."""
    real = ssl.create_default_context

    def strict(*given: Any, **named: Any) -> ssl.SSLContext:
        tls = real(*given, **named)
        tls.verify_flags |= ssl.VERIFY_X509_STRICT
        return tls

    monkeypatch.setattr(ssl, "create_default_context", strict)


@pytest.mark.usefixtures("_strict_by_default")
async def test_an_authority_without_key_identifiers_is_trusted() -> None:
    authority, pair = without_key_identifiers()
    async with (
        scripted(lambda _: answer(200, config_map("a", 1)), serving(pair)) as server,
        Client(trusting(server, authority)) as client,
    ):
        await client.get(CONFIG_MAPS, "a", "n")


async def test_an_authority_that_comes_into_the_file_is_trusted(tmp_path: Path) -> None:
    old, new = (new_authority(name, NOW) for name in ("old", "new"))
    file = tmp_path / "ca.crt"
    file.write_bytes(old.certificate)
    tls = serving(issue(SERVER, new, NOW))
    async with scripted(lambda _: answer(200, config_map("a", 1)), tls) as server:
        connection = trusting(server, old.certificate, authority=file)
        async with Client(connection, timeout=2) as client:
            with pytest.raises(ConnectionFailed, match="certificate verify failed"):
                await client.get(CONFIG_MAPS, "a", "n")
            file.write_text("half written")
            with pytest.raises(ConnectionFailed, match="certificate verify failed"):
                await client.get(CONFIG_MAPS, "a", "n")
            file.write_bytes(old.certificate + new.certificate)
            await client.get(CONFIG_MAPS, "a", "n")
