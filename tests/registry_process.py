"""A real registry for tests: Debian's docker-registry on loopback, with TLS and a password."""

import asyncio
import contextlib
import json
import socket
import subprocess
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

from quarterdeck.localcluster.certificates import certificate_path, key_path, make_certificates
from quarterdeck.testing.waiting import eventually, eventually_async
from quarterdeck.web import Web

USER, PASSWORD = "operator", "black-pearl"
# The registry reads only bcrypt, which the standard library does not write.
HTPASSWD = f"{USER}:$2b$04$Eqq4RFUg/srbbbDFEwnhGuvABjA0LfUwEnZhvXfp3d/kc7kQ2dVmG\n"


class Tls:
    """A certificate for loopback, its key, and the authority that signed it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        make_certificates(directory)
        self.ca = certificate_path(directory, "ca")
        self.certificate = certificate_path(directory, "kube-apiserver")
        self.key = key_path(directory, "kube-apiserver")


@contextlib.asynccontextmanager
async def web_client(tls: Tls | None, **limits: float) -> AsyncIterator[Web]:
    """A client that trusts the authority; at its end no connection is left in the loop."""
    async with Web(ca_file=str(tls.ca) if tls else "", **limits) as web:
        yield web
    loop = cast("Any", asyncio.get_running_loop())

    def closed() -> bool:
        # One is the loop's own.
        return len(loop._selector.get_map()) <= 1

    await eventually_async(closed, "all connections closed")


def pull_secret(directory: Path, registry: str, password: str = PASSWORD) -> Path:
    """A pull secret for a registry, as a file."""
    auth = b64encode(f"{USER}:{password}".encode()).decode()
    file = directory / "pull-secret.json"
    file.write_text(json.dumps({"auths": {registry: {"auth": auth}}}))
    return file


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class RunningRegistry:
    """A registry that runs."""

    def __init__(self, address: str, tls: Tls, secret: Path) -> None:
        self.address = address
        self.tls = tls
        self.secret = secret

    @property
    def options(self) -> tuple[str, ...]:
        """The options with which the operator reaches it."""
        return f"--pull-secret={self.secret}", f"--registry-ca={self.tls.ca}"


@contextlib.contextmanager
def running_registry(directory: Path, port: int = 0) -> Iterator[RunningRegistry]:
    """A registry whose data and certificates are in the directory; it answers."""
    tls = Tls(directory / "pki")
    (directory / "htpasswd").write_text(HTPASSWD)
    address = f"127.0.0.1:{port or free_port()}"
    config = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(directory / "data")}},
        "http": {
            "addr": address,
            "tls": {"certificate": str(tls.certificate), "key": str(tls.key)},
        },
        "auth": {"htpasswd": {"realm": "tests", "path": str(directory / "htpasswd")}},
    }
    file = directory / "registry.json"
    file.write_text(json.dumps(config))
    with (directory / "registry.log").open("ab") as log:
        process = subprocess.Popen(
            ["docker-registry", "serve", str(file)],
            stdout=log,
            stderr=log,
            env={"PATH": "/usr/bin", "OTEL_TRACES_EXPORTER": "none"},
        )
    try:
        eventually(lambda: listens(address) or process.poll() is not None, "the registry listens")
        assert process.poll() is None, (directory / "registry.log").read_text()
        yield RunningRegistry(address, tls, pull_secret(directory, address))
    finally:
        process.terminate()
        process.wait()


def listens(address: str) -> bool:
    host, _, port = address.partition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=5):
        return True
    return False
