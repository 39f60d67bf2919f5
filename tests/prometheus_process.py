"""A Prometheus on loopback, configured by the files that are delivered."""

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from tests.places import DEPLOY

from quarterdeck.api.meta import Object
from quarterdeck.testing.waiting import eventually

DELIVERED = DEPLOY / "monitoring"
ROUTER = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
Alert = tuple[str, str, str]
"""Its name, its state (pending or firing), and the operator or checker that it names."""


def over_http(page: str) -> bytes | None:
    """What is at `HOST:PORT/PATH`; None if the server answers with an error."""
    try:
        with urllib.request.urlopen(f"http://{page}", timeout=60) as answer:
            read: bytes = answer.read()
            return read
    except urllib.error.HTTPError:
        return None


Fetch = Callable[[str], bytes | None]


class Prometheus:
    """What a running Prometheus answers."""

    def __init__(self, address: str, fetch: Fetch = over_http) -> None:
        self._address = address
        self._fetch = fetch

    def is_ready(self) -> bool:
        """Whether it answers queries; it listens before it does."""
        return self._fetch(f"{self._address}/-/ready") is not None

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an expression, now."""
        found: list[dict[str, Any]] = self._get("query", query=expression)["result"]
        return found

    def alerts(self) -> list[Alert]:
        """The alerts that are pending or firing, by an evaluation that began after this call."""
        asked = time.time()
        eventually(lambda: self._evaluated() > asked, "the rules are evaluated")
        found = [(one["labels"], one["state"]) for one in self._get("alerts")["alerts"]]
        return sorted(
            (labels["alertname"], state, labels.get("name", labels.get("pod", "")))
            for labels, state in found
        )

    def _evaluated(self) -> float:
        """When the evaluation that was finished last began; long ago before the first."""
        (group,) = self._get("rules")["groups"]
        return datetime.fromisoformat(group["lastEvaluation"]).timestamp()

    def _get(self, page: str, **asked: str) -> dict[str, Any]:
        whole = f"{self._address}/api/v1/{page}?{urllib.parse.urlencode(asked)}"
        answer = self._fetch(whole)
        assert answer is not None, whole
        data: dict[str, Any] = json.loads(answer)["data"]
        return data


SHORTER = {"> 120": "> 8", "<= 120": "<= 8", "for: 15m": "for: 5s", "for: 5m": "for: 1s"}
"""What is read for the durations in the rules, so that a test need not wait for minutes."""


def staleness_rules(shorter: Mapping[str, str] = SHORTER) -> str:
    """The delivered rules of the checker, as Prometheus reads them, with shorter durations."""
    manifest = yaml.safe_load((DELIVERED / "staleness.yaml").read_text())
    text = yaml.safe_dump(manifest["spec"], width=10_000)
    for long, short in shorter.items():
        assert long in text, long
        text = text.replace(long, short)
    return text


def discovered(pod: Object, port: str, address: str) -> Object:
    """The target that discovery in a cluster makes of a port of a running pod."""
    found = {
        "namespace": pod["metadata"]["namespace"],
        "pod_name": pod["metadata"]["name"],
        "pod_phase": "Running",
        "pod_container_port_name": port,
    }
    for key, value in pod["metadata"].get("labels", {}).items():
        name = re.sub(r"[^a-zA-Z0-9_]", "_", key)
        found |= {f"pod_label_{name}": value, f"pod_labelpresent_{name}": "true"}
    labels = {f"__meta_kubernetes_{name}": value for name, value in found.items()}
    return {"targets": [address], "labels": labels}


def targets_of(pods: Iterable[Object]) -> list[Object]:
    """What discovery finds of these pods: every named port of those that run and are ours."""
    return [
        discovered(pod, port["name"], f"{pod['status']['podIP']}:{port['containerPort']}")
        for pod in pods
        if pod["status"].get("phase") == "Running" and _is_ours(pod["metadata"].get("labels", {}))
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
        if port.get("name")
    ]


def _is_ours(labels: Mapping[str, str]) -> bool:
    """Whether a selector of the delivered configuration matches these labels."""
    return labels.get("app.kubernetes.io/part-of") == "quarterdeck" or ROUTER in labels


def _configuration(targets: Sequence[Object]) -> str:
    """The delivered scrape configuration, each second and for targets that are found already.

    Debian builds Prometheus without the discovery in a cluster; what comes after that is kept.
    """
    made = yaml.safe_load((DELIVERED / "files" / "prometheus.yaml").read_text())
    for job in made["scrape_configs"]:
        job["scrape_interval"] = "1s"
        del job["kubernetes_sd_configs"]
        job["static_configs"] = list(targets)
    made["global"] = {"evaluation_interval": "1s"}
    made["rule_files"] = ["rules.yaml"]
    return yaml.safe_dump(made)


@contextmanager
def prometheus(
    directory: Path,
    targets: Sequence[Object],
    rules: str = "groups: []",
    *,
    prefix: Sequence[str] = (),
    fetch: Fetch = over_http,
) -> Iterator[Prometheus]:
    """Run Prometheus with the delivered configuration and these targets; killed at the end.

    A command before its own can start it in another network, in which `fetch` asks it.
    """
    directory.mkdir()
    (directory / "rules.yaml").write_text(rules)
    (directory / "prometheus.yaml").write_text(_configuration(targets))
    log = directory / "prometheus.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [
                *prefix,
                "prometheus",
                "--config.file=prometheus.yaml",
                "--storage.tsdb.path=data",
                "--web.listen-address=127.0.0.1:0",
            ],
            cwd=directory,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )

    def address() -> str | None:
        assert process.poll() is None, log.read_text()
        told = re.search(r'msg="Listening on" address=(\S+)\n', log.read_text())
        return told[1] if told else None

    try:
        running = Prometheus(eventually(address, "Prometheus listens"), fetch)
        eventually(running.is_ready, "Prometheus is ready")
        yield running
    finally:
        process.kill()
        process.wait()
