"""An update that begins while the release before still reports: only its own progress counts."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.integration.controller.processes import running
from tests.integration.operators.cluster_version.version.releases import (
    Cluster,
    Releases,
    config_map,
    counted,
)
from tests.integration.operators.cluster_version.version.test_version_crashes import DELETE

from quarterdeck.controller import Manager, Operator, Process, ProcessSettings
from quarterdeck.kube import load_kubeconfig
from quarterdeck.operators.cluster_version.controller import setup
from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.operators.cluster_version.sync import Cluster as SyncedCluster
from quarterdeck.operators.cluster_version.sync import PayloadProgress, keep_payload
from quarterdeck.operators.cluster_version.sync.plan import FIELD_MANAGER
from quarterdeck.operators.cluster_version.version import runner as runners
from quarterdeck.operators.cluster_version.version.runner import Report
from quarterdeck.payload.model import Manifest

LATE_REPORTS = 50
"""How often the engine reports after its cancellation."""


async def keep_until_late(
    manifests: Sequence[Manifest], cluster: SyncedCluster, report: Report
) -> None:
    """`keep_payload` that ends late after its cancellation, and reports meanwhile.

    By itself it ends after a few turns of the event loop, at any of which it may report.
    """
    reports: list[PayloadProgress] = []

    def note(progress: PayloadProgress) -> None:
        reports.append(progress)
        report(progress)

    try:
        await keep_payload(manifests, cluster, note)
    finally:
        for _ in range(LATE_REPORTS):
            for latest in reports[-1:]:
                report(latest)
            await asyncio.sleep(0.01)


async def test_the_last_report_about_the_release_before_does_not_complete_an_update(
    cluster: Cluster, releases: Releases, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was found: Completed 1.50.0 with the objects of 1.49.0, after a change of the leader.

    Such an update is applied as a settled release: its Jobs do not run, and nothing is deleted.
    """
    here = cluster.namespace
    for version, before in (("1.0.0", []), ("1.1.0", ["1.0.0"])):
        old = config_map("old", here)
        files = {
            "0000_10_chart_00.json": config_map("chart", here, version=version),
            "0000_20_old_00.json": counted(old, **DELETE) if before else old,
        }
        releases.write(version, files, before)

    def set_up(manager: Manager) -> None:
        setup(manager, Settings(release_version="1.0.0", releases=str(releases.root)))

    operator = Operator(
        name="cluster-version",
        setup=set_up,
        field_manager=FIELD_MANAGER,
        lease_namespace=here,
        lease_name="cluster-version",
    )
    settings = ProcessSettings(identity="test", probe_address="127.0.0.1:0")
    process = Process([operator], load_kubeconfig(kubeconfig), settings)
    monkeypatch.setattr(runners, "keep_payload", keep_until_late)
    async with running(process) as task:
        await asyncio.to_thread(cluster.wait_release, "1.0.0")
        await asyncio.to_thread(cluster.ask, version="1.1.0")
        await asyncio.to_thread(cluster.wait_release, "1.1.0")
        assert not task.done()
        chart = await asyncio.to_thread(cluster.find, "configmap", "chart")
        assert chart["data"] == {"version": "1.1.0"}
        assert await asyncio.to_thread(cluster.find, "configmap", "old") is None
