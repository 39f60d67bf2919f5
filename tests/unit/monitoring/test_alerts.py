"""The alert rules that are delivered, checked and played through by promtool."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from quarterdeck.operators.cluster_version.version.metrics import Seen, VersionCollector
from quarterdeck.operators.staleness.gauges import Gauges

DELIVERED = Path(__file__).parents[3] / "deploy" / "monitoring"
RULES = ["cluster-version", "staleness"]

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
    assert sorted(path.stem for path in DELIVERED.glob("*.yaml")) == RULES


@needs_promtool
def test_the_rules_are_sound(rules: Path) -> None:
    promtool(rules, "check", "rules", "rules.yaml")


@needs_promtool
def test_the_alerts_come_and_go_as_they_should(rules: Path) -> None:
    promtool(rules, "test", "rules", "test.yaml")


def test_the_rules_of_staleness_ask_for_metrics_that_there_are() -> None:
    registry = CollectorRegistry()
    Gauges(registry)
    served = {family.name for family in registry.collect()}
    text = (DELIVERED / "staleness.yaml").read_text()
    assert served == {
        "cluster_operator_stale",
        "cluster_operator_last_proven_alive_timestamp_seconds",
    }
    assert all(name in text for name in served)


def test_the_rules_of_the_cluster_version_ask_for_metrics_that_there_are() -> None:
    served = {family.name for family in VersionCollector(lambda: Seen(version=None)).collect()}
    text = (DELIVERED / "cluster-version.yaml").read_text()
    asked = {"cluster_version", "cluster_operator_up", "cluster_operator_conditions"}
    assert asked <= served
    assert all(f"{name}{{" in text or f"{name})" in text for name in asked)
