"""A console in a thread of the test process, in front of a real API server, and its users."""

import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.cli.console_sources import sources
from quarterdeck.console.app import serving
from quarterdeck.console.settings import Settings
from quarterdeck.console.state import Console
from quarterdeck.kube import Connection, load_kubeconfig
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.testing.loop_thread import LoopThread

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class ConsoleServer:
    """A console that serves; its methods are for the test's thread."""

    def __init__(self, loop: LoopThread, console: Console, port: int, scheme: str) -> None:
        self.loop = loop
        self.console = console
        self.url = f"{scheme}://localhost:{port}"
        self.port = port

    def link(self) -> str:
        """A new one-time link, for the administrator."""

        async def make() -> str:
            return self.console.links.make(self.console.clock())

        return f"{self.url}/link/{self.loop.call(make())}"

    def watches(self) -> int:
        """How many watches run, for all accounts."""

        async def count() -> int:
            return sum(one.watches() for one in self.console.accounts.values())

        return self.loop.call(count())


@contextmanager
def console_server(
    server: Path | Connection, ssl_context: Any = None, **settings: Any
) -> Iterator[ConsoleServer]:
    """A running console, in front of the API server of a kubeconfig or of a connection."""
    loop = LoopThread("console")
    loop.start()
    stack = AsyncExitStack()

    async def start() -> tuple[Console, int]:
        connection = server if isinstance(server, Connection) else None
        connection = connection or load_kubeconfig(str(server), None, {})
        console = Console(
            Settings(**{"port": 0, "cluster": "local", **settings}), connection, sources()
        )
        _, port = await stack.enter_async_context(serving(console, ssl_context))
        return console, port

    try:
        console, port = loop.call(start())
        yield ConsoleServer(loop, console, port, "https" if ssl_context else "http")
    finally:
        loop.call(stack.aclose())
        loop.stop()


def send(requests: Requests, method: str, path: str, body: Object | None = None) -> Any:
    """The answer to a request of the administrator, which must succeed or find it done already."""
    content = "application/merge-patch+json" if method == "PATCH" else "application/json"
    data = json.dumps(body).encode() if body is not None else b""
    answer = requests.send(method, path, data, content)
    if not answer.ok and answer.status != 409:
        raise AssertionError(f"{method} {path}: {answer.body.decode(errors='replace')}")
    return answer.json() if answer.ok else None


def user_token(requests: Requests, name: str, *rules: Object, namespace: str = "default") -> str:
    """A token of a ServiceAccount with these rights in the whole cluster."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    send(requests, "POST", accounts, {"metadata": {"name": name}})
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    role = {"metadata": {"name": f"console-{name}"}, "rules": list(rules)}
    send(requests, "POST", f"{rbac}/clusterroles", role)
    binding = {
        "metadata": {"name": f"console-{name}"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": f"console-{name}",
        },
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    send(requests, "POST", f"{rbac}/clusterrolebindings", binding)
    answer = send(requests, "POST", f"{accounts}/{name}/token", {"spec": {}})
    token: str = answer["status"]["token"]
    return token


def put_with_status(requests: Requests, path: str, obj: Object) -> None:
    """Create an object, or find it, and set its status."""
    send(requests, "POST", path, {key: value for key, value in obj.items() if key != "status"})
    at = f"{path}/{obj['metadata']['name']}/status"
    # Not a merge patch: it would drop the fields that are null.
    patch = json.dumps([{"op": "add", "path": "/status", "value": obj["status"]}]).encode()
    answer = requests.send("PATCH", at, patch, "application/json-patch+json")
    assert answer.ok, answer.body.decode(errors="replace")


READ_ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
