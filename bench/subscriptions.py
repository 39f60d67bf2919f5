"""`python -m bench.subscriptions [--count 50]`: one config change, and the same in all at once.

A cluster of its own with as many Subscriptions in one namespace, each with one Deployment without
replicas. The operator and the bare client, each in a process of its own, take turns; with both
there are at most 24 requests at once, and the same process watches both. A change in all has two
ends:

- *with status*: every Deployment has the new variable, and every Subscription says that its
  generation is observed, which is how a user knows. The bare client writes the config of each
  Subscription, applies its Deployment and writes that status: the only one that the protocol needs.
  What the operator writes beyond it counts against the operator. This is the goal.
- the *objects*: every Deployment has the new variable. The bare client writes no status. The
  operator does so all the while: it is shown, and cannot reach the goal.

The API server's audit log has the writes of each change, those of a roll-out that lasts included.
At the end the cluster's Proxy changes, and with it all Deployments.
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
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec

from bench.goals import at_least, at_most
from bench.node import cpu_seconds
from bench.report import report
from bench.results import Column, Measurement, Row, Verdict
from bench.subscriptions_cluster import (
    NAMESPACE,
    Watched,
    configure,
    create_all,
    marked,
    set_proxy,
    subscriptions_cluster,
    until,
)
from quarterdeck.api.meta import DEPLOYMENTS
from quarterdeck.api.operators_v1alpha1 import SUBSCRIPTIONS
from quarterdeck.kube import Client, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.audit import requests_by, writes_by
from quarterdeck.testing.operator_process import OperatorProcess, own_account

MANAGER = "quarterdeck-subscriptions"
USER = "system:serviceaccount:openshift-operator-lifecycle-manager:subscription-operator"
USERS_AT_ONCE = 8
"""The user's changes of configs while the operator works on those before."""
BARE_AT_ONCE = 24
"""As many as the user's changes and the operator's workers for the two kinds, eight each."""
SINGLE = 20
PROXY_CHANGES = 5
PROXY_GOAL = 50
"""As many Deployments have a change of the Proxy within a second."""
LOGGED_AFTER = 1.0
"""Seconds after which the server has logged a request that it has answered."""
OURS, OBJECTS, WITH_STATUS = "quarterdeck", "bare, objects", "bare, with status"


class Figures(msgspec.Struct, frozen=True):
    """What one subject took for a change in all."""

    objects: float
    """Seconds until all Deployments had the change."""
    status: float
    """Seconds until all Subscriptions said so too."""
    cpu: float
    memory: float
    """In MB."""


def main() -> None:
    """Measure, show and write; with `--bare`, be the bare client."""
    parser = argparse.ArgumentParser(prog="python -m bench.subscriptions", description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bare", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.bare:
        asyncio.run(_be_bare(Path(args.bare[0]), args.bare[1], args.count))
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        root = Path(directory)
        with subscriptions_cluster(root, args.count) as plane:
            asyncio.run(Bench(plane, root, args.count, args.rounds).run())


class Bench:
    """The subjects in turns, on one cluster."""

    def __init__(self, plane: ControlPlane, root: Path, count: int, rounds: int) -> None:
        self._plane = plane
        self._root = root
        self._count = count
        self._rounds = rounds
        self._number = 0
        self._found: dict[str, list[Figures]] = {OURS: [], OBJECTS: [], WITH_STATUS: []}
        self._singles: list[float] = []
        self._proxies: list[float] = []
        self._requests: Counter[str] = Counter()

    async def run(self) -> None:
        """Measure, and show."""
        account = own_account(self._plane, "subscriptions")
        async with Client(load_kubeconfig(self._plane.kubeconfig)) as client:
            watched = Watched(client)
            async with watched.following():
                began = time.monotonic()
                await create_all(client, self._count)
                operator = self._operator(account)
                await until(lambda: watched.installed() == self._count)
                installed = time.monotonic() - began
                operator.kill()
                for number in range(self._rounds):
                    for subject in (OBJECTS, WITH_STATUS):
                        await self._settle(watched)
                        self._found[subject].append(await self._bare(watched, subject))
                    operator = self._operator(account)
                    try:
                        await self._ours(client, watched, operator, is_first=number == 0)
                        if number == self._rounds - 1:
                            await self._change_proxy(client, watched)
                    finally:
                        operator.kill()
        self._report(installed)

    def _operator(self, account: Path) -> OperatorProcess:
        options = [
            "--operator=subscriptions",
            f"--kubeconfig={account}",
            f"--catalog-root={self._root / 'catalogs'}",
        ]
        # At the normal verbosity, not at that of tests, which logs each write.
        log = self._root / "operator.log"
        operator = OperatorProcess(options, log, verbosity=2)
        operator.logged("controller started")
        return operator

    async def _settle(self, watched: Watched) -> None:
        """Wait until nobody has anything to do about what was changed before."""
        await until(lambda: watched.rolled_out() == self._count)

    def _value(self) -> str:
        self._number += 1
        return f"value-{self._number}"

    async def _ours(
        self, client: Client, watched: Watched, operator: OperatorProcess, *, is_first: bool
    ) -> None:
        await until(lambda: watched.observed() == self._count)
        await self._settle(watched)
        await until(lambda: watched.installed() == self._count)
        for number in range(SINGLE if is_first else 0):
            value, one = self._value(), number % self._count
            began = time.monotonic()
            await configure(client, one, value)
            await until(lambda: watched.has(one, value))  # noqa: B023 - awaited here
            self._singles.append(time.monotonic() - began)
        await self._settle(watched)
        await until(lambda: watched.installed() == self._count)
        await asyncio.sleep(LOGGED_AFTER)
        before = self._counted()
        value, cpu, began = self._value(), cpu_seconds(operator.pid), time.monotonic()
        writing = asyncio.create_task(
            each(range(self._count), USERS_AT_ONCE, lambda one: configure(client, one, value))
        )
        objects, status = await self._ends(watched, value, began, writing)
        used = cpu_seconds(operator.pid) - cpu
        self._found[OURS].append(Figures(objects, status, used, _megabytes(operator.pid)))
        # All of it: a roll-out that lasts is reported later.
        await self._settle(watched)
        await until(lambda: watched.installed() == self._count)
        await asyncio.sleep(LOGGED_AFTER)
        self._requests += self._counted() - before

    async def _change_proxy(self, client: Client, watched: Watched) -> None:
        """Measure how long each change of the Proxy takes to reach all Deployments."""
        for number in range(PROXY_CHANGES):
            await self._settle(watched)
            value, began = f"http://proxy-{number}.example.com", time.monotonic()
            await set_proxy(client, value)
            self._proxies.append(await self._until(lambda: watched.with_value(value), began))  # noqa: B023 - awaited here

    async def _bare(self, watched: Watched, subject: str) -> Figures:
        value = self._value()
        command = [sys.executable, "-m", "bench.subscriptions", f"--count={self._count}"]
        told = json.dumps({"value": value, "status": subject == WITH_STATUS})
        client = await asyncio.create_subprocess_exec(
            *command,
            *("--bare", str(self._plane.kubeconfig), told),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert client.stdin is not None
        assert client.stdout is not None
        await client.stdout.readline()  # It is ready.
        began = time.monotonic()
        client.stdin.write(b"go\n")
        done: asyncio.Task[bytes] = asyncio.create_task(client.stdout.readline())
        if subject == OBJECTS:
            objects = await self._until(lambda: watched.with_value(value), began)
            status = objects
        else:
            objects, status = await self._ends(watched, value, began, done)
        answer = json.loads(await done)
        await client.wait()
        return Figures(objects, status, answer["cpu"], answer["memory"])

    async def _ends(
        self,
        watched: Watched,
        value: str,
        began: float,
        writing: "asyncio.Task[bytes] | asyncio.Task[None]",
    ) -> tuple[float, float]:
        objects = await self._until(lambda: watched.with_value(value), began)
        await writing  # or an older generation would do
        status = await self._until(watched.observed, began)
        return objects, status

    async def _until(self, counted: Callable[[], int], began: float) -> float:
        await until(lambda: counted() == self._count)
        return time.monotonic() - began

    def _counted(self) -> Counter[str]:
        """The operator's requests so far: its writes by resource, and everything else."""
        log = self._plane.audit_log
        writes = Counter(one.resource for one in writes_by(log, USER))
        mine = requests_by(log, USER)
        writes["events"] = sum(one.resource == "events" for one in mine)
        writes["reads"] = sum(one.verb in ("get", "list") for one in mine)
        return writes

    def _report(self, installed: float) -> None:
        rows = [
            Row(
                subject=subject,
                figures={
                    figure: statistics.median(getattr(one, figure) for one in found)
                    for figure in Figures.__struct_fields__
                },
            )
            for subject, found in self._found.items()
        ]
        figures = {row.subject: row.figures for row in rows}
        each_change = self._count * self._rounds
        writes = [
            f"{number / each_change:.2f} {what}" for what, number in sorted(self._requests.items())
        ]
        one = statistics.median(self._singles) * 1000
        alone = figures[OBJECTS]["objects"] / figures[OURS]["objects"]
        needed = self._requests["deployments"] + self._requests["subscriptions/status"]
        found = Measurement(
            name="subscriptions",
            title=f"a config change in {self._count:,} Subscriptions, median of {self._rounds}",
            columns=[
                Column(figure="objects", title="objects", format=".2f", unit=" s"),
                Column(figure="status", title="with status", format=".2f", unit=" s"),
                Column(figure="cpu", title="CPU", format=".2f", unit=" s"),
                Column(figure="memory", title="memory", unit=" MB"),
            ],
            rows=rows,
            verdicts=[
                at_least(
                    "throughput with status, against the bare client",
                    0.8,
                    figures[WITH_STATUS]["status"] / figures[OURS]["status"],
                ),
                at_most("writes that each change needs", 2, needed / each_change, "writes"),
                *self._proxy_goals(),
            ],
            notes=[
                f"the objects alone: {alone:.2f} of the bare client, which then writes two thirds",
                f"one change alone, PATCH to Deployment: {one:.1f} ms (median of {SINGLE})",
                f"a change of the Proxy, in all Deployments: {self._proxy:.2f} s "
                f"(median of {PROXY_CHANGES})",
                f"all installed in {installed:.2f} s",
                f"the operator's requests for each change: {', '.join(writes)}",
            ],
        )
        report("subscriptions", [found])

    @property
    def _proxy(self) -> float:
        return statistics.median(self._proxies)

    def _proxy_goals(self) -> list[Verdict]:
        if self._count > PROXY_GOAL:
            return []
        return [at_most("a change of the Proxy, in all Deployments", 1, self._proxy, "s")]


async def _be_bare(kubeconfig: Path, told: str, count: int) -> None:
    """Make the writes when told to go, and print what they took."""
    order = json.loads(told)
    value, with_status = order["value"], order["status"]
    async with Client(load_kubeconfig(kubeconfig)) as client:
        live = (await client.list(DEPLOYMENTS, NAMESPACE)).items
        bodies = {one["metadata"]["name"]: marked(one, value) for one in live}

        async def change(one: int) -> None:
            generation = await configure(client, one, value)
            await client.apply(DEPLOYMENTS, bodies[f"d{one}"], field_manager=MANAGER)
            if with_status:
                patch = {"status": {"observedGeneration": generation}}
                await client.patch(
                    SUBSCRIPTIONS.plain, f"p{one}", patch, NAMESPACE, subresource="status"
                )

        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        cpu = time.process_time()
        await each(range(count), BARE_AT_ONCE, change)
        print(
            json.dumps({"cpu": time.process_time() - cpu, "memory": _megabytes("self")}),
            flush=True,
        )


async def each(
    numbers: Iterable[int], at_once: int, do: Callable[[int], Awaitable[object]]
) -> None:
    """Do this for each number, so many at a time."""
    remaining = iter(numbers)

    async def work() -> None:
        for one in remaining:
            await do(one)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(work())


def _megabytes(process: int | str) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
