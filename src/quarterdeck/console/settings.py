"""The settings of the console, read once at its start."""

from pathlib import Path

import msgspec

LOOPBACK = "127.0.0.1"
PORT = 8443


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the console is reached, and what it can read."""

    address: str = LOOPBACK
    port: int = PORT
    """0 for a free port."""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    host_names: frozenset[str] = frozenset()
    """Names by which browsers reach the console, besides those of this machine."""
    behind_tls: bool = False
    """Whether every request comes through a proxy that ends TLS and sets X-Forwarded-Proto."""
    cluster: str = ""
    """The name of the cluster, for people."""
    releases: Path | None = None
    """The directory of releases, for the run-level graph."""

    @property
    def tls(self) -> bool:
        """Whether the console itself ends TLS."""
        return self.tls_certificate is not None
