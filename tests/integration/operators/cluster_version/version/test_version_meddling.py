"""Objects deleted and edited while an update runs: whatever the sequence, it ends at the release.

Each example is an update to the next release, so that hypothesis does not shrink what it finds; the
sequence that failed is in its report.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from tests.integration.operators.cluster_version.version.releases import (
    LIMIT,
    Cluster,
    Releases,
    config_map,
    deployment,
)
from tests.integration.operators.cluster_version.version.test_version_crashes import (
    ended,
    versions,
    write_releases,
)

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.testing.fault_proxy import FaultProxy, Hold
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually, until

Meddle = tuple[int, str, str, str]
"""After so many writes of the operator: what is done, and to which kind and name."""
STEPS = 40
"""A little more than the writes of an update."""
SPARE = 3
"""Releases for the examples that hypothesis runs once more, to see whether they fail again."""
DELETED = [
    ("configmap", "map-20-0"),
    ("configmap", "map-45-1"),
    ("configmap", "map-70-4"),
    ("configmap", "new-VERSION"),
    ("deployment", "slow"),
    ("deployment", "pilot"),
    ("lookout", "mast"),
    ("crd", "lookouts"),
]
"""No Job: one that has run is not run again, so one that is deleted stays away."""
EDITED = [
    ("configmap", "map-20-0"),
    ("configmap", "map-35-2"),
    ("configmap", "map-70-4"),
    ("configmap", "new-BEFORE"),
    ("deployment", "slow"),
    ("deployment", "pilot"),
    ("lookout", "mast"),
]


def meddles() -> st.SearchStrategy[list[Meddle]]:
    """Some of what somebody may do in an update, in the order in which it is done."""
    what = st.sampled_from(
        [("delete", *one) for one in DELETED] + [("edit", *one) for one in EDITED]
    )
    one = st.builds(lambda step, done: (step, *done), st.integers(0, STEPS), what)
    return st.lists(one, min_size=1, max_size=8).map(sorted)


class Meddler:
    """Deletes and edits a release's objects; what is not there (yet) is let be."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._group = f"{cluster.namespace}.example.test"

    def do(self, what: str, kind: str, name: str) -> None:
        if kind == "crd":
            name = f"{name}.{self._group}"
        elif kind == "lookout":
            kind = f"lookout.{self._group}"
        if what == "delete":
            # A definition that has just gone takes its kind with it.
            with suppress(LocalClusterError):
                self._cluster.delete(kind, name)
        elif kind == "configmap":
            # Not an apply, which would create again what the release has deleted: an object that
            # somebody creates after the update is theirs, and stays.
            self._edit(kind, name, {"data": {"text": "spoilt"}})
        elif kind == "deployment":
            container = {"name": "main", "image": "example.test/foreign:1"}
            sidecar = {"name": "sidecar", "image": "example.test/sidecar:1"}
            spec = {"template": {"spec": {"containers": [container, sidecar]}}}
            self._edit(kind, name, {"spec": spec})
        else:
            self._edit(kind, name, {"spec": None})

    def _edit(self, kind: str, name: str, patch: Object) -> None:
        with suppress(LocalClusterError):
            self._cluster.patch(kind, name, patch)


def meddle_through(
    cluster: Cluster,
    releases: Releases,
    run_cvo: StartOperator,
    proxy: FaultProxy,
    kubeconfig: Path,
    count: int,
) -> None:
    """As many updates, each with a sequence of its own."""
    chain = versions(count + SPARE)
    write_releases(releases, cluster.namespace, chain)
    run_cvo(chain[0], f"--kubeconfig={proxy.write_kubeconfig(kubeconfig)}")
    cluster.wait_release(chain[0])
    cluster.ask(version=chain[1])
    cluster.wait_release(chain[1])
    expected = ended(cluster, chain[1], chain[0], 1)
    numbers = iter(range(2, len(chain)))
    meddler = Meddler(cluster)

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(sequence=meddles())
    def update(sequence: list[Meddle]) -> None:
        number = next(numbers)
        version, before = chain[number], chain[number - 1]
        note(f"{version}: {sequence}")
        proxy.forget()
        cluster.ask(version=version)
        for step, what, kind, name in sequence:
            wait_writes(cluster, proxy, step, version)
            meddler.do(what, kind, name.replace("VERSION", version).replace("BEFORE", before))
        cluster.wait_release(version)
        cluster.wait_condition("Progressing", "False")
        until(
            lambda: differing(cluster, version, before, number, expected),
            lambda seen: seen == ([], []),
            "the release as it is where nobody meddles (what is missing, what is there instead)",
            LIMIT,
        )

    update()


def differing(
    cluster: Cluster, version: str, before: str, number: int, expected: list[Any]
) -> tuple[list[Any], list[Any]]:
    """What is not there of what was expected, and what is there instead."""
    try:
        seen = ended(cluster, version, before, number)
    except (KeyError, ValueError, LocalClusterError) as error:
        # Something is gone, or a Job has not run yet.
        return expected, [repr(error)]
    return [one for one in expected if one not in seen], [
        one for one in seen if one not in expected
    ]


def wait_writes(cluster: Cluster, proxy: FaultProxy, step: int, version: str) -> None:
    """Return when the operator has written so often, or is done."""

    def look() -> bool:
        newest = cluster.status()["history"][0]
        return proxy.writes() >= step or (
            (newest["version"], newest["state"]) == (version, "Completed")
        )

    eventually(look, f"{step} writes")


def test_an_object_deleted_just_before_the_last_step_is_waited_for(
    cluster: Cluster,
    releases: Releases,
    run_cvo: StartOperator,
    fault_proxy: FaultProxy,
    tmp_path: Path,
) -> None:
    """The update was found ended for good, neither complete nor at work, 26 of 27 steps done."""
    here = cluster.namespace
    for version, before in (("1.0.0", []), ("1.1.0", ["1.0.0"])):
        files = {
            "0000_10_pilot_00.json": deployment("pilot", here),
            "0000_20_chart_00.json": config_map("chart", here, version=version),
        }
        releases.write(version, files, before)
    run_cvo("1.0.0", f"--kubeconfig={fault_proxy.write_kubeconfig(tmp_path / 'proxied')}")
    cluster.wait_release("1.0.0")
    last, healing = Hold(), Hold()
    fault_proxy.inject(last, verb="patch", resource="configmaps")
    cluster.ask(version="1.1.0")
    assert last.held.wait(LIMIT)
    for verb in ("create", "patch"):
        fault_proxy.inject(healing, verb=verb, resource="deployments")
    cluster.delete("deployment", "pilot")
    assert healing.held.wait(LIMIT)
    last.let_go.set()

    def written() -> bool:
        return bool(cluster.find("configmap", "chart")["data"]["version"] == "1.1.0")

    eventually(written, "the last step")
    healing.let_go.set()
    cluster.wait_release("1.1.0")
    assert cluster.find("deployment", "pilot")["status"]["readyReplicas"] == 1


@pytest.mark.slow
def test_objects_deleted_and_edited_in_an_update_end_as_the_release_has_them(
    cluster: Cluster,
    releases: Releases,
    run_cvo: StartOperator,
    fault_proxy: FaultProxy,
    tmp_path: Path,
) -> None:
    """Five updates, each with a random sequence of deletions and edits."""
    meddle_through(cluster, releases, run_cvo, fault_proxy, tmp_path / "proxied", count=5)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_fifty_updates_are_meddled_with(
    cluster: Cluster,
    releases: Releases,
    run_cvo: StartOperator,
    fault_proxy: FaultProxy,
    tmp_path: Path,
) -> None:
    """The same in fifty updates."""
    meddle_through(cluster, releases, run_cvo, fault_proxy, tmp_path / "proxied", count=50)
