"""An admission webhook that denies writes to one operator, with a code of the test's choice."""

import json
import re
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.integration.operators.staleness.board import USER

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.certificates import certificate_path, key_path

REASONS = {404: "NotFound", 409: "Conflict", 410: "Gone"}


def review(request: Object) -> Object:
    """The answer: the checker may not write to `webhook-CODE`, and is refused with that code."""
    named = re.fullmatch(r"webhook-(\d+)", request["name"])
    if named is None or request["userInfo"]["username"] != USER:
        return {"uid": request["uid"], "allowed": True}
    code = int(named[1])
    status = {"code": code, "reason": REASONS[code], "message": "hands off"}
    return {"uid": request["uid"], "allowed": False, "status": status}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(asked | {"response": review(asked["request"])}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log nothing."""


def configuration(plane: ControlPlane, port: int) -> Object:
    """What tells the API server to ask the webhook about each write to a status."""
    authority = certificate_path(plane.layout.pki, "ca").read_bytes()
    rule = {
        "apiGroups": ["config.openshift.io"],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["clusteroperators/status"],
    }
    client = {
        "url": f"https://127.0.0.1:{port}/",
        "caBundle": b64encode(authority).decode(),
    }
    webhook = {
        "name": "hands-off.example.com",
        "rules": [rule],
        "clientConfig": client,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hands-off"},
        "webhooks": [webhook],
    }


@contextmanager
def denying(plane: ControlPlane) -> Iterator[None]:
    """Serve the webhook while this lasts."""
    pki = plane.layout.pki
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate_path(pki, "kube-apiserver"), key_path(pki, "kube-apiserver"))
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        made = json.dumps(configuration(plane, server.server_address[1]))
        plane.kubectl("apply", "--filename=-", input=made)
        try:
            yield
        finally:
            plane.kubectl("delete", "--filename=-", input=made)
            server.shutdown()
            thread.join()
