"""Real payloads of OpenShift operators: read, judged, ordered and drawn, in all combinations."""

from collections.abc import Iterator
from itertools import product

import pytest
import yaml
from tests.places import FIXTURES

from quarterdeck.feature_gates import FEATURE_SETS
from quarterdeck.payload.explain import explain
from quarterdeck.payload.filters import included
from quarterdeck.payload.findings import Severity
from quarterdeck.payload.gates import enabled_gates
from quarterdeck.payload.graph import Mode, build_graph
from quarterdeck.payload.lint import lint
from quarterdeck.payload.load import load_payload, read_payload
from quarterdeck.payload.model import KnownRelease, Payload
from quarterdeck.payload.observed import PROFILES, ObservedCluster
from quarterdeck.payload.picture import to_dot, to_svg
from quarterdeck.strict_yaml import decode_yaml
from quarterdeck.strict_yaml.documents import Document

COUNTS = {"payload": 97, "payload-4.6": 41, "payload-4.7": 53}

pytestmark = pytest.mark.skipif(
    not FIXTURES.is_dir(), reason="the real payloads are not part of the repository"
)


@pytest.fixture(params=sorted(COUNTS))
def payload(request: pytest.FixtureRequest) -> Payload:
    release = KnownRelease(version="4.22.7", image="example.test/release@sha256:1")
    return load_payload(FIXTURES / request.param, release=release, profile=PROFILES[0])


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_every_document_is_read(name: str, count: int) -> None:
    reading = read_payload([FIXTURES / name])
    assert reading.problems == ()
    assert len(reading.payload.manifests) == count


def test_placeholders_are_gone(payload: Payload) -> None:
    """Only the one that upstream forgot is left, in a variable of another name."""
    for manifest in payload.manifests:
        text = str(manifest.object)
        assert "{{.ReleaseImage}}" not in text
        assert text.count("0.0.1-snapshot") == text.count(
            "{'name': 'OPERATOR_IMAGE_VERSION', 'value': '0.0.1-snapshot'}"
        )


def test_values_are_those_that_pyyaml_reads() -> None:
    """Our reader and PyYAML's safe loader agree on every real manifest without templates."""
    files = [*FIXTURES.glob("payload*/*/*.yaml"), *FIXTURES.glob("upstream-crds/*.yaml")]
    compared = 0
    for path in files:
        text = path.read_text()
        if "{{" in text:
            continue
        ours = [d.value for d in decode_yaml(text) if isinstance(d, Document)]
        theirs = yaml.load_all(text, Loader=yaml.CSafeLoader)
        assert ours == [document for document in theirs if document is not None], path
        compared += 1
    assert compared > 100


def combinations(payload: Payload) -> Iterator[ObservedCluster]:
    for profile, feature_set in product((*PROFILES, "unheard-of"), FEATURE_SETS):
        gates = enabled_gates(payload, profile, feature_set)
        yield ObservedCluster(profile=profile, feature_set=feature_set, enabled_gates=gates)


def test_every_combination_is_judged_ordered_and_drawn(payload: Payload) -> None:
    for observed in combinations(payload):
        explanations = [explain(manifest, observed) for manifest in payload.manifests]
        counted = included(payload.manifests, observed)
        assert list(counted) == [e.manifest for e in explanations if e.excluded_by is None]
        for mode in Mode:
            graph = build_graph(counted, mode)
            assert sorted(m.place for m in graph.manifests) == sorted(m.place for m in counted)
            assert len(list(_rectangles(to_svg(graph, "x")))) == len(graph.nodes)
            assert to_dot(graph, "x").count("label=") == len(graph.nodes) + 1


def _rectangles(svg: str) -> Iterator[str]:
    return (line for line in svg.splitlines() if line.startswith("<rect"))


def test_the_object_of_the_log_level_is_not_for_hosted_clusters(payload: Payload) -> None:
    """ClusterVersionOperator is for no hypershift cluster, whatever its feature set."""
    for observed in combinations(payload):
        kinds = {m.object["kind"] for m in included(payload.manifests, observed)}
        if observed.profile == "hypershift":
            assert "ClusterVersionOperator" not in kinds


def codes(*names: str) -> list[tuple[str, str, str]]:
    """The findings, but for namespaces: those of other parts of a release are not in these."""
    reading = read_payload([FIXTURES / name for name in names])
    return [
        (f.code, f.file.rpartition("/")[2], f.value)
        for f in lint(reading)
        if f.code != "missing-namespace"
    ]


def test_the_namespaces_of_other_parts_of_the_release_are_named() -> None:
    found = [f.value for f in lint(read_payload([FIXTURES / "payload-4.7"]))]
    assert found == [
        "openshift-cloud-credential-operator",
        "openshift-config",
        "openshift-config-managed",
    ]


def test_what_is_wrong_with_the_newest() -> None:
    assert codes("payload") == [
        (
            "image-not-listed",
            "0000_00_cluster-version-operator_30_deployment.yaml",
            "quay.io/openshift/ci:ocp_5.0_agentic-skills",
        ),
        (
            "unknown-gate",
            "0000_90_cluster-version-operator_02_prometheusrule_servicemonitor.yaml",
            "ClusterUpdateAcceptRisks",
        ),
    ]


def test_what_is_wrong_with_the_older_ones() -> None:
    """4.6 is from before profiles, so that none of its manifests would count."""
    assert codes("payload-4.7") == []
    assert [(code, value) for code, _, value in codes("payload-4.6")] == [
        ("nothing-included", "41 manifests")
    ]


def test_the_real_slip_is_found() -> None:
    """CustomNoUpgrade has the CRD of the log level, but not the object."""
    reading = read_payload([FIXTURES / "payload", FIXTURES / "upstream-crds"])
    (slip,) = [finding for finding in lint(reading) if finding.code == "crd-without-cr"]
    assert slip.severity is Severity.WARNING
    assert slip.file.endswith("01_clusterversionoperators.crd.yaml")
    assert slip.value == "ClusterVersionOperator.operator.openshift.io/cluster"
    assert "for self-managed-high-availability, ibm-cloud-managed: CustomNoUpgrade;" in slip.message


def test_the_cluster_operator_crd_is_missing_for_the_developers_profile() -> None:
    """Upstream's CRDs are not for single-node-developer, but two ClusterOperators are."""
    missing = [
        value for code, _, value in codes("payload", "upstream-crds") if code == "cr-without-crd"
    ]
    assert missing == [
        "ClusterOperator.config.openshift.io/baremetal",
        "ClusterOperator.config.openshift.io/machine-api",
    ]
