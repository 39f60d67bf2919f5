"""The alert rules that are delivered, checked and played through by promtool."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry
from tests.places import DEPLOY

from quarterdeck.api.meta import Object
from quarterdeck.delivery.alerts import Alert, alerts
from quarterdeck.delivery.declaration import Declaration
from quarterdeck.delivery.registry import installed
from quarterdeck.operators.cluster_version.version.metrics import MetricsInput, VersionCollector
from quarterdeck.operators.staleness.gauges import Gauges
from quarterdeck.operators.staleness.settings import Settings

DELIVERED = DEPLOY / "monitoring"
OURS = [one for one in installed().of("quarterdeck") if one.delivery]

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is missing; Debian's package prometheus has it",
)


def promtool(directory: Path, *words: str) -> None:
    done = subprocess.run(
        ["promtool", *words], cwd=directory, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def delivered(declared: Declaration) -> Object:
    """The rules of an operator, as Prometheus reads them."""
    manifest: Object = yaml.safe_load((DELIVERED / f"{declared.name}.yaml").read_text())
    assert manifest["kind"] == "PrometheusRule"
    spec: Object = manifest["spec"]
    return spec


def expected(alert: Alert, declared: Declaration, **labels: str) -> Object:
    """An alert as promtool compares it."""
    told = {"summary": alert.summary, "description": alert.description}
    for name, value in labels.items():
        told = {
            kind: text.replace(f"{{{{ $labels.{name} }}}}", value) for kind, text in told.items()
        }
    own = {"severity": alert.severity, "operator": declared.name}
    return {"exp_labels": own | labels, "exp_annotations": told}


def look(minute: int, alert: str, *fires: Object) -> Object:
    return {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": list(fires)}


def leader_test(declared: Declaration, alert: Alert) -> Object:
    """Two replicas: one takes over from the other within minutes, then none leads, then none is."""
    series = "leader_election_master_status"
    lease = f'namespace="{declared.namespace}", name="{declared.account}"'
    other = f'namespace="elsewhere", name="{declared.account}"'
    return {
        "name": "leader",
        "interval": "1m",
        "input_series": [
            {"series": f'{series}{{{lease}, pod="a"}}', "values": "1x10 0x50 _x40"},
            {"series": f'{series}{{{lease}, pod="b"}}', "values": "0x15 1x20 0x25 _x40"},
            {"series": f'{series}{{{other}, pod="c"}}', "values": "1x100"},
        ],
        "alert_rule_test": [
            look(9, alert.name),
            look(15, alert.name),
            look(35, alert.name),
            look(50, alert.name, expected(alert, declared)),
            look(90, alert.name, expected(alert, declared)),
        ],
    }


def errors_test(declared: Declaration, alert: Alert) -> Object:
    """A controller that fails once, one that keeps failing, and one of another program."""
    series = "controller_runtime_reconcile_errors_total"
    place = f'namespace="{declared.namespace}"'
    pod = f'pod="{declared.account or declared.name}-x"'
    return {
        "name": "errors",
        "interval": "1m",
        "input_series": [
            {"series": f'{series}{{{place}, {pod}, controller="once"}}', "values": "0x5 1x95"},
            {
                # It fails every five minutes, and recovers.
                "series": f'{series}{{{place}, {pod}, controller="failing"}}',
                "values": " ".join(f"{count}x4" for count in range(12)) + " 12x40",
            },
            {
                "series": f'{series}{{{place}, pod="foreign-x", controller="theirs"}}',
                "values": "0+1x100",
            },
        ],
        "alert_rule_test": [
            look(29, alert.name),
            look(45, alert.name, expected(alert, declared, controller="failing")),
            look(95, alert.name),
        ],
    }


def certificate_test(declared: Declaration, alert: Alert) -> Object:
    """Two pods: of one the next certificate comes late, of the other in time."""
    place = f'namespace="{declared.namespace}"'
    renewal, ends = (
        f"client_certificate_{what}_timestamp_seconds" for what in ("renewal", "expiration")
    )
    late, early = (f'{place}, pod="{declared.name}-{one}"' for one in ("late", "early"))
    fires = expected(alert, declared, pod=f"{declared.name}-late")
    fires["exp_labels"]["namespace"] = declared.namespace
    return {
        "name": "certificate",
        "interval": "1m",
        # From 600 s to 4200 s there is time; a third of it is over after 30 minutes.
        "input_series": [
            {"series": f"{renewal}{{{late}}}", "values": "600x50 7800x50"},
            {"series": f"{ends}{{{late}}}", "values": "4200x50 11400x50"},
            {"series": f"{renewal}{{{early}}}", "values": "600x15 7800x85"},
            {"series": f"{ends}{{{early}}}", "values": "4200x15 11400x85"},
        ],
        "alert_rule_test": [
            look(30, alert.name),
            look(40, alert.name, fires),
            look(60, alert.name),
        ],
    }


GENERAL = {
    "ClientCertificateNotRenewed": certificate_test,
    "OperatorReconcileErrors": errors_test,
    "OperatorWithoutLeader": leader_test,
}


def plays(declared: Declaration) -> list[Object]:
    """What promtool plays through: of every operator, and of this one."""
    made = [
        GENERAL[alert.name](declared, alert) for alert in alerts(declared) if alert.name in GENERAL
    ]
    own = Path(__file__).with_name(f"{declared.name}.promtool.yaml")
    return [*made, *(yaml.safe_load(own.read_text())["tests"] if own.exists() else [])]


@pytest.fixture(params=OURS, ids=lambda one: one.name)
def rules(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory with the delivered rules of an operator, as Prometheus reads them."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(delivered(request.param)))
    played: dict[str, Any] = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": plays(request.param),
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(played))
    return tmp_path


@pytest.mark.parametrize("declared", OURS, ids=lambda one: one.name)
def test_every_alert_is_shown_to_come_and_not_to_come(declared: Declaration) -> None:
    looks = [one for play in plays(declared) for one in play.get("alert_rule_test", [])]
    comes = {one["alertname"] for one in looks if one["exp_alerts"]}
    stays_away = {one["alertname"] for one in looks if not one["exp_alerts"]}
    (group,) = delivered(declared)["groups"]
    assert {rule["alert"] for rule in group["rules"]} == comes == stays_away


def test_what_can_be_asked_about_is_there() -> None:
    names = {alert.name for declared in OURS for alert in alerts(declared)}
    assert names >= {
        "ClusterOperatorStale",
        "ClusterOperatorDegraded",
        "ClusterOperatorDown",
        "AccessLogLoss",
        "OperatorWithoutLeader",
        "OperatorReconcileErrors",
        "ClusterUpdateStuck",
    }


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


@pytest.mark.parametrize("field", ["name", "expr", "summary", "description"])
@pytest.mark.parametrize("bad", ["", "two\nlines"])
def test_an_alert_that_nobody_can_read_is_refused(field: str, bad: str) -> None:
    good = {"name": "Down", "expr": "up == 0", "summary": "It is down.", "description": "Start it."}
    with pytest.raises(ValueError, match=rf"alerts\.{field}"):
        Alert(**good | {field: bad})  # type: ignore[arg-type] # a severity has another type
