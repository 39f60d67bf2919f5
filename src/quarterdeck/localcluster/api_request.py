"""Single requests to the cluster's components, for readiness checks and the first objects.

It is small on purpose: one connection for one or several requests, and no retries. Operators use
`quarterdeck.kube`.
"""

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
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
    """Requests to one port, on loopback if no host is given, with one client certificate."""

    def __init__(
        self, port: int, pki: Path, *, user: str, authority: str = "ca", host: str = LOOPBACK
    ) -> None:
        self._port = port
        self._host = host
        self._tls = ssl.create_default_context(cafile=str(certificate_path(pki, authority)))
        self._tls.load_cert_chain(certificate_path(pki, user), key_path(pki, user))
        self._kept: http.client.HTTPSConnection | None = None

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
        connection = self._kept or self._connection(timeout)
        try:
            headers = {"Content-Type": content_type, "Accept": accept}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return ComponentResponse(response.status, response.read())
        except http.client.HTTPException as error:
            raise ConnectionError(f"broken answer from port {self._port}: {error!r}") from error
        finally:
            if connection is not self._kept:
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


def _message(answer: ComponentResponse) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, LookupError, TypeError):
        return f"HTTP {answer.status}"
