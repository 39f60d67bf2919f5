"""`python -m bench.staleness`: what the checker costs, with many cluster operators that do nothing.

A cluster of its own with 1,000 ClusterOperators whose operators have nothing to report. First all
of them live: a program of ours puts their messages back when they are asked. Then all are dead:
they are asked once, given up once, and after that nothing is written. Requests are counted in the
API server's audit log, CPU by the kernel. The budget is the document's: two writes for each
operator and interval, the checker's and the operator's together.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import msgspec

from bench.goals import at_most
from bench.node import cpu_seconds
from bench.report import report
from bench.results import Column, Measurement, Row
from quarterdeck.api.meta import Object
from quarterdeck.kube import Cache, Change, Client, Conflict, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries
from quarterdeck.localcluster.definitions import definitions_directory, install_own_definitions
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS
from quarterdeck.status.staleness_marks import is_checking, is_verdict
from quarterdeck.testing.operator_process import OperatorProcess

TYPES = ("Available", "Progressing", "Degraded", "Upgradeable")
USER = "system:quarterdeck:staleness"
OPERATORS = "bench-operators"
BUDGET = 2
AT_ONCE = 16


class Write(msgspec.Struct, frozen=True):
    """One request of the audit log."""

    at: float
    user: str
    verb: str
    resource: str
    name: str
    code: int


class Window(msgspec.Struct, frozen=True):
    """What was used between two moments."""

    began: float
    ended: float
    cpu: float
    memory: float


def main() -> None:
    """Measure, show and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.staleness", description=__doc__)
    parser.add_argument("--operators", type=int, default=1000)
    parser.add_argument("--interval", type=int, default=60, help="seconds")
    parser.add_argument("--rounds", type=int, default=3, help="intervals that are measured")
    parser.add_argument("--checkers", type=int, default=1, help="how many run at once")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="bench-staleness-") as directory,
        _plane(Path(directory)) as plane,
    ):
        asyncio.run(_create(plane, args.operators))
        checkers = [
            _checker(plane, Path(directory), n, args.interval) for n in range(args.checkers)
        ]
        try:
            live, dead, stale = asyncio.run(_play(plane, checkers, args))
        finally:
            for checker in checkers:
                checker.kill()
        log = list(_audit(plane.audit_log))
    rows = [
        _row("all live, idle", log, live, args),
        _row("all dead, being found", log, dead, args),
        _row("all dead, found", log, stale, args),
    ]
    _report(rows, log, args)


@contextmanager
def _plane(directory: Path) -> Iterator[ControlPlane]:
    binaries = ensure_binaries(BinarySettings.from_environment(os.environ))
    with ControlPlane(directory / "state", binaries, durable=False, audit=True) as plane:
        install_own_definitions(plane.requests())
        rights = definitions_directory().parent / "staleness" / "rbac.yaml"
        plane.kubectl("apply", "--server-side", f"--filename={rights}")
        yield plane


def _checker(plane: ControlPlane, directory: Path, number: int, interval: int) -> OperatorProcess:
    access = f"--kubeconfig={plane.kubeconfig_for(USER)}"
    options = ["--operator=staleness", f"--interval={interval}s", "--grace=0s", access]
    checker = OperatorProcess(options, directory / f"checker-{number}.log")
    checker.logged("controller started")
    return checker


def _conditions() -> list[Object]:
    return [
        {
            "type": kind,
            "status": "True" if kind in ("Available", "Upgradeable") else "False",
            "reason": "AsExpected",
            "message": "The operator has nothing to do.",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind in TYPES
    ]


def _client(plane: ControlPlane) -> Client:
    return Client(load_kubeconfig(str(plane.kubeconfig_for(OPERATORS, ["system:masters"]))))


async def _create(plane: ControlPlane, count: int) -> None:
    """All ClusterOperators, each with what its operator says."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(client: Client, number: int) -> None:
        name = f"operator-{number:04}"
        kind = {
            "apiVersion": PLAIN_CLUSTER_OPERATORS.api_version,
            "kind": PLAIN_CLUSTER_OPERATORS.kind,
        }
        async with turn:
            made = {**kind, "metadata": {"name": name}, "spec": {}}
            await client.create(PLAIN_CLUSTER_OPERATORS, made, field_manager=OPERATORS)
            await _say(client, name)

    async with _client(plane) as client, asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(one(client, number))


async def _say(client: Client, name: str) -> None:
    await client.patch(
        PLAIN_CLUSTER_OPERATORS,
        name,
        {"status": {"conditions": _conditions()}},
        subresource="status",
        field_manager=OPERATORS,
    )


async def _play(
    plane: ControlPlane, checkers: list[OperatorProcess], args: argparse.Namespace
) -> tuple[Window, Window, Window]:
    """The three windows: live, being found dead, found dead."""
    async with _client(plane) as client:
        cache = Cache(client, PLAIN_CLUSTER_OPERATORS)
        following = asyncio.create_task(cache.run())
        await cache.wait_synced()
        answering = asyncio.create_task(_answer(client, cache))
        await asyncio.sleep(args.interval + 5)  # until all have been asked once
        live = await _measured(checkers, args.rounds * args.interval)
        answering.cancel()
        began, cpu = time.time(), _cpu(checkers)
        while not all(_given_up(obj) for obj in cache.list()):  # noqa: ASYNC110 - seldom is enough
            await asyncio.sleep(0.5)
        dead = Window(began, time.time(), _cpu(checkers) - cpu, _memory(checkers))
        stale = await _measured(checkers, args.interval)
        for task in (following, answering):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    return live, dead, stale


async def _answer(client: Client, cache: Cache[Object]) -> None:
    """Put back each message that is found with the prefix."""
    asked: asyncio.Queue[str] = asyncio.Queue()

    def changed(change: Change[Object]) -> None:
        if change.new is not None and any(
            is_checking(one["message"]) for one in change.new["status"]["conditions"]
        ):
            asked.put_nowait(change.key.name)

    async def work() -> None:
        while True:
            with suppress(Conflict):
                await _say(client, await asked.get())

    cache.subscribe(changed)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work())


def _given_up(obj: Object) -> bool:
    return all(is_verdict(one["status"], one["message"]) for one in obj["status"]["conditions"])


async def _measured(checkers: list[OperatorProcess], seconds: float) -> Window:
    began, cpu = time.time(), _cpu(checkers)
    await asyncio.sleep(seconds)
    return Window(began, time.time(), _cpu(checkers) - cpu, _memory(checkers))


def _cpu(checkers: list[OperatorProcess]) -> float:
    return sum(cpu_seconds(checker.pid) for checker in checkers)


def _memory(checkers: list[OperatorProcess]) -> float:
    """The largest checker's, in MB."""
    pages = [int(Path(f"/proc/{one.pid}/statm").read_text().split()[1]) for one in checkers]
    return max(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _audit(path: Path) -> Iterator[Write]:
    """All finished requests of the checkers and of the operators."""
    for line in path.read_text().splitlines():
        if f'"{USER}"' not in line and f'"{OPERATORS}"' not in line:
            continue
        entry = json.loads(line)
        if entry["stage"] != "ResponseComplete":
            continue
        about = entry.get("objectRef", {})
        yield Write(
            datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp(),
            entry["user"]["username"],
            entry["verb"],
            about.get("resource", ""),
            about.get("name", ""),
            entry.get("responseStatus", {}).get("code", 0),
        )


def _row(subject: str, log: list[Write], window: Window, args: argparse.Namespace) -> Row:
    """A window's figures, for one interval and operator where that makes sense."""
    inside = [one for one in log if window.began <= one.at < window.ended]
    ours = [one for one in inside if one.user == USER]
    intervals = (window.ended - window.began) / args.interval
    per = intervals * args.operators
    return Row(
        subject=subject,
        figures={
            "intervals": intervals,
            "checker_writes": len(list(_writes(ours))) / per,
            "answers": len(list(_writes(one for one in inside if one.user == OPERATORS))) / per,
            "conflicts": sum(one.code == 409 for one in ours) / intervals,
            "requests": sum(one.verb != "watch" for one in ours) / intervals,
            "cpu": window.cpu / intervals,
            "share": window.cpu / (window.ended - window.began),
            "memory": window.memory,
        },
    )


def _writes(log: "Iterator[Write] | list[Write]") -> Iterator[Write]:
    return (
        one
        for one in log
        if one.verb == "patch" and one.code == 200 and one.resource == "clusteroperators"
    )


def most_in_an_interval(log: list[Write], interval: float) -> int:
    """The most writes that any operator had within one interval."""
    by_name: dict[str, list[float]] = defaultdict(list)
    for one in _writes(log):
        by_name[one.name].append(one.at)
    most = 0
    for times in by_name.values():
        times.sort()
        first = 0
        for last, at in enumerate(times):
            while at - times[first] >= interval:
                first += 1
            most = max(most, last - first + 1)
    return most


def _report(rows: list[Row], log: list[Write], args: argparse.Namespace) -> None:
    # The first words of an operator are no part of the game.
    began = min(one.at for one in log if one.user == USER)
    most = most_in_an_interval([one for one in log if one.at >= began], args.interval)
    found = Measurement(
        name="staleness",
        title=f"{args.operators:,} idle cluster operators, {args.checkers} checker(s), "
        f"interval {args.interval} s",
        columns=[
            Column(figure="intervals", title="intervals", format=".1f"),
            Column(figure="checker_writes", title="writes each", format=".2f"),
            Column(figure="answers", title="answers each", format=".2f"),
            Column(figure="requests", title="requests"),
            Column(figure="conflicts", title="conflicts", format=".1f"),
            Column(figure="cpu", title="CPU", format=".2f", unit=" s"),
            Column(figure="share", title="of a core", format=".2%"),
            Column(figure="memory", title="memory", unit=" MB"),
        ],
        rows=rows,
        verdicts=[at_most("most writes to one operator in any interval", BUDGET, most, "writes")],
        notes=["writes, answers, requests and CPU are for one interval; requests without watches"],
    )
    report("staleness", [found])


if __name__ == "__main__":
    main()
