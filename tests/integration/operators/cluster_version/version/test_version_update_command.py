"""`quarterdeck update` against a running operator: show, start, follow, refuse, turn back."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.operators.cluster_version.version.releases import (
    LIMIT,
    Cluster,
    Releases,
    config_map,
    deployment,
)

from quarterdeck.api.meta import Object
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually

PROGRAM = str(Path(sys.executable).with_name("quarterdeck"))

Done = subprocess.CompletedProcess[str]
Update = Callable[..., Done]


def release(cluster: Cluster, version: str, **more: Object) -> dict[str, Object | str]:
    """A release that is a ConfigMap which says its version, and what is added."""
    first = config_map("pilot", cluster.namespace, version=version)
    return {"0000_20_pilot_00.json": first, **{f"0000_30_{k}.json": v for k, v in more.items()}}


@pytest.fixture
def settled(cluster: Cluster, releases: Releases, run_cvo: StartOperator) -> Cluster:
    """A cluster at 1.0.0; 1.0.1 never gets ready, 1.1.0 is good, 2.0.0 is out of reach."""
    stuck = deployment("stuck", cluster.namespace, simulate="never-ready")
    releases.write("1.0.0", release(cluster, "1.0.0"))
    releases.write("1.0.1", release(cluster, "1.0.1", stuck=stuck), ["1.0.0"])
    releases.write("1.1.0", release(cluster, "1.1.0"), ["1.0.0", "1.0.1"])
    releases.write("2.0.0", release(cluster, "2.0.0"), ["1.1.0"])
    run_cvo()
    cluster.wait_release("1.0.0")
    return cluster


def words(cluster: Cluster, *arguments: str) -> list[str]:
    return [PROGRAM, "update", f"--kubeconfig={cluster.plane.kubeconfig}", *arguments]


@pytest.fixture
def update(cluster: Cluster) -> Update:
    """Runs the command."""

    def run(*arguments: str) -> Done:
        return subprocess.run(
            words(cluster, *arguments),
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )

    return run


@pytest.fixture
def following(settled: Cluster) -> Iterator["subprocess.Popen[str]"]:
    """The command that follows the update, in the background."""
    process = subprocess.Popen(
        words(settled, "1.0.1", "--watch"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def test_it_shows_the_updates_and_starts_and_follows_one(settled: Cluster, update: Update) -> None:
    shown = update()
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == "the cluster runs 1.0.0"
    rows = [line.split() for line in lines if line.startswith("1.")]
    assert rows == [
        ["1.1.0", "recommended", "quarterdeck:1.1.0"],
        ["1.0.1", "recommended", "quarterdeck:1.0.1"],
    ]
    assert lines[-1].endswith("update 1.1.0 --watch")

    done = update("1.1.0", "--watch")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the cluster runs 1.1.0\n"
    assert "Cluster version is 1.1.0" in done.stderr
    assert settled.find("configmap", "pilot")["data"]["version"] == "1.1.0"
    (entry, *_) = settled.status()["history"]
    assert (entry["version"], entry["state"]) == ("1.1.0", "Completed")
    # Once more changes nothing.
    again = update("1.1.0", "--watch")
    assert (again.returncode, again.stdout) == (0, "the cluster runs 1.1.0\n")

    data = json.loads(update("-o", "json").stdout)
    assert (data["version"], data["state"]) == ("1.1.0", "complete")
    assert [one["version"] for one in data["updates"]] == ["2.0.0"]


def test_a_refused_update_says_why_and_can_be_withdrawn(settled: Cluster, update: Update) -> None:
    for asked in ("2.0.0", "9.9.9"):
        done = update(asked, "--watch")
        assert done.returncode == 1, done.stderr
        assert f"{asked} is not accepted:" in done.stdout
        assert f"spec.desiredUpdate.version: '{asked}'" in done.stdout
        assert "update --cancel" in done.stdout
    assert settled.find("configmap", "pilot")["data"]["version"] == "1.0.0"

    done = update("--cancel")
    assert (done.returncode, done.stdout) == (0, "the cluster runs 1.0.0\n")
    assert "desiredUpdate" not in settled.find("clusterversion", "version")["spec"]


def test_a_blocked_minor_update_is_marked_and_told(settled: Cluster, update: Update) -> None:
    entry = {"kind": "ConfigMap", "group": "", "namespace": settled.namespace, "name": "pilot"}
    settled.patch(
        "clusterversion", "version", {"spec": {"overrides": [entry | {"unmanaged": True}]}}
    )
    settled.wait_condition("Upgradeable", "False")
    shown = update().stdout
    assert ["1.1.0", "blocked", "quarterdeck:1.1.0"] in [x.split() for x in shown.splitlines()]
    assert "Minor updates are blocked, patch updates are not" in shown
    assert shown.splitlines()[-1].endswith("update 1.0.1 --watch")


def test_a_stuck_update_is_followed_and_turned_back(
    settled: Cluster, update: Update, following: "subprocess.Popen[str]"
) -> None:
    settled.wait_condition("Progressing", "True", "waiting on Deployment")
    shown = update()
    assert shown.stdout.startswith("updating from 1.0.0 to 1.0.1: 1 of 2 manifests are done\n")
    assert shown.stdout.splitlines()[-1].endswith("update --watch")
    assert json.loads(update("-o", "json").stdout)["turnBackTo"] == "1.0.0"

    assert following.stderr is not None
    wanted = f"waiting on Deployment {settled.namespace}/stuck"
    eventually(lambda: wanted in (following.stderr.readline() if following.stderr else ""), wanted)
    following.send_signal(signal.SIGINT)
    _, stderr = following.communicate(timeout=LIMIT)
    assert following.returncode == 2
    assert stderr.endswith(
        "error: stopped watching; the update goes on: follow it with: quarterdeck update --watch\n"
    )

    done = update("1.0.0", "--watch")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "the cluster runs 1.0.0\n"
    assert settled.find("configmap", "pilot")["data"]["version"] == "1.0.0"


def test_without_an_operator_it_says_what_to_look_at(cluster: Cluster, update: Update) -> None:
    done = update()
    assert done.returncode == 2
    assert done.stderr.startswith("error: this cluster has no ClusterVersion version")
    assert len(done.stderr.splitlines()) == 1
    cluster.apply(
        {
            "apiVersion": "config.openshift.io/v1",
            "kind": "ClusterVersion",
            "metadata": {"name": "version"},
            "spec": {"clusterID": "00000000-0000-4000-8000-000000000000"},
        }
    )
    assert update().stdout.startswith("no release has been applied yet\n")
    done = update("1.0.0", "--timeout=1s")
    assert done.returncode == 2
    assert "has not answered within 1 s" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--cancel", "1.0.0"], "--cancel: give no release"),
        (["--force"], "need a VERSION or an --image"),
        (["--accept-risk", "Fire"], "need a VERSION or an --image"),
    ],
)
def test_options_that_contradict_each_other(
    update: Update, arguments: list[str], told: str
) -> None:
    done = update(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
