"""The router as a process, and what it routes, for tests on a real API server."""

import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.haproxy_process import request
from tests.http_backend import free_ports

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.localcluster.operators import apply
from quarterdeck.testing.waiting import until

LOOPBACK = "127.0.0.1"


class RouterProcess:
    """A running router: its ports, its log."""

    def __init__(
        self,
        kubeconfig: Path,
        directory: Path,
        *,
        before: Sequence[str] = (),
        flags: Sequence[str] = ("--allow-external-names", "--allow-loopback-backends"),
        **variables: str,
    ) -> None:
        self.http, self.https, self.stats = free_ports(3)
        self._command = [
            *before,
            *(sys.executable, "-m", "quarterdeck", "--verbosity=4", "router"),
            *("--log-format=json", f"--kubeconfig={kubeconfig}", f"--state-dir={directory}"),
            *flags,
        ]
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("POD_")},
            "ROUTER_SERVICE_HTTP_PORT": str(self.http),
            "ROUTER_SERVICE_HTTPS_PORT": str(self.https),
            "STATS_PORT": str(self.stats),
            "RELOAD_INTERVAL": "1s",
            "POD_IP": LOOPBACK,
            **variables,
        }
        self.log = directory / "router.log"
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log
            )

    def get(self, host: str, path: str = "/", *, tls: bool = False) -> tuple[int, str]:
        """Status and text of a request for a host."""
        port = self.https if tls else self.http
        url = f"http{'s' if tls else ''}://{LOOPBACK}:{port}{path}"
        context = ssl.create_default_context() if tls else None
        if context is not None:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        asked = urllib.request.Request(url, headers={"Host": host})  # noqa: S310
        try:
            with urllib.request.urlopen(asked, timeout=30, context=context) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def until(self, host: str, path: str, wanted: tuple[int, str]) -> None:
        """Wait for an answer; of a 503 the text is HAProxy's own."""

        def look() -> tuple[int, str]:
            status, text = self.get(host, path)
            return status, text if status == 200 else ""

        until(look, lambda seen: seen == wanted, f"{wanted} for {host}{path}: {self.log}")

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self.stats}/healthz/ready") as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def metric(self, sample: str) -> float:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self.stats}/metrics") as answer:
            for line in answer.read().decode().splitlines():
                name, _, value = line.rpartition(" ")
                if name == sample:
                    return float(value)
        return 0.0

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            finally:
                self.process.kill()


class Shop:
    """A namespace with Services for the backends."""

    def __init__(self, plane: ControlPlane, namespace: str, ports: dict[str, int]) -> None:
        self.plane, self.namespace = plane, namespace
        self.apply(*(external(name, port) for name, port in ports.items()))

    def apply(self, *objects: Object) -> None:
        for one in objects:
            one["metadata"]["namespace"] = self.namespace
        apply(self.plane, objects)

    def kubectl(self, *arguments: str) -> str:
        return self.plane.kubectl("--namespace", self.namespace, *arguments).stdout

    def events(self, about: str) -> list[str]:
        found: Any = json.loads(self.kubectl("get", "events", "--output=json"))
        return [one["message"] for one in found["items"] if one["involvedObject"]["name"] == about]


def external(name: str, port: int, target: str = "localhost") -> Object:
    """A Service on this machine."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "type": "ExternalName",
            "externalName": target,
            "ports": [{"name": "http", "port": port}],
        },
    }


def ingress(name: str, host: str, *paths: tuple[str, str, str], **spec: Any) -> Object:
    """An Ingress of these paths: path, type, Service."""
    found = [
        {
            "path": path,
            "pathType": kind,
            "backend": {"service": {"name": service, "port": {"name": "http"}}},
        }
        for path, kind, service in paths
    ]
    rules = [{"host": host, "http": {"paths": found}}] if found else []
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name},
        "spec": {"rules": rules, **spec},
    }


def servers(directory: Path) -> dict[str, str]:
    """The operational state of each address in the newest worker of a router: 2 is ready."""
    sockets = sorted(directory.glob("admin-*.sock"), key=lambda it: it.stat().st_mtime)
    if not sockets:
        return {}
    said = request(sockets[-1], "show servers state\n").decode()
    rows = [line.split() for line in said.splitlines()[2:] if line.strip()]
    return {row[4]: row[5] for row in rows}
