"""What Prometheus is told of a release and of cluster operators."""

from datetime import datetime

import msgspec
from tests.unit.operators.cluster_version.version.builders import START, entry, operator, release

from quarterdeck.api.config_v1 import (
    ClusterStatusCondition,
    ClusterVersion,
    ClusterVersionSpec,
    ClusterVersionStatus,
    OperandVersion,
    Update,
    UpdateHistory,
)
from quarterdeck.api.meta import ObjectMeta
from quarterdeck.operators.cluster_version.sync.progress import PayloadProgress
from quarterdeck.operators.cluster_version.version.metrics import (
    MetricsInput,
    VersionCollector,
    metrics,
)
from quarterdeck.payload.graph import Mode


def condition(type_: str, status: str, reason: str = "Told") -> ClusterStatusCondition:
    return ClusterStatusCondition(
        type=type_, status=status, reason=reason, message="", last_transition_time=START
    )


def cluster_version(
    *history: UpdateHistory,
    conditions: tuple[ClusterStatusCondition, ...] = (),
    asked: str = "",
) -> ClusterVersion:
    update = Update(version=asked) if asked else None
    return ClusterVersion(
        metadata=ObjectMeta(name="version", creation_timestamp=START),
        spec=ClusterVersionSpec(cluster_id="x", desired_update=update),
        status=ClusterVersionStatus(
            desired=release("1.1.0"),
            history=history,
            observed_generation=1,
            version_hash="",
            conditions=conditions,
            available_updates=(release("1.2.0"),),
        ),
    )


def samples(seen: MetricsInput, name: str) -> dict[tuple[str, ...], float]:
    """The values of one metric by their labels' values."""
    return {
        tuple(sample.labels.values()): sample.value
        for metric in metrics(seen)
        for sample in metric.samples
        if sample.name == name
    }


def seconds(moment: datetime | None) -> float:
    assert moment is not None
    return moment.timestamp()


NEW, OLD = entry("1.1.0", "Partial", 9), entry("1.0.0", minutes=5)


def test_an_update_under_way() -> None:
    progress = PayloadProgress(mode=Mode.UPDATING, done=3, total=10, run_level="0000_10")
    seen = MetricsInput(version=cluster_version(NEW, OLD), progress=progress)
    new, old = ("1.1.0", NEW.image), ("1.0.0", OLD.image)
    assert samples(seen, "cluster_version") == {
        ("current", *new, "1.0.0"): 0,
        ("updating", *new, "1.0.0"): seconds(NEW.started_time),
        ("completed", *old, ""): seconds(OLD.completion_time),
        ("initial", *old, ""): seconds(START),
        ("cluster", *new, "1.0.0"): seconds(START),
    }
    assert samples(seen, "cluster_version_payload") == {
        ("1.1.0", "applied"): 3,
        ("1.1.0", "pending"): 7,
    }
    assert samples(seen, "cluster_version_available_updates") == {("<default>", ""): 1}


def test_an_installation_comes_from_no_version() -> None:
    found = samples(MetricsInput(version=cluster_version(NEW)), "cluster_version")
    new = ("1.1.0", NEW.image)
    assert found == {
        ("current", *new, ""): 0,
        ("updating", *new, ""): seconds(NEW.started_time),
        ("initial", *new, ""): seconds(START),
        ("cluster", *new, ""): seconds(START),
    }


def test_a_settled_cluster_is_not_updating_and_tells_where_it_came_from() -> None:
    done = entry("1.1.0", minutes=9)
    found = samples(MetricsInput(version=cluster_version(done, OLD)), "cluster_version")
    assert {labels[0] for labels in found} == {"current", "completed", "initial", "cluster"}
    assert ("completed", "1.1.0", done.image, "1.0.0") in found


def test_a_failure_is_that_of_the_release_that_is_asked_for() -> None:
    failing = (condition("Failing", "True"), condition("ReleaseAccepted", "False"))
    seen = MetricsInput(version=cluster_version(OLD, conditions=failing, asked="9.9.9"))
    found = samples(seen, "cluster_version")
    assert found["failure", "9.9.9", "", "1.0.0"] == seconds(START)
    assert found["desired", "9.9.9", "", "1.0.0"] == seconds(OLD.completion_time)


def test_an_update_that_has_begun_is_desired_no_more() -> None:
    failing = (condition("Failing", "True"),)
    seen = MetricsInput(version=cluster_version(NEW, OLD, conditions=failing, asked="1.1.0"))
    found = samples(seen, "cluster_version")
    assert found["failure", "1.1.0", NEW.image, "1.0.0"] == seconds(START)
    assert "desired" not in {labels[0] for labels in found}


def test_conditions_that_are_not_known_are_neither_true_nor_false() -> None:
    stale = msgspec.structs.replace(operator("dns", upgradeable="Unknown", reason="X"))
    seen = MetricsInput(
        version=cluster_version(OLD, conditions=(condition("Failing", "False", "AsExpected"),)),
        operators=(stale, operator("etcd", upgradeable="False", reason="Busy")),
    )
    assert samples(seen, "cluster_operator_conditions") == {
        ("version", "Failing", "AsExpected"): 0,
        ("etcd", "Upgradeable", "Busy"): 0,
    }


def test_only_an_operator_that_says_available_is_up() -> None:
    silent = operator("dns")
    well = msgspec.structs.replace(
        silent,
        metadata=ObjectMeta(name="etcd"),
        status=msgspec.structs.replace(
            silent.status,
            conditions=(condition("Available", "True", "AsExpected"),),
            versions=(OperandVersion(name="operator", version="1.0.0"),),
        ),
    )
    seen = MetricsInput(version=None, operators=(silent, well))
    assert samples(seen, "cluster_operator_up") == {
        ("dns", "", "NoAvailableCondition"): 0,
        ("etcd", "1.0.0", "AsExpected"): 1,
    }


def test_nothing_is_told_while_another_process_leads() -> None:
    assert list(VersionCollector(lambda: None).collect()) == []


def test_a_scrape_computes_nothing_if_nothing_changed() -> None:
    version, dns = cluster_version(NEW, OLD), operator("dns")
    seen = MetricsInput(version=version, operators=(dns,))
    collector = VersionCollector(lambda: seen)
    first = collector.collect()
    seen = MetricsInput(version=version, operators=(dns,))
    assert collector.collect() is first
    for changed in (
        MetricsInput(version=version, operators=(operator("dns"),)),
        MetricsInput(version=version),
        MetricsInput(version=cluster_version(NEW, OLD)),
    ):
        before, seen = collector.collect(), changed
        assert collector.collect() is not before


def test_a_replica_that_leads_no_more_tells_nothing() -> None:
    seen: MetricsInput | None = MetricsInput(version=cluster_version(NEW, OLD))
    collector = VersionCollector(lambda: seen)
    assert collector.collect()
    seen = None
    assert not collector.collect()
