"""The probe server, on loopback."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from quarterdeck.api.meta import Key
from quarterdeck.controller.metrics import BOUNDS, ControllerFigures, Histogram, Metrics
from quarterdeck.controller.probes import ProbeAddressError, Probes, parse_address
from quarterdeck.controller.queue import Queue


@asynccontextmanager
async def serve_probes(
    address: str, readiness: Callable[[], Mapping[str, str]], registry: CollectorRegistry
) -> AsyncIterator[str]:
    async with Probes(address) as probes:
        yield await probes.serve(readiness, registry)


async def fetch(address: str, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{address}{path}") as answer,
    ):
        return answer.status, await answer.text()


async def test_readiness_names_each_operator_and_what_it_waits_for() -> None:
    metrics = Metrics(lambda: 0.0)
    troubles = {"one": "", "two": "waiting for notes"}
    async with serve_probes("127.0.0.1:0", lambda: troubles, metrics.registry) as address:
        assert await fetch(address, "/healthz") == (200, "ok\n")
        assert await fetch(address, "/readyz") == (
            503,
            "[+]one\n[-]two: waiting for notes\nnot ready\n",
        )
        troubles["two"] = ""
        assert await fetch(address, "/readyz") == (200, "[+]one\n[+]two\nready\n")


async def test_metrics_have_the_names_that_dashboards_know() -> None:
    now = 10.0
    queue = Queue(clock=lambda: now)
    metrics = Metrics(lambda: now)
    figures = ControllerFigures("note", 4, queue)
    metrics.controllers.add(figures)
    metrics.leaders.watch("lease", lambda: 1.0)
    key = Key("ns", "a")
    queue.add(key)
    now += 0.02
    queue.take()
    figures.results["success"] += 1
    now += 2
    async with serve_probes("127.0.0.1:0", dict, metrics.registry) as address:
        _, page = await fetch(address, "/metrics")
    samples = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    labels = 'controller="note",name="note"'
    assert (
        samples['controller_runtime_reconcile_total{controller="note",result="success"}'] == "1.0"
    )
    assert samples['controller_runtime_active_workers{controller="note"}'] == "1.0"
    assert samples[f"workqueue_adds_total{{{labels}}}"] == "1.0"
    assert samples[f"workqueue_depth{{{labels}}}"] == "0.0"
    bucket = "workqueue_queue_duration_seconds_bucket"
    assert samples[f'{bucket}{{controller="note",le="0.01",name="note"}}'] == "0.0"
    assert samples[f'{bucket}{{controller="note",le="0.025",name="note"}}'] == "1.0"
    assert samples[f"workqueue_longest_running_processor_seconds{{{labels}}}"] == "2.0"
    assert samples['leader_election_master_status{name="lease"}'] == "1.0"
    assert "process_resident_memory_bytes" in samples


def test_a_histogram_counts_each_duration_in_all_buckets_above_it() -> None:
    times = Histogram()
    for seconds in (0.0, BOUNDS[0], 1000.0):
        times.observe(seconds)
    first, *_, last = times.buckets()
    assert [first, last] == [(str(BOUNDS[0]), 2.0), ("+Inf", 3.0)]
    assert times.total == 1000.001


@pytest.mark.parametrize(
    ("address", "parsed"),
    [
        pytest.param("127.0.0.1:8081", ("127.0.0.1", 8081), id="host and port"),
        pytest.param("[::1]:8081", ("::1", 8081), id="an IPv6 address in brackets"),
        pytest.param(":8081", ("", 8081), id="no host is every interface"),
    ],
)
def test_an_address_is_read(address: str, parsed: tuple[str, int]) -> None:
    assert parse_address(address) == parsed


@pytest.mark.parametrize("address", ["", "localhost", "x:y", "127.0.0.1:65536"])
def test_a_bad_address_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(ProbeAddressError, match=r"an example is 127\.0\.0\.1:8081"):
        parse_address(address)


async def test_an_address_that_is_taken_is_named() -> None:
    registry = Metrics(lambda: 0.0).registry
    async with serve_probes("127.0.0.1:0", dict, registry) as address:
        with pytest.raises(ProbeAddressError, match=rf"probe address {address}"):
            async with serve_probes(address, dict, registry):
                pass


async def test_a_bound_address_is_taken_before_it_is_served() -> None:
    """A process that cannot have its address ends before it has imported a server for it."""
    async with Probes("127.0.0.1:0") as first:
        address = await first.serve(dict, Metrics(lambda: 0.0).registry)
        with pytest.raises(ProbeAddressError, match="in use"):
            await Probes(address).__aenter__()
        assert await fetch(address, "/healthz") == (200, "ok\n")


def test_a_process_imports_its_server_and_its_renderer_after_it_has_asked_for_its_objects() -> None:
    heavy = ["aiohttp", "prometheus_client", "rich", "structlog", "yaml"]
    code = f"import sys, quarterdeck.controller; print([n for n in {heavy} if n in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
