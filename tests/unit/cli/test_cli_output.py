"""Tables, data, and errors in one line."""

import json
from pathlib import Path

import click
import msgspec
import pytest
import yaml
from click.testing import CliRunner

from quarterdeck.cli import local_status
from quarterdeck.cli.cluster import LocalCluster
from quarterdeck.cli.output import (
    CommandFailed,
    Output,
    errors_in_one_line,
    output_option,
    show,
    table,
)
from quarterdeck.localcluster.components import COMPONENTS, THIS_MACHINE
from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.status import ClusterStatus, ComponentStatus, Phase, ProcessIdentity


@click.command()
@output_option
def example(output: Output) -> None:
    show({"b": 1, "a": [2]}, output, lambda: "for people")


def test_every_output_says_the_same() -> None:
    run = CliRunner().invoke
    assert run(example).output == "for people\n"
    assert json.loads(run(example, ["-o", "json"]).output) == {"b": 1, "a": [2]}
    assert yaml.safe_load(run(example, ["-o", "yaml"]).output) == {"b": 1, "a": [2]}
    assert run(example, ["-o", "xml"]).exit_code == 2


def test_columns_line_up_whatever_their_colour() -> None:
    rows = [["a", click.style("good", fg="green"), "x"], ["longer", "b", ""]]
    plain = click.unstyle(table(["NAME", "IS", "LAST"], rows))
    assert plain.splitlines() == [
        "NAME     IS     LAST",
        "a        good   x",
        "longer   b",
    ]


def test_an_error_is_one_line_and_an_exit_code() -> None:
    @click.command()
    def failing() -> None:
        with errors_in_one_line(ValueError):
            raise ValueError("first\n  second")

    result = CliRunner().invoke(failing)
    assert result.output == "error: first second\n"
    assert result.exit_code == CommandFailed.exit_code == 2


def test_other_errors_are_not_hidden() -> None:
    with pytest.raises(KeyError), errors_in_one_line(ValueError):
        raise KeyError("a fault of ours")


LAYOUT = Layout(Path("/state"))


def status(phase: Phase) -> ClusterStatus:
    log = "/state/logs/etcd.log"
    return ClusterStatus(
        phase=phase,
        supervisor=ProcessIdentity(10, 1, "boot"),
        since=0,
        url="https://127.0.0.1:1234",
        kubeconfig="/state/kubeconfig",
        kubectl="/bin/kubectl",
        components=(ComponentStatus(name="etcd", state="running", pid=11, restarts=2, log=log),),
    )


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        pytest.param(status("ready"), 0, id="all is well"),
        pytest.param(status("degraded"), 1, id="a part is not"),
        pytest.param(status("starting"), 1, id="not yet"),
        pytest.param(None, 3, id="nothing runs"),
    ],
)
def test_exit_codes_of_status(seen: ClusterStatus | None, code: int) -> None:
    assert local_status.exit_code(seen) == code


def test_status_for_people_says_how_to_use_it() -> None:
    text = click.unstyle(local_status.as_text(LAYOUT, status("ready"), LocalCluster()))
    assert "ready: https://127.0.0.1:1234" in text
    assert "to use it   export KUBECONFIG=/state/kubeconfig" in text
    assert "logs        /state/logs/COMPONENT.log" in text
    assert "etcd        3.6.8     running   11    2\n" in f"{text}\n"
    assert "local kubectl" not in text, "the user's own is there"


def test_a_long_path_of_the_kubeconfig_is_on_a_line_of_its_own() -> None:
    """In `status` and in `up`, for a user and a cluster with names of some length."""
    kubeconfig = "/home/somebody/.local/state/quarterdeck/somewhere/kubeconfig"
    seen = msgspec.structs.replace(status("ready"), kubeconfig=kubeconfig)
    for text in (
        local_status.as_text(LAYOUT, seen, LocalCluster()),
        local_status.summary(seen, "ready", LocalCluster()),
    ):
        assert f"to use it\n  export KUBECONFIG={kubeconfig}\n" in text
        assert max(map(len, text.splitlines())) <= 80


def test_without_kubectl_on_the_path_status_names_the_clusters_own() -> None:
    cluster = LocalCluster("dev")
    text = local_status.as_text(LAYOUT, status("ready"), cluster, has_kubectl=False)
    assert f"kubectl     {cluster.command('kubectl')}" in text


def test_status_of_every_component_fits_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the state directory of a user: nothing of the table is cut."""
    layout = Layout(Path("/home/somebody/.local/state/quarterdeck/local"))
    components = tuple(
        ComponentStatus(
            name=name, state="running", pid=1234567, restarts=12, log=str(layout.log_of(name))
        )
        for name in (*COMPONENTS, THIS_MACHINE)
    )
    monkeypatch.setattr("quarterdeck.cli.output.terminal_columns", lambda: 80)
    seen = msgspec.structs.replace(status("ready"), components=components)
    text = click.unstyle(local_status.as_text(layout, seen, LocalCluster()))
    rows = text.partition("RESTARTS")[2].splitlines()[1:]
    assert [row.split()[0] for row in rows] == [one.name for one in components]
    assert all(one.log == str(layout.log_of(one.name)) for one in components)
    assert "…" not in text
    assert max(map(len, rows)) <= 80


@pytest.mark.parametrize(
    ("path", "runs", "named"),
    [
        pytest.param("/bin/kubectl", True, "kubectl get pods", id="the user's own"),
        pytest.param(None, True, "quarterdeck local kubectl get pods", id="the cluster's own"),
        pytest.param(None, False, "kubectl get pods", id="neither: some other cluster"),
    ],
)
def test_an_error_names_a_kubectl_that_is_there(
    path: str | None, runs: bool, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = status("ready") if runs else None
    monkeypatch.setattr("quarterdeck.cli.cluster.shutil.which", lambda _name: path)
    monkeypatch.setattr("quarterdeck.localcluster.status.running_status", lambda _layout: seen)
    monkeypatch.setattr("quarterdeck.cli.cluster.this_program", lambda: "quarterdeck")
    error = CommandFailed("it does not run, see: kubectl get pods")
    assert error.message == f"it does not run, see: {named}"


def test_status_of_nothing_says_how_to_start_it() -> None:
    cluster = LocalCluster()
    text = local_status.as_text(LAYOUT, None, cluster)
    assert f"start it with: {cluster.command('up')}" in text


def test_status_after_a_failed_start_says_why() -> None:
    failed = msgspec.structs.replace(status("failed"), error="port 1 is taken")
    text = local_status.as_text(LAYOUT, None, LocalCluster(), failed)
    assert "the last start failed: port 1 is taken" in text
    data = local_status.as_data("local", LAYOUT, None, failed)
    assert (data["state"], data["lastError"]) == ("stopped", "port 1 is taken")


def test_status_for_programs_names_every_component() -> None:
    data = local_status.as_data("local", LAYOUT, status("degraded"))
    assert data["state"] == "degraded"
    assert data["components"][0]["pid"] == 11
    assert local_status.as_data("local", LAYOUT, None)["state"] == "stopped"


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        pytest.param(LocalCluster(), "quarterdeck local up", id="the default needs no option"),
        pytest.param(
            LocalCluster("dev", None), "quarterdeck local up --name dev", id="a name is repeated"
        ),
        pytest.param(
            LocalCluster("local", Path("/a b")),
            "quarterdeck local up --state-dir '/a b'",
            id="a place is quoted",
        ),
    ],
)
def test_a_command_can_be_pasted(
    cluster: LocalCluster, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["/no/such/quarterdeck"])
    assert cluster.command("up") == words


@pytest.mark.parametrize(
    ("environment", "state"),
    [
        pytest.param({"XDG_STATE_HOME": "/xdg"}, "/xdg/quarterdeck/local", id="XDG_STATE_HOME"),
        pytest.param(
            {"XDG_STATE_HOME": "", "HOME": "/home/a"},
            "/home/a/.local/state/quarterdeck/local",
            id="the home directory",
        ),
    ],
)
def test_where_the_state_is_kept(
    environment: dict[str, str], state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert LocalCluster().state == Path(state)


def test_a_program_that_is_not_on_the_path_is_called_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make up` does not activate .venv, and what it prints must still work."""
    program = tmp_path / ".venv" / "bin" / "quarterdeck"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    assert LocalCluster().command("up") == ".venv/bin/quarterdeck local up"
    monkeypatch.chdir(program.parents[1])
    assert LocalCluster().command("up") == "bin/quarterdeck local up"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert LocalCluster().command("up") == f"{program} local up"
    monkeypatch.setenv("PATH", str(program.parent))
    assert LocalCluster().command("up") == "quarterdeck local up"
