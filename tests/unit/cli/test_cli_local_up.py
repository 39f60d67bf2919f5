"""The options of `quarterdeck local up` that are about operators."""

import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from quarterdeck.api.operator_v1alpha1 import LogLevel
from quarterdeck.cli.cluster import LocalCluster, pasteable
from quarterdeck.cli.local import up
from quarterdeck.cli.local_operators import changes_in, operators_in
from quarterdeck.cli.local_ready import hint_words, introduction
from quarterdeck.cli.main import cli
from quarterdeck.delivery.declaration import Hint
from quarterdeck.delivery.registry import installed

LEVEL = {"ClusterVersionOperator": {"spec": {"operatorLogLevel": "Debug"}}}


@pytest.mark.parametrize(
    ("words", "operators", "changes"),
    [
        pytest.param([], (), {}, id="none"),
        pytest.param(["--operator=staleness"], ("staleness",), {}, id="by name"),
        pytest.param(
            ["--staleness", "--sample", "--cluster-version"],
            ("cluster-version", "sample", "staleness"),
            {},
            id="by options of their own, in the order of run levels",
        ),
        pytest.param(["--all"], ("staleness",), {}, id="all, of which a payload has the others"),
        pytest.param(["--sample", "--operator=sample"], ("sample",), {}, id="twice"),
        pytest.param(
            ["--cvo-log-level=debug"], ("cluster-version",), LEVEL, id="by what is set for it"
        ),
    ],
)
def test_what_is_asked_for(
    words: list[str], operators: tuple[str, ...], changes: dict[str, Any]
) -> None:
    context = click.Context(up)
    up.parse_args(context, list(words))
    assert operators_in(context.params) == operators
    assert changes_in(context.params) == changes


def test_an_operator_that_is_not_there_is_refused_before_anything_starts() -> None:
    result = CliRunner().invoke(cli, ["local", "up", "--operator", "nope"])
    assert result.exit_code == 2
    assert "'nope' is not one of" in " ".join(result.output.split())


def test_a_command_to_paste_fits_80_columns_and_means_the_same() -> None:
    words = ["quarterdeck", "local", "kubectl", *["--option=a value"] * 12]
    text = pasteable(words, indent=2)
    lines = text.splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 80
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert shlex.split(text.replace("\\\n", "")) == words


def test_a_short_command_is_one_line() -> None:
    assert pasteable(["quarterdeck", "local", "down"], indent=2) == "  quarterdeck local down"


def test_the_log_levels_are_those_of_the_type() -> None:
    (option,) = installed().operators["cluster-version"].local.options
    assert set(option.choices) == {level for level in LogLevel if level}


def test_the_introduction_of_every_operator_fits_80_columns() -> None:
    declared = installed().operators.values()
    lines = [line for one in declared for line in introduction(one, ". Its log:").splitlines()]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        pytest.param(
            Hint("", ("staleness", "probe")),
            ["quarterdeck", "staleness", "probe", "--kubeconfig=/state/kubeconfig"],
            id="ours gets the kubeconfig",
        ),
        pytest.param(
            Hint("", ("get", "nodes"), program="kubectl"),
            [
                *("quarterdeck", "local", "kubectl", "--name", "other"),
                *("--state-dir", "/state", "get", "nodes"),
            ],
            id="kubectl is the cluster's own",
        ),
        pytest.param(
            Hint("", ("http://127.0.0.1:{http}/{https}/{none}",), program="curl"),
            ["curl", "http://127.0.0.1:20001/20002/{none}"],
            id="another program, with ports",
        ),
    ],
)
def test_the_command_of_a_hint(
    hint: Hint, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["/nowhere/quarterdeck"])
    cluster = LocalCluster("other", Path("/state"))
    assert hint_words(hint, {"http": 20001, "https": 20002}, cluster) == words


def test_the_hints_of_every_operator_fit_80_columns() -> None:
    texts = [hint.text for one in installed().operators.values() for hint in one.local.hints]
    assert max(map(len, texts)) <= 80
