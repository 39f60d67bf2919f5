"""Objects by name, which a reconcile learns while the operator runs. On a real API server."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.controller.processes import make_process, operator, running, when
from tests.objects import config_map, secret

from quarterdeck.api.meta import CONFIG_MAPS, SECRETS, Key, Object
from quarterdeck.controller import (
    DONE,
    Controller,
    Manager,
    NamedObjects,
    Result,
    Selection,
    Watch,
)
from quarterdeck.kube import Client, LabelSelector, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.audit import requests_by
from quarterdeck.testing.waiting import eventually_async

ASKS = {"test.example.com/asks": "yes"}
UNKNOWN = "unknown"


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client(load_kubeconfig(kubeconfig)) as client:
        yield client


class Copier:
    """An operator whose ConfigMaps each name a Secret; it remembers what it saw of that."""

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}
        self.runs = 0
        self.secrets: NamedObjects[Object]

    def setup(self, manager: Manager) -> None:
        selection = Selection(labels=LabelSelector(match_labels=ASKS))
        asking = manager.objects(CONFIG_MAPS, selection)

        async def reconcile(key: Key) -> Result:
            self.runs += 1
            found = asking.get(key)
            names = [Key(key.namespace, found["data"]["secret"])] if found else []
            unknown = self.secrets.watch(key, names)
            if found is None:
                self.seen.pop(key.name, None)
            elif unknown:
                self.seen[key.name] = UNKNOWN
            else:
                secret = self.secrets.get(names[0])
                self.seen[key.name] = secret and secret["data"]["a"]
            return DONE

        controller = Controller("copier", reconcile, [Watch(asking)])
        self.secrets = manager.named(SECRETS, controller)
        manager.add(controller)


def asking(namespace: str, name: str, wanted: str) -> Object:
    found = config_map(namespace, name, secret=wanted)
    return {**found, "metadata": {**found["metadata"], "labels": ASKS}}


async def test_an_object_is_followed_while_somebody_holds_it_and_nobody_else_is_read(
    control_plane: ControlPlane, namespace: str, client: Client
) -> None:
    user = f"copier-{namespace}"
    kubeconfig = control_plane.kubeconfig_for(user, ["system:masters"])
    copier = Copier()
    process = make_process(kubeconfig, [operator("copier", copier.setup)], namespace)
    for name in ("x", "other"):
        await client.create(SECRETS, secret(namespace, name, a="1"))
    async with running(process) as task:
        for name in ("a", "b"):
            await client.create(CONFIG_MAPS, asking(namespace, name, "x"))
        await when(lambda: copier.seen == {"a": "MQ==", "b": "MQ=="}, task)
        assert copier.secrets.watched == {Key(namespace, "x")}

        await client.patch(SECRETS, "x", {"data": {"a": "Mg=="}}, namespace)
        await when(lambda: copier.seen == {"a": "Mg==", "b": "Mg=="}, task)

        await client.patch(CONFIG_MAPS, "b", {"data": {"secret": "later"}}, namespace)
        await when(lambda: copier.seen == {"a": "Mg==", "b": None}, task)
        await client.create(SECRETS, secret(namespace, "later", a="3"))
        await when(lambda: copier.seen == {"a": "Mg==", "b": "Mw=="}, task)
        await client.delete(SECRETS, "later", namespace)
        await when(lambda: copier.seen == {"a": "Mg==", "b": None}, task)

        await client.delete(CONFIG_MAPS, "a", namespace)
        await when(lambda: copier.seen == {"b": None}, task)
        assert copier.secrets.watched == {Key(namespace, "later")}
        runs = copier.runs
        await client.patch(SECRETS, "x", {"data": {"a": "NA=="}}, namespace)
        # Something that does wake it, later than what must not.
        await client.create(SECRETS, secret(namespace, "later", a="3"))
        await when(lambda: copier.seen == {"b": "Mw=="}, task)
        assert copier.runs == runs + 1
        assert copier.secrets.get(Key(namespace, "x")) is None

    def read() -> set[str]:
        found = requests_by(control_plane.audit_log, user)
        return {it.name for it in found if it.resource == SECRETS.plural}

    # The server logs a watch when it has ended, a moment after its client.
    wanted = {"x", "later"}
    await eventually_async(lambda: read() == wanted, "each read by its name, and never all")
