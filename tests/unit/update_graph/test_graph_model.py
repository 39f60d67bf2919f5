"""Decoding of update graphs: what is kept, and what is refused with its place."""

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.update_graph.graphs import ALWAYS, PROMQL, conditional, graph, node, risk

from quarterdeck.update_graph.model import CHANNELS, MAX_BYTES, GraphInvalid, parse_graph


def test_releases_have_their_documentation_and_channels() -> None:
    text = {"url": "https://example.test/notes", CHANNELS: "fast-1, stable-1,fast-1"}
    data = msgspec.json.encode({"nodes": [node("1.0.0", **text)], "edges": []})
    found = parse_graph(data).nodes["1.0.0"].release
    assert found.url == "https://example.test/notes"
    assert found.channels == ("fast-1", "stable-1")
    assert found.image.startswith("registry.example.test/quarterdeck@sha256:")


def test_edges_are_kept_by_version() -> None:
    found = parse_graph(graph(("1.0.0", "1.1.0", "1.2.0"), (0, 1), (0, 2), (1, 2)))
    assert found.edges == {"1.0.0": {"1.1.0", "1.2.0"}, "1.1.0": {"1.2.0"}}


def test_conditional_edges_to_nodes_that_were_left_out_are_ignored() -> None:
    edges = [conditional("1.0.0", "9.9.9", risk("Leak", ALWAYS))]
    assert parse_graph(graph(("1.0.0",), conditional=edges)).conditional == {}


def test_rules_of_unknown_types_are_left_out() -> None:
    unknown = {"type": "Astrology"}
    edges = [conditional("1.0.0", "1.1.0", risk("Leak", unknown, PROMQL))]
    (found,) = parse_graph(graph(("1.0.0", "1.1.0"), conditional=edges)).conditional[
        ("1.0.0", "1.1.0")
    ]
    assert [rule.type for rule in found.matching_rules] == ["PromQL"]


def with_risk(**changes: Any) -> bytes:
    edges = [conditional("1.0.0", "1.1.0", risk("Leak", ALWAYS) | changes)]
    return graph(("1.0.0", "1.1.0"), conditional=edges)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        pytest.param(b"<html>", "not JSON", id="a page"),
        pytest.param(b"", "not JSON", id="nothing"),
        pytest.param(b"\xff\xfe{}", "not JSON", id="not UTF-8"),
        pytest.param(b"[" * 100_000, "not", id="deep"),
        pytest.param(b"[]", "not an update graph", id="a list"),
        pytest.param(b'{"nodes": [], "edges": [[0]]}', "not an update graph", id="half an edge"),
        pytest.param(b" " * (MAX_BYTES + 1), "more than", id="too long"),
        pytest.param(graph(("1.0",)), "nodes[0].version: '1.0'", id="no version"),
        pytest.param(
            msgspec.json.encode({"nodes": [{"version": "1.0.0", "payload": "a b"}], "edges": []}),
            "nodes[0].payload: 'a b'",
            id="no image",
        ),
        pytest.param(graph(("1.0.0", "1.0.0")), "same version", id="a version twice"),
        pytest.param(graph(("1.0.0",), (0, 1)), "edges[0]: [0, 1]", id="an edge to nowhere"),
        pytest.param(graph(("1.0.0",), (0, -1)), "edges[0]", id="an edge to a negative node"),
        pytest.param(graph(("1.0.0",), (0, 0)), "cycle", id="an edge to itself"),
        pytest.param(graph(("1.0.0", "1.1.0"), (0, 1), (1, 0)), "cycle", id="a cycle"),
        pytest.param(with_risk(name=""), "risks[0].name", id="a risk without a name"),
        pytest.param(with_risk(message=""), "risks[0].message", id="a risk without a message"),
        pytest.param(with_risk(url="javascript:x"), "risks[0].url", id="a risk without a page"),
        pytest.param(with_risk(matchingRules=[]), "matchingRules", id="a risk without rules"),
        pytest.param(with_risk(matchingRules=[{"type": "PromQL"}]), "matchingRules", id="no query"),
    ],
)
def test_what_is_no_graph_is_refused_with_its_place(data: bytes, told: str) -> None:
    with pytest.raises(GraphInvalid) as refused:
        parse_graph(data)
    assert told in str(refused.value)
    assert len(str(refused.value)) < 500


def test_a_cycle_through_a_conditional_edge_is_refused() -> None:
    edges = [conditional("1.1.0", "1.0.0", risk("Leak", ALWAYS))]
    with pytest.raises(GraphInvalid, match=r"cycle, among 1\.0\.0, 1\.1\.0"):
        parse_graph(graph(("1.0.0", "1.1.0"), (0, 1), conditional=edges))


def test_ten_thousand_nodes_are_refused_soon() -> None:
    versions = tuple(f"1.0.{number}" for number in range(10_000))
    begun = time.monotonic()
    with pytest.raises(GraphInvalid, match=r"nodes: 10000 of them, more than 5000"):
        parse_graph(graph(versions, *[(at, at + 1) for at in range(9_999)]))
    assert time.monotonic() - begun < 10


def test_a_long_chain_is_no_deep_recursion() -> None:
    versions = tuple(f"1.0.{number}" for number in range(5_000))
    found = parse_graph(graph(versions, *[(at, at + 1) for at in range(4_999)]))
    assert len(found.nodes) == 5_000


@given(st.binary(max_size=200))
def test_any_bytes_are_a_graph_or_refused(data: bytes) -> None:
    with pytest.raises(GraphInvalid):
        parse_graph(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["nodes", "edges", "version", "payload", "metadata", "conditionalEdges"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_a_graph_or_refused(value: Any) -> None:
    try:
        found = parse_graph(msgspec.json.encode(value))
    except GraphInvalid:
        return
    assert not found.nodes


def test_channels_stay_a_set_after_they_are_cut() -> None:
    same = "x" * 64
    many = ",".join([f"{same}1", f"{same}2", *(f"c{number}" for number in range(100))])
    data = msgspec.json.encode({"nodes": [node("1.0.0", **{CHANNELS: many})], "edges": []})
    found = parse_graph(data).nodes["1.0.0"].release.channels
    assert len(found) == len(set(found)) == 20
    assert max(map(len, found)) <= 64


@pytest.mark.parametrize(
    "url",
    [
        "https://h.test:99999/",
        "https://h.test:x/",
        "https://h.test/%zz",
        "https://h.test/%4",
        "https://h_t.test/",
        "https://user@h.test/",
        "https://[bad/",
        "https://h.test\\x/",
    ],
)
def test_an_address_that_the_api_server_refuses_is_left_out_or_refused(url: str) -> None:
    data = msgspec.json.encode({"nodes": [node("1.0.0", url=url)], "edges": []})
    assert parse_graph(data).nodes["1.0.0"].release.url is None
    edges = [conditional("1.0.0", "1.1.0", risk("Leak", ALWAYS) | {"url": url})]
    with pytest.raises(GraphInvalid, match="is no https address"):
        parse_graph(graph(("1.0.0", "1.1.0"), conditional=edges))


@pytest.mark.parametrize("url", ["https://h.test:8443/a%20b?x=%41", "https://[::1]:8443/"])
def test_other_addresses_are_kept(url: str) -> None:
    data = msgspec.json.encode({"nodes": [node("1.0.0", url=url)], "edges": []})
    assert parse_graph(data).nodes["1.0.0"].release.url == url


@pytest.mark.parametrize("message", ["", "\n", " \n ", "x" * 4097])
def test_a_risk_needs_a_message_that_can_be_shown(message: str) -> None:
    edges = [conditional("1.0.0", "1.1.0", risk("Leak", ALWAYS, message=message))]
    with pytest.raises(GraphInvalid, match="message"):
        parse_graph(graph(("1.0.0", "1.1.0"), conditional=edges))
