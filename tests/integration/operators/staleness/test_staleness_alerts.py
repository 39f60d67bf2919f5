"""The delivered alerts and scrape configuration, in a real Prometheus that scrapes two checkers."""

import shutil
import time
from pathlib import Path

import pytest
import yaml
from tests.integration.operators.staleness.board import USER, Board
from tests.places import DEPLOY
from tests.prometheus_process import (
    Alert,
    Prometheus,
    discovered,
    prometheus,
    staleness_rules,
)

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.fault_proxy import Answer, FaultProxy
from quarterdeck.testing.operator_process import OperatorProcess, OwnOperators
from quarterdeck.testing.waiting import eventually, until

OPTIONS = ("--interval=1s", "--grace=0s", "--watch-grace-period=5")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("prometheus") is None,
        reason="Prometheus is missing; Debian's package prometheus has it",
    ),
]


def target(name: str, process: OperatorProcess) -> Object:
    """The delivered static pod under another name, as Prometheus finds it, served by a process."""
    pod = yaml.safe_load((DEPLOY / "staleness" / "static-pod.yaml").read_text())
    pod["metadata"]["name"] = name
    return discovered(pod, "probes", process.logged("serving probes and metrics")["address"])


def stale(running: Prometheus, operator: str) -> dict[str, str]:
    """What each checker's pod says of an operator; nothing from one that shows none."""
    found = running.query(f'cluster_operator_stale{{name="{operator}"}}')
    return {one["metric"]["pod"]: one["value"][1] for one in found}


def wait_fresh(running: Prometheus) -> float:
    """When both checkers were scraped and no alert was there; nobody has made an operator yet."""
    both = 'count(staleness_checker_last_look_timestamp_seconds{namespace="kube-system"}) == 2'
    eventually(lambda: running.query(both) != [], "both checkers are scraped")
    wait_alerts(running)
    return time.time()


def wait_alerts(running: Prometheus, *wanted: Alert) -> None:
    """Return when these alerts are there, and no others."""
    until(running.alerts, lambda seen: seen == sorted(wanted), f"the alerts {wanted}")


def blind(proxy: FaultProxy) -> None:
    """Cut the watch of the checker behind the proxy, and let it read no operators from now on."""
    for verb in ("get", "list", "watch"):
        refusal = Answer(403, reason="Forbidden")
        proxy.inject(refusal, verb=verb, resource="clusteroperators", times=None)
    proxy.cut_now()


def test_one_of_two_checkers_is_blinded(
    plane: ControlPlane, own_operators: OwnOperators, tmp_path: Path
) -> None:
    """It is named, keeps no alert of an operator that has recovered, and hides no new one."""
    board = Board(plane)
    start = own_operators(plane, "staleness", *OPTIONS)
    with FaultProxy(plane.kubeconfig_for(USER)) as proxy:
        sees = start()
        blinded = start(f"--kubeconfig={proxy.write_kubeconfig(tmp_path / 'proxied')}")
        targets = [target("sees", sees), target("blinded", blinded)]
        with prometheus(tmp_path / "prometheus", targets, staleness_rules()) as monitoring:
            healthy = wait_fresh(monitoring)
            board.create("dead")
            told = ("ClusterOperatorStale", "firing", "dead")
            wait_alerts(monitoring, told)
            both = {"sees": "1", "blinded": "1"}
            until(lambda: stale(monitoring, "dead"), lambda seen: seen == both, "both say so")

            blind(proxy)
            board.create("late")
            also = ("ClusterOperatorStale", "firing", "late")
            named = ("StalenessCheckerBlind", "firing", "blinded")
            wait_alerts(monitoring, told, also, named)
            assert stale(monitoring, "dead") == stale(monitoring, "late") == {"sees": "1"}
            with board.alive("dead"):
                wait_alerts(monitoring, also, named)
            down = 'ALERTS{alertname="StalenessCheckerDown", alertstate="firing"}'
            since = time.time() - healthy
            assert not monitoring.query(f"count_over_time({down}[{since:.0f}s])")
