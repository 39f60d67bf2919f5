"""Credentials that change while a client is busy: what it shows from then on, and after a 401."""

import asyncio
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.integration.kube.scripted_server import Asked, Reply, answer, config_map, scripted

from quarterdeck.api.meta import CONFIG_MAPS, NAMESPACES
from quarterdeck.kube import (
    Client,
    Connection,
    StaticHeader,
    TokenFile,
    Unauthorized,
    load_kubeconfig,
)
from quarterdeck.localcluster.certificates import (
    CERTIFICATE_LIFE,
    CertificateSpec,
    KeyPair,
    issue,
    load,
)
from quarterdeck.localcluster.controlplane import ControlPlane

SHORT = timedelta(seconds=6)
EXEC_V1 = "client.authentication.k8s.io/v1"
ADMIN = CertificateSpec(name="me", common_name="me", organizations=("system:masters",), client=True)


def expiring(plane: ControlPlane, life: timedelta) -> KeyPair:
    """An administrator's certificate that ends so much from now."""
    authority = load(plane.layout.pki, "ca")
    return issue(ADMIN, authority, datetime.now(UTC) - CERTIFICATE_LIFE + life)


Rotate = Callable[[KeyPair, timedelta], dict[str, Any]]


def in_files(directory: Path) -> Rotate:
    def rotate(pair: KeyPair, life: timedelta) -> dict[str, Any]:
        for name, pem in (("me.crt", pair.certificate), ("me.key", pair.key)):
            (directory / f"{name}.new").write_bytes(pem)
            (directory / f"{name}.new").rename(directory / name)
        return {"client-certificate": "me.crt", "client-key": "me.key"}

    return rotate


def by_plugin(directory: Path) -> Rotate:
    def rotate(pair: KeyPair, life: timedelta) -> dict[str, Any]:
        # It hands out a new one well before the end of the old, as such plugins do.
        expires = datetime.now(UTC) + life / 2 + timedelta(seconds=10)
        status = {
            "clientCertificateData": pair.certificate.decode(),
            "clientKeyData": pair.key.decode(),
            "expirationTimestamp": f"{expires:%Y-%m-%dT%H:%M:%SZ}",
        }
        said = {"apiVersion": EXEC_V1, "kind": "ExecCredential", "status": status}
        (directory / "answer").write_text(json.dumps(said))
        return {"exec": {"apiVersion": EXEC_V1, "command": "cat", "args": [f"{directory}/answer"]}}

    return rotate


def connection_as(user: dict[str, Any], kubeconfig: Path, directory: Path) -> Connection:
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = user
    (directory / "config").write_text(yaml.safe_dump(config))
    return load_kubeconfig(directory / "config")


@pytest.mark.parametrize("kind", [in_files, by_plugin])
async def test_a_busy_client_shows_its_new_certificate_before_the_old_one_ends(
    control_plane: ControlPlane, kubeconfig: Path, tmp_path: Path, kind: Callable[[Path], Rotate]
) -> None:
    rotate = kind(tmp_path)
    user = rotate(expiring(control_plane, SHORT), SHORT)
    async with Client(connection_as(user, kubeconfig, tmp_path)) as client:
        end = time.monotonic() + SHORT.total_seconds() + 2
        await client.get(NAMESPACES, "default")
        rotate(expiring(control_plane, CERTIFICATE_LIFE), CERTIFICATE_LIFE)
        while time.monotonic() < end:  # never idle, so never a new connection for another reason
            await client.get(NAMESPACES, "default")
            await asyncio.sleep(0.05)


async def test_a_certificate_that_was_rotated_after_its_end_is_used(
    control_plane: ControlPlane, kubeconfig: Path, tmp_path: Path
) -> None:
    rotate = in_files(tmp_path)
    user = rotate(expiring(control_plane, -SHORT), SHORT)
    async with Client(connection_as(user, kubeconfig, tmp_path)) as client:
        with pytest.raises(Unauthorized):
            await client.get(NAMESPACES, "default")
        rotate(expiring(control_plane, CERTIFICATE_LIFE), CERTIFICATE_LIFE)
        await client.get(NAMESPACES, "default")


async def test_a_pair_that_is_half_written_leaves_the_old_one_in_use(
    control_plane: ControlPlane, kubeconfig: Path, tmp_path: Path
) -> None:
    rotate = in_files(tmp_path)
    user = rotate(expiring(control_plane, CERTIFICATE_LIFE), SHORT)
    async with Client(connection_as(user, kubeconfig, tmp_path)) as client:
        await client.get(NAMESPACES, "default")
        (tmp_path / "me.crt").write_bytes(expiring(control_plane, CERTIFICATE_LIFE).certificate)
        await client.get(NAMESPACES, "default")
        await client.close()
        await client.get(NAMESPACES, "default")


def refuses_the_first_connection(asked: Asked) -> Reply:
    if asked.connection == 1:
        return answer(401, {"kind": "Status", "code": 401, "reason": "Unauthorized"})
    return answer(200, config_map("a", 1))


async def test_after_a_401_a_request_is_sent_once_more_on_a_new_connection(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x")
    async with scripted(refuses_the_first_connection) as server:
        connection = msgspec.structs.replace(
            server.connection, credentials=TokenFile(tmp_path / "token")
        )
        async with Client(connection) as client:
            await client.patch(CONFIG_MAPS, "a", {}, "n")
        assert [one.connection for one in server.asked] == [1, 2]


async def test_after_a_401_no_connection_is_used_again() -> None:
    """Also when there are no other credentials to try: the old connection may be at fault."""
    async with scripted(refuses_the_first_connection) as server:
        connection = msgspec.structs.replace(
            server.connection, credentials=StaticHeader.bearer("x")
        )
        async with Client(connection) as client:
            with pytest.raises(Unauthorized):
                await client.get(CONFIG_MAPS, "a", "n")
            await client.get(CONFIG_MAPS, "a", "n")
        assert [one.connection for one in server.asked] == [1, 2]


async def test_a_401_behind_another_fault_is_retried_too(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x")
    replies = [answer(429, Retry_After="0"), answer(401), answer(200, config_map("a", 1))]
    async with scripted(lambda _: replies.pop(0)) as server:
        connection = msgspec.structs.replace(
            server.connection, credentials=TokenFile(tmp_path / "token")
        )
        async with Client(connection) as client:
            await client.get(CONFIG_MAPS, "a", "n")
    assert replies == []


async def test_a_401_that_stays_is_retried_once(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x")
    async with scripted(lambda _: answer(401)) as server:
        connection = msgspec.structs.replace(
            server.connection, credentials=TokenFile(tmp_path / "token")
        )
        async with Client(connection) as client:
            with pytest.raises(Unauthorized):
                await client.get(CONFIG_MAPS, "a", "n")
        assert len(server.asked) == 2
