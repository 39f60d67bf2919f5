"""`python -m bench.ingress`: many IngressControllers, beside a bare client that writes the same.

A control plane of its own without controllers, so that nobody but the subject writes. In turns, the
operator and a bare client settle as many new IngressControllers. The bare client has the bodies
ready and makes the same writes, as many at once as the operator has workers: a finalizer, a
Deployment, a ConfigMap, a Service, an IngressClass and a status for each. Then every
IngressController is changed without effect, and the operator must write nothing. Writes are counted
in the API server's audit log, CPU by the kernel.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.goals import at_least, at_most
from bench.node import cpu_seconds
from bench.report import report
from bench.results import Column, Measurement, Row
from quarterdeck.api.meta import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    INGRESS_CLASSES,
    SERVICES,
    Object,
    Resource,
)
from quarterdeck.api.operator_v1 import INGRESS_CONTROLLERS, IngressController
from quarterdeck.kube import Cache, Client, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.operators.ingress.admission import ADMITTED
from quarterdeck.operators.ingress.controller import FINALIZER, WORKERS
from quarterdeck.operators.ingress.observed import Observed
from quarterdeck.operators.ingress.operands import desired_config_map, desired_operands
from quarterdeck.operators.ingress.settings import Settings
from quarterdeck.operators.ingress.status import desired_status
from quarterdeck.testing.audit import writes_by
from quarterdeck.testing.operator_process import OperatorProcess, own_account
from quarterdeck.testing.waiting import eventually

HOME = "openshift-ingress-operator"
USER = f"system:serviceaccount:{HOME}:ingress-operator"
EACH = 6
"""The writes that one IngressController needs."""
OURS, BARE = "quarterdeck", "bare client"


class Figures(msgspec.Struct, frozen=True):
    """What one subject took in one round."""

    seconds: float
    cpu: float
    memory: float
    """In MB."""
    writes: int


def main() -> None:
    """Measure, show and write; with `--bare`, be the bare client."""
    parser = argparse.ArgumentParser(prog="python -m bench.ingress", description=__doc__)
    parser.add_argument("--controllers", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bare", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.bare:
        asyncio.run(_write_bare(Path(args.bare[0]), args.bare[1], args.controllers))
        return
    rounds: dict[str, list[Figures]] = {OURS: [], BARE: []}
    idle = 0
    with (
        tempfile.TemporaryDirectory(prefix="bench-ingress-") as directory,
        _plane(Path(directory)) as plane,
    ):
        account = own_account(plane, "ingress")
        for number in range(args.rounds):
            asyncio.run(_create(plane, f"bare-{number}", args.controllers))
            rounds[BARE].append(_bare(plane, account, f"bare-{number}", args.controllers))
            asyncio.run(_remove(plane))
            asyncio.run(_create(plane, f"ours-{number}", args.controllers))
            found, more = _ours(plane, account, Path(directory), f"ours-{number}", args.controllers)
            rounds[OURS].append(found)
            idle += more
            asyncio.run(_remove(plane))
    _report(rounds, idle, args)


@contextmanager
def _plane(directory: Path) -> Iterator[ControlPlane]:
    binaries = ensure_binaries(BinarySettings.from_environment(os.environ))
    plane = ControlPlane(directory / "state", binaries, durable=False, audit=True)
    try:
        plane.start("etcd", "kube-apiserver")
        install_own_definitions(plane.requests())
        yield plane
    finally:
        plane.close()


def _controller(name: str) -> Object:
    access = {"destination": {"type": "Container", "container": {"maxLength": 1024}}}
    return {
        "apiVersion": INGRESS_CONTROLLERS.api_version,
        "kind": INGRESS_CONTROLLERS.kind,
        "metadata": {"name": name, "namespace": HOME},
        "spec": {"replicas": 1, "logging": {"access": access}},
    }


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number:04}" for number in range(count)]


async def _for_all(
    plane: ControlPlane, names: list[str], work: Callable[[Client, str], Awaitable[None]]
) -> None:
    turn = asyncio.Semaphore(WORKERS)

    async def one(client: Client, name: str) -> None:
        async with turn:
            await work(client, name)

    access = load_kubeconfig(str(plane.kubeconfig))
    async with Client(access) as client, asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(one(client, name))


async def _create(plane: ControlPlane, prefix: str, count: int) -> None:
    async def work(client: Client, name: str) -> None:
        await client.create(INGRESS_CONTROLLERS.plain, _controller(name), field_manager="admin")

    await _for_all(plane, _names(prefix, count), work)


async def _touch(plane: ControlPlane, prefix: str, count: int) -> None:
    async def work(client: Client, name: str) -> None:
        mark = {"metadata": {"annotations": {"example.test/touched": "yes"}}}
        await client.patch(INGRESS_CONTROLLERS.plain, name, mark, HOME)

    await _for_all(plane, _names(prefix, count), work)


async def _remove(plane: ControlPlane) -> None:
    """Remove all objects, so that each subject begins with the same cluster."""
    doomed: dict[str, tuple[Resource[Object], str]] = {}
    async with Client(load_kubeconfig(str(plane.kubeconfig))) as client:
        for resource in (DEPLOYMENTS, CONFIG_MAPS, SERVICES, INGRESS_CLASSES):
            for one in (await client.list(resource)).items:
                meta = one["metadata"]
                if meta["name"].startswith(("router-", "rsyslog-conf-", "quarterdeck-")):
                    name = f"{resource.kind}/{meta['name']}"
                    doomed[name] = resource, meta.get("namespace", "")
        for found in (await client.list(INGRESS_CONTROLLERS.plain)).items:
            name = f"{INGRESS_CONTROLLERS.kind}/{found['metadata']['name']}"
            doomed[name] = INGRESS_CONTROLLERS.plain, HOME

    async def work(client: Client, name: str) -> None:
        resource, namespace = doomed[name]
        _, _, own = name.partition("/")
        if resource.kind == INGRESS_CONTROLLERS.kind:
            none = {"metadata": {"finalizers": None}}
            await client.patch(resource, own, none, namespace)
        await client.delete(resource, own, namespace)

    await _for_all(plane, list(doomed), work)


async def _settled(plane: ControlPlane, prefix: str, count: int) -> None:
    """Wait until every IngressController of a prefix has a status, with one watch."""
    async with Client(load_kubeconfig(str(plane.kubeconfig))) as client:
        cache = Cache(client, INGRESS_CONTROLLERS)
        following = asyncio.create_task(cache.run())
        await cache.wait_synced()
        while sum(_is_done(one, prefix) for one in cache.list()) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


def _is_done(one: IngressController, prefix: str) -> bool:
    observed = one.status.observed_generation == one.metadata.generation
    return observed and one.metadata.name.startswith(prefix)


def _writes(plane: ControlPlane) -> int:
    about = [it for it in writes_by(plane.audit_log, USER) if "clusteroperators" not in it.resource]
    return len(about)


def _ours(
    plane: ControlPlane, account: Path, directory: Path, prefix: str, count: int
) -> tuple[Figures, int]:
    """The operator's figures, and what it writes when nothing has changed."""
    before, began = _writes(plane), time.monotonic()
    options = ["--operator=ingress", f"--kubeconfig={account}"]
    operator = OperatorProcess(options, directory / f"{prefix}.log")
    try:
        operator.logged("controller started")
        began, cpu = time.monotonic(), cpu_seconds(operator.pid)
        asyncio.run(_settled(plane, prefix, count))
        seconds = time.monotonic() - began
        used = cpu_seconds(operator.pid) - cpu
        memory = _megabytes(str(operator.pid))
        made = _writes(plane) - before
        done = _reconciles(operator)
        asyncio.run(_touch(plane, prefix, count))
        eventually(lambda: _reconciles(operator) >= done + count, "reconciled again")
        more = _writes(plane) - before - made
    finally:
        operator.kill()
    return Figures(seconds, used, memory, made), more


def _reconciles(operator: OperatorProcess) -> float:
    """The reconciles of IngressControllers that have ended."""
    sample = 'controller_runtime_reconcile_total{{controller="ingress-controller",result="{}"}}'
    kinds = ("success", "error", "requeue_after")
    return sum(operator.metric(sample.format(kind)) for kind in kinds)


def _bare(plane: ControlPlane, account: Path, prefix: str, count: int) -> Figures:
    """The bare client's figures, in a process of its own like the operator."""
    before = _writes(plane)
    command = [sys.executable, "-m", "bench.ingress", "--bare", str(account), prefix]
    client = subprocess.Popen([*command, f"--controllers={count}"], stdout=subprocess.PIPE)
    # As for the operator: the watch takes time of the same machine.
    asyncio.run(_settled(plane, prefix, count))
    answer, _ = client.communicate()
    told = json.loads(answer)
    return Figures(told["seconds"], told["cpu"], told["memory"], _writes(plane) - before)


async def _write_bare(kubeconfig: Path, prefix: str, count: int) -> None:
    """Make the writes, and print what they took."""
    bodies = [_bodies(name) for name in _names(prefix, count)]
    turn = asyncio.Semaphore(WORKERS)
    async with Client(load_kubeconfig(str(kubeconfig))) as client:

        async def one(body: "Bodies") -> None:
            async with turn:
                await _write_one(client, body)

        began, cpu = time.monotonic(), time.process_time()
        async with asyncio.TaskGroup() as tasks:
            for body in bodies:
                tasks.create_task(one(body))
        told = {
            "seconds": time.monotonic() - began,
            "cpu": time.process_time() - cpu,
            "memory": _megabytes("self"),
        }
    print(json.dumps(told))


class Bodies(msgspec.Struct, frozen=True):
    """The bodies of the writes for one IngressController."""

    name: str
    controller: IngressController
    created: list[tuple[Resource[Object], Object]]
    config_maps: dict[str, Object]
    """Their data; the reference to their owner is known when it exists."""
    status: Object


def _bodies(name: str) -> Bodies:
    controller = msgspec.convert(_controller(name), IngressController)
    wanted = desired_operands(controller, Settings())
    assert wanted.service is not None
    created = [
        (DEPLOYMENTS, _whole(DEPLOYMENTS, wanted.deployment)),
        (SERVICES, _whole(SERVICES, wanted.service)),
        (INGRESS_CLASSES, _whole(INGRESS_CLASSES, wanted.ingress_class)),
    ]
    seen = Observed(controller=controller, admission=ADMITTED)
    status = desired_status(seen, Settings(), datetime.now(UTC)).status
    # A new object has the generation 1; `_settled` waits for it.
    written = {"status": msgspec.to_builtins(status) | {"observedGeneration": 1}}
    return Bodies(name, controller, created, wanted.config_maps, written)


def _whole(resource: Resource[Object], body: Object) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}


async def _write_one(client: Client, body: Bodies) -> None:
    resource, manager = INGRESS_CONTROLLERS.plain, "quarterdeck-ingress"
    finalizers = {"metadata": {"finalizers": [FINALIZER]}}
    await client.patch(resource, body.name, finalizers, HOME, field_manager=manager)
    (_, deployment), *others = body.created
    made = await client.create(DEPLOYMENTS, deployment, field_manager=manager)
    for name, data in body.config_maps.items():
        config_map = desired_config_map(body.controller, made, name, data)
        await client.create(CONFIG_MAPS, _whole(CONFIG_MAPS, config_map), field_manager=manager)
    for kind, obj in others:
        await client.create(kind, obj, field_manager=manager)
    await client.patch(
        resource, body.name, body.status, HOME, subresource="status", field_manager=manager
    )


def _megabytes(process: str) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _median(rounds: list[Figures], figure: str) -> float:
    found: list[float] = [getattr(one, figure) for one in rounds]
    return statistics.median(found)


def _report(rounds: dict[str, list[Figures]], idle: int, args: argparse.Namespace) -> None:
    rows = [
        Row(
            subject=subject,
            figures={
                "seconds": _median(found, "seconds"),
                "rate": args.controllers / _median(found, "seconds"),
                "cpu": _median(found, "cpu"),
                "memory": _median(found, "memory"),
                "writes": _median(found, "writes") / args.controllers,
            },
        )
        for subject, found in rounds.items()
    ]
    share = _median(rounds[BARE], "seconds") / _median(rounds[OURS], "seconds")
    writes = _median(rounds[OURS], "writes") / args.controllers
    found = Measurement(
        name="ingress",
        title=f"{args.controllers:,} IngressControllers, median of {args.rounds} rounds",
        columns=[
            Column(figure="seconds", title="time", format=".2f", unit=" s"),
            Column(figure="rate", title="settled a second"),
            Column(figure="cpu", title="CPU", format=".2f", unit=" s"),
            Column(figure="memory", title="memory", unit=" MB"),
            Column(figure="writes", title="writes each", format=".2f"),
        ],
        rows=rows,
        verdicts=[
            at_least("settled a second, against a bare client", 0.8, share),
            at_least("writes for each IngressController", EACH, writes, "writes"),
            at_most("writes for each IngressController", EACH, writes, "writes"),
            at_most("writes when nothing has changed", 0, idle, "writes"),
        ],
    )
    report("ingress", [found])


if __name__ == "__main__":
    main()
