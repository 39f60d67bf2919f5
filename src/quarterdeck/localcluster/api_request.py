"""Single requests to the cluster's components, for readiness checks and the first objects.

It is small on purpose: no retries, and no more than one connection that is kept. Operators use
`quarterdeck.kube`.
"""

import http.client
import json
import ssl
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.localcluster.certificates import certificate_path, key_path
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.ports import LOOPBACK

FIELD_MANAGER = "quarterdeck-local"


class ComponentResponse(msgspec.Struct, frozen=True):
    """A component's response to a request."""

    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The object in the body."""
        return json.loads(self.body)


class Requests:
    """Requests to one port, on loopback if no host is given, with one client certificate.

    The connection of a GET is kept for the next one: a new one costs more than the request.
    """

    def __init__(
        self, port: int, pki: Path, *, user: str, authority: str = "ca", host: str = LOOPBACK
    ) -> None:
        self._port = port
        self._host = host
        self._tls = ssl.create_default_context(cafile=str(certificate_path(pki, authority)))
        self._tls.load_cert_chain(certificate_path(pki, user), key_path(pki, user))
        self._kept: http.client.HTTPSConnection | None = None
        self._idle: list[http.client.HTTPSConnection] = []
        weakref.finalize(self, _close, self._idle)

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Use one connection inside the block: a new one takes longer than a request."""
        self._kept = self._connection(timeout=10)
        try:
            yield
        finally:
            self._kept.close()
            self._kept = None

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        *,
        accept: str = "application/json",
        timeout: float = 10,
    ) -> ComponentResponse:
        """Send one request, and return its response; OSError if nobody answers."""
        headers = {"Content-Type": content_type, "Accept": accept}
        request = (method, path, body, headers)
        if method == "GET" and self._kept is None:
            with suppress(IndexError, ConnectionError, ssl.SSLError):
                # If the server has closed it meanwhile, a new one is used.
                return self._exchange(self._idle.pop(), request, timeout)
        return self._exchange(self._kept or self._connection(timeout), request, timeout)

    def _exchange(
        self,
        connection: http.client.HTTPSConnection,
        request: tuple[str, str, bytes | None, dict[str, str]],
        timeout: float,
    ) -> ComponentResponse:
        reusable = False
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.request(*request)
            response = connection.getresponse()
            answer = ComponentResponse(response.status, response.read())
            reusable = request[0] == "GET" and not response.will_close and not self._idle
            return answer
        except http.client.HTTPException as error:
            raise ConnectionError(f"broken answer from port {self._port}: {error!r}") from error
        finally:
            if connection is not self._kept:
                if reusable:
                    self._idle.append(connection)
                else:
                    connection.close()

    def _connection(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self._host, self._port, context=self._tls, timeout=timeout
        )

    def ready(self, path: str, says: bytes = b"") -> bool:
        """Whether the component answers that it is ready; `says` must be in the body."""
        try:
            answer = self.send("GET", path, timeout=2)
        except OSError:
            return False
        return answer.ok and says in answer.body

    def apply(self, path: str, manifest: dict[str, Any]) -> None:
        """Apply a manifest by server-side apply."""
        name = manifest["metadata"]["name"]
        address = f"{path}/{name}?fieldManager={FIELD_MANAGER}&force=true"
        answer = self.send(
            "PATCH", address, json.dumps(manifest).encode(), "application/apply-patch+yaml"
        )
        if not answer.ok:
            raise LocalClusterError(
                f"the API server refused {manifest['kind']} {name}: {_message(answer)}"
            )


def _close(connections: list[http.client.HTTPSConnection]) -> None:
    for connection in connections:
        connection.close()


def _message(answer: ComponentResponse) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, LookupError, TypeError):
        return f"HTTP {answer.status}"
