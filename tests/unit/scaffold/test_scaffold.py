"""The names and files of a new project."""

import ast
import json
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from click.testing import CliRunner

from quarterdeck.cli.main import cli
from quarterdeck.scaffold.names import TAKEN, InvalidNameError, names_for
from quarterdeck.scaffold.source import requirement_of
from quarterdeck.scaffold.write import NotEmptyError, project_files, write_project


@pytest.mark.parametrize(
    ("operator", "kind", "plural", "package"),
    [
        pytest.param("website", "Website", "websites", "website_operator", id="one word"),
        pytest.param("web-proxy", "WebProxy", "webproxies", "web_proxy_operator", id="two words"),
        pytest.param("gateway", "Gateway", "gateways", "gateway_operator", id="a vowel before y"),
        pytest.param("mailbox", "Mailbox", "mailboxes", "mailbox_operator", id="an x at the end"),
        pytest.param("class", "Class", "classes", "class_operator", id="a word of Python"),
    ],
)
def test_all_names_follow_from_the_operators(
    operator: str, kind: str, plural: str, package: str
) -> None:
    names = names_for(operator)
    assert (names.kind, names.plural, names.package) == (kind, plural, package)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        pytest.param({"operator": ""}, "the name", id="no name"),
        pytest.param({"operator": "Website"}, "the name", id="a capital"),
        pytest.param({"operator": "../etc"}, "the name", id="a path"),
        pytest.param({"operator": "1st"}, "the name", id="a digit first"),
        pytest.param({"operator": "x" * 41}, "the name", id="a long name"),
        pytest.param({"operator": "a", "kind": "web site"}, "the kind", id="a blank"),
        pytest.param({"operator": "a", "kind": "Fish", "plural": "fish"}, "the plural", id="same"),
        pytest.param({"operator": "a", "group": "example"}, "the API group", id="no domain"),
        pytest.param({"operator": "a", "group": 'x.y"\n'}, "the API group", id="a quote"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused(arguments: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidNameError, match=f"^{field} "):
        names_for(**arguments)


def test_the_name_of_an_operator_of_quarterdeck_is_refused(tmp_path: Path) -> None:
    """Quarterdeck's own would run instead of the author's."""
    place = tmp_path / "project"
    done = CliRunner().invoke(cli, ["new", "operator", "sample", f"--directory={place}"])
    assert (done.exit_code, "choose another name" in done.output) == (2, True)
    assert not place.exists()


@pytest.mark.parametrize("operator", ["a", "class", "x" * 40, "a-b-c"])
def test_every_file_of_a_project_can_be_read(operator: str) -> None:
    project = project_files(names_for(operator), "quarterdeck[testing]==1")
    assert {"Makefile", "README.md", "pyproject.toml", "tests/test_cluster.py"} <= set(project)
    for path, text in project.items():
        assert "{{" not in text
        if path.endswith(".py"):
            ast.parse(text)


def test_no_name_of_the_kind_hides_another_of_the_code() -> None:
    """What the files bind and import for neutral names is what `TAKEN` lists."""
    names = names_for("quux")
    own = {names.kind, f"{names.kind}Spec", f"{names.kind}Status", names.constant}
    own |= {names.variable, names.variables}
    bound = set()
    for path, text in project_files(names, "q").items():
        for node in ast.walk(ast.parse(text)) if path.endswith(".py") else ():
            match node:
                case ast.alias(name=name, asname=asname):
                    bound.add(asname or name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    bound.add(name)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    bound.add(name)
    unlisted = {name for name in bound - own - TAKEN if not name.startswith(("test_", "_"))}
    assert unlisted <= {"api_version", "observed_generation", "spec"}, "fields, not variables"


@pytest.mark.parametrize("operator", ["report", "result", "key"])
def test_a_kind_that_the_code_has_already_is_refused(operator: str) -> None:
    with pytest.raises(InvalidNameError, match="name one with --kind"):
        names_for(operator)
    names_for(operator, kind="Other")


def test_a_variable_that_the_code_has_already_gets_another_name() -> None:
    assert names_for("setting").variables == "settings_"
    assert names_for("class").variable == "class_"


def test_a_directory_with_files_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    write_project(place, {"a/b": "text"})
    assert (place / "a" / "b").read_text() == "text"
    with pytest.raises(NotEmptyError, match="not empty"):
        write_project(place, {"c": "text"})
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]
    assert not (place / "c").exists()


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="x" * 300):
        write_project(tmp_path / "mine", {"x" * 300: "text"})
    assert list(tmp_path.iterdir()) == []


def test_the_quarterdeck_of_a_project_is_the_one_that_wrote_it(tmp_path: Path) -> None:
    info = tmp_path / "quarterdeck-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quarterdeck\nVersion: 1.2\n")
    installed = Distribution.at(info)
    assert requirement_of(installed) == "quarterdeck[testing]==1.2"
    (info / "direct_url.json").write_text(json.dumps({"url": tmp_path.as_uri(), "dir_info": {}}))
    assert requirement_of(installed) == f"{tmp_path}[testing]"
    (info / "direct_url.json").write_text(json.dumps({"url": "file:///gone.whl"}))
    assert requirement_of(installed) == "quarterdeck[testing]==1.2"
