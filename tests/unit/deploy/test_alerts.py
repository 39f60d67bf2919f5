"""The alert rules that are delivered, checked and played through by promtool."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry
from tests.places import DEPLOY

from quarterdeck.delivery.registry import installed
from quarterdeck.operators.cluster_version.version.metrics import MetricsInput, VersionCollector
from quarterdeck.operators.staleness.gauges import Gauges
from quarterdeck.operators.staleness.settings import Settings

DELIVERED = DEPLOY / "monitoring"
RULES = [one.name for one in installed().of("quarterdeck") if one.alerts]

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is missing; Debian's package prometheus has it",
)


def promtool(directory: Path, *words: str) -> None:
    done = subprocess.run(
        ["promtool", *words], cwd=directory, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(params=RULES)
def rules(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory with some delivered rules, as Prometheus reads them, and their test."""
    manifest = yaml.safe_load((DELIVERED / f"{request.param}.yaml").read_text())
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(manifest["spec"]))
    shutil.copy(Path(__file__).with_name(f"{request.param}.promtool.yaml"), tmp_path / "test.yaml")
    return tmp_path


def test_all_rules_are_tested() -> None:
    kinds = {
        path.stem: yaml.safe_load(path.read_text())
        for path in DELIVERED.glob("*.yaml")
        if not path.stem.endswith("-service")  # these are generated
    }
    rules = [name for name, one in kinds.items() if one.get("kind") == "PrometheusRule"]
    assert sorted(rules) == RULES
    assert sorted(kinds.keys() - rules) == ["pod-monitor", "prometheus"]


@needs_promtool
def test_the_rules_are_sound(rules: Path) -> None:
    promtool(rules, "check", "rules", "rules.yaml")


@needs_promtool
def test_the_alerts_come_and_go_as_they_should(rules: Path) -> None:
    promtool(rules, "test", "rules", "test.yaml")


def test_the_rules_of_staleness_ask_for_metrics_that_there_are() -> None:
    registry = CollectorRegistry()
    Gauges(registry, Settings(), lambda: 0.0)
    served = {family.name for family in registry.collect()}
    text = (DELIVERED / "staleness.yaml").read_text()
    assert served >= {
        "cluster_operator_stale",
        "cluster_operator_last_proven_alive_timestamp_seconds",
        "staleness_checker_last_look_timestamp_seconds",
    }
    asked = set(re.findall(r"\b(?:cluster_operator|staleness_checker)_\w+", text))
    assert asked
    assert asked <= served


def test_the_rules_of_the_cluster_version_ask_for_metrics_that_there_are() -> None:
    served = {
        family.name for family in VersionCollector(lambda: MetricsInput(version=None)).collect()
    }
    text = (DELIVERED / "cluster-version.yaml").read_text()
    asked = {"cluster_version", "cluster_operator_up", "cluster_operator_conditions"}
    assert asked <= served
    assert all(f"{name}{{" in text or f"{name})" in text for name in asked)
