"""`quarterdeck run` before it reaches a cluster: options, environment, one-line errors."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from quarterdeck import __version__
from quarterdeck.cli.main import cli
from quarterdeck.cli.run import connect, identity, own_probe_address, release_version, run
from quarterdeck.cli.run_options import given_options
from quarterdeck.controller import Operator, ProcessSettings, Timing
from quarterdeck.delivery.declaration import Declaration, load
from quarterdeck.delivery.registry import installed
from quarterdeck.kube import KubeconfigError


def test_every_registered_operator_can_be_imported() -> None:
    for operator in installed().operators.values():
        assert callable(load(operator.setup))


def test_a_field_manager_is_named_after_its_operator() -> None:
    assert installed().operators["sample"].field_manager == "quarterdeck-sample"


def test_nothing_of_anothers_operator_is_named_after_quarterdeck() -> None:
    declared = Declaration(
        name="beacons",
        title="The operator of beacons",
        setup="harbour:setup",
        namespace="harbour",
        account="beacon-operator",
    )
    assert declared.field_manager == "beacon-operator"


def test_the_defaults_are_those_of_the_runtime() -> None:
    """The command does not import the runtime for its help, so they are written there again."""
    said = {option.name: option.default for option in run.params}
    times = Timing()
    assert (times.duration, times.deadline, times.retry) == (15, 10, 2)
    assert said["lease_duration"] == times.duration
    assert said["renew_deadline"] == times.deadline
    assert said["retry_period"] == times.retry
    settings = ProcessSettings(identity="x")
    assert said["watch_grace_period"] == settings.watch_grace_period
    assert said["probe_address"] == settings.probe_address


@pytest.mark.parametrize(
    ("given", "names"),
    [
        pytest.param([], (), id="all"),
        pytest.param([""], (), id="an empty variable is no limit"),
        pytest.param(["b", "a", "b"], ("b", "a"), id="each once"),
    ],
)
def test_the_namespaces_to_watch(given: list[str], names: tuple[str, ...]) -> None:
    options = [f"--namespace={name}" for name in given]
    assert run.make_context("run", options).params["namespaces"] == names


@pytest.mark.parametrize("given", [["a", ""], ["a,b"], ["A"], ["../x"]])
def test_what_cannot_name_a_namespace_is_refused(given: list[str]) -> None:
    options = [f"--namespace={name}" for name in given]
    with pytest.raises(click.BadParameter, match="give the option once for each"):
        run.make_context("run", options)


def test_an_identity_is_the_pods_name_and_a_random_part() -> None:
    """The random part tells a restarted container from the one before."""
    first, second = (identity({"POD_NAME": "pod-1"}) for _ in range(2))
    assert first.startswith("pod-1_")
    assert first != second


@pytest.mark.parametrize(
    ("env", "version"),
    [
        pytest.param({"RELEASE_VERSION": "4.7.0"}, "4.7.0", id="that of its release"),
        pytest.param({"RELEASE_VERSION": "0.0.1-snapshot"}, __version__, id="not of one yet"),
        pytest.param({}, __version__, id="not in a cluster"),
    ],
)
def test_an_operator_reports_the_version_of_its_release_or_the_programs(
    env: dict[str, str], version: str
) -> None:
    assert release_version(env) == version


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["--operator", "nope"], "'nope' is not", id="an unknown operator"),
        pytest.param(
            [],
            f"would run {', '.join(installed().operators)}",
            id="none, and what all would be",
        ),
        pytest.param(
            ["--renew-deadline", "20"], "each has to be longer than the next", id="lease times"
        ),
    ],
)
def test_wrong_options_are_a_usage_error(options: list[str], said: str) -> None:
    result = CliRunner().invoke(cli, ["run", *options])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("words", "env", "own", "lease"),
    [
        pytest.param([], {}, "quarterdeck-sample", "quarterdeck-sample", id="as declared"),
        pytest.param([], {"POD_NAMESPACE": "here"}, "here", "here", id="the pod's"),
        pytest.param(
            ["--lease-namespace=kube-system"],
            {"POD_NAMESPACE": "here"},
            "here",
            "kube-system",
            id="the Lease elsewhere",
        ),
    ],
)
def test_the_namespaces_of_an_operator_and_of_its_lease(
    monkeypatch: pytest.MonkeyPatch, words: list[str], env: dict[str, str], own: str, lease: str
) -> None:
    found: list[Operator] = []

    class Recorded:
        def __init__(self, operators: list[Operator], *_: object) -> None:
            found.extend(operators)

        async def run(self) -> None:
            return

    monkeypatch.setattr("quarterdeck.controller.Process", Recorded)
    monkeypatch.setattr("quarterdeck.cli.run.connect", lambda *_: None)
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(cli, ["run", "--operator", "sample", *words])
    assert result.exit_code == 0, result.output
    assert [(it.namespace, it.lease_namespace) for it in found] == [(own, lease)]


@pytest.mark.parametrize(
    ("words", "env", "given"),
    [
        pytest.param([], {}, {}, id="nothing: the settings have their own defaults"),
        pytest.param(
            [], {"RELEASE_VERSION": "1.2.3"}, {"release_version": "1.2.3"}, id="by the environment"
        ),
        pytest.param(
            ["--release-version=2.0.0", "--cluster-profile=hypershift"],
            {"RELEASE_VERSION": "1.2.3"},
            {"release_version": "2.0.0", "profile": "hypershift"},
            id="by options, which come first",
        ),
    ],
)
def test_an_operators_settings(
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    env: dict[str, str],
    given: dict[str, str],
) -> None:
    """What is given, by operator; a variable for one that does not run is nobody's business."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    context = run.make_context("run", list(words))
    found = given_options(context, ["cluster-version"])
    assert found.get("cluster-version", {}) == given
    if not words:
        assert given_options(context, ["sample"]) == {}
    else:
        with pytest.raises(click.UsageError, match="--operator cluster-version"):
            given_options(context, ["sample"])


def test_a_kubeconfig_that_is_not_there_is_named_in_the_last_line(tmp_path: Path) -> None:
    missing = tmp_path / "nope"
    command = ["run", "--all", "--log-format=json", "--kubeconfig", str(missing)]
    ended = subprocess.run(
        [sys.executable, "-m", "quarterdeck", *command], capture_output=True, check=False
    )
    assert ended.returncode == 1
    last = json.loads(ended.stderr.splitlines()[-1])
    assert last["event"] == "exiting"
    assert str(missing) in last["reason"]


@pytest.mark.parametrize(
    ("kubeconfig", "env", "said"),
    [
        pytest.param(
            None,
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            "not in a cluster",
            id="a pod without a kubeconfig uses its account",
        ),
        pytest.param(
            "/nope/given",
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            "/nope/given",
            id="a kubeconfig that is given comes first",
        ),
        pytest.param(
            None,
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBECONFIG": "/nope/env"},
            "/nope/env",
            id="so does one in the environment",
        ),
        pytest.param(None, {"HOME": "/nope"}, "/nope/.kube/config", id="else the user's own"),
    ],
)
def test_the_cluster_is_chosen_by_options_and_environment(
    kubeconfig: str | None, env: dict[str, str], said: str
) -> None:
    with pytest.raises(KubeconfigError, match=said):
        connect(kubeconfig, None, env)


@pytest.mark.parametrize(
    ("address", "pod", "own"),
    [
        pytest.param(":8081", "127.1.2.3", "127.1.2.3:8081", id="a machine that pods share"),
        pytest.param(":8081", "10.0.0.7", ":8081", id="a pod with its own network"),
        pytest.param(":8081", "::1", "[::1]:8081", id="IPv6 loopback"),
        pytest.param(":8081", "", ":8081", id="no pod"),
        pytest.param(":8081", "harbour", ":8081", id="no address"),
        pytest.param("0.0.0.0:1", "127.1.2.3", "0.0.0.0:1", id="an address that is named"),
    ],
)
def test_probes_are_on_all_addresses_unless_the_machine_is_shared(
    address: str, pod: str, own: str
) -> None:
    assert own_probe_address(address, {"POD_IP": pod}) == own
