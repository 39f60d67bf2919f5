"""Our own reporter where the definition made the conditions one atomic list, as older ones do."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.operators.staleness.board import USER, Board
from tests.integration.status.test_status_reporter import Cluster, as_said, challenged, given_up

from quarterdeck.kube import Client, load_kubeconfig
from quarterdeck.localcluster import ControlPlane


@pytest.fixture
async def reporting(
    control_plane: ControlPlane, kubeconfig: Path, namespace: str, atomic_conditions: None
) -> AsyncIterator[Cluster]:
    async with Client(load_kubeconfig(kubeconfig)) as admin:
        yield Cluster(control_plane, admin, namespace)


async def test_marks_are_answered_and_others_conditions_stay(
    reporting: Cluster, board: Board
) -> None:
    """An apply of its own conditions would have removed theirs; a patch of the whole list not."""
    theirs = {"type": "Theirs", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    async with reporting.running(reporting.reporting()):
        found = await reporting.when(as_said)
        board.say(reporting.name, [theirs, *found["status"]["conditions"]], manager="theirs")
        for mark in (challenged, given_up):
            conditions = mark(await reporting.when(as_said))["conditions"]
            board.say(reporting.name, [theirs, *conditions[1:]], manager=USER)
            found = await reporting.when(as_said)
            assert found["status"]["conditions"][0] == theirs
    owners = {
        entry["manager"]: entry["fieldsV1"]["f:status"].get("f:conditions")
        for entry in board.get(reporting.name)["metadata"]["managedFields"]
        if entry.get("subresource") == "status"
    }
    assert owners == {f"manager-{reporting.name}": {}}, "the list as a whole is the operator's"
