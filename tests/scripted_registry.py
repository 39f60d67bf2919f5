"""A registry, and an update service, that misbehave as a test says; on loopback, with TLS."""

import contextlib
import hashlib
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from tests.registry_process import Tls

from quarterdeck.oci.layers import Image
from quarterdeck.oci.model import MANIFEST


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    authorization: str


class Handler(BaseHTTPRequestHandler):
    """One request: what the script says, or else what is stored."""

    protocol_version = "HTTP/1.1"
    owner: "ScriptedRegistry"

    def do_GET(self) -> None:
        path = self.path
        self.owner.asked.append(Asked(self.command, path, self.headers.get("Authorization", "")))
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            for part, script in list(self.owner.scripts.items()):
                if part in path:
                    script(self)
                    return
            stored = self.owner.stored.get(path.partition("?")[0])
            if stored is None:
                self.reply(404, b"{}")
            else:
                self.reply(200, stored[1], **{"Content-Type": stored[0]})

    do_HEAD = do_POST = do_GET  # noqa: N815 - the names that the base class looks up

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", headers.pop("Content-Length", str(len(body))))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


Script = Callable[[Handler], None]


class ScriptedRegistry:
    """What it stores, what it does instead, and what it was asked."""

    def __init__(self, tls: Tls, *, encrypted: bool = True) -> None:
        self.tls = tls
        self.stored: dict[str, tuple[str, bytes]] = {}
        self.scripts: dict[str, Script] = {}
        """By a part of the path: what happens in place of the answer."""
        self.asked: list[Asked] = []
        self.ended = threading.Event()
        handler = type("ScriptedHandler", (Handler,), {"owner": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        if encrypted:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.certificate, tls.key)
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )

    def quiet(self, seconds: float) -> None:
        """Say nothing for so long, or until `ended` is set."""
        self.ended.wait(seconds)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_port}"

    def put(self, name: str, image: Image, tag: str = "") -> str:
        """Store an image; return its reference by digest."""
        for digest, data in image.blobs.items():
            content = data if isinstance(data, bytes) else data.read_bytes()
            self.stored[f"/v2/{name}/blobs/{digest}"] = ("application/octet-stream", content)
        digest = image.descriptor.digest
        manifest = self.stored[f"/v2/{name}/blobs/{digest}"][1]
        for reference in (digest, tag) if tag else (digest,):
            self.stored[f"/v2/{name}/manifests/{reference}"] = (MANIFEST, manifest)
        return f"{self.address}/{name}@{digest}"

    def put_manifest(self, name: str, data: bytes, tag: str = "") -> str:
        """Store any bytes as a manifest; return its reference by digest."""
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        for reference in (digest, tag) if tag else (digest,):
            self.stored[f"/v2/{name}/manifests/{reference}"] = (MANIFEST, data)
        return f"{self.address}/{name}@{digest}"


@contextlib.contextmanager
def scripted_registry(tls: Tls, *, encrypted: bool = True) -> Iterator[ScriptedRegistry]:
    """A registry that answers while the context lasts."""
    one = ScriptedRegistry(tls, encrypted=encrypted)
    thread = threading.Thread(target=one.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield one
    finally:
        one.ended.set()
        one.server.shutdown()
        one.server.server_close()
        thread.join()
