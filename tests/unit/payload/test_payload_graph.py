"""The order: what waits for what in the three modes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.feature_gates import FEATURE_SETS
from quarterdeck.payload.filters import excluded_by, included
from quarterdeck.payload.graph import Graph, Mode, build_graph
from quarterdeck.payload.model import Manifest
from quarterdeck.payload.observed import ObservedCluster

PROFILE = "include.release.openshift.io/self-managed-high-availability"


def manifest(
    level: int | None, component: str, rest: str, kind: str = "ConfigMap", **annotations: Any
) -> Manifest:
    return Manifest(
        file=f"0000_{level}_{component}_{rest}.yaml",
        document=1,
        line=1,
        run_level=level,
        component=component,
        object={
            "apiVersion": "batch/v1" if kind == "Job" else "v1",
            "kind": kind,
            "metadata": {"name": f"{level}-{component}-{rest}", "annotations": annotations},
        },
    )


MANIFESTS = (
    manifest(0, "cvo", "1"),
    manifest(0, "cvo", "2"),
    manifest(30, "cbo", "1"),
    manifest(30, "mao", "1"),
    manifest(30, "mao", "2"),
    manifest(90, "cvo", "1"),
    manifest(None, "", "x"),
    manifest(None, "", "y"),
)


def shape(graph: Graph) -> list[tuple[str, int, tuple[int, ...]]]:
    return [(node.label, len(node.manifests), node.after) for node in graph.nodes]


@pytest.mark.parametrize(
    ("mode", "after"),
    [
        pytest.param(
            Mode.UPDATING,
            [(), (0,), (0,), (1, 2), (3,)],
            id="updating: each run level waits for the one before",
        ),
        pytest.param(Mode.INITIALIZING, [()] * 5, id="initializing: nothing waits"),
        pytest.param(Mode.RECONCILING, [()] * 5, id="reconciling: nothing waits"),
    ],
)
def test_run_levels(mode: Mode, after: list[tuple[int, ...]]) -> None:
    nodes = [("00 cvo", 2), ("30 cbo", 1), ("30 mao", 2), ("90 cvo", 1), ("last", 2)]
    expected = [(*node, before) for node, before in zip(nodes, after, strict=True)]
    assert shape(build_graph(MANIFESTS, mode)) == expected


WITH_JOB = (
    manifest(10, "a", "1"),
    manifest(10, "b", "1"),
    manifest(10, "b", "2", kind="Job"),
    manifest(10, "b", "3"),
    manifest(20, "a", "1"),
)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param(
            Mode.UPDATING,
            [
                ("10 a", 1, ()),
                ("10 b", 1, ()),
                ("10 b", 1, (0, 1)),
                ("10 b", 1, (2,)),
                ("20 a", 1, (3,)),
            ],
            id="updating: all before the Job, then the Job, then the rest by run level",
        ),
        pytest.param(
            Mode.INITIALIZING,
            [
                ("10 a", 1, ()),
                ("10 b", 1, ()),
                ("10 b", 1, (0, 1)),
                ("10 b", 1, (2,)),
                ("20 a", 1, (2,)),
            ],
            id="initializing: all before the Job, then the Job, then all the rest",
        ),
        pytest.param(
            Mode.RECONCILING,
            [("10 a", 1, ()), ("10 b", 3, ()), ("20 a", 1, ())],
            id="reconciling: the Job has long run",
        ),
    ],
)
def test_a_job_is_a_barrier(mode: Mode, expected: list[tuple[str, int, tuple[int, ...]]]) -> None:
    assert shape(build_graph(WITH_JOB, mode)) == expected


def test_nothing_gives_an_empty_graph() -> None:
    assert build_graph([], Mode.UPDATING) == Graph(mode=Mode.UPDATING, nodes=())


def test_stages_follow_what_nodes_wait_for() -> None:
    stages = build_graph(MANIFESTS, Mode.UPDATING).stages()
    assert [[node.label for node in stage] for stage in stages] == [
        ["00 cvo"],
        ["30 cbo", "30 mao"],
        ["90 cvo"],
        ["last"],
    ]


annotations = st.dictionaries(
    st.sampled_from(
        [
            PROFILE,
            "release.openshift.io/feature-set",
            "release.openshift.io/feature-gate",
            "capability.openshift.io/name",
            "exclude.release.openshift.io/self-managed-high-availability",
        ]
    ),
    st.sampled_from(["true", "", "Default", "X", "-X", "OKD,Default", "Build", "false", True]),
)


@st.composite
def payloads(draw: st.DrawFn) -> list[Manifest]:
    """Manifests with any annotations, in the order in which loading gives them."""
    drawn = draw(
        st.lists(
            st.tuples(
                st.none() | st.integers(0, 3),
                st.sampled_from("ab"),
                st.sampled_from(["ConfigMap", "Job"]),
                annotations,
            ),
            max_size=12,
        )
    )
    manifests = [
        manifest(level, component if level is not None else "", f"{number:02}", kind, **given)
        for number, (level, component, kind, given) in enumerate(drawn)
    ]
    return sorted(
        manifests, key=lambda m: (m.run_level is None, m.run_level or 0, m.component, m.file)
    )


@given(
    manifests=payloads(),
    mode=st.sampled_from(Mode),
    feature_set=st.sampled_from(FEATURE_SETS),
    gates=st.frozensets(st.just("X")),
)
def test_exactly_the_included_are_in_the_graph_once_in_order_without_a_cycle(
    manifests: list[Manifest], mode: Mode, feature_set: str, gates: frozenset[str]
) -> None:
    observed = ObservedCluster(feature_set=feature_set, enabled_gates=gates)
    graph = build_graph(included(manifests, observed), mode)

    files = [m.file for m in graph.manifests]
    assert sorted(files) == sorted(m.file for m in manifests if not excluded_by(m, observed))
    assert len(set(files)) == len(files), "each once"

    for number, node in enumerate(graph.nodes):
        assert node.number == number
        assert all(before < number for before in node.after), "no cycle"
        own = [m.file for m in node.manifests]
        assert own == sorted(own), "a component's files in order"
        assert own
        assert {(m.run_level, m.component) for m in node.manifests} == {
            (node.run_level, node.component)
        }


@given(manifests=payloads())
def test_updating_applies_a_run_level_only_after_all_lower_ones(manifests: list[Manifest]) -> None:
    graph = build_graph(manifests, Mode.UPDATING)
    before: dict[int, set[int]] = {}
    for node in graph.nodes:
        before[node.number] = set(node.after).union(*(before[n] for n in node.after))
    for node in graph.nodes:
        level = 99 if node.run_level is None else node.run_level
        lower = {
            other.number
            for other in graph.nodes
            if (99 if other.run_level is None else other.run_level) < level
        }
        assert lower <= before[node.number]


@given(manifests=payloads(), mode=st.sampled_from([Mode.UPDATING, Mode.INITIALIZING]))
def test_everything_after_a_job_waits_for_it(manifests: list[Manifest], mode: Mode) -> None:
    graph = build_graph(manifests, mode)
    before: dict[int, set[int]] = {}
    for node in graph.nodes:
        before[node.number] = set(node.after).union(*(before[n] for n in node.after))
    for node in graph.nodes:
        if node.manifests[0].object["kind"] == "Job":
            assert len(node.manifests) == 1
            assert before[node.number] == set(range(node.number))
            assert all(node.number in before[n.number] for n in graph.nodes[node.number + 1 :])
