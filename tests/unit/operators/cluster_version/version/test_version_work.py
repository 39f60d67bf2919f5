"""From a decision to work: mode, manifests, capabilities; and the runner that has it done."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from tests.unit.operators.cluster_version.version.builders import entry

from quarterdeck.api.config_v1 import (
    CapabilitiesSpec,
    CapabilitiesStatus,
    Capability,
    ClusterVersion,
    ClusterVersionSpec,
    ComponentOverride,
    CustomFeatureGates,
    FeatureGateSpec,
)
from quarterdeck.api.meta import ObjectMeta
from quarterdeck.controller import LeadershipLost
from quarterdeck.operators.cluster_version.history import History
from quarterdeck.operators.cluster_version.sync.progress import PayloadProgress
from quarterdeck.operators.cluster_version.version import runner as runners
from quarterdeck.operators.cluster_version.version.capabilities import (
    BASELINES,
    desired_capabilities,
)
from quarterdeck.operators.cluster_version.version.runner import Report, Runner
from quarterdeck.operators.cluster_version.version.work import (
    Work,
    mode_of,
    observed_cluster,
    work_for,
)
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import KnownRelease, Manifest, Payload
from quarterdeck.payload.observed import SELF_MANAGED
from quarterdeck.testing.waiting import eventually_async

INCLUDE = f"include.release.openshift.io/{SELF_MANAGED}"


@pytest.mark.parametrize(
    ("history", "mode"),
    [
        pytest.param((), Mode.INITIALIZING, id="nothing yet"),
        pytest.param((entry("1.0.0", "Partial"),), Mode.INITIALIZING, id="the first is on its way"),
        pytest.param(
            (entry("1.0.1", "Partial", 1), entry("1.0.0", "Partial")),
            Mode.INITIALIZING,
            id="another first one",
        ),
        pytest.param((entry("1.0.0"),), Mode.RECONCILING, id="arrived"),
        pytest.param((entry("1.1.0", "Partial", 1), entry("1.0.0")), Mode.UPDATING, id="an update"),
    ],
)
def test_the_history_says_what_the_cluster_goes_through(history: History, mode: Mode) -> None:
    assert mode_of(history) is mode


def manifest(name: str, **annotations: str) -> Manifest:
    metadata = {"name": name, "namespace": "ns", "annotations": {INCLUDE: "true", **annotations}}
    return Manifest(
        file="x.yaml",
        document=1,
        line=1,
        run_level=10,
        component="x",
        object={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata},
    )


def version(**spec: object) -> ClusterVersion:
    return ClusterVersion(
        metadata=ObjectMeta(name="version"),
        spec=msgspec.structs.replace(ClusterVersionSpec(cluster_id="some-id"), **spec),
    )


def chosen(cluster: ClusterVersion, gates: FeatureGateSpec | None = None) -> list[str]:
    payload = Payload(
        release=KnownRelease(version="1.2.3"),
        manifests=(
            manifest("plain"),
            manifest("not-here", **{"exclude.release.openshift.io/some-id": "true"}),
            manifest("tech", **{"release.openshift.io/feature-set": "TechPreviewNoUpgrade"}),
            manifest("gated", **{"release.openshift.io/feature-gate": "Extra"}),
            manifest("console", **{"capability.openshift.io/name": "Console"}),
        ),
    )
    capabilities = desired_capabilities(cluster.spec.capabilities, None)
    observed = observed_cluster(
        cluster, gates, capabilities.enabled_capabilities, payload, SELF_MANAGED
    )
    work = work_for(payload, "hash", observed, (entry("1.2.3"),))
    assert (work.version, work.mode) == ("1.2.3", Mode.RECONCILING)
    return [one.identity.name for one in work.manifests]


def test_identifier_feature_set_gates_capabilities_and_overrides_choose_manifests() -> None:
    assert chosen(version()) == ["plain", "console"]
    tech = FeatureGateSpec(feature_set="TechPreviewNoUpgrade")
    assert chosen(version(), tech) == ["plain", "tech", "console"]
    by_hand = CustomFeatureGates(enabled=("Extra",))
    custom = FeatureGateSpec(feature_set="CustomNoUpgrade", custom_no_upgrade=by_hand)
    assert chosen(version(), custom) == ["plain", "gated", "console"]
    assert chosen(version(), FeatureGateSpec(custom_no_upgrade=by_hand)) == ["plain", "console"]
    none = CapabilitiesSpec(baseline_capability_set="None")
    assert chosen(version(capabilities=none)) == ["plain"]
    mine = ComponentOverride(
        kind="ConfigMap", group="", namespace="ns", name="plain", unmanaged=True
    )
    assert chosen(version(overrides=(mine,))) == ["console"]


def test_capabilities_are_the_baseline_what_is_added_and_what_ever_was() -> None:
    every = tuple(sorted(capability.value for capability in Capability))
    assert desired_capabilities(None, None).enabled_capabilities == every
    assert desired_capabilities(None, None).known_capabilities == every
    some = CapabilitiesSpec(
        baseline_capability_set="None", additional_enabled_capabilities=("Ingress",)
    )
    assert desired_capabilities(some, None).enabled_capabilities == ("Ingress",)
    had = CapabilitiesStatus(enabled_capabilities=("Console",))
    assert desired_capabilities(some, had).enabled_capabilities == ("Console", "Ingress")
    assert BASELINES["v4.11"] < BASELINES["v4.12"] <= BASELINES["vCurrent"] == set(every)


def work(mode: Mode, number: str = "1.0.0", *manifests: Manifest) -> Work:
    return Work(version=number, version_hash="h", mode=mode, manifests=manifests)


class FakeEngine:
    """Does nothing but say what it was told; a run ends when it is let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.cancelled: list[str] = []
        self.go_on = asyncio.Event()
        self.report: Report | None = None
        self.error: Exception | None = None

    async def run(self, work: Work, report: Report) -> PayloadProgress:
        await self._do(work, report)
        return PayloadProgress(mode=work.mode, done=1, total=1, run_level="")

    async def keep(self, work: Work, report: Report) -> None:
        await self._do(work, report)

    async def _do(self, work: Work, report: Report) -> None:
        self.begun.append(f"{work.mode.value} {work.version}")
        self.report = report
        if self.error is not None:
            raise self.error
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled.append(work.version)
            raise


@asynccontextmanager
async def running() -> AsyncIterator[tuple[Runner, FakeEngine, list[None]]]:
    woken: list[None] = []
    runner, engine = Runner(lambda: woken.append(None)), FakeEngine()
    task = asyncio.create_task(runner.run(engine))
    try:
        yield runner, engine, woken
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_work_runs_once_and_the_end_wakes() -> None:
    async with running() as (runner, engine, woken):
        runner.want(work(Mode.UPDATING))
        runner.want(work(Mode.UPDATING))
        await eventually_async(lambda: engine.begun, "work begins", 30)
        engine.go_on.set()
        await eventually_async(
            lambda: runner.progress and runner.progress.completed and woken, "the end wakes", 30
        )
        runner.want(work(Mode.UPDATING))
        assert engine.begun == ["updating 1.0.0"]
        runner.want(work(Mode.RECONCILING))
        assert runner.progress is None
        await eventually_async(lambda: len(engine.begun) > 1, "other work begins", 30)
        assert engine.begun[1] == "reconciling 1.0.0"


async def test_other_work_takes_the_place_of_what_runs() -> None:
    async with running() as (runner, engine, _):
        runner.want(work(Mode.UPDATING, "1.1.0"))
        await eventually_async(lambda: engine.begun, "work begins", 30)
        runner.want(work(Mode.UPDATING, "1.1.1"))
        await eventually_async(lambda: len(engine.begun) == 2, "the second work begins", 30)
        assert engine.cancelled == ["1.1.0"]
        runner.want(work(Mode.UPDATING, "1.1.1", manifest("new")))
        await eventually_async(lambda: len(engine.begun) == 3, "the third work begins", 30)
        runner.want(None)
        await eventually_async(lambda: len(engine.cancelled) == 3, "all work is cancelled", 30)


async def test_replaced_work_that_still_reports_is_not_heard() -> None:
    """An update counted as completed, by the last report about the release before."""
    async with running() as (runner, engine, woken):
        runner.want(work(Mode.RECONCILING, "1.0.0"))
        await eventually_async(lambda: engine.report, "the engine can report", 30)
        before, engine.report = engine.report, None
        assert before is not None
        update = work(Mode.UPDATING, "1.1.0")
        runner.want(update)
        # Its cancellation takes a few turns of the event loop.
        before(PayloadProgress(mode=Mode.RECONCILING, done=1, total=1, run_level=""))
        assert runner.progress_of(update) is None
        assert not woken
        await eventually_async(lambda: engine.report, "the engine can report", 30)
        assert runner.progress_of(update) is None
        reported = getattr(engine, "report")  # noqa: B009 - mypy believes that it is still None
        own = PayloadProgress(mode=Mode.UPDATING, done=0, total=1, run_level="0000_10")
        reported(own)
        assert runner.progress_of(update) == own
        assert woken


async def test_mere_progress_wakes_once_in_a_while_and_news_at_once() -> None:
    async with running() as (runner, engine, woken):
        runner.want(work(Mode.UPDATING))
        await eventually_async(lambda: engine.report, "the engine can report", 30)
        report = engine.report
        assert report is not None
        for done in range(500):
            report(PayloadProgress(mode=Mode.UPDATING, done=done, total=900, run_level=""))
        assert len(woken) == 1
        await eventually_async(lambda: len(woken) == 2, "woken twice", 30)
        report(PayloadProgress(mode=Mode.UPDATING, done=900, total=900, run_level=""))
        assert len(woken) == 3


async def test_an_engine_that_crashes_is_told_of_and_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runners, "CRASH_PAUSE", 0.01)
    async with running() as (runner, engine, woken):
        engine.error = RuntimeError("boom")
        runner.want(work(Mode.UPDATING))
        await eventually_async(lambda: len(engine.begun) > 1, "other work begins", 30)
        assert woken
        assert runner.progress is not None
        assert "RuntimeError: boom" in runner.progress.faults[0].message


async def test_lost_leadership_ends_the_runner() -> None:
    runner, engine = Runner(lambda: None), FakeEngine()
    engine.error = ExceptionGroup("tasks", [LeadershipLost("too late")])
    runner.want(work(Mode.UPDATING))
    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(runner.run(engine), 30)
