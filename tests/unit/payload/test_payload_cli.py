"""`quarterdeck payload`: exit codes, forms of output, and what it says when it cannot."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from quarterdeck.cli.main import cli

INCLUDE = "include.release.openshift.io/self-managed-high-availability"


def config_map(name: str, annotations: str = f'{INCLUDE}: "true"') -> str:
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: default\n"
        f"  annotations: {{{annotations}}}\n"
    )


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    (tmp_path / "0000_10_one_1.yaml").write_text(config_map("first"))
    (tmp_path / "0000_20_two_1.yaml").write_text(
        config_map("second") + "---\n" + config_map("gated", f'{INCLUDE}: "true", {GATED}')
    )
    return tmp_path


GATED = "release.openshift.io/feature-gate: ClusterVersionOperatorConfiguration"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["payload", *map(str, arguments)])


def test_lint_ends_with_0_when_all_is_well(payload: Path) -> None:
    result = run("lint", payload)
    assert (result.exit_code, result.stdout) == (0, "3 manifests: all well\n")


def test_lint_ends_with_1_on_findings_and_shows_place_field_value_and_remedy(payload: Path) -> None:
    (payload / "x.yaml").write_text(config_map("x", "release.openshift.io/delete: 'no'"))
    result = run("lint", payload)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "x.yaml:6: error: the only value is true [bad-annotation]",
        "    metadata.annotations[release.openshift.io/delete]: no",
        '    write "true" or remove it',
        "4 manifests: 1 error, 0 warnings",
    ]


def test_lint_ends_with_2_when_a_file_cannot_be_read(payload: Path) -> None:
    (payload / "x.yaml").write_text("a: [\n")
    result = run("lint", payload, "-o", "json")
    assert result.exit_code == 2
    shown = json.loads(result.stdout)
    assert (shown["manifests"], shown["errors"], shown["warnings"]) == (3, 1, 0)
    (finding,) = shown["findings"]
    assert (finding["code"], finding["file"], finding["line"]) == ("unreadable", "x.yaml", 2)


@pytest.mark.parametrize("command", ["lint", "graph"])
def test_a_directory_of_releases_is_no_payload(tmp_path: Path, command: str) -> None:
    for version in ("1.0.0", "1.1.0"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "release-metadata").write_text(f"version: {version}\n")
    result = run(command, tmp_path)
    assert result.exit_code == 2
    assert "is a directory of releases; name one of them: " in result.stderr
    assert str(tmp_path / "1.1.0") in result.stderr


def test_escape_sequences_of_a_payload_do_not_reach_the_terminal(payload: Path) -> None:
    (payload / "x.yaml").write_text(config_map('"\\e[2Jx"', "a: b"))
    for arguments in (["lint", payload], ["why", payload, "x.yaml"]):
        result = run(*arguments)
        assert "\x1b" not in result.stdout
        assert "\\x1b[2Jx" in result.stdout


@pytest.mark.parametrize(
    ("what", "options", "code"),
    [
        pytest.param("0000_10_one_1.yaml", [], 0, id="a file, included"),
        pytest.param("ConfigMap/first", [], 0, id="kind and name"),
        pytest.param(
            "configmap/default/first", [], 0, id="kind in small letters, with the namespace"
        ),
        pytest.param("ConfigMap/first", ["--profile", "hypershift"], 1, id="another profile"),
        pytest.param("ConfigMap/gated", [], 0, id="a gate of the release is on"),
        pytest.param(
            "ConfigMap/gated",
            ["--no-gate", "ClusterVersionOperatorConfiguration"],
            1,
            id="unless it is turned off",
        ),
        pytest.param(
            "ConfigMap/first", ["--unmanaged", "ConfigMap/default/first"], 1, id="taken over"
        ),
        pytest.param(
            "0000_20_two_1.yaml",
            ["--unmanaged", "ConfigMap/default/second"],
            0,
            id="one of two documents counts",
        ),
        pytest.param("ConfigMap/frist", [], 2, id="nothing of that name"),
        pytest.param("Secret/first", [], 2, id="another kind"),
    ],
)
def test_why_ends_with_whether_the_manifest_counts(
    payload: Path, what: str, options: list[str], code: int
) -> None:
    assert run("why", payload, what, *options).exit_code == code


def test_why_shows_all_nine_filters(payload: Path) -> None:
    result = run("why", payload, "ConfigMap/first", "--profile", "hypershift")
    lines = result.stdout.splitlines()
    assert lines[0] == "ConfigMap/default/first in 0000_10_one_1.yaml:1"
    assert lines[1].endswith(": excluded by filter 7, profile")
    assert [line.split()[0] for line in lines[3:]] == list("123456789")
    assert lines[9].endswith("yes        include.release.openshift.io/hypershift is not set")


def test_why_as_data(payload: Path) -> None:
    result = run("why", payload, "ConfigMap/first", "--feature-set", "OKD", "-o", "yaml")
    shown = yaml.safe_load(result.stdout)
    assert (shown["profile"], shown["featureSet"]) == ("self-managed-high-availability", "OKD")
    (manifest,) = shown["manifests"]
    assert manifest["included"] is True
    assert manifest["excludedBy"] is None
    assert [entry["number"] for entry in manifest["filters"]] == list(range(1, 10))


def test_why_takes_the_path_of_a_file_without_a_directory(payload: Path) -> None:
    assert run("why", payload / "0000_10_one_1.yaml").exit_code == 0


def test_why_suggests_what_was_meant(payload: Path) -> None:
    result = run("why", payload, "ConfigMap/frist")
    assert "did you mean ConfigMap/first" in result.stderr


@pytest.mark.parametrize("command", [["why", "x.yaml"], ["graph"]])
def test_a_broken_payload_is_told_in_full_and_ends_with_2(
    payload: Path, command: list[str]
) -> None:
    (payload / "x.yaml").write_text("a: [\n")
    (payload / "y.yaml").write_text("a: 1\na: 2\n")
    result = run(command[0], payload, *command[1:])
    assert result.exit_code == 2
    assert [line.split(" ")[1] for line in result.stderr.splitlines()] == ["x.yaml:2", "y.yaml:2"]


def test_an_override_that_is_no_object_is_refused(payload: Path) -> None:
    result = run("why", payload, "ConfigMap/first", "--unmanaged", "first")
    assert result.exit_code == 2
    assert "KIND[.GROUP]/[NAMESPACE/]NAME" in result.stderr


def test_graph_lists_what_counts_in_order(payload: Path) -> None:
    gate = "ClusterVersionOperatorConfiguration"
    result = run("graph", payload, "--no-gate", gate)
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            "updating: profile self-managed-high-availability, feature set Default",
            "run level 10",
            "  one",
            "    ConfigMap/default/first  0000_10_one_1.yaml:1",
            "run level 20",
            "  two",
            "    ConfigMap/default/second  0000_20_two_1.yaml:1",
            "2 of 3 manifests",
        ],
    )


def test_graph_as_data(payload: Path) -> None:
    shown = json.loads(run("graph", payload, "-o", "json").stdout)
    assert shown["mode"] == "updating"
    assert [(n["runLevel"], n["component"], n["after"]) for n in shown["nodes"]] == [
        (10, "one", []),
        (20, "two", [0]),
    ]
    flat = json.loads(run("graph", payload, "-o", "json", "--mode", "reconciling").stdout)
    assert [node["after"] for node in flat["nodes"]] == [[], []]


def test_graph_as_pictures(payload: Path) -> None:
    assert run("graph", payload, "-o", "dot").stdout.startswith("digraph payload {")
    svg = run("graph", payload, "-o", "svg").stdout
    assert ElementTree.fromstring(svg).tag.endswith("svg")  # noqa: S314  our own output


def test_seal_writes_the_list_and_says_how_many_files_it_has(payload: Path) -> None:
    result = run("seal", payload)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(str(payload / "SHA256SUMS"))
    lines = (payload / "SHA256SUMS").read_text().splitlines()
    assert f"{len(lines)} files" in result.stdout
    assert run("seal", payload / "nowhere").exit_code == 2
