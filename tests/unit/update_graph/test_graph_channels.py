"""Channels as files, and the small service that answers with them."""

from pathlib import Path

import pytest
import yaml
from aiohttp.test_utils import TestClient, TestServer
from tests.unit.update_graph.graphs import ALWAYS, conditional, risk

from quarterdeck.update_graph.channels import ChannelInvalid, channel_graph, channels
from quarterdeck.update_graph.model import parse_graph
from quarterdeck.update_graph.service import application

IMAGE = "registry.example.test/q@sha256:" + "a" * 64


def write(directory: Path, channel: str, **more: object) -> None:
    releases = [
        {"version": "1.0.0", "image": IMAGE},
        {
            "version": "1.1.0",
            "image": IMAGE,
            "previous": ["1.0.0", "0.9.0"],
            "url": "https://example.test/1.1.0",
        },
    ]
    (directory / f"{channel}.yaml").write_text(yaml.safe_dump({"releases": releases} | more))


def test_a_channel_is_a_graph(tmp_path: Path) -> None:
    """The versions that the channel does not have are left out of the edges."""
    risks = [conditional("1.0.0", "1.1.0", risk("Leak", ALWAYS))]
    write(tmp_path, "stable-1", conditionalEdges=risks)
    data = channel_graph(tmp_path, "stable-1")
    assert data is not None
    found = parse_graph(data)
    assert found.edges == {"1.0.0": {"1.1.0"}}
    release = found.nodes["1.1.0"].release
    assert (release.image, release.url) == (IMAGE, "https://example.test/1.1.0")
    assert release.channels == ("stable-1",)
    assert list(found.conditional) == [("1.0.0", "1.1.0")]
    assert channels(tmp_path) == ("stable-1",)


@pytest.mark.parametrize("channel", ["", "none", "../stable-1", ".hidden", "a/b", "a" * 200])
def test_what_is_no_channel(tmp_path: Path, channel: str) -> None:
    (tmp_path / "inner").mkdir()
    write(tmp_path, "stable-1")
    assert channel_graph(tmp_path / "inner", channel) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("releases: [", "stable.yaml:"),
        ("releases: 1", "stable.yaml: "),
        ("releases: []\nedges: []", "edges"),
        ("releases: [{version: '1.0', image: q}]", "nodes[0].version: '1.0'"),
        ("", "0 documents"),
    ],
)
def test_a_mistake_in_a_file_has_its_place(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "stable.yaml").write_text(text)
    with pytest.raises(ChannelInvalid) as refused:
        channel_graph(tmp_path, "stable")
    assert told in str(refused.value)


async def test_the_service_answers_and_says_what_is_missing(tmp_path: Path) -> None:
    write(tmp_path, "stable-1")
    (tmp_path / "broken.yaml").write_text("releases: [")
    async with TestClient(TestServer(application(tmp_path))) as client:
        for path in ("/graph", "/api/upgrades_info/v1/graph"):
            answer = await client.get(f"{path}?channel=stable-1&version=1.0.0")
            assert answer.status == 200
            assert parse_graph(await answer.read()).edges == {"1.0.0": {"1.1.0"}}
        missing = await client.get("/graph?channel=none")
        assert missing.status == 404
        assert "there are: broken, stable-1" in (await missing.json())["value"]
        assert (await client.get("/graph")).status == 400
        assert (await client.get("/graph?channel=broken")).status == 500
        assert (await client.get("/graph?channel=../stable-1")).status == 404
        # A release is published by writing a file.
        write(tmp_path, "new")
        assert (await client.get("/graph?channel=new")).status == 200
