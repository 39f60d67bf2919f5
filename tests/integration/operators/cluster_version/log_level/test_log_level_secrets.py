"""At TraceAll bodies are logged, and never a Secret's data or a token: the output is searched."""

import asyncio
import base64
import io
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from quarterdeck import log as logs
from quarterdeck.api.meta import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, Object, foreign
from quarterdeck.kube import Cache, Client, KubeError, load_kubeconfig
from quarterdeck.testing.log_level import LogLevelObjects, wait_verbosity
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually

PLAIN = "xyzzy-plain-value"
OTHER = "plugh-other-value"
SPELLED = [
    text for one in (PLAIN, OTHER) for text in (one, base64.b64encode(one.encode()).decode())
]
REVIEWS = foreign("authentication.k8s.io/v1", "TokenReview", "tokenreviews", namespaced=False)


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What is logged at TraceAll while the test runs; the process's logging is left as it was."""
    before = (logs._Output.verbosity, logs._Output.stream, logs._Output.processors)
    stream = io.StringIO()
    logs.configure(fmt="json", verbosity=logs.TRACE_ALL, stream=stream)
    yield stream
    logs._Output.verbosity, logs._Output.stream, logs._Output.processors = before


async def test_no_way_to_read_or_write_a_secret_shows_it(
    written: io.StringIO, kubeconfig: Path, namespace: str
) -> None:
    """Created, read, listed, patched both ways, applied, refused, watched, cached, deleted."""
    name = {"namespace": namespace, "name": "s"}
    async with Client(load_kubeconfig(str(kubeconfig))) as client:
        secret: Object = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {**name, "annotations": {"last-applied": json.dumps({"pw": PLAIN})}},
            "stringData": {"pw": PLAIN},
        }
        made = await client.create(SECRETS, secret)
        await client.get(SECRETS, "s", namespace)
        await client.list(SECRETS)
        await client.patch(SECRETS, "s", {"stringData": {"pw": OTHER}}, namespace)
        operations = [{"op": "add", "path": "/stringData", "value": {"a": PLAIN}}]
        await client.patch(SECRETS, "s", operations, namespace, type="json")
        applied = {"metadata": name, "stringData": {"b": PLAIN}}
        await client.apply(SECRETS, applied, field_manager="test")
        for wrong in ({"data": {"c": [PLAIN]}}, {"data": {"c": f"!{PLAIN}"}}):
            with suppress(KubeError):
                await client.apply(SECRETS, {"metadata": name, **wrong}, field_manager="test")
            try:
                await client.patch(SECRETS, "s", wrong, namespace)
            except KubeError as error:
                logs.get_logger("test").error("reconcile failed", error=str(error))
            else:
                raise AssertionError("refused, in words that may quote the value")
        cache = Cache(client, SECRETS, namespace=namespace)
        following = asyncio.create_task(cache.run())
        await cache.wait_synced()
        version = made["metadata"]["resourceVersion"]
        async for event in client.watch(SECRETS, namespace, resource_version=version, timeout=1):
            assert event
        following.cancel()
        await client.delete(SECRETS, "s", namespace)
    text = written.getvalue()
    assert "/secrets" in text, "the requests were logged"
    assert [spelling for spelling in SPELLED if spelling in text] == []


async def test_no_token_is_shown(written: io.StringIO, kubeconfig: Path, namespace: str) -> None:
    """Asked for, reviewed, kept in a ConfigMap, used to sign in."""
    async with Client(load_kubeconfig(str(kubeconfig))) as client:
        answer = await client.post(SERVICE_ACCOUNTS, "default", "token", {"spec": {}}, namespace)
        token = answer["status"]["token"]
        review: Object = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "metadata": {},
            "spec": {"token": token},
        }
        await client.create(REVIEWS, review)
        kept = {"config": f"users:\n- user:\n    token: {token}\n", "header": f"Bearer {token}"}
        await client.create(
            CONFIG_MAPS,
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"namespace": namespace, "name": "c"},
                "data": kept,
            },
        )
    text = written.getvalue()
    assert '"name":"c"' in text.replace("\\", ""), "bodies were logged"
    for part in token.split("."):
        assert part not in text


def test_the_operator_at_trace_all_shows_bodies_and_not_its_own_token(
    delivered: LogLevelObjects, run_cvo: StartOperator, account: Path
) -> None:
    operator = run_cvo("--leader-elect")
    delivered.wait_observed()
    delivered.set_level("TraceAll")
    wait_verbosity(operator, 8)
    delivered.wait_observed()

    def bodies() -> list[str] | None:
        lines = [line for line in operator.lines("request") if line.get("received")]
        return [line["received"] for line in lines] or None

    assert any('"kind":' in body for body in eventually(bodies, "a body"))
    token = account.read_text().partition("token: ")[2].split()[0]
    assert token
    for part in token.strip("'\"").split("."):
        assert part not in operator.log.read_text()
