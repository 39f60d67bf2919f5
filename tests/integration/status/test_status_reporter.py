"""An operator's ClusterOperator as its reporter keeps it, on a real API server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.objects import config_map

from quarterdeck.api.config_v1 import OperandVersion
from quarterdeck.api.meta import CONFIG_MAPS, Key, Object, foreign
from quarterdeck.controller import (
    DONE,
    Controller,
    Manager,
    Operator,
    Process,
    ProcessSettings,
    Result,
    Selection,
    Timing,
    Watch,
)
from quarterdeck.kube import Client, NotFound, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.status import Report, Reporter, condition, standard_conditions
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS, REPORT_INTERVAL
from quarterdeck.status.staleness_marks import checking_message, is_marked, verdict_message
from quarterdeck.testing.audit import requests_by, writes_by
from quarterdeck.testing.fault_proxy import Answer, FaultProxy
from quarterdeck.testing.waiting import eventually_async

LIMIT = 60.0
CHECKER = "quarterdeck-staleness"
WELL = Report(conditions=standard_conditions(condition("Available", True, "Fine", "two\nlines")))
ROLES = foreign("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)
BINDINGS = foreign(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)


class Cluster:
    """The test's ClusterOperator as an administrator sees and changes it, and its operator."""

    def __init__(self, plane: ControlPlane, admin: Client, name: str) -> None:
        self.plane = plane
        self.admin = admin
        self.name = name
        self.user = f"operator-{name}"
        self.reporters: list[Reporter] = []

    def kubeconfig(self, *groups: str) -> Path:
        return self.plane.kubeconfig_for(self.user, groups)

    async def get(self) -> Object | None:
        try:
            return await self.admin.get(PLAIN_CLUSTER_OPERATORS, self.name)
        except NotFound:
            return None

    async def when(self, holds: Callable[[Object], Any]) -> Object:
        """The ClusterOperator, when it is so."""
        async with asyncio.timeout(LIMIT):
            while True:
                found = await self.get()
                if found is not None and holds(found):
                    return found
                await asyncio.sleep(0.05)

    async def change(self, status: Object) -> Object:
        """Somebody patches the status, as the staleness checker would."""
        return await self.admin.patch(
            PLAIN_CLUSTER_OPERATORS,
            self.name,
            {"status": status},
            subresource="status",
            field_manager=CHECKER,
        )

    def writes(self) -> list[str]:
        """What the operator has written so far, as the server counted."""
        done = writes_by(self.plane.audit_log, self.user)
        return [f"{it.verb} {it.resource} {it.code}" for it in done]

    def operator(self, setup: Callable[[Manager], None]) -> Operator:
        return Operator(
            name=self.name,
            setup=setup,
            field_manager=f"manager-{self.name}",
            lease_namespace="default",
            lease_name=self.name,
        )

    def reporting(self, report: Any = WELL, **options: Any) -> Callable[[Manager], None]:
        """An operator that does nothing but report."""

        def setup(manager: Manager) -> None:
            self.reporters.append(Reporter(manager, self.name, report, **options))

        return setup

    @asynccontextmanager
    async def running(
        self,
        setup: Callable[[Manager], None],
        *,
        kubeconfig: Path | None = None,
        connection: Any = None,
        release: str = "",
        election: Timing | None = None,
    ) -> AsyncIterator["asyncio.Task[None]"]:
        settings = ProcessSettings(
            identity=f"test-{len(self.reporters)}",
            election=election,
            probe_address="127.0.0.1:0",
            release_version=release,
        )
        to = connection or load_kubeconfig(kubeconfig or self.kubeconfig("system:masters"))
        task = asyncio.create_task(Process([self.operator(setup)], to, settings).run())
        try:
            yield task
            assert not task.done(), "the operator works to the end"
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def cluster(
    control_plane: ControlPlane, crds: list[str], kubeconfig: Path, namespace: str
) -> AsyncIterator[Cluster]:
    async with Client(load_kubeconfig(kubeconfig)) as admin:
        made = Cluster(control_plane, admin, namespace)
        yield made
        if await made.get() is not None:
            await admin.delete(PLAIN_CLUSTER_OPERATORS, made.name)


def conditions(found: Object) -> dict[str, tuple[str, str]]:
    said = found.get("status", {}).get("conditions", ())
    return {one["type"]: (one["status"], one.get("message", "")) for one in said}


AS_SAID = {one.type: (one.status, one.message) for one in WELL.conditions}


def as_said(found: Object) -> bool:
    return AS_SAID.items() <= conditions(found).items()


def challenged(found: Object) -> Object:
    return {
        "conditions": [
            one | {"message": checking_message(one.get("message", ""))}
            for one in found["status"]["conditions"]
        ]
    }


def given_up(found: Object) -> Object:
    return {
        "conditions": [
            one
            | {
                "status": "Unknown",
                "message": verdict_message(one.get("message", ""), "True", 1200),
            }
            for one in found["status"]["conditions"]
        ]
    }


async def test_a_missing_one_is_made_and_written_once(cluster: Cluster) -> None:
    """A create and a status; none when the operator starts again, or says the same again."""
    async with cluster.running(cluster.reporting(), release="4.7.0") as _:
        found = await cluster.when(as_said)
    assert cluster.writes() == ["create clusteroperators 201", "patch clusteroperators/status 200"]
    assert found["status"]["relatedObjects"] == [
        {"group": "", "resource": "namespaces", "name": "default"}
    ]
    assert "versions" not in found["status"], "nobody has said that the release runs"

    answer = asyncio.Event()
    release = Report(conditions=WELL.conditions, at_release_version=True)

    def asked(now: datetime) -> Report:
        answer.set()
        return WELL

    async with cluster.running(cluster.reporting(asked), release="4.7.0"):
        async with asyncio.timeout(LIMIT):
            await answer.wait()
        cluster.reporters[-1].set_report(release)
        found = await cluster.when(lambda seen: seen["status"].get("versions"))
        assert found["status"]["versions"] == [{"name": "operator", "version": "4.7.0"}]
        cluster.reporters[-1].set_report(msgspec.structs.replace(release))
        found = await cluster.when(as_said)
    assert len(cluster.writes()) == 3


async def test_a_challenge_is_answered_under_the_operators_own_name_and_a_new_time(
    cluster: Cluster,
) -> None:
    async with cluster.running(cluster.reporting()):
        await cluster.when(as_said)
        before = _entry(await cluster.when(as_said), f"manager-{cluster.name}")
        await _next_second(before["time"])
        marked = await cluster.change(challenged(await cluster.when(as_said)))
        assert "f:message" in str(_entry(marked, CHECKER)["fieldsV1"])
        found = await cluster.when(as_said)
    own = _entry(found, f"manager-{cluster.name}")
    assert own["time"] > before["time"]
    owned = own["fieldsV1"]["f:status"]["f:conditions"]
    assert all("f:message" in owned[f'k:{{"type":"{type_}"}}'] for type_ in AS_SAID)
    assert not [it for it in found["metadata"]["managedFields"] if it["manager"] == CHECKER]
    times = {one["lastTransitionTime"] for one in found["status"]["conditions"]}
    assert times == {one["lastTransitionTime"] for one in marked["status"]["conditions"]}
    assert len(cluster.writes()) == 3


async def test_a_verdict_is_answered_and_so_is_every_further_challenge(cluster: Cluster) -> None:
    async with cluster.running(cluster.reporting()):
        for mark in (given_up, challenged, given_up):
            marked = await cluster.change(mark(await cluster.when(as_said)))
            said = conditions(marked)
            assert all(is_marked(*one) for one in said.values())
            await cluster.when(as_said)
    assert len(cluster.writes()) == 5


async def test_marks_that_stand_when_it_starts_are_answered(cluster: Cluster) -> None:
    """Also by one that is disabled: it has nothing to do, and runs all the same."""
    off = Report(conditions=(*WELL.conditions, condition("Disabled", True, "Off", "not wanted")))
    async with cluster.running(cluster.reporting(off)):
        found = await cluster.when(as_said)
    assert conditions(found)["Disabled"] == ("True", "not wanted")
    await cluster.change(given_up(found))
    async with cluster.running(cluster.reporting(off)):
        await cluster.when(as_said)


async def test_what_others_have_written_stays_as_it_is(cluster: Cluster) -> None:
    theirs = {
        "conditions": [
            {"type": "Theirs", "status": "Odd", "lastTransitionTime": "2020-01-01T00:00:00Z"}
        ],
        "versions": [{"name": "operand", "version": "1"}],
        "relatedObjects": [{"group": "", "resource": "nodes", "name": "theirs"}],
    }
    async with cluster.running(cluster.reporting()):
        found = await cluster.when(as_said)
        own = found["status"]["conditions"]
        await cluster.change({**theirs, "conditions": [*theirs["conditions"], *own[1:]]})
        found = await cluster.when(as_said)
        assert found["status"]["conditions"][0] == theirs["conditions"][0]
        assert found["status"]["versions"] == theirs["versions"]
        assert found["status"]["relatedObjects"][0] == theirs["relatedObjects"][0]
        updated = OperandVersion(name="mine", version="2")
        cluster.reporters[0].set_report(Report(conditions=WELL.conditions, versions=(updated,)))
        found = await cluster.when(lambda seen: len(seen["status"]["versions"]) == 2)
    assert found["status"]["versions"][0] == theirs["versions"][0]
    entry = _entry(found, CHECKER)["fieldsV1"]["f:status"]["f:conditions"]
    assert 'k:{"type":"Theirs"}' in entry, "and it is still theirs"


async def test_a_deleted_one_comes_back(cluster: Cluster) -> None:
    async with cluster.running(cluster.reporting()):
        first = await cluster.when(as_said)
        await cluster.admin.delete(PLAIN_CLUSTER_OPERATORS, cluster.name)
        found = await cluster.when(as_said)
    assert found["metadata"]["uid"] != first["metadata"]["uid"]


async def test_one_that_is_on_its_way_out_is_left_alone_and_made_anew(cluster: Cluster) -> None:
    asked: list[datetime] = []

    def report(now: datetime) -> Report:
        asked.append(now)
        return WELL

    async with cluster.running(cluster.reporting(report)):
        await cluster.when(as_said)
        held = {"metadata": {"finalizers": ["quarterdeck.dev/test"]}}
        await cluster.admin.patch(PLAIN_CLUSTER_OPERATORS, cluster.name, held)
        await cluster.admin.delete(PLAIN_CLUSTER_OPERATORS, cluster.name)
        leaving = await cluster.change(challenged(await cluster.when(as_said)))
        before = len(asked)
        cluster.reporters[0].refresh_report()
        await eventually_async(lambda: len(asked) > before, "asked again")
        assert len(cluster.writes()) == 2
        freed = {"metadata": {"finalizers": None}}
        await cluster.admin.patch(PLAIN_CLUSTER_OPERATORS, cluster.name, freed)
        found = await cluster.when(as_said)
    assert found["metadata"]["uid"] != leaving["metadata"]["uid"]


async def test_only_the_leader_writes(cluster: Cluster) -> None:
    """The other replica says something else, and nothing of it is ever written."""
    times = Timing(duration=4, deadline=3, retry=1)
    other = Report(
        conditions=standard_conditions(condition("Degraded", True, "Other", "the other replica"))
    )
    async with cluster.running(cluster.reporting(), election=times):
        found = await cluster.when(as_said)
        assert found["status"]["relatedObjects"][1] == {
            "group": "coordination.k8s.io",
            "resource": "leases",
            "namespace": "default",
            "name": cluster.name,
        }
        second = f"second-{cluster.name}"
        kubeconfig = cluster.plane.kubeconfig_for(second, ["system:masters"])
        async with cluster.running(cluster.reporting(other), election=times, kubeconfig=kubeconfig):
            for _ in range(2):
                await cluster.change(challenged(await cluster.when(as_said)))
                await cluster.when(as_said)
            audit = cluster.plane.audit_log
            assert requests_by(audit, second), "it runs"
            assert writes_by(audit, second) == []


@contextmanager
def _works(cluster: Cluster, namespace: str) -> Iterator[tuple[asyncio.Event, Any]]:
    """An operator that also has something to do, and when it did it."""
    done = asyncio.Event()

    async def reconcile(key: Key) -> Result:
        done.set()
        return DONE

    def setup(manager: Manager) -> None:
        cluster.reporting()(manager)
        maps = Watch(manager.cache(CONFIG_MAPS, Selection(namespace=namespace)))
        manager.add(Controller(f"work-{cluster.name}", reconcile, [maps]))

    yield done, setup


async def test_without_the_resource_type_the_operator_works_and_reports_when_it_comes(
    cluster: Cluster, fault_proxy: FaultProxy, namespace: str
) -> None:
    fault_proxy.inject(Answer(404, reason="NotFound"), resource="clusteroperators", times=3)
    with _works(cluster, namespace) as (done, setup):
        async with cluster.running(setup, connection=fault_proxy.connection()):
            async with asyncio.timeout(LIMIT):
                await done.wait()
            assert fault_proxy.count(verb="create", resource="clusteroperators") == 0
            await cluster.when(as_said)


async def test_without_the_right_to_write_the_operator_works_and_reports_when_it_may(
    cluster: Cluster, namespace: str
) -> None:
    read: Object = {"apiGroups": ["", PLAIN_CLUSTER_OPERATORS.group], "verbs": ["list", "watch"]}
    read["resources"] = ["configmaps", "clusteroperators"]
    await _allow(cluster, [read])
    with _works(cluster, namespace) as (done, setup):
        async with cluster.running(setup, kubeconfig=cluster.kubeconfig()):
            async with asyncio.timeout(LIMIT):
                await done.wait()
            refused = "create clusteroperators 403"
            await eventually_async(lambda: refused in cluster.writes(), refused)
            write = {**read, "verbs": ["create", "patch"]}
            write["resources"] = ["clusteroperators", "clusteroperators/status"]
            await _allow(cluster, [read, write])
            await cluster.when(as_said)
    await cluster.admin.delete(ROLES, cluster.user)
    await cluster.admin.delete(BINDINGS, cluster.user)


async def test_it_asks_the_operator_again_when_inertia_ends(cluster: Cluster) -> None:
    # Later than the questions that its own first writes bring about.
    asked: list[datetime] = []

    def report(now: datetime) -> Report:
        asked.append(now)
        ends = asked[0] + timedelta(seconds=4)
        if now < ends:
            return Report(conditions=WELL.conditions, valid_until=ends)
        return Report(
            conditions=standard_conditions(condition("Degraded", True, "Lasting", "for long"))
        )

    async with cluster.running(cluster.reporting(report)):
        await cluster.when(lambda seen: conditions(seen).get("Degraded") == ("True", "for long"))
    assert len(asked) < 10, "and not all the time"


async def test_however_much_happens_it_asks_once_a_second_and_about_the_last_change_too(
    cluster: Cluster, namespace: str
) -> None:
    asked: list[float] = []
    seen = ""

    def setup(manager: Manager) -> None:
        maps = manager.objects(CONFIG_MAPS, Selection(namespace=namespace))

        def report(now: datetime) -> Report:
            nonlocal seen
            asked.append(manager.clock())
            found = maps.get(Key(namespace, "busy"))
            seen = found["data"]["turn"] if found else ""
            return WELL

        cluster.reporters.append(Reporter(manager, cluster.name, report, [Watch(maps)]))

    await cluster.admin.create(CONFIG_MAPS, config_map(namespace, "busy", turn="0"))
    async with cluster.running(setup):
        await cluster.when(as_said)
        for turn in range(1, 201):
            patch = {"data": {"turn": str(turn)}}
            await cluster.admin.patch(CONFIG_MAPS, "busy", patch, namespace)
        await eventually_async(lambda: seen == "200", "ready")
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert all(pause > 0.9 * REPORT_INTERVAL for pause in pauses)


async def _allow(cluster: Cluster, rules: list[Object]) -> None:
    metadata = {"name": cluster.user}
    binding = {
        "metadata": metadata,
        "roleRef": {"apiGroup": ROLES.group, "kind": "ClusterRole", "name": cluster.user},
        "subjects": [{"apiGroup": ROLES.group, "kind": "User", "name": cluster.user}],
    }
    await cluster.admin.apply(ROLES, {"metadata": metadata, "rules": rules}, field_manager="test")
    await cluster.admin.apply(BINDINGS, binding, field_manager="test")


def _entry(found: Object, manager: str) -> Object:
    """The managedFields entry of a manager's writes to the status."""
    return next(
        dict(it)
        for it in found["metadata"]["managedFields"]
        if it["manager"] == manager and it.get("subresource") == "status"
    )


async def _next_second(time: str) -> None:
    """Times have whole seconds: a newer one shows only in another second."""
    then = datetime.fromisoformat(time)
    later = then + timedelta(seconds=1.2)
    await eventually_async(lambda: datetime.now(then.tzinfo) > later, "more than a second passed")
