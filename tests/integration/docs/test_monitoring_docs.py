"""docs/monitoring.md: its commands, and its metrics and the dashboard in a real Prometheus.

The cluster is the document's own, with all operators from their Deployments.
"""

import json
import re
import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.documents import Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DEPLOY, DOCS
from tests.prometheus_process import Prometheus, prometheus, targets_of

from quarterdeck.api.meta import Object
from quarterdeck.testing.waiting import eventually

pytestmark = [
    pytest.mark.slow,
    needs_bubblewrap,
    pytest.mark.skipif(
        shutil.which("prometheus") is None,
        reason="Prometheus is missing; Debian's package prometheus has it",
    ),
]

TEXT = (DOCS / "monitoring.md").read_text()
DASHBOARD = json.loads((DEPLOY / "monitoring" / "files" / "dashboard.json").read_text())


def documented() -> set[str]:
    """The metrics in the document's tables."""
    rows = re.findall(r"^\| (`[a-z_{}, `]+`) \|", TEXT, re.MULTILINE)
    return {re.sub("{.*", "", name) for row in rows for name in re.findall("`([^`]+)`", row)}


def queries() -> list[str]:
    """The dashboard's queries, with an interval in place of Grafana's."""
    found = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return [expr.replace("$__rate_interval", "1m") for expr in found]


def targets(shell: Shell) -> list[Object]:
    """What discovery finds in the document's cluster."""
    asked = "quarterdeck local kubectl get pods --all-namespaces --output json"
    return targets_of(json.loads(shell.succeed(asked).stdout)["items"])


def check_metrics(monitoring: Prometheus) -> None:
    """Every documented metric is there, and every query of the dashboard has a series."""
    names = {f"count({name})" for name in documented()}
    assert len(names) > 30

    def missing() -> list[str]:
        return [expr for expr in sorted({*names, *queries()}) if not monitoring.query(expr)]

    try:
        eventually(lambda: not missing(), "every query has a series")
    except AssertionError as error:
        raise AssertionError(f"without a series: {missing()}") from error
    # No pod is scraped twice, or a sum would be wrong.
    assert not monitoring.query("count by (namespace, pod) (up) > 1")


def check(command: str, done: CompletedProcess[str], shell: Shell, directory: Path) -> None:
    if "get pods" in command and command.startswith("quarterdeck"):
        for name in ("cluster-version-operator", "ingress-operator", "staleness"):
            assert name in done.stdout
        with prometheus(directory / "prometheus", targets(shell)) as monitoring:
            check_metrics(monitoring)
    if command.startswith("curl"):
        assert "controller_runtime_reconcile_total{" in done.stdout


def test_the_document(newcomer: Shell, tmp_path: Path) -> None:
    for command, _ in commands(TEXT):
        check(command, newcomer.succeed(command), newcomer, tmp_path)
