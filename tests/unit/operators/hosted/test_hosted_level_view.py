"""What `quarterdeck log-level --hosted` shows: the level at each step, and where it stopped."""

from typing import Any

import pytest
from click.testing import CliRunner

from quarterdeck.api.meta import Key, Object
from quarterdeck.cli.log_level import as_steps, as_table
from quarterdeck.cli.main import cli
from quarterdeck.operators.cluster_version.log_level.request import LevelView
from quarterdeck.operators.hosted.desired import CONFIG_KEY, desired_config_map
from quarterdeck.operators.hosted.inspect import HostedLevelObjects, HostedLevelView, level_view
from quarterdeck.operators.hosted.names import labels

LABELS = labels(Key("clusters", "harbour"))


def configured(level: Any) -> Object:
    if level is None:
        return {}
    value = {"clusterVersionOperator": {"operatorLogLevel": level}}
    return {"operatorConfiguration": value}


def cluster(level: Any, **false: str) -> Object:
    """A HostedCluster with this level, and conditions that are False with these messages."""
    conditions = [{"type": t, "status": "False", "message": m} for t, m in false.items()]
    conditions.append({"type": "Available", "status": "True", "message": ""})
    return {
        "metadata": {"name": "harbour", "namespace": "clusters"},
        "spec": configured(level),
        "status": {"conditions": conditions},
    }


def plane(level: Any) -> Object:
    metadata = {"name": "harbour", "namespace": "clusters-harbour", "labels": LABELS, "uid": "1"}
    kind = {"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane"}
    return kind | {"metadata": metadata, "spec": configured(level)}


def view(first: Object, second: Any, third: Any) -> HostedLevelView:
    """The view of these levels; `...` is an object that is missing."""
    return level_view(
        HostedLevelObjects(
            cluster=first,
            plane=None if second is ... else plane(second),
            config_map=None if third is ... else desired_config_map(plane(third)),
        )
    )


def levels(seen: HostedLevelView) -> list[str]:
    return [step.level for step in seen.steps]


@pytest.mark.parametrize(
    ("asked", "shown", "level"),
    [
        ("Debug", "Debug", "Debug"),
        (None, "unset", "Normal"),
        ("", "Normal", "Normal"),
    ],
)
def test_a_level_that_is_the_same_everywhere_has_arrived(
    asked: str | None, shown: str, level: str
) -> None:
    seen = view(cluster(asked), asked, asked)
    assert levels(seen) == [shown] * 3
    assert (seen.level, seen.in_file, seen.stopped_at) == (level, True, None)
    assert "stopped" not in as_steps(seen)


@pytest.mark.parametrize(
    ("second", "third", "at", "shown"),
    [
        (..., ..., "HostedCluster", ["Debug", "missing", "missing"]),
        (None, None, "HostedCluster", ["Debug", "unset", "unset"]),
        ("Debug", "Trace", "HostedControlPlane", ["Debug", "Debug", "Trace"]),
        ("Debug", ..., "HostedControlPlane", ["Debug", "Debug", "missing"]),
        ("Trace", "Debug", "HostedCluster", ["Debug", "Trace", "Debug"]),
    ],
)
def test_where_a_level_stopped(second: Any, third: Any, at: str, shown: list[str]) -> None:
    seen = view(cluster("Debug"), second, third)
    assert levels(seen) == shown
    assert (seen.in_file, seen.stopped_at) == (False, at)
    assert "kubectl get pods --namespace hypershift" in str(seen.because)
    assert f"it stopped at the {at}: " in as_steps(seen)


def test_the_conditions_say_why_it_stopped() -> None:
    off = view(cluster("Debug", OperatorConfigurationApplied="the gate is off"), None, None)
    assert (off.stopped_at, off.because) == ("HostedCluster", "the gate is off")
    old = view(cluster("Debug", OperatorConfigurationApplied="too old"), "Debug", "Debug")
    assert (old.in_file, old.stopped_at, old.because) == (False, "ConfigMap", "too old")
    refused = view(cluster("Debug", ValidConfiguration="another name"), ..., ...)
    assert refused.because == "another name"
    arrived = view(cluster("Debug", ValidConfiguration="no Secret"), "Debug", "Debug")
    assert arrived.in_file, "the level got there all the same"


HEAD = "apiVersion: operator.openshift.io/v1alpha1\nkind: ClusterVersionOperator\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "a: b",
        f"{HEAD}spec: 3",
        f"{HEAD}spec: [x]",
        f"{HEAD}spec: {{operatorLogLevel: null}}",
        f"{HEAD}spec: {{operatorLogLevel: {{}}}}",
        f"{HEAD}spec: {{operatorLogLevel: Loud}}",
        f"{HEAD}spec: {{operatorLogLevel: 2026-99-99}}",
        f"{HEAD}spec: {{}}".replace("v1alpha1", "v1"),
        "[" * 5000,
    ],
)
def test_a_config_map_that_is_none_is_shown_as_invalid(text: str) -> None:
    metadata = {"name": "x", "namespace": "y"}
    config_map = {"metadata": metadata, "data": {"config.yaml": text}}
    objects = HostedLevelObjects(
        cluster=cluster("Debug"), plane=plane("Debug"), config_map=config_map
    )
    assert levels(level_view(objects))[2] == "invalid"


def test_what_is_no_level_is_shown_as_it_is() -> None:
    assert levels(view(cluster("Loud"), None, None))[0] == "Loud"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["get", "--hosted", "harbour"], "write it as NAMESPACE/NAME"),
        (["get", "--hosted", "a/b/c"], "write it as NAMESPACE/NAME"),
        (["set", "Debug", "--hosted", "a/b", "--for", "1h"], "does not expire"),
    ],
)
def test_wrong_words_are_a_usage_error(words: list[str], said: str) -> None:
    result = CliRunner().invoke(cli, ["log-level", *words])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


FORGED = "no\nHostedCluster   clusters/harbour   Trace\x1b[2J"


def test_a_message_cannot_forge_a_row() -> None:
    """Who may write a condition decides its text."""
    text = as_steps(view(cluster("Debug", OperatorConfigurationApplied=FORGED), None, None))
    assert len(text.splitlines()) == 5
    assert r"no\nHostedCluster" in text
    assert "\x1b" not in text
    level = LevelView(
        level="Debug",
        verbosity=4,
        in_force=False,
        generation=1,
        observed_generation=1,
        ignored_because=FORGED,
    )
    assert len(as_table(level).splitlines()) == 3


def test_a_file_that_may_be_incomplete_is_invalid() -> None:
    whole = desired_config_map(plane("TraceAll"))
    cut = whole | {"data": {CONFIG_KEY: whole["data"][CONFIG_KEY].removesuffix("All\n")}}
    objects = HostedLevelObjects(cluster=cluster("Trace"), plane=plane("Trace"), config_map=cut)
    assert levels(level_view(objects)) == ["Trace", "Trace", "invalid"]
