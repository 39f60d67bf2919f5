"""Whatever happens to the server or on the way: the cache ends equal to the server.

Each test follows ConfigMaps while something breaks, and checks at the end that the cache has
exactly what the server has and that each deletion was told once.
"""

import asyncio
import gc
import io
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from quarterdeck.api.meta import (
    CONFIG_MAPS,
    CRDS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Key,
    Object,
    Resource,
    TypedObject,
    foreign,
)
from quarterdeck.kube import (
    Cache,
    Change,
    Client,
    NotFound,
    StaticHeader,
    TokenFile,
    Unauthorized,
    load_kubeconfig,
    snapshot,
)
from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.log import configure
from quarterdeck.testing.fault_proxy import Answer, Cut, Fault, FaultProxy, Stall, StreamError
from quarterdeck.testing.plugin import NewControlPlane

LIMIT = 60.0


@pytest.fixture(autouse=True)
def _no_socket_is_left_behind() -> Iterator[None]:
    """A client that was closed amid faults leaves no socket to the collector, which would warn."""
    yield
    gc.unfreeze()
    gc.collect()


class Follower:
    """A cache under observation."""

    def __init__(self, cache: Cache[Object]) -> None:
        self.cache = cache
        self.known: dict[Key, Object] = {}
        self.deletions: Counter[str] = Counter()
        cache.subscribe(self.update)

    def update(self, change: Change[Object]) -> None:
        assert self.known.pop(change.key, None) is change.old
        if change.new is not None:
            self.known[change.key] = change.new
        elif change.old is not None:
            self.deletions[change.old["metadata"]["uid"]] += 1

    async def ends_as(self, client: Client, namespace: str) -> None:
        """Wait until the cache is what the server says then.

        Asked anew each time: a namespace gets a ConfigMap of its own at any time after its start.
        """
        async with asyncio.timeout(LIMIT):
            while True:
                listed = await client.list(CONFIG_MAPS, namespace)
                wanted = {version_of(obj) for obj in listed.items}
                if {version_of(obj) for obj in self.cache.list()} == wanted:
                    break
                await asyncio.sleep(0.05)
        assert self.known == {key_of(obj): obj for obj in self.cache.list()}


def key_of(obj: Object) -> Key:
    return Key(obj["metadata"]["namespace"], obj["metadata"]["name"])


def version_of(obj: Object) -> tuple[Key, str, str]:
    return key_of(obj), obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]


async def eventually(condition: Callable[[], bool], limit: float = LIMIT) -> None:
    async with asyncio.timeout(limit):
        while not condition():  # noqa: ASYNC110 - what is waited for happens elsewhere
            await asyncio.sleep(0.02)


@asynccontextmanager
async def following(client: Client, namespace: str, **options: Any) -> AsyncIterator[Follower]:
    """A cache of the namespace's ConfigMaps, synced and running."""
    cache = Cache(client, CONFIG_MAPS, namespace=namespace, **options)
    task = asyncio.create_task(cache.run())
    try:
        async with asyncio.timeout(LIMIT):
            await cache.wait_synced()
        yield Follower(cache)
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def config_map(namespace: str, name: str, text: str = "") -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "data": {"text": text}}


async def make(client: Client, namespace: str, *names: str, text: str = "") -> dict[str, Object]:
    return {
        name: await client.create(CONFIG_MAPS, config_map(namespace, name, text)) for name in names
    }


async def churn(client: Client, namespace: str) -> str:
    """Change, delete, recreate and add; the uid of the one that was recreated."""
    old = await client.get(CONFIG_MAPS, "recreated", namespace)
    await client.delete(CONFIG_MAPS, "recreated", namespace)
    await client.delete(CONFIG_MAPS, "deleted", namespace)
    await make(client, namespace, "recreated", "added")
    await client.patch(CONFIG_MAPS, "changed", {"data": {"text": "new"}}, namespace)
    uid: str = old["metadata"]["uid"]
    return uid


# --- the server itself


def stop(plane: ControlPlane) -> None:
    plane.stop("kube-apiserver")


def kill(plane: ControlPlane) -> None:
    plane.kill("kube-apiserver")


def kill_with_storage(plane: ControlPlane) -> None:
    plane.kill("kube-apiserver", "etcd")
    plane.start("etcd")


@pytest.fixture(scope="module")
def small_plane(
    control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """Only etcd and the API server, for the tests of this file that stop them."""
    state = tmp_path_factory.mktemp("kube-faults")
    made = ControlPlane(state, control_plane_binaries, durable=False)
    try:
        made.start("etcd", "kube-apiserver")
        yield made
    finally:
        made.close()


@pytest.fixture
def plane(small_plane: ControlPlane) -> ControlPlane:
    """The small control plane, running and without ConfigMaps in `default`."""
    small_plane.start("etcd", "kube-apiserver")
    answer = small_plane.requests().send("DELETE", "/api/v1/namespaces/default/configmaps")
    assert answer.ok, answer.body.decode()
    return small_plane


@pytest.mark.parametrize("break_down", [stop, kill, kill_with_storage])
async def test_an_api_server_that_goes_and_comes_back_during_a_watch(
    plane: ControlPlane, break_down: Callable[[ControlPlane], None]
) -> None:
    connection = load_kubeconfig(plane.kubeconfig)
    async with Client(connection) as client, Client(connection) as other:
        await make(other, "default", "kept", "changed", "deleted", "recreated")
        async with following(client, "default") as follower:
            await asyncio.to_thread(break_down, plane)
            await asyncio.to_thread(plane.start, "kube-apiserver")
            uid = await churn(other, "default")
            await follower.ends_as(other, "default")
            assert set(follower.deletions.values()) == {1}
            assert follower.deletions[uid] == 1


async def test_an_api_server_that_is_paused_for_longer_than_the_watch_lasts(
    plane: ControlPlane,
) -> None:
    connection = load_kubeconfig(plane.kubeconfig)
    async with Client(connection) as client, Client(connection) as other:
        await make(other, "default", "kept", "changed", "deleted", "recreated")
        async with following(client, "default", watch_timeout=1) as follower:
            plane.pause("kube-apiserver")
            # The stream is given up while the server is silent, or this would be no test.
            await eventually(lambda: "no answer" in follower.cache.trouble)
            plane.resume("kube-apiserver")
            await churn(other, "default")
            await follower.ends_as(other, "default")
            assert set(follower.deletions.values()) == {1}


async def test_a_compacted_history_with_objects_deleted_and_recreated_in_the_gap(
    new_control_plane: NewControlPlane,
) -> None:
    plane = new_control_plane(started=False)
    compacting_every_second(plane)
    await asyncio.to_thread(plane.start, "etcd", "kube-apiserver")
    with FaultProxy(plane.kubeconfig) as proxy:
        async with (
            Client(proxy.connection()) as client,
            Client(load_kubeconfig(plane.kubeconfig)) as other,
        ):
            await make(other, "default", "kept", "changed", "deleted", "recreated")
            async with following(client, "default") as follower:
                proxy.inject(Answer(503), verb="watch", times=None)
                await asyncio.to_thread(proxy.cut_now)
                uid = await churn(other, "default")
                before = int((await other.list(CONFIG_MAPS, "default")).resource_version)
                await make(other, "default", "one-more")
                await eventually(lambda: compacted(plane) >= before)
                # A fresh server has no history in its memory either.
                await asyncio.to_thread(plane.restart, "kube-apiserver")
                proxy.forget()
                proxy.clear()
                await follower.ends_as(other, "default")
                assert follower.deletions[uid] == 1
                assert set(follower.deletions.values()) == {1}
                # Asked for everything again once, because the watch was refused as too old.
                assert sum(seen.streams for seen in proxy.seen) == 1
                assert proxy.count(verb="list") == 0


def compacting_every_second(plane: ControlPlane) -> None:
    plane.processes["etcd"].argv += [
        "--auto-compaction-mode=periodic",
        "--auto-compaction-retention=1s",
        "--log-level=info",
    ]


def compacted(plane: ControlPlane) -> int:
    """The version up to which the storage has forgotten everything, by its own log."""
    log = plane.processes["etcd"].log.read_text()
    done = re.findall(r'"finished scheduled compaction","compact-revision":(\d+)', log)
    return int(done[-1]) if done else 0


# --- the way to it


@pytest.mark.parametrize(
    ("verb", "fault"),
    [
        pytest.param("watch", Answer(429, retry_after=1), id="429 to a watch"),
        pytest.param("watch", Answer(500), id="500 to a watch"),
        pytest.param("watch", Answer(410), id="410 to a watch"),
        pytest.param("watch", StreamError(410, "Expired"), id="410 in a watch"),
        pytest.param("watch", StreamError(500, "InternalError"), id="500 in a watch"),
        pytest.param("watch", Cut(), id="a watch that is cut at once"),
        pytest.param("watch", Cut(after=700), id="a watch that is cut inside an object"),
        pytest.param("watch", Stall(), id="a watch that stays silent"),
        pytest.param("watch", Stall(after=700), id="a watch that falls silent inside an object"),
    ],
)
async def test_a_fault_in_a_watch(
    fault_proxy: FaultProxy, kubeconfig: Path, namespace: str, verb: str, fault: Fault
) -> None:
    async with (
        Client(fault_proxy.connection()) as client,
        Client(load_kubeconfig(kubeconfig)) as other,
    ):
        await make(other, namespace, "kept", "changed", "deleted", "recreated")
        async with following(client, namespace, watch_timeout=1) as follower:
            fault_proxy.inject(fault, verb=verb, times=2)
            before = fault_proxy.count(verb="watch")
            await asyncio.to_thread(fault_proxy.cut_now)
            await churn(other, namespace)
            await follower.ends_as(other, namespace)
            await eventually(lambda: fault_proxy.count(verb="watch") >= before + 2)
            assert set(follower.deletions.values()) == {1}


@pytest.mark.parametrize(
    ("fault", "lists"),
    [
        pytest.param(Answer(429, retry_after=1), True, id="429, as for a kind that is new"),
        pytest.param(Answer(503), False, id="503"),
        pytest.param(Cut(), False, id="cut at once"),
        pytest.param(Cut(after=300), False, id="cut inside an object"),
        pytest.param(Answer(500), True, id="500"),
        pytest.param(Answer(400), True, id="400, as from a server that does not know it"),
        pytest.param(StreamError(500), True, id="500 inside, as with an old etcd"),
        pytest.param(Stall(), True, id="silent from the start"),
        pytest.param(Stall(after=700), True, id="silent inside an object"),
    ],
)
async def test_a_fault_in_the_watch_that_begins_with_all_objects(
    fault_proxy: FaultProxy,
    kubeconfig: Path,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
    lists: bool,
) -> None:
    monkeypatch.setattr(snapshot, "SILENCE_TIMEOUT", 0.5)
    async with (
        Client(fault_proxy.connection()) as client,
        Client(load_kubeconfig(kubeconfig)) as other,
    ):
        await make(other, namespace, "kept", "changed", "deleted", "recreated")
        fault_proxy.inject(fault, verb="watch", times=1)
        async with following(client, namespace) as follower:
            await follower.ends_as(other, namespace)
            assert fault_proxy.count(verb="list") == lists
            await churn(other, namespace)
            await follower.ends_as(other, namespace)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Answer(429, retry_after=1), id="429"),
        pytest.param(Answer(500), id="500"),
        pytest.param(Cut(after=300), id="cut inside an object"),
    ],
)
async def test_a_fault_in_the_list_that_stands_in(
    fault_proxy: FaultProxy, kubeconfig: Path, namespace: str, fault: Fault
) -> None:
    async with (
        Client(fault_proxy.connection()) as client,
        Client(load_kubeconfig(kubeconfig)) as other,
    ):
        await make(other, namespace, "a", "b")
        fault_proxy.inject(Answer(400), verb="watch")
        fault_proxy.inject(fault, verb="list", times=2)
        async with following(client, namespace) as follower:
            await follower.ends_as(other, namespace)


async def test_a_server_that_cannot_begin_a_watch_with_all_objects(
    new_control_plane: NewControlPlane,
) -> None:
    """Its watch cache is there, the feature is not: as in clusters that are some years old."""
    plane = new_control_plane(started=False)
    plane.processes["kube-apiserver"].argv.append("--feature-gates=WatchList=false")
    await asyncio.to_thread(plane.start, "etcd", "kube-apiserver")
    with FaultProxy(plane.kubeconfig) as proxy:
        async with Client(proxy.connection()) as client:
            await make(client, "default", "kept", "changed", "deleted", "recreated")
            async with following(client, "default") as follower:
                assert proxy.count(verb="list") == 1
                await churn(client, "default")
                await follower.ends_as(client, "default")
                assert sum(seen.streams for seen in proxy.seen) == 1


async def test_a_404_for_a_kind_that_discovery_has_empties_no_cache(
    fault_proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    async with (
        Client(fault_proxy.connection()) as client,
        Client(load_kubeconfig(kubeconfig)) as other,
    ):
        await make(other, namespace, "kept", "changed", "deleted", "recreated")
        async with following(client, namespace) as follower:
            fault_proxy.forget()
            fault_proxy.inject(Answer(404, reason="NotFound"), verb="watch", times=3)
            await asyncio.to_thread(fault_proxy.cut_now)
            await eventually(lambda: fault_proxy.count(verb="watch") > 3)
            assert not follower.cache.missing
            assert not follower.deletions
            await churn(other, namespace)
            await follower.ends_as(other, namespace)
            assert set(follower.deletions.values()) == {1}


GONE_CRD = {
    "metadata": {"name": "comets.gone.example.com"},
    "spec": {
        "group": "gone.example.com",
        "names": {"kind": "Comet", "plural": "comets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
COMETS = foreign("gone.example.com/v1", "Comet", "comets", namespaced=True)


async def test_a_kind_that_is_deleted_is_missing_until_it_comes_back(kubeconfig: Path) -> None:
    async with Client(load_kubeconfig(kubeconfig)) as client:
        cache = Cache(client, COMETS)
        task = asyncio.create_task(cache.run())
        await eventually(lambda: cache.missing)
        for _ in range(2):
            await client.create(CRDS, GONE_CRD)
            await eventually(lambda: not cache.missing and cache.synced)
            await client.delete(CRDS, "comets.gone.example.com")
            await eventually(lambda: cache.missing)
            assert len(cache) == 0
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_watches_that_are_ended_at_once_are_not_a_storm(
    fault_proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    async with (
        Client(fault_proxy.connection()) as client,
        Client(load_kubeconfig(kubeconfig)) as other,
    ):
        await make(other, namespace, "kept", "changed", "deleted", "recreated")
        async with following(client, namespace) as follower:
            fault_proxy.forget()
            fault_proxy.inject(Answer(200), verb="watch", times=None)
            await asyncio.to_thread(fault_proxy.cut_now)
            await asyncio.sleep(2)  # the time in which a storm would show
            assert 2 <= fault_proxy.count(verb="watch") <= 10
            fault_proxy.clear()
            await churn(other, namespace)
            await follower.ends_as(other, namespace)


async def test_cuts_at_every_place_of_a_busy_stream(
    fault_proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    async with (
        Client(fault_proxy.connection()) as client,
        Client(load_kubeconfig(kubeconfig)) as other,
    ):
        await make(other, namespace, "busy", text="x" * 500)
        async with following(client, namespace) as follower:
            for number in range(30):
                fault_proxy.inject(Cut(after=137 * number), verb="watch")
            for number in range(60):
                patch = {"data": {"text": f"{number}"}}
                await other.patch(CONFIG_MAPS, "busy", patch, namespace)
                name = f"brief-{number}"
                await make(other, namespace, name)
                await other.delete(CONFIG_MAPS, name, namespace)
                if number % 4 == 0:
                    await asyncio.to_thread(fault_proxy.cut_now)
            await follower.ends_as(other, namespace)
            assert set(follower.deletions.values()) <= {1}


async def test_a_big_object(fault_proxy: FaultProxy, kubeconfig: Path, namespace: str) -> None:
    """900 kB in one line of the stream, as an event and among all objects."""
    async with Client(load_kubeconfig(kubeconfig)) as client:
        async with following(client, namespace) as follower:
            await make(client, namespace, "big", text="ü" * 450_000)
            await follower.ends_as(client, namespace)
        async with following(client, namespace) as follower:
            await follower.ends_as(client, namespace)


# --- who we are


READ = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
ROLES = foreign("rbac.authorization.k8s.io/v1", "Role", "roles", namespaced=True)
ROLE_BINDINGS = foreign(
    "rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", namespaced=True
)


async def new_token(client: Client, namespace: str, bound_to: str) -> str:
    """A token that is worth nothing once the Secret is gone."""
    secret = await client.create(SECRETS, {"metadata": {"name": bound_to, "namespace": namespace}})
    reference = {
        "apiVersion": "v1",
        "kind": "Secret",
        "name": bound_to,
        "uid": secret["metadata"]["uid"],
    }
    spec = {"spec": {"expirationSeconds": 3600, "boundObjectRef": reference}}
    answer = await client.post(SERVICE_ACCOUNTS, "reader", "token", spec, namespace)
    token: str = answer["status"]["token"]
    return token


async def test_a_rotated_token_is_used_and_the_revoked_one_is_not(
    fault_proxy: FaultProxy, kubeconfig: Path, namespace: str, tmp_path: Path
) -> None:
    async with Client(load_kubeconfig(kubeconfig)) as admin:
        meta = {"name": "reader", "namespace": namespace}
        subject = {"kind": "ServiceAccount", **meta}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
        await admin.create(SERVICE_ACCOUNTS, {"metadata": meta})
        await admin.create(ROLES, {"metadata": meta, "rules": [READ]})
        await admin.create(
            ROLE_BINDINGS, {"metadata": meta, "roleRef": role, "subjects": [subject]}
        )
        await make(admin, namespace, "kept", "changed", "deleted", "recreated")
        token_file = tmp_path / "token"
        old = await new_token(admin, namespace, "first")
        token_file.write_text(old)
        connection = msgspec.structs.replace(
            fault_proxy.connection(), credentials=TokenFile(token_file)
        )
        async with (
            Client(connection) as client,
            following(client, namespace) as follower,
        ):
            token_file.write_text(await new_token(admin, namespace, "second"))
            await admin.delete(SECRETS, "first", namespace)
            await refused(fault_proxy, old)
            await asyncio.to_thread(fault_proxy.cut_now)
            await churn(admin, namespace)
            await follower.ends_as(admin, namespace)


async def refused(proxy: FaultProxy, token: str) -> None:
    """Wait until the server no longer takes a token; it remembers a good one for 10 s."""
    connection = msgspec.structs.replace(proxy.connection(), credentials=StaticHeader.bearer(token))
    async with Client(connection) as client, asyncio.timeout(LIMIT):
        while True:
            try:
                await client.raw("/version")
            except Unauthorized:
                return
            await asyncio.sleep(0.2)


# --- what it sends


class Short(TypedObject):
    """A ConfigMap whose values are short."""

    data: dict[str, Annotated[str, msgspec.Meta(max_length=8)]] = msgspec.field(
        default_factory=dict
    )


SHORT = Resource(
    group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True, type=Short
)


async def test_an_undecodable_object_is_logged_and_skipped(
    kubeconfig: Path, namespace: str
) -> None:
    said = io.StringIO()
    configure(stream=said)
    async with Client(load_kubeconfig(kubeconfig)) as client:
        await make(client, namespace, "long-before", text="far too long")
        await make(client, namespace, "good-before")
        cache = Cache(client, SHORT, namespace=namespace)
        task = asyncio.create_task(cache.run())
        await make(client, namespace, "long-after", text="far too long")
        await make(client, namespace, "good-after")
        await eventually(lambda: len(cache) == 2)
        assert {obj.metadata.name for obj in cache.list()} == {"good-before", "good-after"}
        # One that was readable and is no more keeps its last good version, and can be deleted.
        await client.patch(CONFIG_MAPS, "good-after", {"data": {"text": "x" * 9}}, namespace)
        await client.patch(CONFIG_MAPS, "good-before", {"data": {"text": "fine"}}, namespace)
        await eventually(lambda: text_of(cache, namespace, "good-before") == "fine")
        assert text_of(cache, namespace, "good-after") == ""
        await client.delete(CONFIG_MAPS, "good-after", namespace)
        await eventually(lambda: len(cache) == 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    for name in ("long-before", "long-after"):
        assert f"{namespace}/{name}" in said.getvalue()


def text_of(cache: Cache[Short], namespace: str, name: str) -> str | None:
    found = cache.get(Key(namespace, name))
    return found.data.get("text") if found else None


async def test_an_own_write_is_in_the_cache_when_it_is_answered(
    kubeconfig: Path, namespace: str
) -> None:
    async with (
        Client(load_kubeconfig(kubeconfig)) as client,
        following(client, namespace, own_manager="me") as follower,
    ):
        key = Key(namespace, "mine")
        for number in range(50):
            desired = config_map(namespace, "mine", str(number))
            written = await client.apply(CONFIG_MAPS, desired, field_manager="me")
            held = follower.cache.get(key)
            assert held is not None
            assert int(version_of(held)[2]) >= int(version_of(written)[2])
        await client.delete(CONFIG_MAPS, "mine", namespace)
        assert follower.cache.get(key) is None
        await follower.ends_as(client, namespace)
        assert list(follower.deletions.values()) == [1]


async def test_a_field_selector_holds_for_lists_watches_and_own_writes(
    kubeconfig: Path, namespace: str
) -> None:
    """Only the server evaluates it, so an object of our own comes with its event."""
    async with Client(load_kubeconfig(kubeconfig)) as client:
        await make(client, namespace, "before", "two")
        selector = "metadata.name!=two,metadata.name!=kube-root-ca.crt"
        async with following(client, namespace, field_selector=selector) as selected:
            assert {key.name for key in selected.known} == {"before"}
            await make(client, namespace, "one")
            await eventually(lambda: {key.name for key in selected.known} == {"before", "one"})
            for name in ("one", "two"):
                changed = {"data": {"text": "changed"}}
                await client.patch(CONFIG_MAPS, name, changed, namespace)
            assert {key.name for key in selected.known} == {"before", "one"}
            one = selected.cache.get(Key(namespace, "one"))
            assert one is not None
            assert one["data"] == {"text": "changed"}


async def test_selectors_and_names_also_hold_for_own_writes(
    kubeconfig: Path, namespace: str
) -> None:
    async with (
        Client(load_kubeconfig(kubeconfig)) as client,
        following(client, namespace, label_selector="app in (x, y)") as labelled,
        following(client, namespace, name="one") as single,
    ):
        for name, label in (("one", "x"), ("two", "z"), ("three", "y")):
            made = config_map(namespace, name)
            made["metadata"]["labels"] = {"app": label}
            await client.create(CONFIG_MAPS, made)
        assert {key.name for key in labelled.known} == {"one", "three"}
        assert {key.name for key in single.known} == {"one"}
        unlabel = {"metadata": {"labels": {"app": None}}}
        await client.patch(CONFIG_MAPS, "one", unlabel, namespace)
        await eventually(lambda: {key.name for key in labelled.known} == {"three"})
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS, "four", namespace)
