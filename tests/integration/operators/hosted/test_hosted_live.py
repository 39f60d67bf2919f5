"""Two clusters: hosted cluster version operators run in one, as pods, and work on the other.

The management cluster has no payload of ours, only the hosted operator from its own Deployment. The
hosted one has nothing at the start.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from tests.integration.operators.hosted.management import HC, Management, configuration
from tests.integration.pods import needs_bubblewrap

from quarterdeck.api.meta import Object
from quarterdeck.delivery.registry import installed
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.localcluster.operators import deploy_operator
from quarterdeck.localcluster.releases import FIRST, NEXT, write_releases
from quarterdeck.operators.hosted.names import CONFIG_MAP
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.audit import requests_by
from quarterdeck.testing.namespaces import create_namespace
from quarterdeck.testing.operator_process import OperatorProcess
from quarterdeck.testing.unused_rights import unused_by_operator
from quarterdeck.testing.waiting import eventually, until

pytestmark = [pytest.mark.slow, needs_bubblewrap]

LIMIT = 120.0
NAMESPACE = "clusters"
HOSTED_USER = "hosted-cluster-version-operator"
FIRST_LINE = "first line at this log level"
PODS = "app=cluster-version-operator"


class Hosting:
    """The two clusters, and the HostedCluster `clusters/harbour` between them."""

    def __init__(self, management: ControlPlane, hosted: ControlPlane) -> None:
        self.management = Management(management, NAMESPACE)
        self.hosted = hosted
        self.in_hosted = ApiObjects(hosted.requests(), "kube-system")

    def pods(self, name: str = "harbour") -> list[Object]:
        """The pods of a hosted cluster version operator, by name."""
        place = self.management.place(name)
        found = self.management.objects.list("pods", PODS, namespace=place)
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def log(self, pod: Object) -> str:
        meta = pod["metadata"]
        where = f"--namespace={meta['namespace']}"
        return self.management.plane.kubectl("logs", meta["name"], where).stdout

    def last_level(self, pod: Object) -> str:
        """The last line in the pod's log that says which level begins; empty if there is none."""
        lines = [line for line in self.log(pod).splitlines() if FIRST_LINE in line]
        return lines[-1] if lines else ""

    def wait_level(self, level: str, verbosity: int, name: str = "harbour") -> None:
        """Wait until all pods log at this level."""
        for pod in self.pods(name):
            until(
                lambda pod=pod: self.last_level(pod),  # type: ignore[misc]
                lambda line: f"after={level} " in line and f"verbosity={verbosity}" in line,
                f"{level} in the log of {pod['metadata']['name']}",
                LIMIT,
            )

    def seconds_after_the_file(self, pod: Object) -> float:
        """From the change of the file in the pod's volume to the first line at its level."""
        pods = self.management.plane.layout.pods
        link = pods / pod["metadata"]["uid"] / "volumes" / CONFIG_MAP / "..data"
        match = re.match(r"\S+", self.last_level(pod))
        assert match
        logged = datetime.fromisoformat(match[0]).timestamp()
        return float(logged - link.lstat().st_ctime)


def runs(pods: list[Object]) -> list[tuple[str, str, int]]:
    """What would differ if a pod or its container had been replaced."""
    return [
        (pod["metadata"]["uid"], status["containerID"], status["restartCount"])
        for pod in pods
        for status in pod["status"]["containerStatuses"]
    ]


@pytest.fixture(scope="module")
def hosting(
    control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hosting]:
    state = tmp_path_factory.mktemp("hosting")
    releases = state / "releases"
    write_releases(releases)
    with (
        ControlPlane(state / "hosted", control_plane_binaries, durable=False, audit=True) as hosted,
        ControlPlane(
            state / "management", control_plane_binaries, durable=False, audit=True
        ) as plane,
    ):
        plane.add_this_machine(["--back-off-first=1"])
        plane.start("this-machine")
        deploy_operator(plane, "hosted", args=[f"--hosted-releases={releases}"])
        create_namespace(plane.requests(), NAMESPACE)
        made = Hosting(plane, hosted)
        add_kubeconfig(made, hosted.kubeconfig_for(HOSTED_USER, ["system:masters"]))
        made.management.add("harbour", f"quarterdeck:{FIRST}")
        until(
            lambda: made.management.deployment("harbour") or {},
            lambda it: it.get("status", {}).get("availableReplicas") == 2,
            "two replicas",
            LIMIT,
        )
        yield made


def add_kubeconfig(hosting: Hosting, path: Path) -> None:
    hosting.management.add_kubeconfig(path.read_text())


def test_a_level_takes_effect_in_both_replicas_without_a_restart(hosting: Hosting) -> None:
    """Under a second after the file changed, as `kubectl logs` shows; unset, it is the floor."""
    before = runs(hosting.pods())
    assert len(before) == 2
    took = []
    for level, verbosity in (("Debug", 4), ("TraceAll", 8), ("Normal", 2), ("Trace", 6)):
        hosting.management.set_level("harbour", level)
        hosting.wait_level(level, verbosity)
        took += [hosting.seconds_after_the_file(pod) for pod in hosting.pods()]
    # Who leads renews the Lease, and says so at this level.
    until(
        lambda: "".join(map(hosting.log, hosting.pods())),
        lambda text: " method=" in text and " v=6" in text,
        "requests in the log",
    )
    hosting.management.configure("harbour", None)
    hosting.wait_level("Normal", 2)
    assert runs(hosting.pods()) == before
    assert [restarts for _, _, restarts in before] == [0, 0]
    # The machine may be busy for a moment, but not always.
    assert 0 <= sorted(took)[len(took) // 2] < 1, took


def test_the_hosted_cluster_gets_the_release_but_no_configuration_of_its_operator(
    hosting: Hosting,
) -> None:
    """Neither the definition nor the object; and the operator asks for neither."""
    objects = hosting.in_hosted

    def completed(version: str) -> bool:
        history = (objects.find("clusterversion", "version") or {}).get("status", {}).get("history")
        return bool(history) and (history[0]["version"], history[0]["state"]) == (
            version,
            "Completed",
        )

    until(lambda: completed(FIRST), bool, "the release in the hosted cluster", LIMIT)
    # The management cluster names the release, and changes it.
    hosting.management.objects.patch(HC, "harbour", {"spec": {"release": {"image": image(NEXT)}}})
    until(lambda: completed(NEXT), bool, "the next release in the hosted cluster", LIMIT)
    named = [it["metadata"]["name"] for it in objects.list("customresourcedefinitions")]
    assert "clusterversions.config.openshift.io" in named
    assert not [name for name in named if "clusterversionoperator" in name]
    asked = requests_by(hosting.hosted.audit_log, HOSTED_USER)
    assert any(it.resource == "clusterversions/status" for it in asked)
    assert not [it for it in asked if it.resource.startswith("clusterversionoperators")]
    assert not [it for it in asked if "clusterversionoperator" in it.name]
    lease = objects.get("lease", "cluster-version-operator")
    holders = {pod["metadata"]["name"] for pod in hosting.pods()}
    assert lease["spec"]["holderIdentity"].partition("_")[0] in holders


def image(version: str) -> str:
    return f"quarterdeck:{version}"


def test_the_management_cluster_has_two_definitions_and_the_pods_no_token(hosting: Hosting) -> None:
    objects = hosting.management.objects
    named = [it["metadata"]["name"] for it in objects.list("customresourcedefinitions")]
    assert sorted(named) == [
        "hostedclusters.hypershift.openshift.io",
        "hostedcontrolplanes.hypershift.openshift.io",
    ]
    for pod in hosting.pods():
        assert pod["spec"]["automountServiceAccountToken"] is False
        kinds = {kind for volume in pod["spec"]["volumes"] for kind in volume} - {"name"}
        assert kinds == {"configMap", "secret", "hostPath"}
        files = hosting.management.plane.layout.pods / pod["metadata"]["uid"] / "volumes"
        assert not list(files.rglob("token"))


def test_an_older_release_runs_beside_a_new_one_at_its_default(hosting: Hosting) -> None:
    """It is started without `--config`, whatever the level; both are in the same cluster here."""
    management = hosting.management
    level = configuration("Debug")
    management.add("old", image("0.0.9"), operatorConfiguration=level)
    management.wait_condition("old", "Available", "True")
    management.wait_condition("old", "OperatorConfigurationApplied", "False", "ReleaseTooOld")
    management.set_level("harbour", "Debug")
    hosting.wait_level("Debug", 4)
    for pod in hosting.pods("old"):
        assert not [arg for arg in pod["spec"]["containers"][0]["args"] if "--config" in arg]
        assert FIRST_LINE not in hosting.log(pod)
        assert " v=4" not in hosting.log(pod)
    management.wait_level("old", "Debug")
    management.configure("harbour", None)


def arguments_of(hosting: Hosting, name: str, releases: Path) -> list[str]:
    """The arguments of a hosted cluster version operator's container, for a process beside it."""
    here = {
        "--kubeconfig": hosting.hosted.kubeconfig_for(HOSTED_USER, ["system:masters"]),
        "--releases": releases,
    }
    _, *args = hosting.pods(name)[0]["spec"]["containers"][0]["args"]
    split = [arg.partition("=") for arg in args if not arg.startswith("--probe-address")]
    return [f"{flag}{sign}{here.get(flag, value)}" for flag, sign, value in split]


def test_a_program_that_does_not_know_the_option_runs_with_what_it_is_given(
    hosting: Hosting, tmp_path: Path
) -> None:
    """And would not start with the arguments of a release that knows it."""
    program = (str(Path(__file__).with_name("older_release.py")),)
    releases = hosting.management.plane.layout.root.parent / "releases"
    new = arguments_of(hosting, "harbour", releases)
    assert [arg for arg in new if arg.startswith("--config=")]
    refused = OperatorProcess(new, tmp_path / "new.log", program=program)
    assert refused.wait() == 1
    assert "No such option: --config" in refused.log.read_text()
    old = arguments_of(hosting, "old", releases)
    assert len(old) == len(new) - 1
    process = OperatorProcess(old, tmp_path / "old.log", program=program, verbosity=2)
    try:
        eventually(lambda: process.get("/readyz")[0] == 200, "it is ready", LIMIT)
        assert not process.lines(FIRST_LINE)
    finally:
        process.kill()


def test_a_file_in_a_pod_that_is_spoilt_keeps_the_level_and_a_good_one_brings_the_next(
    hosting: Hosting,
) -> None:
    """The hosted operator is away, and somebody writes nonsense into the ConfigMap."""
    management = hosting.management
    management.set_level("harbour", "Trace")
    hosting.wait_level("Trace", 6)
    scale = {"spec": {"replicas": 0}}
    management.objects.patch("deployment", "hosted-operator", scale, namespace="hypershift")
    until(
        lambda: management.objects.list("pods", "app=hosted-operator", namespace="hypershift"),
        lambda pods: not pods,
        "no hosted operator",
        LIMIT,
    )
    place = management.place("harbour")
    spoilt = {"data": {"config.yaml": "apiVersion: operator.openshift.io/v9\nkind: X\n"}}
    management.objects.patch("configmap", CONFIG_MAP, spoilt, namespace=place)
    for pod in hosting.pods():
        log = until(
            lambda pod=pod: hosting.log(pod),  # type: ignore[misc]
            lambda text: "configuration file not used" in text,
            "an error line",
            LIMIT,
        )
        (line,) = [one for one in log.splitlines() if "configuration file not used" in one]
        assert "this release reads only operator.openshift.io/v1alpha1" in line
        assert "kept=Trace" in line
        assert "after=Trace " in hosting.last_level(pod)
    management.set_level("harbour", "Debug")
    scale = {"spec": {"replicas": 1}}
    management.objects.patch("deployment", "hosted-operator", scale, namespace="hypershift")
    hosting.wait_level("Debug", 4)
    for pod in hosting.pods():
        assert "configuration file valid again" in hosting.log(pod)


def test_a_deleted_hosted_cluster_takes_all_of_its_own_along(hosting: Hosting) -> None:
    """And nothing else: not the kubeconfig beside it, not another one, not the hosted cluster."""
    management = hosting.management
    others = runs(hosting.pods("old"))
    assert others
    management.objects.delete(HC, "harbour")
    management.wait_gone("harbour", LIMIT)
    assert management.objects.find("namespace", management.place("harbour")) is None
    assert management.objects.find("secret", "kubeconfig")
    assert runs(hosting.pods("old")) == others
    assert hosting.in_hosted.find("clusterversion", "version")


def test_the_operator_used_every_right_that_it_has(hosting: Hosting) -> None:
    """In the tests above, and when a kubeconfig goes: their audit log tells."""
    management = hosting.management
    management.objects.delete("secret", "kubeconfig")
    until(lambda: management.deployment("old"), lambda it: it is None, "no pods", LIMIT)
    until(lambda: management.kubeconfig("old"), lambda it: it is None, "no copy", LIMIT)
    found = unused_by_operator([management.plane.audit_log], installed().operators["hosted"])
    assert [str(one) for one in found] == []
