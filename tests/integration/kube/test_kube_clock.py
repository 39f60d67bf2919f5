"""Whose clock counts: the API server's, whatever this machine or somebody on the way says."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.integration.kube.scripted_server import answer, scripted

from quarterdeck.api.meta import CONFIG_MAPS
from quarterdeck.cli.operators import _find
from quarterdeck.kube import ApiError, Client
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS

AHEAD = timedelta(days=400)
NEAR = timedelta(minutes=5)


def date_in(ahead: timedelta) -> str:
    return format_datetime(datetime.now(UTC) + ahead, usegmt=True)


def is_ahead(moment: datetime) -> bool:
    return abs(moment - datetime.now(UTC) - AHEAD) < NEAR


async def test_the_time_is_the_servers_and_not_that_of_a_page_by_somebody_else() -> None:
    found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    answers = iter(
        (
            answer(200, found, Date=date_in(AHEAD)),
            answer(404, b"<html></html>", "text/html", Date=date_in(-AHEAD)),
        )
    )
    async with scripted(lambda _: next(answers)) as server, Client(server.connection) as client:
        assert abs(client.now() - datetime.now(UTC)) < NEAR, "nobody has answered yet"
        await client.get(CONFIG_MAPS, "x", "n")
        assert is_ahead(client.now())
        with pytest.raises(ApiError):
            await client.get(CONFIG_MAPS, "x", "n")
        assert is_ahead(client.now())


async def test_how_long_an_operator_is_well_is_counted_by_the_servers_clock() -> None:
    kind = PLAIN_CLUSTER_OPERATORS
    found = {"apiVersion": kind.api_version, "kind": f"{kind.kind}List", "items": []}
    listed = {**found, "metadata": {"resourceVersion": "1"}}
    reply = answer(200, listed, Date=date_in(AHEAD))
    async with scripted(lambda _: reply) as server, Client(server.connection) as client:
        operators, _, now = await _find(client, None)
    assert operators == []
    assert is_ahead(now)
