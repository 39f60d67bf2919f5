"""The model of the handover, the table that it gives, and the faults that it finds."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from quarterdeck.cli.main import cli
from quarterdeck.localcluster.handover_releases import write_handover_releases
from quarterdeck.metal3.model import EDGES, RELEASES, Edge, Faults, explore, rows
from quarterdeck.operators.machine_api.build import Build
from quarterdeck.payload.lint import lint
from quarterdeck.payload.load import read_payload
from quarterdeck.payload.releases import load_release, read_releases

SUPPORTED = {
    # The design document's lists; those that it strikes out are not supported.
    "A->B": True,
    "A->C": False,
    "A->D": False,
    "B->C": True,
    "B->D": True,
    "C->D": True,
    "B->A": True,
    "C->B": True,
    "C->A": False,
    "D->C": True,
    "D->B": True,
    "D->A": False,
}
OWNER = {"A": "machine-api", "B": "machine-api", "C": "baremetal", "D": "baremetal"}
BY_NAME = {edge.name: edge for edge in EDGES}


def test_the_table_is_that_of_the_document() -> None:
    """But for its last sentence: A can be reached only from B, not B only from A."""
    found = list(rows())
    assert {row.edge: row.supported for row in found} == SUPPORTED
    for row in found:
        assert row.two_writers is not row.supported
        if row.supported:
            assert row.owner == OWNER[row.edge[-1]]
            assert row.template_changes in ("0, 0", "0, 1")
    assert {row.edge for row in found if row.edge.endswith("A") and row.supported} == {"B->A"}
    by_hand = {row.edge for row in found if row.supported and row.by_hand}
    assert by_hand == {"C->B", "D->B"}


def test_every_interleaving_is_explored() -> None:
    """The numbers are those of the present model; a smaller one would have lost something."""
    found = [explore(edge) for edge in EDGES]
    assert (sum(one.states for one in found), sum(one.steps for one in found)) == (3462, 23909)
    assert all(one.stuck == 0 for one in found)


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.name)
def test_the_template_never_changes_with_the_same_images(edge: Edge) -> None:
    assert explore(edge).template_changes == 0


@pytest.mark.parametrize(
    ("name", "changes"), [("B->C", 1), ("B->D", 1), ("C->D", 0), ("D->C", 0), ("A->B", 0)]
)
def test_with_other_images_the_template_changes_once(name: str, changes: int) -> None:
    found = explore(BY_NAME[name], same_images=False, deletions=False)
    assert found.template_changes == changes


@pytest.mark.parametrize("name", ["C->B", "D->B"])
def test_removed_in_any_order_there_are_never_two_writers(name: str) -> None:
    """In the right order the template changes once; otherwise as often as it is tried."""
    assert explore(BY_NAME[name], any_order=True).violation == ""
    in_order = explore(BY_NAME[name], any_order=False, same_images=False, deletions=False)
    assert (in_order.violation, in_order.template_changes) == ("", 1)


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.name)
@pytest.mark.parametrize("same_images", [True, False])
def test_whatever_somebody_deletes_the_verdict_is_the_same_and_all_is_made_good(
    edge: Edge, same_images: bool
) -> None:
    """The Deployment and the ClusterOperator, at any time and any number of times."""
    found = explore(edge, same_images=same_images)
    calm = explore(edge, same_images=same_images, deletions=False)
    assert found.states >= calm.states
    assert found.steps > calm.steps
    assert found.violation == calm.violation
    assert found.owners == calm.owners
    assert found.stuck == 0


@pytest.mark.parametrize(
    ("faults", "edge", "violation"),
    [
        pytest.param(
            Faults(unfenced_claim=True),
            "C->B",
            "overwrites a change that it has not read",
            id="a claim without a resource version",
        ),
        pytest.param(
            Faults(keeps_both_annotations=True),
            "B->C",
            "both annotations are there after a claim",
            id="a claim that keeps both annotations",
        ),
    ],
)
def test_a_fault_in_the_claim_is_found(faults: Faults, edge: str, violation: str) -> None:
    found = explore(BY_NAME[edge], faults=faults)
    assert violation in found.violation
    assert "claims the Deployment" in found.counterexample[-1]
    assert not explore(BY_NAME[edge]).violation


@pytest.mark.parametrize("name", [name for name, supported in SUPPORTED.items() if not supported])
def test_an_unsafe_update_has_a_counterexample(name: str) -> None:
    """The ungated operator writes after the claim."""
    found = explore(BY_NAME[name])
    assert "writes what the baremetal operator manages" in found.violation
    assert found.counterexample[-1].endswith("machine-api A applies")


def test_the_builds_of_the_operator_are_those_of_the_releases() -> None:
    for name, release in RELEASES.items():
        build = Build(name)
        assert build.manages_metal3 is release.manages
        if release.manages:
            assert build.gated is (release.machine_api == "gated")


def test_releases_that_cannot_be_written_are_an_error_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = CliRunner().invoke(cli, ["handover", "releases", str(file)])
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert "Not a directory" in done.output


def test_simulate_prints_the_table_and_the_counterexample() -> None:
    shown = CliRunner().invoke(cli, ["handover", "simulate"])
    assert shown.exit_code == 0
    for name, supported in SUPPORTED.items():
        (line,) = (one for one in shown.output.splitlines() if one.startswith(f"{name}  "))
        assert ("   yes   " if supported else "   no  ") in line
    assert max(map(len, shown.output.splitlines())) <= 80, "the table fits a terminal"
    assert "  C->B  delete the baremetal operator" in shown.output
    assert "The releases are A 4.6.0, B 4.6.1, C 4.7.0, D 4.7.1." in shown.output
    assert "3462 states and 23909 steps" in shown.output
    assert "A can be reached only from B." in shown.output
    data = json.loads(CliRunner().invoke(cli, ["handover", "simulate", "-o", "json"]).output)
    assert {one["edge"]: one["supported"] for one in data} == SUPPORTED
    story = CliRunner().invoke(cli, ["handover", "simulate", "--why", "A-C"]).output
    assert "9. old machine-api A applies" in story
    assert CliRunner().invoke(cli, ["handover", "simulate", "--why", "X"]).exit_code == 2


def test_the_releases_are_well_made(tmp_path: Path) -> None:
    """The kinds come with the machine API operator in A and B, with the other one in C and D."""
    write_handover_releases(tmp_path)
    found = read_releases(tmp_path)
    assert not found.problems
    previous = {offer.release.version: offer.previous for offer in found.offers}
    assert previous["4.6.0"] == {"4.6.1"}
    assert previous["4.6.1"] == {"4.6.0", "4.7.0", "4.7.1"}
    for release in RELEASES.values():
        assert lint(read_payload([tmp_path / release.version])) == ()
        offer = found.by_version(release.version)
        assert offer is not None
        manifests = load_release(offer, "self-managed-high-availability").manifests
        (crd,) = (one for one in manifests if one.identity.name == "provisionings.metal3.io")
        level = "0000_31_" if release.has_baremetal else "0000_30_"
        assert crd.file.startswith(level)
        operators = {one.identity.name for one in manifests if one.identity.kind == "Deployment"}
        assert ("cluster-baremetal-operator" in operators) is release.has_baremetal
        roles = [one for one in manifests if one.identity.name == "quarterdeck-machine-api"]
        touches = any(
            "deployments" in rule["resources"]
            for one in roles
            for rule in one.object.get("rules", ())
        )
        assert touches is release.manages  # D has no right that it does not use
