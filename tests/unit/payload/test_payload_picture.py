"""The order as dot and as SVG: complete, well formed, whatever the names are."""

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.payload.graph import Graph, Mode, build_graph
from quarterdeck.payload.model import Manifest
from quarterdeck.payload.picture import to_dot, to_svg

SVG = "{http://www.w3.org/2000/svg}"


def manifest(level: int | None, component: str, name: str = "x") -> Manifest:
    return Manifest(
        file=f"{level}-{component}-{name}",
        document=1,
        line=1,
        run_level=level,
        component=component,
        object={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}},
    )


def parsed(graph: Graph, title: str = "t") -> ElementTree.Element:
    return ElementTree.fromstring(to_svg(graph, title))  # noqa: S314  our own output


def texts(svg: ElementTree.Element, kind: str) -> list[str | None]:
    return [e.text for e in svg.iter(f"{SVG}text") if e.get("class") == kind]


PAYLOAD = [manifest(0, "a"), manifest(30, "b"), manifest(30, "c"), manifest(None, "")]


def test_updating_has_a_column_for_each_run_level_and_arrows_between() -> None:
    svg = parsed(build_graph(PAYLOAD, Mode.UPDATING))
    assert texts(svg, "level") == ["run level 00", "run level 30", "last"]
    assert texts(svg, "name") == ["a", "b", "c", "other files"]
    rects = [(float(r.get("x", "")), float(r.get("y", ""))) for r in svg.iter(f"{SVG}rect")]
    assert rects[1][0] == rects[2][0], "one run level, one column"
    assert rects[1][1] < rects[2][1], "a row for each component"
    assert len([p for p in svg.iter(f"{SVG}path") if p.get("class") == "arrow"]) == 2


@pytest.mark.parametrize("mode", [Mode.INITIALIZING, Mode.RECONCILING])
def test_flat_modes_have_no_arrows_and_name_the_run_level_in_the_box(mode: Mode) -> None:
    svg = parsed(build_graph(PAYLOAD, mode))
    assert texts(svg, "name") == ["00 a", "30 b", "30 c", "last other files"]
    assert not list(svg.iter(f"{SVG}path"))


def test_a_long_stage_continues_in_the_next_column_without_an_arrow() -> None:
    many = [manifest(10, f"part-{number:03}") for number in range(40)]
    svg = parsed(build_graph(many, Mode.UPDATING))
    assert len({rect.get("x") for rect in svg.iter(f"{SVG}rect")}) == 3
    assert not list(svg.iter(f"{SVG}path"))


def test_everything_is_inside_the_picture() -> None:
    svg = parsed(build_graph(PAYLOAD * 9, Mode.UPDATING), "a title")
    width, height = float(svg.get("width", "")), float(svg.get("height", ""))
    for rect in svg.iter(f"{SVG}rect"):
        assert float(rect.get("x", "")) + float(rect.get("width", "")) <= width
        assert float(rect.get("y", "")) + float(rect.get("height", "")) <= height


def test_an_empty_graph_is_a_picture_too() -> None:
    assert texts(parsed(build_graph([], Mode.UPDATING), "nothing"), "title") == ["nothing"]


@given(st.text(), st.text(), st.sampled_from(Mode))
def test_any_name_gives_well_formed_svg(component: str, name: str, mode: Mode) -> None:
    svg = parsed(build_graph([manifest(5, component, name)], mode), component)
    assert len(list(svg.iter(f"{SVG}rect"))) == 1


def test_dot_has_nodes_and_edges_with_names_quoted() -> None:
    graph = build_graph([manifest(1, 'say "hi"\\'), manifest(2, "b")], Mode.UPDATING)
    assert to_dot(graph, "t").splitlines()[4:] == [
        '  n0 [label="01 say \\"hi\\"\\\\\\n1 manifest"];',
        '  n1 [label="02 b\\n1 manifest"];',
        "  n0 -> n1;",
        "}",
    ]
