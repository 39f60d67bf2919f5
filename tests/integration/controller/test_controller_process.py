"""Operators in one process: what they share, and what ends them. Run in the test's own loop."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime
from pathlib import Path

import pytest
from tests.integration.controller.processes import LIMIT, make_process, operator, running, when
from tests.objects import config_map, note

from quarterdeck.api.conditions import Condition
from quarterdeck.api.meta import CONFIG_MAPS, EVENTS, LEASES, SECRETS, Key, Object
from quarterdeck.api.samples_v1alpha1 import NOTES, Note, NoteStatus
from quarterdeck.controller import (
    DONE,
    Controller,
    ControllerCrashed,
    InvalidSpec,
    LeadershipLost,
    Manager,
    NothingToRun,
    Result,
    StatusWriter,
    TaskEnded,
    Timing,
    Watch,
)
from quarterdeck.kube import Client, load_kubeconfig
from quarterdeck.testing.waiting import eventually_async


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client(load_kubeconfig(kubeconfig)) as client:
        yield client


class Recording:
    """An operator that notes which ConfigMaps it was asked about."""

    def __init__(self, name: str = "recording", *, needs_leader: bool = True) -> None:
        self.seen: list[Key] = []
        self._name = name
        self._needs_leader = needs_leader

    def setup(self, manager: Manager) -> None:
        watches = [Watch(manager.cache(CONFIG_MAPS))]
        controller = Controller(
            self._name, self._reconcile, watches, needs_leader=self._needs_leader
        )
        manager.add(controller)

    async def _reconcile(self, key: Key) -> Result:
        self.seen.append(key)
        return DONE


async def test_an_operator_that_fails_to_start_is_reported_and_the_others_work(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    def broken(manager: Manager) -> None:
        manager.objects(SECRETS)
        raise RuntimeError("no such thing")

    good = Recording()
    process = make_process(
        kubeconfig, [operator("broken", broken), operator("good", good.setup)], namespace
    )
    async with running(process) as task:
        await when(lambda: process.readiness().get("good") == "", task)
        await client.create(CONFIG_MAPS, config_map(namespace, "x"))
        await when(lambda: Key(namespace, "x") in good.seen, task)
        assert process.readiness() == {"good": "", "broken": "failed to start: no such thing"}


async def test_a_set_up_that_failed_leaves_the_names_of_its_controllers_to_others(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    def broken(manager: Manager) -> None:
        group = manager.group("g")
        Recording("same").setup(manager)
        group.add(Controller("in-group", Recording()._reconcile, [Watch(group.cache(SECRETS))]))
        raise RuntimeError("no such thing")

    good, other = Recording("same"), Recording("in-group")
    operators = [
        operator("broken", broken),
        operator("good", good.setup),
        operator("other", other.setup),
    ]
    process = make_process(kubeconfig, operators, namespace)
    await client.create(CONFIG_MAPS, config_map(namespace, "x"))
    async with running(process) as task:
        await when(lambda: all(Key(namespace, "x") in it.seen for it in (good, other)), task)
        assert process.readiness()["broken"] == "failed to start: no such thing"


async def test_a_second_controller_of_the_same_name_is_refused(
    kubeconfig: Path, namespace: str
) -> None:
    """Their metrics could not be told apart."""

    def twice(manager: Manager) -> None:
        Recording("same").setup(manager)
        Recording("same").setup(manager)

    process = make_process(kubeconfig, [operator("twice", twice)], namespace)
    with pytest.raises(NothingToRun, match="there is a controller 'same' already"):
        await process.run()


async def test_a_process_without_any_operator_that_starts_ends(
    kubeconfig: Path, namespace: str
) -> None:
    def broken(manager: Manager) -> None:
        raise RuntimeError("no such thing")

    process = make_process(kubeconfig, [operator("broken", broken)], namespace)
    with pytest.raises(NothingToRun, match="broken: failed to start: no such thing"):
        await process.run()


async def test_a_controller_that_crashes_takes_the_process_down(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    """A mapping that raises would silently lose events; the process ends instead."""

    def bad_mapping(obj: Object) -> Iterable[Key]:
        raise ZeroDivisionError(obj["metadata"]["name"])

    def setup(manager: Manager) -> None:
        async def reconcile(key: Key) -> Result:
            return DONE

        manager.add(Controller("bad", reconcile, [Watch(manager.cache(CONFIG_MAPS), bad_mapping)]))

    await client.create(CONFIG_MAPS, config_map(namespace, "x"))
    process = make_process(kubeconfig, [operator("bad", setup)], namespace)
    async with asyncio.timeout(LIMIT):
        with pytest.raises(ControllerCrashed, match="controller bad: ZeroDivisionError"):
            await process.run()


async def test_a_controller_that_needs_no_leader_runs_in_a_standby_too(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    everywhere, leading = Recording("everywhere", needs_leader=False), Recording("leading")

    def setup(manager: Manager) -> None:
        everywhere.setup(manager)
        leading.setup(manager)

    held = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": namespace, "name": "both"},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600},
    }
    await client.create(LEASES, held)
    await client.create(CONFIG_MAPS, config_map(namespace, "x"))
    process = make_process(kubeconfig, [operator("both", setup, namespace)], namespace, Timing())
    async with running(process) as task:
        await when(lambda: Key(namespace, "x") in everywhere.seen, task)
        assert leading.seen == []


async def test_a_write_after_the_renew_deadline_is_not_sent(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    """A reconcile that stands still for longer than the deadline finds its write refused."""

    def setup(manager: Manager) -> None:
        config_maps = manager.objects(CONFIG_MAPS, writes=["ensure"])

        async def reconcile(key: Key) -> Result:
            if key.name == "trigger":
                # The whole process stands, as with SIGSTOP, so no renewal can help it.
                time.sleep(2.5)  # noqa: ASYNC251
                await config_maps.ensure(config_map(namespace, "late"))
            return DONE

        manager.add(Controller("late", reconcile, [Watch(config_maps)]))

    await client.create(CONFIG_MAPS, config_map(namespace, "trigger"))
    times = Timing(duration=3, deadline=2, retry=0.5)
    process = make_process(kubeconfig, [operator("late", setup, namespace)], namespace, times)
    async with asyncio.timeout(LIMIT):
        with pytest.raises(LeadershipLost):
            await process.run()
    made = await client.list(CONFIG_MAPS, namespace)
    assert "late" not in [item["metadata"]["name"] for item in made.items]


async def test_a_process_that_is_told_to_stop_ends_what_it_began_and_hands_the_lease_back(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    began, release = asyncio.Event(), asyncio.Event()
    stopped: list[Manager] = []

    def setup(manager: Manager) -> None:
        config_maps = manager.objects(CONFIG_MAPS, writes=["ensure"])
        stopped.append(manager)

        async def reconcile(key: Key) -> Result:
            if key.name == "trigger":
                began.set()
                await release.wait()
                await config_maps.ensure(config_map(namespace, "made"))
            return DONE

        manager.add(Controller("slow", reconcile, [Watch(config_maps)]))

    await client.create(CONFIG_MAPS, config_map(namespace, "trigger"))
    process = make_process(kubeconfig, [operator("slow", setup, namespace)], namespace, Timing())
    async with running(process) as task, asyncio.timeout(LIMIT):
        await began.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await when(lambda: not stopped[0].leads, task)
        release.set()
        await task
    assert await client.get(CONFIG_MAPS, "made", namespace)
    lease = await client.get(LEASES, "slow", namespace)
    assert lease["spec"]["holderIdentity"] == ""


async def test_an_invalid_spec_is_not_tried_again_until_it_changes(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    seen: list[Key] = []

    def setup(manager: Manager) -> None:
        async def reconcile(key: Key) -> Result:
            seen.append(key)
            if key.name == "bad":
                raise InvalidSpec("data.size", "-1", "give a positive number")
            return DONE

        manager.add(Controller("strict", reconcile, [Watch(manager.cache(CONFIG_MAPS))]))

    process = make_process(kubeconfig, [operator("strict", setup)], namespace)
    bad, good = Key(namespace, "bad"), Key(namespace, "good")
    async with running(process) as task:
        await client.create(CONFIG_MAPS, config_map(namespace, "bad", size="-1"))
        await when(lambda: bad in seen, task)
        await client.create(CONFIG_MAPS, config_map(namespace, "good"))
        await when(lambda: good in seen, task)
        assert seen.count(bad) == 1
        await client.patch(CONFIG_MAPS, "bad", {"data": {"size": "-2"}}, namespace)
        await when(lambda: seen.count(bad) == 2, task)


async def test_operators_share_one_watch_per_resource(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    first, second = Recording("first"), Recording("second")
    managers: list[Manager] = []

    def setup(recording: Recording) -> Callable[[Manager], None]:
        def both(manager: Manager) -> None:
            recording.setup(manager)
            managers.append(manager)

        return both

    operators = [operator("first", setup(first)), operator("second", setup(second))]
    process = make_process(kubeconfig, operators, namespace)
    async with running(process) as task:
        await client.create(CONFIG_MAPS, config_map(namespace, "x"))
        key = Key(namespace, "x")
        await when(lambda: key in first.seen and key in second.seen, task)
        one, other = (manager.cache(CONFIG_MAPS) for manager in managers)
        assert one is other


async def test_what_an_operator_wrote_is_in_the_cache_when_the_write_returns(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    found: list[Object | None] = []

    def setup(manager: Manager) -> None:
        config_maps = manager.objects(CONFIG_MAPS, writes=["ensure"])

        async def reconcile(key: Key) -> Result:
            if key.name == "trigger" and not found:
                await config_maps.ensure(config_map(namespace, "made", a="1"))
                found.append(config_maps.get(Key(namespace, "made")))
            return DONE

        manager.add(Controller("maker", reconcile, [Watch(config_maps)]))

    process = make_process(kubeconfig, [operator("maker", setup)], namespace)
    await client.create(CONFIG_MAPS, config_map(namespace, "trigger"))
    async with running(process) as task:
        await when(lambda: bool(found), task)
    assert found[0] is not None
    assert found[0]["data"] == {"a": "1"}


async def test_events_about_the_same_thing_become_one_series(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    """A thousand at once neither hold the reconcile up nor flood the server."""
    took: list[float] = []

    def setup(manager: Manager) -> None:
        config_maps = manager.cache(CONFIG_MAPS)

        async def reconcile(key: Key) -> Result:
            about = config_maps.get(key)
            if about is not None and key.name == "x":
                began = time.monotonic()
                for number in range(1000):
                    note = f"the same {'x' * 2000}" if number % 2 else "short"
                    manager.events.event(about, "Normal", "Seen", note, action="Look")
                took.append(time.monotonic() - began)
            return DONE

        manager.add(Controller("chatty", reconcile, [Watch(config_maps)]))

    await client.create(CONFIG_MAPS, config_map(namespace, "x"))
    process = make_process(kubeconfig, [operator("chatty", setup)], namespace)
    async with running(process) as task:
        await when(lambda: bool(took), task)
        async with asyncio.timeout(LIMIT):
            events: list[Object] = []
            while len(events) < 2:
                events = (await client.list(EVENTS, namespace)).items
    assert sorted(len(event["note"]) for event in events) == [5, 1022]
    assert took[0] < 1


async def test_a_task_that_is_cancelled_from_inside_ends_the_process_with_its_reason(
    kubeconfig: Path, namespace: str
) -> None:
    async def leaks() -> None:
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lost.cancel()
        await lost

    def setup(manager: Manager) -> None:
        manager.cache(CONFIG_MAPS)
        manager.add_task("engine", leaks)

    process = make_process(kubeconfig, [operator("leaky", setup)], namespace)
    async with asyncio.timeout(LIMIT):
        with pytest.raises(TaskEnded, match="engine was cancelled from inside"):
            await process.run()


async def test_a_bad_object_says_so_once_and_when_it_is_mended_no_more(
    kubeconfig: Path, namespace: str, client: Client, crds: list[str]
) -> None:
    def status(note: Note, reason: str, message: str, now: datetime) -> NoteStatus:
        ready = Condition(
            type="Ready",
            status="False" if message else "True",
            reason=reason,
            message=message,
            last_transition_time=now,
        )
        same = any((it.reason, it.message) == (reason, message) for it in note.status.conditions)
        conditions = note.status.conditions if same else (ready,)
        return NoteStatus(observed_generation=note.metadata.generation, conditions=conditions)

    runs: list[Key] = []

    def setup(manager: Manager) -> None:
        notes = manager.objects(NOTES, writes=["status"])

        async def reconcile(key: Key) -> Result:
            note = notes.get(key)
            assert note is not None
            runs.append(key)
            if note.spec.text == "bad":
                raise InvalidSpec("spec.text", note.spec.text, "write something good")
            await notes.set_status(note, status(note, "Fine", "", manager.now()))
            return DONE

        told = StatusWriter(notes, status)
        manager.add(Controller("teller", reconcile, [Watch(notes)], status=told))

    async def ready() -> str:
        found = await client.get(NOTES, "x", namespace)
        return next((it.reason + ": " + it.message for it in found.status.conditions), "")

    async def says(wanted: str) -> None:
        async def is_said() -> bool:
            return await ready() == wanted

        await eventually_async(is_said, wanted, LIMIT)

    await client.create(NOTES, note("x", "bad", namespace))
    process = make_process(kubeconfig, [operator("teller", setup)], namespace)
    message = "spec.text: 'bad': write something good"
    async with running(process) as task:
        await says(f"InvalidSpec: {message}")
        # Woken by its own status, once; and by an annotation, which changes nothing.
        before = len(runs)
        await client.patch(NOTES, "x", {"metadata": {"annotations": {"a": "1"}}}, namespace)
        await when(lambda: len(runs) > before, task)
        await client.patch(NOTES, "x", {"spec": {"text": "good"}}, namespace)
        await says("Fine: ")
    events = (await client.list(EVENTS, namespace)).items
    assert [(it["reason"], it["note"]) for it in events] == [("InvalidSpec", message)]
    assert "series" not in events[0]
