"""A payload of the size of a real one: what is settled costs no request."""

import asyncio
from pathlib import Path

import pytest
from bench.payload import MANIFESTS, generate
from bench.payload_cluster import make_ready
from tests.integration.operators.cluster_version.sync.engine import Engine

from quarterdeck.kube import Client, load_kubeconfig
from quarterdeck.localcluster.definitions import (
    definitions_directory,
    install_definitions,
    load_definitions,
)
from quarterdeck.operators.cluster_version.sync import run_payload
from quarterdeck.payload.filters import included
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.load import load_payload
from quarterdeck.payload.model import KnownRelease
from quarterdeck.payload.observed import SELF_MANAGED, ObservedCluster
from quarterdeck.testing.plugin import NewControlPlane


@pytest.mark.slow
async def test_a_settled_payload_of_900_manifests_makes_no_request(
    new_control_plane: NewControlPlane, tmp_path: Path
) -> None:
    """Counted by the server; each object was written once, and a restarted engine writes nothing.

    Without controllers, so that nobody changes anything; what they would report is reported here.
    """
    (directory := tmp_path / "payload").mkdir()
    generate(directory)
    payload = load_payload(directory, release=KnownRelease(version="1.2.3"), profile=SELF_MANAGED)
    manifests = included(payload.manifests, ObservedCluster())
    assert len(manifests) == MANIFESTS
    plane = new_control_plane(started=False, audit=True)
    await asyncio.to_thread(plane.start, "etcd", "kube-apiserver")
    await asyncio.to_thread(
        install_definitions, plane.requests(), load_definitions(definitions_directory())
    )
    engine = Engine(plane, "scale")
    async with engine.cluster() as cluster, asyncio.timeout(240):
        run = asyncio.create_task(
            run_payload(manifests, Mode.INITIALIZING, cluster, engine.reports.append)
        )
        async with Client(load_kubeconfig(plane.kubeconfig)) as admin:
            await make_ready(admin, manifests)
        assert (await run).completed
        # The answers to our last writes may be ahead of the watch, which then tells them again.
        before = engine.requests()
        for _ in range(5):
            progress = await run_payload(
                manifests, Mode.RECONCILING, cluster, engine.reports.append
            )
            assert progress.completed
        assert engine.requests() == before
    assert len(engine.writes()) == MANIFESTS
    async with engine.cluster() as cluster, asyncio.timeout(120):
        for mode in (Mode.UPDATING, Mode.RECONCILING):
            assert (await run_payload(manifests, mode, cluster, engine.reports.append)).completed
    assert len(engine.writes()) == MANIFESTS
