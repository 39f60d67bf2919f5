"""Credentials for each request: a fixed token, a token file that rotates, an exec plugin.

The transport calls `Credentials.authorization` before every request for the value of the header,
and `Credentials.rejected` after a 401, which returns whether a retry may succeed. Client
certificates are in the connection's TLS context. A certificate in files that rotate, or from an
exec plugin, is loaded there when it changes, and `renewals` counts the changes: a connection keeps
the certificate that it was opened with, so older connections are not used again.
"""

import asyncio
import base64
import json
import os
import ssl
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from quarterdeck.kube.errors import CredentialsError
from quarterdeck.kube.program import TooMuch, output_of
from quarterdeck.log import get_logger

log = get_logger("kube.auth")

EXEC_TIMEOUT = 60.0
MAX_OUTPUT_BYTES = 1 << 20
"""Bytes that an exec plugin may write; a certificate with its chain and key has some thousand."""
_MAX_ERROR_LENGTH = 300
_EXPIRY_MARGIN = 10.0  # seconds; a token must not expire on its way to the server


class Credentials(Protocol):
    """A source of the Authorization header."""

    async def authorization(self) -> str | None:
        """The value of the header for the next request; None for no header."""

    def rejected(self) -> bool:
        """Note that the server answered 401; whether the next call may give other credentials."""


def renewals(credentials: Credentials) -> int:
    """How many client certificates were loaded since the start; 0 if they are not counted."""
    count: int = getattr(credentials, "renewals", 0)
    return count


class Anonymous:
    """No header: a client certificate identifies us, or nothing does."""

    async def authorization(self) -> str | None:
        """None."""
        return None

    def rejected(self) -> bool:
        """No: there are no other credentials."""
        return False


class StaticHeader:
    """A bearer token, or a user and a password, that never change."""

    def __init__(self, value: str) -> None:
        self._value = value

    @classmethod
    def bearer(cls, token: str) -> "StaticHeader":
        """A fixed bearer token; ValueError if a header cannot contain it."""
        return cls(_bearer(token))

    @classmethod
    def basic(cls, user: str, password: str) -> "StaticHeader":
        """A user and a password."""
        return cls("Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())

    async def authorization(self) -> str | None:
        """The same value every time."""
        return self._value

    def rejected(self) -> bool:
        """No: the value would be the same again."""
        return False


class TokenFile:
    """A token in a file that somebody else rotates; it is read again when the file changes.

    The file is checked before each request (two microseconds), so a rotated token is used from the
    next request on.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._value = ""
        self._told = ""

    async def authorization(self) -> str | None:
        """The token in the file now; the last good one while the file cannot be read."""
        try:
            stat = self._path.stat()
            # The kubelet swaps a symbolic link, an editor writes in place: this detects both.
            seen = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if seen != self._seen:
                self._read(seen)
        except OSError as error:
            self._keep_last(error.strerror or str(error))
        return self._value

    def _read(self, seen: tuple[int, int, int]) -> None:
        token = self._path.read_bytes().decode(errors="replace").strip()
        try:
            if not token:
                raise ValueError("is empty")
            self._value = _bearer(token)
        except ValueError as error:
            self._keep_last(str(error))
        else:
            self._seen, self._told = seen, ""

    def _keep_last(self, why: str) -> None:
        """Go on with the last token, and say so once; without one nothing can be sent."""
        if not self._value:
            raise CredentialsError(f"token file {self._path}: {why}")
        if why != self._told:
            self._told = why
            log.warning(
                "token file unreadable, using the last token", file=str(self._path), why=why
            )

    def rejected(self) -> bool:
        """Yes: the file may have been rotated since the request was sent."""
        self._seen = None
        return True


class CertificateFiles:
    """A client certificate in files that somebody else rotates, beside other credentials."""

    def __init__(
        self, certificate: Path, key: Path, tls: ssl.SSLContext, others: Credentials
    ) -> None:
        self._files = (certificate, key)
        self._tls = tls
        self._others = others
        self._renewed = 0
        self._seen: tuple[tuple[int, int], ...] | None = self._stat()

    @property
    def renewals(self) -> int:
        """How many certificates were loaded since the start."""
        return self._renewed + renewals(self._others)

    @property
    def single_file(self) -> Path | None:
        """The file that has both the certificate and its key; None if there are two files."""
        certificate, key = self._files
        return certificate if certificate == key else None

    def _stat(self) -> tuple[tuple[int, int], ...]:
        return tuple((s.st_ino, s.st_mtime_ns) for s in (file.stat() for file in self._files))

    def _read(self) -> tuple[str, str]:
        certificate = self._files[0].read_text()
        # A single file is read once: it may be replaced between two reads.
        return certificate, "" if self.single_file else self._files[1].read_text()

    async def authorization(self) -> str | None:
        """Load the certificate if it has changed; return the header of the other credentials."""
        try:
            if (seen := self._stat()) != self._seen:
                certificate, key = self._read()
                load_pem_pair(self._tls, certificate, key)
                self._seen = seen
                self._renewed += 1
        except (OSError, ValueError):
            # Perhaps only one of the two files is written yet: the next request checks again.
            log.v(4).info("client certificate unreadable, using the last", file=str(self._files[0]))
        return await self._others.authorization()

    def rejected(self) -> bool:
        """Yes: the files may have been rotated since the request was sent."""
        self._seen = None
        self._others.rejected()
        return True


class ExecSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to run an exec plugin, from the kubeconfig."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None  # sent along when provideClusterInfo is true
    where: str = ""  # file and user, for error messages


class ExecPlugin:
    """Credentials from a program, which runs again when they expire or are rejected."""

    def __init__(
        self,
        settings: ExecSettings,
        tls: ssl.SSLContext | None,
        environ: Mapping[str, str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),  # noqa: TID251 - by which plugins date
    ) -> None:
        self._settings = settings
        self._tls = tls
        self._environ = environ
        self._now = now
        self.renewals = 0
        """How many certificates were loaded since the start."""
        self._fresh_until: datetime | None = None
        self._have = False
        self._value: str | None = None
        self._lock = asyncio.Lock()

    async def authorization(self) -> str | None:
        """The plugin's token; None if it gave a certificate instead."""
        if not self._fresh():
            async with self._lock:
                if not self._fresh():
                    self._use(await self._run())
        return self._value

    def rejected(self) -> bool:
        """Yes: the plugin runs again before the next request."""
        self._have = False
        return True

    def _fresh(self) -> bool:
        if not self._have or self._fresh_until is None:
            return self._have
        return (self._fresh_until - self._now()).total_seconds() > _EXPIRY_MARGIN

    async def _run(self) -> "_ExecStatus":
        s = self._settings
        info = {"apiVersion": s.api_version, "kind": "ExecCredential", "spec": self._spec()}
        env = {**self._environ, **s.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        try:
            found = await output_of(
                [s.command, *s.args], env, timeout=EXEC_TIMEOUT, limit=MAX_OUTPUT_BYTES
            )
        except TimeoutError:
            raise self._error(f"gave no answer in {EXEC_TIMEOUT:.0f} s") from None
        except TooMuch:
            raise self._error(f"wrote more than {MAX_OUTPUT_BYTES} bytes") from None
        except OSError as error:
            hint = f" ({' '.join(s.install_hint.split())})" if s.install_hint else ""
            raise self._error(f"cannot be run: {error.strerror}{hint}") from error
        if found.exit_code:
            lines = found.err.decode(errors="replace").strip().splitlines() or ["no output"]
            raise self._error(f"exit code {found.exit_code}: {lines[-1][:_MAX_ERROR_LENGTH]}")
        return self._parse(found.out)

    def _spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": False}
        if self._settings.cluster is not None:
            spec["cluster"] = dict(self._settings.cluster)
        return spec

    def _parse(self, out: bytes) -> "_ExecStatus":
        try:
            answer = msgspec.json.decode(out, type=_ExecCredential)
        except msgspec.MsgspecError as error:
            raise self._error(f"its answer is not an ExecCredential: {error}") from error
        status = answer.status
        if answer.api_version != self._settings.api_version:
            raise self._error(
                f"answered apiVersion {answer.api_version!r}, "
                f"the kubeconfig says {self._settings.api_version!r}"
            )
        if status is None or not (status.token or status.client_certificate_data):
            raise self._error("its answer has neither token nor client certificate")
        return status

    def _use(self, status: "_ExecStatus") -> None:
        if status.client_certificate_data:
            if self._tls is None:
                raise self._error("gave a client certificate for a server without TLS")
            try:
                load_pem_pair(self._tls, status.client_certificate_data, status.client_key_data)
            except ssl.SSLError as error:
                raise self._error("its certificate and key are not a pair in PEM form") from error
            self.renewals += 1
        try:
            self._value = _bearer(status.token) if status.token else None
        except ValueError as error:
            raise self._error(f"its {error}") from error
        self._fresh_until = status.expiration_timestamp
        self._have = True

    def _error(self, why: str) -> CredentialsError:
        return CredentialsError(
            f"{self._settings.where}exec plugin {self._settings.command}: {why}"
        )


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus | None = None


def _bearer(token: str) -> str:
    token = token.strip()
    if not token.isascii() or not token.isprintable():
        raise ValueError("token has a line break or another character that no header can have")
    return f"Bearer {token}"


def load_pem_pair(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load the certificate into the context; one that does not match its key changes nothing.

    Python reads the pair only from a file, so the call writes one: in memory if the system can do
    that, because a pod may have no writable directory.
    """
    pair = f"{certificate}\n{key}\n".encode()
    # Tried in another context first: one that refuses a pair loses the pair that it had.
    _load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), pair)
    _load(tls, pair)


def _load(tls: ssl.SSLContext, pair: bytes) -> None:
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("quarterdeck"), "wb") as file:
            file.write(pair)
            file.flush()
            tls.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
        return
    handle, name = tempfile.mkstemp(prefix="quarterdeck-", suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pair)
        tls.load_cert_chain(name)
    finally:
        Path(name).unlink()
