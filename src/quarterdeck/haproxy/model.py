"""The values that a router's configuration is made of. Pure."""

import msgspec

from quarterdeck.haproxy.access_log import AccessLog

NO_ROUTE = "no_route"
"""The backend that answers 503: for hosts and paths that nobody serves."""


class Endpoint(msgspec.Struct, frozen=True, order=True):
    """An address that serves a backend: an IP address and a port."""

    address: str
    port: int

    def __str__(self) -> str:
        """As in haproxy.cfg."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"


class Backend(msgspec.Struct, frozen=True):
    """A backend with its server slots; None is a slot that is free.

    Free slots let endpoints come and go without a reload.
    """

    name: str
    slots: tuple[Endpoint | None, ...] = ()


class Certificate(msgspec.Struct, frozen=True):
    """A certificate with its key, and the server names for which it is used.

    Without server names HAProxy takes those in the certificate.
    """

    name: str
    """The file's name, below the directory of certificates."""
    pem: str
    server_names: tuple[str, ...] = ()


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the files of a configuration say."""

    http_bind: str
    https_bind: str
    sockets: str
    """The directory of the sockets: an absolute path."""
    access_log: AccessLog | None = None
    default_certificate: str
    """The PEM of the certificate for server names that have none."""
    default_names: tuple[str, ...] = ()
    """Server names that get it though a wildcard of another certificate matches them."""
    certificates: tuple[Certificate, ...] = ()
    exact_paths: tuple[tuple[str, str], ...] = ()
    """`host/path` and the name of the backend; `*` as host stands for every host."""
    path_prefixes: tuple[tuple[str, str], ...] = ()
    """`host/prefix/` and the name of the backend: a prefix ends in `/`."""
    backends: tuple[Backend, ...] = ()
