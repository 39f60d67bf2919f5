"""What Prometheus gets when it scrapes a running cluster version operator."""

import re

from tests.integration.operators.cluster_version.version.releases import (
    Cluster,
    Releases,
    config_map,
    deployment,
)
from tests.places import DOCS

from quarterdeck.testing.operator_process import OperatorProcess, StartOperator
from quarterdeck.testing.waiting import eventually

DOCUMENT = DOCS / "monitoring.md"


def scraped(process: OperatorProcess) -> dict[str, float]:
    """The samples of the operator's own metrics, as they are written in the page."""
    lines = process.get("/metrics")[1].splitlines()
    samples = (line.rpartition(" ") for line in lines if line.startswith("cluster_"))
    return {name: float(value) for name, _, value in samples}


def test_an_update_that_is_stuck_as_prometheus_sees_it(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator
) -> None:
    here = cluster.namespace
    releases.write("1.0.0", {"0000_10_first_00.json": config_map("first", here, version="1.0.0")})
    stuck = deployment("pilot", here, simulate="never-ready")
    stuck["spec"]["progressDeadlineSeconds"] = 3
    second = {
        "0000_10_first_00.json": config_map("first", here, version="1.1.0"),
        "0000_20_pilot_10.json": stuck,
        "0000_30_late_00.json": config_map("late", here, version="1.1.0"),
    }
    releases.write("1.1.0", second, ["1.0.0"])
    cvo = run_cvo()
    cluster.wait_release("1.0.0")
    cluster.report("dns", Available=("False", "no pods"), Degraded=("True", "no pods"))

    def sees_operator() -> bool:
        return 'cluster_operator_up{name="dns",reason="Told",version=""}' in scraped(cvo)

    eventually(sees_operator, "the operator in the metrics")
    found = scraped(cvo)
    assert found['cluster_operator_up{name="dns",reason="Told",version=""}'] == 0
    degraded = 'cluster_operator_conditions{condition="Degraded",name="dns",reason="Told"}'
    assert found[degraded] == 1
    assert found['cluster_version_payload{type="applied",version="1.0.0"}'] == 1
    assert found['cluster_version_payload{type="pending",version="1.0.0"}'] == 0
    assert found['cluster_version_available_updates{channel="",upstream="<default>"}'] == 1
    assert not any('type="updating"' in sample for sample in found)

    cluster.ask(version="1.1.0")
    failing = cluster.wait_condition("Failing", "True", "Deployment.apps")
    found = scraped(cvo)
    reason = f'condition="Failing",name="version",reason="{failing["reason"]}"'
    assert found[f"cluster_operator_conditions{{{reason}}}"] == 1
    assert found['cluster_version_payload{type="applied",version="1.1.0"}'] == 1
    assert found['cluster_version_payload{type="pending",version="1.1.0"}'] == 2
    roles = {
        type_: (version, came_from)
        for sample in found
        for came_from, type_, version in re.findall(
            r'^cluster_version{from_version="(.*?)",image=".*?",type="(.*?)",version="(.*?)"}',
            sample,
        )
    }
    update = ("1.1.0", "1.0.0")
    assert roles == {
        "current": update,
        "updating": update,
        "failure": update,
        "cluster": update,
        "completed": ("1.0.0", ""),
        "initial": ("1.0.0", ""),
    }
    text, _, _ = DOCUMENT.read_text().partition("The staleness checker:")
    documented = {
        name: sorted(labels.split(", "))
        for name, labels in re.findall(r"^\| `(cluster_\w+){(.*?)}` \|", text, re.MULTILINE)
    }
    labels = {name.partition("{")[0]: sorted(re.findall(r'(\w+)="', name)) for name in found}
    assert labels == documented
    assert all(f'`type="{role}"`' in text for role in roles)
    times = {re.findall('type="(.*?)"', name)[0]: found[name] for name in found if "image=" in name}
    assert [role for role, value in times.items() if not value] == ["current"]
    assert times["initial"] == times["cluster"]


def test_a_replica_that_does_not_lead_says_nothing(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator
) -> None:
    manifest = config_map("first", cluster.namespace, version="1.0.0")
    releases.write("1.0.0", {"0000_10_first_00.json": manifest})
    elected = ("1.0.0", "--leader-elect", f"--lease-namespace={cluster.namespace}")
    leader = run_cvo(*elected)
    cluster.wait_release("1.0.0")
    standby = run_cvo(*elected)
    standby.logged("standing by")
    assert scraped(leader)
    assert not scraped(standby)
