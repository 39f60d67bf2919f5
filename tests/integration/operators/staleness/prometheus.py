"""A Prometheus on loopback, configured by the files that are delivered."""

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from tests.places import DEPLOY

from quarterdeck.api.meta import Object
from quarterdeck.testing.waiting import eventually

DELIVERED = DEPLOY / "monitoring"
Alert = tuple[str, str, str]
"""Its name, its state (pending or firing), and the operator or checker that it names."""


class Prometheus:
    """What a running Prometheus answers."""

    def __init__(self, address: str) -> None:
        self._address = address

    def is_ready(self) -> bool:
        """Whether it answers queries; it listens before it does."""
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=60):
                return True
        except urllib.error.HTTPError:
            return False

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
        url = f"http://{self._address}/api/v1/{page}?{urllib.parse.urlencode(asked)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            data: dict[str, Any] = json.load(answer)["data"]
            return data


SHORTER = {"> 120": "> 8", "<= 120": "<= 8", "for: 15m": "for: 5s", "for: 5m": "for: 1s"}
"""What is read for the durations in the rules, so that a test need not wait for minutes."""


def _rules() -> str:
    """The delivered rules, as Prometheus reads them, with shorter durations."""
    text = (DELIVERED / "staleness.yaml").read_text()
    for long, short in SHORTER.items():
        assert long in text, long
        text = text.replace(long, short)
    return yaml.safe_dump(yaml.safe_load(text)["spec"])


def discovered(pod: Object, address: str) -> Object:
    """The target that discovery in a cluster makes of a running pod, with its one port."""
    (container,) = pod["spec"]["containers"]
    (port,) = container["ports"]
    found = {
        "namespace": pod["metadata"]["namespace"],
        "pod_name": pod["metadata"]["name"],
        "pod_phase": "Running",
        "pod_container_port_name": port["name"],
    }
    labels = {f"__meta_kubernetes_{name}": value for name, value in found.items()}
    return {"targets": [address], "labels": labels}


def _configuration(targets: Sequence[Object]) -> str:
    """The delivered scrape configuration, each second and for targets that are found already.

    Debian builds Prometheus without the discovery in a cluster; what comes after that is kept.
    """
    made = yaml.safe_load((DELIVERED / "prometheus.yaml").read_text())
    (job,) = made["scrape_configs"]
    job["scrape_interval"] = "1s"
    del job["kubernetes_sd_configs"]
    job["static_configs"] = list(targets)
    made["global"] = {"evaluation_interval": "1s"}
    made["rule_files"] = ["rules.yaml"]
    return yaml.safe_dump(made)


@contextmanager
def prometheus(directory: Path, targets: Sequence[Object]) -> Iterator[Prometheus]:
    """Run Prometheus with the delivered files and these targets; killed at the end."""
    directory.mkdir()
    (directory / "rules.yaml").write_text(_rules())
    (directory / "prometheus.yaml").write_text(_configuration(targets))
    log = directory / "prometheus.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [
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
        running = Prometheus(eventually(address, "Prometheus listens"))
        eventually(running.is_ready, "Prometheus is ready")
        yield running
    finally:
        process.kill()
        process.wait()
