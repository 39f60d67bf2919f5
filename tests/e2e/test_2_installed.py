"""Quarterdeck in a cluster with real nodes: installed, used, disturbed, updated, removed.

The tests are one story, in this order, on one installation.
"""

import json
import re
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from tests.e2e import catalog
from tests.e2e import releases as made
from tests.e2e.cluster import LIMIT, RealCluster, conditions
from tests.e2e.conftest import Images
from tests.e2e.installation import healthy, is_at, version
from tests.e2e.monitoring import monitored, stale_operators
from tests.e2e.objects_left import all_objects
from tests.e2e.shop import ask_shop, router_of_shop, shop, shop_is

from quarterdeck.testing.waiting import eventually, until

OPERATORS = {"baremetal", "ingress", "machine-api", "operator-lifecycle-manager", "sample"}
NAMESPACES = {
    "openshift-cluster-version": True,
    "openshift-ingress-operator": True,
    "openshift-machine-api": False,
    "openshift-operator-lifecycle-manager": True,
    "quarterdeck-sample": True,
    "quarterdeck-staleness": True,
}
"""Whether each namespace enforces `restricted`; operands of one use the host's network."""
CVO = ("openshift-cluster-version", "app=cluster-version-operator")
SAMPLE = ("quarterdeck-sample", "app=sample-operator")
REPLICATED = {
    "cluster-baremetal-operator",
    "cluster-version-operator",
    "ingress-operator",
    "machine-api-operator",
    "sample-operator",
    "staleness-checker",
    "subscription-operator",
}
"""The operators, each a Deployment of two replicas."""


@pytest.fixture(scope="module")
def releases(
    cluster: RealCluster, images: Images, tmp_path_factory: pytest.TempPathFactory
) -> made.Releases:
    """Two releases in the registry."""
    return made.build(cluster, images, tmp_path_factory.mktemp("releases"))


@pytest.fixture(scope="module")
def untouched(cluster: RealCluster) -> set[str]:
    """All objects before the installation."""
    return all_objects(cluster)


@pytest.fixture(scope="module")
def installed(cluster: RealCluster, releases: made.Releases, untouched: set[str]) -> None:
    """The first release, installed from its image as a user does."""
    cluster.quarterdeck(
        *("install", "--image", releases.first, "--registry-ca", str(cluster.registry_ca))
    )


@pytest.mark.usefixtures("installed")
def test_every_operator_is_available(cluster: RealCluster) -> None:
    eventually(lambda: is_at(cluster, made.FIRST), "the first release is applied", limit=LIMIT)
    names = {one["metadata"]["name"] for one in cluster.get("clusteroperators")["items"]}
    assert names == OPERATORS
    eventually(lambda: healthy(cluster, made.FIRST), "every operator is healthy", limit=LIMIT)


@pytest.mark.usefixtures("installed")
def test_every_container_runs_an_image_that_was_pulled_by_its_digest(
    cluster: RealCluster, releases: made.Releases, images: Images
) -> None:
    known = {releases.first, images.operators, images.router}
    seen = set()
    for namespace in NAMESPACES:
        for pod in cluster.pods(namespace):
            assert pod["spec"]["nodeName"] in ("node-1", "node-2")
            for container, status in zip(
                pod["spec"]["containers"], pod["status"]["containerStatuses"], strict=True
            ):
                seen.add(container["image"])
                assert status["imageID"].partition("@")[2] == container["image"].partition("@")[2]
    assert seen == known


@pytest.mark.usefixtures("installed")
def test_the_replicas_of_an_operator_run_on_different_nodes(cluster: RealCluster) -> None:
    deployments = [
        one
        for namespace in NAMESPACES
        for one in cluster.get("deployments", f"--namespace={namespace}")["items"]
    ]
    assert {one["metadata"]["name"] for one in deployments} == REPLICATED
    for one in deployments:
        pods = cluster.pods(one["metadata"]["namespace"], f"app={one['metadata']['name']}")
        nodes = sorted(pod["spec"]["nodeName"] for pod in pods)
        assert nodes == ["node-1", "node-2"], one["metadata"]["name"]


@pytest.mark.usefixtures("installed")
def test_operators_pods_meet_restricted_pod_security(cluster: RealCluster) -> None:
    label = "pod-security.kubernetes.io/enforce"
    for namespace, enforced in NAMESPACES.items():
        labels = cluster.get("namespace", namespace)["metadata"]["labels"]
        assert (labels.get(label) == "restricted") == enforced, namespace
        # The API server checks all running pods against a level that is about to be enforced.
        said = cluster.run(
            *(cluster.status.kubectl, "label", "namespace", namespace, f"{label}=restricted"),
            *("--overwrite", "--dry-run=server"),
            check=False,
        )
        assert "labeled" in said, said
        assert "Warning" not in said, said


@pytest.mark.usefixtures("installed")
def test_an_operator_works(cluster: RealCluster) -> None:
    cluster.apply(_note("quarterdeck-sample"))
    wait = ("wait", *_in(SAMPLE), f"--timeout={LIMIT:.0f}s")
    cluster.kubectl(*wait, "configmap/hello", "--for=create")
    cluster.kubectl("delete", "note", "hello", *_in(SAMPLE))
    cluster.kubectl(*wait, "configmap/hello", "--for=delete")


def _note(namespace: str) -> dict[str, object]:
    return {
        "apiVersion": "samples.quarterdeck.dev/v1alpha1",
        "kind": "Note",
        "metadata": {"name": "hello", "namespace": namespace},
        "spec": {"text": "on a real node"},
    }


@pytest.mark.usefixtures("installed")
def test_access_logs_are_read_from_the_sidecar(cluster: RealCluster) -> None:
    cluster.apply(shop(None))
    shop_is(cluster, "Available")
    cluster.apply(shop({"destination": {"type": "Container"}}))
    shop_is(cluster, "AccessLoggingReady")
    ask_shop(cluster, "/hello")
    pod = router_of_shop(cluster)["metadata"]["name"]
    logs = ("logs", "--namespace=openshift-ingress", pod, "--container=logs")
    eventually(lambda: "GET /hello" in cluster.kubectl(*logs), "the line is in the log", LIMIT)


RSYSLOG = """\
module(load="imudp")
input(type="imudp" port="10514")
template(name="short" type="string"
         string="%syslogfacility-text%.%syslogseverity-text% %HOSTNAME%%msg%\\n")
*.* /dev/stdout;short
"""


@pytest.mark.usefixtures("installed")
def test_access_logs_arrive_at_a_syslog_endpoint(cluster: RealCluster, images: Images) -> None:
    metadata = {"name": "syslog", "namespace": "default"}
    container = {
        "name": "rsyslog",
        "image": images.router,
        "command": ["rsyslogd", "-n", "-iNONE", "-f", "/etc/rsyslog/rsyslog.conf"],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/rsyslog"}],
    }
    volumes = [{"name": "config", "configMap": {"name": "syslog"}}]
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"rsyslog.conf": RSYSLOG},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [container], "volumes": volumes},
        },
    )
    cluster.kubectl("wait", "pod/syslog", "--for=condition=Ready", f"--timeout={LIMIT:.0f}s")
    address = cluster.get("pod", "syslog", "--namespace=default")["status"]["podIP"]
    syslog = {"address": address, "port": 10514, "facility": "local2"}
    access = {
        "destination": {"type": "Syslog", "syslog": syslog},
        "httpLogFormat": '%ci %ST "%HM %HU" %[capture.req.hdr(0)]',
        "httpCaptureHeaders": {"request": [{"name": "User-Agent", "maxLength": 40}]},
    }
    cluster.apply(shop(access))
    shop_is(cluster, "AccessLoggingReady")

    def arrived() -> bool:
        ask_shop(cluster, "/goodbye")
        line = r'local2\.info router-shop-\S+ 10\.200\.0\.1 503 "GET /goodbye" reader'
        return re.search(line, cluster.kubectl("logs", "syslog")) is not None

    eventually(arrived, "a line arrives at the endpoint", limit=LIMIT)
    cluster.kubectl("delete", "--namespace=default", "pod/syslog", "configmap/syslog")
    cluster.kubectl("delete", "--namespace=openshift-ingress-operator", "ingresscontroller", "shop")


@pytest.mark.usefixtures("installed")
def test_a_log_level_takes_effect_in_both_replicas(cluster: RealCluster) -> None:
    names = [pod["metadata"]["name"] for pod in cluster.pods(*CVO)]
    assert len(names) == 2
    assert not any("after=Debug" in cluster.kubectl("logs", *_in(CVO), name) for name in names)
    _set_level(cluster, "Debug")
    for name in names:
        command = ("logs", *_in(CVO), name)
        eventually(partial(_prints, cluster, command, "after=Debug"), f"{name} logs more", LIMIT)
    _set_level(cluster, "Normal")
    restarts = [
        status["restartCount"]
        for pod in cluster.pods(*CVO)
        for status in pod["status"]["containerStatuses"]
    ]
    assert restarts == [0, 0]


def _prints(cluster: RealCluster, command: tuple[str, ...], wanted: str) -> bool:
    return wanted in cluster.kubectl(*command)


def _set_level(cluster: RealCluster, level: str) -> None:
    patch = f'{{"spec":{{"operatorLogLevel":"{level}"}}}}'
    cluster.kubectl(
        "patch", "clusterversionoperator", "cluster", "--type=merge", f"--patch={patch}"
    )


def _in(place: tuple[str, str]) -> tuple[str]:
    return (f"--namespace={place[0]}",)


def holder(cluster: RealCluster, namespace: str, lease: str) -> str:
    found = cluster.get("lease", lease, f"--namespace={namespace}")
    return str(found["spec"].get("holderIdentity") or "")


@pytest.mark.usefixtures("installed")
def test_the_other_replica_takes_over_from_a_killed_leader(cluster: RealCluster) -> None:
    namespace, _ = SAMPLE
    leader = holder(cluster, namespace, "sample-operator")
    (leads,) = (one for one in cluster.pods(*SAMPLE) if one["metadata"]["name"] in leader)
    pod = leads["metadata"]["name"]
    # Killed, it cannot give its Lease back; deleted, it cannot come back for it.
    cluster.kill_containers(leads)
    cluster.kubectl("delete", "pod", pod, *_in(SAMPLE), "--grace-period=0", "--force")
    eventually(
        lambda: (now := holder(cluster, namespace, "sample-operator")) and pod not in now,
        "another replica leads",
        limit=LIMIT,
    )
    cluster.roll_out(namespace, "deployment/sample-operator")


@pytest.mark.usefixtures("installed")
def test_a_subscription_installs_an_operator_and_updates_it(
    cluster: RealCluster, images: Images, tmp_path: Path
) -> None:
    cluster.apply(*catalog.build(cluster, images, tmp_path))
    where = (f"--namespace={catalog.NAMESPACE}", f"--timeout={LIMIT:.0f}s")
    cluster.kubectl("wait", "catalogsource/examples", "--for=condition=Ready", *where)
    cluster.apply(catalog.subscription("-v=4"))
    csv = f"clusterserviceversion/{catalog.LAST}"
    cluster.kubectl("wait", csv, "--for=create", *where)
    cluster.kubectl("wait", csv, "--for=jsonpath={.status.phase}=Succeeded", *where)
    first = f"clusterserviceversion/{catalog.FIRST}"
    cluster.kubectl("wait", first, "--for=delete", *where)
    cluster.roll_out(catalog.NAMESPACE, f"deployment/{catalog.PACKAGE}")
    (pod,) = cluster.pods(catalog.NAMESPACE, f"k8s-app={catalog.PACKAGE}")
    (container,) = pod["spec"]["containers"]
    assert container["image"] == images.operators
    assert {"name": "ARGS", "value": "-v=4"} in container["env"]
    assert {"secretRef": {"name": "settings"}} in container["envFrom"]
    cluster.apply(_note(catalog.NAMESPACE))
    cluster.kubectl("wait", "configmap/hello", "--for=create", *where)
    assert cluster.get("service", "probes", where[0])["spec"]["clusterIP"]
    assert cluster.get("crd", catalog.DEFINITION)["spec"]["names"]["kind"] == "Thing"

    cluster.kubectl("delete", "subscription", catalog.PACKAGE, where[0])
    cluster.kubectl("delete", csv, where[0])
    cluster.kubectl("wait", f"deployment/{catalog.PACKAGE}", "--for=delete", *where)
    # It stays, so that no object of its kind is lost.
    cluster.kubectl("delete", "crd", catalog.DEFINITION)
    cluster.kubectl("delete", "namespace", catalog.NAMESPACE)


@pytest.mark.usefixtures("installed")
def test_a_stopped_operator_is_reported_stale_and_an_alert_fires(
    cluster: RealCluster, tmp_path: Path
) -> None:
    checker = ("quarterdeck-staleness", "deployment/staleness-checker")
    delivered = _args(cluster, *checker)
    _set_args(cluster, *checker, [*delivered, "--interval=20s", "--grace=5s"])
    unmanaged = (
        '{"spec":{"overrides":[{"kind":"Deployment","group":"apps",'
        '"namespace":"quarterdeck-sample","name":"sample-operator","unmanaged":true}]}}'
    )
    override = ("patch", "clusterversion", "version", "--type=merge")
    cluster.kubectl(*override, f"--patch={unmanaged}")
    upgradeable = "--for=condition=Upgradeable=False"
    cluster.kubectl("wait", "clusterversion/version", upgradeable, f"--timeout={LIMIT:.0f}s")
    scale = ("scale", "deployment/sample-operator", *_in(SAMPLE))
    stale = ("wait", "clusteroperator/sample", f"--timeout={LIMIT:.0f}s")
    with monitored(cluster, NAMESPACES, tmp_path / "prometheus") as monitoring:
        both = 'count(cluster_operator_stale{name="sample"} == 0) == 2'
        eventually(lambda: monitoring.query(both), "both checkers are scraped", limit=LIMIT)
        assert stale_operators(monitoring) == []
        cluster.kubectl(*scale, "--replicas=0")
        cluster.kubectl(*stale, "--for=condition=Available=Unknown")
        until(
            lambda: stale_operators(monitoring),
            lambda names: names == ["sample"],
            "the alert about the sample fires",
            limit=LIMIT,
        )
        cluster.kubectl(*scale, "--replicas=2")
        cluster.kubectl(*stale, "--for=condition=Available=True")
        until(
            lambda: stale_operators(monitoring),
            lambda names: names == [],
            "no operator is stale any more",
            limit=LIMIT,
        )
    cluster.kubectl(*override, '--patch={"spec":{"overrides":null}}')
    _set_args(cluster, *checker, delivered)


def _args(cluster: RealCluster, namespace: str, workload: str) -> list[str]:
    found = cluster.get(workload, f"--namespace={namespace}")
    args: list[str] = found["spec"]["template"]["spec"]["containers"][0]["args"]
    return args


def _set_args(cluster: RealCluster, namespace: str, workload: str, args: list[str]) -> None:
    path = "/spec/template/spec/containers/0/args"
    patch = json.dumps([{"op": "replace", "path": path, "value": args}])
    cluster.kubectl(
        "patch", f"--namespace={namespace}", workload, "--type=json", f"--patch={patch}"
    )
    cluster.roll_out(namespace, workload)


@pytest.mark.usefixtures("installed")
def test_an_update_survives_the_loss_of_a_node(
    cluster: RealCluster, releases: made.Releases
) -> None:
    with made.served(cluster, releases) as graph:
        patch = f'{{"spec":{{"upstream":"{graph}","channel":"{made.CHANNEL}"}}}}'
        cluster.kubectl("patch", "clusterversion", "version", "--type=merge", f"--patch={patch}")

        def offered() -> bool:
            found = version(cluster)["status"].get("availableUpdates") or []
            return made.NEXT in [one["version"] for one in found]

        eventually(offered, "the graph's update is offered", limit=LIMIT)
        cluster.quarterdeck("update", made.NEXT)
        eventually(
            lambda: conditions(version(cluster))["Progressing"] == "True",
            "the update begins",
            limit=LIMIT,
        )
        lost = {pod["spec"]["nodeName"] for pod in cluster.pods(*CVO)}.pop()
        killed = datetime.now(UTC)
        cluster.kill(lost)
        cluster.running(lost)
        eventually(lambda: is_at(cluster, made.NEXT), "the update ends", limit=600)
    (newest, *_) = version(cluster)["status"]["history"]
    began, ended = (
        datetime.fromisoformat(newest[f"{part}Time"]) for part in ("started", "completion")
    )
    assert began <= killed < ended, "in the middle of the update"
    eventually(lambda: healthy(cluster, made.NEXT), "every operator is healthy", limit=LIMIT)
    following = {pod["spec"]["containers"][0]["image"] for pod in cluster.pods(*CVO)}
    assert following == {releases.next}
    (sample,) = {pod["spec"]["containers"][0]["image"] for pod in cluster.pods(*SAMPLE)}
    assert "/quarterdeck-next@" in sample


@pytest.mark.usefixtures("installed")
def test_an_uninstallation_leaves_nothing(cluster: RealCluster, untouched: set[str]) -> None:
    cluster.quarterdeck("uninstall", "--yes")

    def left() -> bool:
        return all_objects(cluster) == untouched

    try:
        eventually(left, "the cluster has the objects of before", limit=LIMIT)
    finally:
        assert sorted(all_objects(cluster) ^ untouched) == []
