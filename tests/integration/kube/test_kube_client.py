"""The client against a real API server: every verb, every refusal, and what is sent again."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from io import StringIO
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
import yaml
from prometheus_client import CollectorRegistry

from quarterdeck.api.meta import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Object,
    foreign,
)
from quarterdeck.kube import (
    AlreadyExists,
    Client,
    Conflict,
    ConnectionFailed,
    Forbidden,
    Invalid,
    NotFound,
    RequestMetrics,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    load_kubeconfig,
)
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.log import configure, set_verbosity
from quarterdeck.testing.fault_proxy import Answer, Cut, FaultProxy, Stall


@pytest_asyncio.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client(load_kubeconfig(kubeconfig)) as client:
        yield client


@pytest_asyncio.fixture
async def proxied(fault_proxy: FaultProxy) -> AsyncIterator[Client]:
    async with Client(fault_proxy.connection()) as client:
        yield client


def config_map(namespace: str, name: str = "a", **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


async def test_the_life_of_an_object(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map(namespace, x="1"))
    assert (await client.get(CONFIG_MAPS, "a", namespace))["data"] == {"x": "1"}
    made["data"]["x"] = "2"
    updated = await client.update(CONFIG_MAPS, made)
    assert updated["data"] == {"x": "2"}
    merged = await client.patch(CONFIG_MAPS, "a", {"data": {"x": None, "y": "3"}}, namespace)
    assert merged["data"] == {"y": "3"}
    operations = [{"op": "replace", "path": "/data/y", "value": "4"}]
    patched = await client.patch(CONFIG_MAPS, "a", operations, namespace, type="json")
    assert patched["data"] == {"y": "4"}
    applied = await client.apply(CONFIG_MAPS, config_map(namespace, z="5"), field_manager="me")
    assert applied["data"] == {"y": "4", "z": "5"}
    assert await client.delete(CONFIG_MAPS, "a", namespace) is None
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAPS, "a", namespace)


async def test_an_object_with_a_finalizer_stays_after_its_delete(
    client: Client, namespace: str
) -> None:
    made = config_map(namespace)
    made["metadata"]["finalizers"] = ["example.com/wait"]
    await client.create(CONFIG_MAPS, made)
    going = await client.delete(CONFIG_MAPS, "a", namespace)
    assert going is not None
    assert going["metadata"]["deletionTimestamp"]
    await client.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, namespace)


async def test_the_status_goes_through_its_subresource(client: Client, namespace: str) -> None:
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "replicas": 0,
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    }
    meta = {"name": "d", "namespace": namespace}
    await client.create(DEPLOYMENTS, {"metadata": meta, "spec": spec})
    condition = {"type": "X", "status": "True", "reason": "R", "message": "m"}
    status = {"metadata": meta, "status": {"conditions": [condition]}}
    answer = await client.apply(DEPLOYMENTS, status, field_manager="me", subresource="status")
    assert [c["type"] for c in answer["status"]["conditions"] if c["type"] == "X"] == ["X"]


async def test_refusals_are_exceptions_of_their_kind(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map(namespace))
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAPS, config_map(namespace))
    with pytest.raises(Conflict, match="UID in the precondition"):
        await client.delete(CONFIG_MAPS, "a", namespace, uid="other")
    await client.patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, namespace)
    with pytest.raises(Conflict):
        await client.update(CONFIG_MAPS, made)
    with pytest.raises(Invalid) as caught:
        await client.create(CONFIG_MAPS, config_map(namespace, "Not A Name"))
    assert [cause.field for cause in caught.value.causes] == ["metadata.name"]


async def test_with_uid_and_version_a_deleted_object_is_not_applied_again(
    client: Client, namespace: str
) -> None:
    made = await client.create(CONFIG_MAPS, config_map(namespace))
    await client.delete(CONFIG_MAPS, "a", namespace)
    fenced = config_map(namespace, x="late")
    fenced["metadata"] |= {
        "uid": made["metadata"]["uid"],
        "resourceVersion": made["metadata"]["resourceVersion"],
    }
    with pytest.raises(Conflict):
        await client.apply(CONFIG_MAPS, fenced, field_manager="me")


async def test_impersonation_has_the_rights_of_the_other(kubeconfig: Path, namespace: str) -> None:
    account = f"system:serviceaccount:{namespace}:default"
    connection = msgspec.structs.replace(
        load_kubeconfig(kubeconfig), headers={"Impersonate-User": account}
    )
    async with Client(connection) as client:
        with pytest.raises(Forbidden, match=account):
            await client.list(CONFIG_MAPS, namespace)


REVIEWS = foreign(
    "authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False
)


async def whoami(client: Client) -> str:
    answer = await client.create(REVIEWS, {"metadata": {}})
    name: str = answer["status"]["userInfo"]["username"]
    return name


async def test_a_rotated_certificate_file_is_shown_by_new_connections(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    def rotate_to(user: str) -> Object:
        """Take the certificate out of a kubeconfig and into files."""
        config: Object = yaml.safe_load(control_plane.kubeconfig_for(user).read_text())
        credentials = config["users"][0]["user"]
        for field in ("client-certificate", "client-key"):
            pem = base64.b64decode(credentials.pop(f"{field}-data"))
            (tmp_path / f"{field}.new").write_bytes(pem)
            (tmp_path / f"{field}.new").rename(tmp_path / field)
            credentials[field] = field
        return config

    (tmp_path / "config").write_text(yaml.safe_dump(rotate_to("jane")))
    async with Client(load_kubeconfig(tmp_path / "config")) as client:
        assert await whoami(client) == "jane"
        rotate_to("john")
        await client.raw("/version")
        await client.close()
        assert await whoami(client) == "john"


async def test_a_list_is_fetched_in_pages(
    proxied: Client, fault_proxy: FaultProxy, namespace: str
) -> None:
    for number in range(7):
        await proxied.create(CONFIG_MAPS, config_map(namespace, f"n{number}"))
    fault_proxy.forget()
    listed = await proxied.list(
        CONFIG_MAPS, namespace, limit=3, field_selector="metadata.name!=kube-root-ca.crt"
    )
    assert [obj["metadata"]["name"] for obj in listed.items] == [f"n{n}" for n in range(7)]
    assert {obj["kind"] for obj in listed.items} == {"ConfigMap"}
    assert fault_proxy.count(verb="list") >= 3


@pytest.mark.parametrize("name", ["", "..", "."])
async def test_a_name_that_is_none_does_not_reach_the_server(client: Client, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        await client.delete(NAMESPACES, name)


async def test_a_namespaced_object_needs_its_namespace(client: Client) -> None:
    with pytest.raises(ValueError, match="in a namespace, and none is given"):
        await client.delete(CONFIG_MAPS, "a")


async def test_a_name_cannot_climb_to_another_path(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAPS, "../secrets/a", namespace)


# --- what is sent again, and what is not


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Answer(429, retry_after=1), id="429"),
        pytest.param(Answer(503), id="503"),
        pytest.param(Cut(), id="a lost connection"),
    ],
)
async def test_a_read_is_sent_again(
    proxied: Client, fault_proxy: FaultProxy, fault: Answer | Cut
) -> None:
    fault_proxy.inject(fault, verb="list", times=2)
    await proxied.list(NAMESPACES)
    assert fault_proxy.count(verb="list") == 3


async def test_a_write_is_sent_again_after_429_and_waits_as_told(
    proxied: Client, fault_proxy: FaultProxy, namespace: str
) -> None:
    fault_proxy.inject(Answer(429, retry_after=1), verb="create")
    started = time.monotonic()
    await proxied.create(CONFIG_MAPS, config_map(namespace))
    assert time.monotonic() - started >= 1
    assert fault_proxy.count(verb="create") == 2


async def test_429_without_end_is_given_up(proxied: Client, fault_proxy: FaultProxy) -> None:
    fault_proxy.inject(Answer(429), times=None)
    with pytest.raises(TooManyRequests):
        await proxied.list(NAMESPACES)
    assert fault_proxy.count() == 5


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        pytest.param(Answer(500), ServerError, id="500"),
        pytest.param(Answer(503), ServerError, id="503"),
        pytest.param(Cut(), ConnectionFailed, id="a lost connection"),
    ],
)
@pytest.mark.parametrize("verb", ["create", "patch", "delete", "update"])
async def test_a_write_that_may_have_happened_is_not_sent_again(
    proxied: Client,
    fault_proxy: FaultProxy,
    namespace: str,
    verb: str,
    fault: Answer | Cut,
    error: type[Exception],
) -> None:
    await proxied.create(CONFIG_MAPS, config_map(namespace, "there"))
    fault_proxy.forget()
    fault_proxy.inject(fault, verb=verb, times=None)
    writes = {
        "create": proxied.create(CONFIG_MAPS, config_map(namespace)),
        "patch": proxied.patch(CONFIG_MAPS, "there", {}, namespace),
        "delete": proxied.delete(CONFIG_MAPS, "there", namespace),
        "update": proxied.update(CONFIG_MAPS, config_map(namespace, "there")),
    }
    wanted = writes.pop(verb)
    for other in writes.values():
        other.close()
    with pytest.raises(error):
        await wanted
    assert fault_proxy.count(verb=verb) == 1


async def test_a_silent_server_is_given_up_in_time(fault_proxy: FaultProxy) -> None:
    fault_proxy.inject(Stall(), times=None)
    async with Client(fault_proxy.connection(), timeout=0.5) as client:
        started = time.monotonic()
        with pytest.raises(RequestTimeout, match="no answer in"):
            await client.get(NAMESPACES, "default")
        assert time.monotonic() - started < 5


async def test_a_server_that_is_not_there_is_named(kubeconfig: Path) -> None:
    with FaultProxy(kubeconfig) as proxy:
        connection = proxy.connection()
    async with Client(connection, timeout=1) as client:
        with pytest.raises(
            ConnectionFailed, match="GET /api/v1/namespaces/default: cannot connect to 127"
        ):
            await client.get(NAMESPACES, "default")


async def test_a_server_that_is_not_there_is_named_when_the_time_ran_out(kubeconfig: Path) -> None:
    """What failed before is said, not that the last attempt had no time left."""
    with FaultProxy(kubeconfig) as proxy:
        connection = proxy.connection()
    async with Client(connection, timeout=1) as client:
        # The second attempt is due within 0.15 s; the process is stopped until all is over.
        asyncio.get_running_loop().call_later(0.05, time.sleep, 1.2)
        with pytest.raises(ConnectionFailed, match="cannot connect to 127"):
            await client.get(NAMESPACES, "default")


# --- the check before a write


class Stopped(Exception):  # noqa: N818
    pass


async def test_the_check_before_a_write_is_made_when_the_connection_is_there(
    proxied: Client, fault_proxy: FaultProxy, namespace: str
) -> None:
    """After a 429 the client waits; the check now refuses: nothing more is sent."""
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1
        if checks == 2:
            raise Stopped

    proxied.before_write = check
    await proxied.get(NAMESPACES, "default")
    assert checks == 0
    fault_proxy.inject(Answer(429, retry_after=1), verb="create")
    with pytest.raises(Stopped):
        await proxied.create(CONFIG_MAPS, config_map(namespace))
    assert fault_proxy.count(verb="create") == 1


# --- what is seen of it


async def test_requests_are_counted_under_the_usual_name(kubeconfig: Path, namespace: str) -> None:
    registry = CollectorRegistry()
    with FaultProxy(kubeconfig) as proxy:
        client = Client(proxy.connection(), metrics=RequestMetrics(registry), timeout=0.5)
        await client.get(NAMESPACES, namespace)
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS, "none", namespace)
    with pytest.raises(ConnectionFailed):
        await client.get(NAMESPACES, namespace)
    await client.close()

    def count(code: str) -> float:
        labels = {"code": code, "method": "GET", "host": client.connection.host}
        return registry.get_sample_value("rest_client_requests_total", labels) or 0

    assert count("200") == count("404") == 1
    assert count("<error>") >= 1


async def test_no_secret_is_logged_at_the_highest_verbosity(client: Client, namespace: str) -> None:
    said = StringIO()
    configure(verbosity=9, stream=said)
    try:
        meta = {"name": "a", "namespace": namespace}
        await client.create(SECRETS, {"metadata": meta, "stringData": {"x": "hunter2"}})
        await client.list(SECRETS, namespace)
        answer = await client.post(SERVICE_ACCOUNTS, "default", "token", {"spec": {}}, namespace)
        await client.create(CONFIG_MAPS, config_map(namespace, "visible", note="in a body"))
    finally:
        set_verbosity(2)
    text = said.getvalue()
    assert "visible" in text
    assert "/secrets" in text
    # What somebody puts into a ConfigMap may be a secret too: only its length is said.
    assert "<9 characters>" in text
    for secret in ("in a body", "hunter2", "aHVudGVyMg", answer["status"]["token"]):
        assert secret not in text


@pytest.mark.parametrize("header", ["a\r\nX-Evil: b", "a\nb", "a\rb"])
async def test_a_line_break_in_a_header_is_refused(kubeconfig: Path, header: str) -> None:
    connection = msgspec.structs.replace(
        load_kubeconfig(kubeconfig), headers={"Impersonate-User": header}
    )
    async with Client(connection) as client:
        with pytest.raises(ValueError, match="GET /version: a line break in a header"):
            await client.raw("/version")
