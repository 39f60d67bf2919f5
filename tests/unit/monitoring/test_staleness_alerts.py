"""The alert rules of the staleness checker, checked and played through by promtool."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from quarterdeck.operators.staleness.gauges import Gauges

DELIVERED = Path(__file__).parents[3] / "deploy" / "monitoring" / "staleness.yaml"
TESTS = Path(__file__).with_name("staleness.promtool.yaml")

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is missing; Debian's package prometheus has it",
)


def promtool(directory: Path, *words: str) -> None:
    done = subprocess.run(
        ["promtool", *words], cwd=directory, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A directory with the delivered rules, as Prometheus reads them."""
    manifest = yaml.safe_load(DELIVERED.read_text())
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(manifest["spec"]))
    shutil.copy(TESTS, tmp_path)
    return tmp_path


@needs_promtool
def test_the_rules_are_sound(rules: Path) -> None:
    promtool(rules, "check", "rules", "rules.yaml")


@needs_promtool
def test_the_alerts_come_and_go_as_they_should(rules: Path) -> None:
    promtool(rules, "test", "rules", TESTS.name)


def test_the_rules_ask_for_metrics_that_there_are() -> None:
    from prometheus_client import CollectorRegistry

    registry = CollectorRegistry()
    Gauges(registry)
    served = {family.name for family in registry.collect()}
    text = DELIVERED.read_text()
    assert served == {
        "cluster_operator_stale",
        "cluster_operator_last_proven_alive_timestamp_seconds",
    }
    assert all(name in text for name in served)
