"""What is waited for: roll-outs and Jobs, on both nodes, and ClusterOperators."""

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from tests import objects
from tests.integration.operators.cluster_version.sync.engine import Engine, eventually, manifest
from tests.integration.pods import needs_bubblewrap
from tests.objects import cluster_operator, config_map

from quarterdeck.api.meta import CONFIG_MAPS, DEPLOYMENTS, Object, foreign
from quarterdeck.kube import Client, NotFound
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import Manifest
from quarterdeck.status.staleness_marks import verdict_message

JOBS = foreign("batch/v1", "Job", "jobs", namespaced=True)
OPERATORS = foreign(
    "config.openshift.io/v1", "ClusterOperator", "clusteroperators", namespaced=False
)

NODES = [
    "simulated",
    pytest.param("this-machine", marks=needs_bubblewrap),
]


@pytest.fixture(params=NODES)
def node(request: pytest.FixtureRequest) -> str:
    """The node on which the pods run."""
    if request.param == "this-machine":
        request.getfixturevalue("this_machine")
    return str(request.param)


def pod_template(node: str, behaviour: str, form: str = "1") -> Object:
    """A pod that behaves so, on either node; `form` makes it another one."""
    metadata: Object = {"labels": {"app": "x"}, "annotations": {"form": form}}
    container: Object = {"name": "main", "image": "example.test/main:1"}
    if node == "simulated":
        metadata["annotations"]["quarterdeck.dev/simulate"] = behaviour
    else:
        scripts = {"fail": "exit 1", "complete": "sleep 0.5"}
        script = scripts.get(behaviour, "exec sleep 10000")
        container |= {"image": "quarterdeck", "command": ["sh", "-c", script]}
        if behaviour == "never-ready":
            container["readinessProbe"] = {"exec": {"command": ["false"]}, "periodSeconds": 1}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {"metadata": metadata, "spec": spec}


def deployment(namespace: str, template: Object, file: str = "0000_10_web_01.yaml") -> Manifest:
    limits = {"progressDeadlineSeconds": 2, "minReadySeconds": 0}
    return manifest(objects.deployment("x", template, namespace=namespace, **limits), file)


def job(namespace: str, template: Object) -> Manifest:
    body = objects.job("x", template, namespace=namespace, backoffLimit=0)
    return manifest(body, "0000_10_migration_01.yaml")


def later(namespace: str, level: int = 20) -> Manifest:
    return manifest(config_map(namespace, "later"), f"0000_{level}_z_01.yaml")


async def is_there(admin: Client, namespace: str, name: str = "later") -> Object | None:
    try:
        return await admin.get(CONFIG_MAPS, name, namespace)
    except NotFound:
        return None


def is_rolled_out(live: Object) -> bool:
    status = live["status"]
    return bool(
        status["observedGeneration"] == live["metadata"]["generation"]
        and status.get("updatedReplicas")
        == status.get("availableReplicas")
        == status.get("replicas")
        == 1
    )


async def test_the_next_run_level_waits_for_a_roll_out(
    engine: Engine, admin: Client, namespace: str, node: str
) -> None:
    for form in ("1", "2"):
        web = deployment(namespace, pod_template(node, "ready", form))
        after = manifest(config_map(namespace, f"later-{form}"), "0000_20_z_01.yaml")
        async with engine.running(web, after) as run:
            await eventually(partial(is_there, admin, namespace, f"later-{form}"))
            assert is_rolled_out(await admin.get(DEPLOYMENTS, "x", namespace))
            async with asyncio.timeout(60):
                assert (await run).completed
    assert any(
        w.reason == "DeploymentNotReady" for report in engine.reports for w in report.waiting
    )


async def test_a_deployment_that_never_gets_ready_stops_its_run_level_and_says_so(
    engine: Engine, admin: Client, namespace: str, node: str
) -> None:
    """What is beside it goes on; what comes after it does when it is mended."""
    stuck = deployment(namespace, pod_template(node, "never-ready"))
    beside = manifest(config_map(namespace, "beside"), "0000_10_y_01.yaml")
    same = manifest(config_map(namespace, "same"), "0000_10_web_02.yaml")
    async with engine.running(stuck, same, beside, later(namespace)):
        progress = await engine.until(lambda report: report.faults)
        (fault,) = progress.faults
        assert fault.reason == "DeploymentNotReady"
        assert fault.manifest == f"0000_10_web_01.yaml: Deployment.apps/{namespace}/x"
        assert "0 of 1 replicas are available" in fault.message
        assert "ProgressDeadlineExceeded" in fault.message
        assert (progress.run_level, progress.done, progress.total) == ("0000_10", 1, 4)
        assert await is_there(admin, namespace, "beside")
        assert not await is_there(admin, namespace, "same")
        assert not await is_there(admin, namespace)
    mended = deployment(namespace, pod_template(node, "ready"))
    assert (await engine.run(mended, same, beside, later(namespace))).completed


def workload(namespace: str, kind: str, template: Object) -> Manifest:
    """A DaemonSet, or a StatefulSet of two replicas, for the simulated node."""
    spec: Object = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    template["spec"]["nodeSelector"] = {"quarterdeck.dev/node": "simulated"}
    if kind == "StatefulSet":
        spec |= {"serviceName": "x", "replicas": 2, "podManagementPolicy": "Parallel"}
    metadata = {"name": "x", "namespace": namespace}
    body = {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}
    return manifest(body, "0000_10_web_01.yaml")


@pytest.mark.parametrize(
    ("kind", "count"), [("DaemonSet", "on 0 of 1 nodes"), ("StatefulSet", "0 of 2 replicas")]
)
async def test_other_workloads_are_waited_for_and_fail_when_they_stand_still(
    engine: Engine, admin: Client, namespace: str, kind: str, count: str
) -> None:
    engine.timeout = 4.0
    stuck = workload(namespace, kind, pod_template("simulated", "never-ready"))
    async with engine.running(stuck, later(namespace)):
        waiting = await engine.until(lambda report: count in str(report.waiting))
        assert waiting.waiting[0].reason == f"{kind}NotReady"
        failing = await engine.until(lambda report: report.faults)
        (fault,) = failing.faults
        assert fault.reason == f"{kind}NotReady"
        assert fault.manifest == f"0000_10_web_01.yaml: {kind}.apps/{namespace}/x"
        assert count in fault.message
        assert "nothing has changed for 4 seconds; look at its pods" in fault.message
        assert not await is_there(admin, namespace)
    mended = workload(namespace, kind, pod_template("simulated", "ready"))
    async with engine.running(mended, later(namespace)) as run:
        await eventually(partial(is_there, admin, namespace))
        async with asyncio.timeout(60):
            assert (await run).completed


async def test_a_job_that_does_not_run_fails_and_is_done_when_it_has_run_after_all(
    engine: Engine, admin: Client, namespace: str
) -> None:
    engine.timeout = 2.0
    migration = job(namespace, pod_template("simulated", "complete"))
    migration.object["spec"]["suspend"] = True
    async with engine.running(migration, later(namespace, 10)) as run:
        failing = await engine.until(lambda report: report.faults)
        assert failing.faults[0].reason == "JobNotComplete"
        assert "it is suspended; set spec.suspend to false" in failing.faults[0].message
        assert not await is_there(admin, namespace)
        await admin.patch(JOBS, "x", {"spec": {"suspend": False}}, namespace)
        async with asyncio.timeout(60):
            assert (await run).completed
    assert await is_there(admin, namespace)


async def test_a_job_is_a_barrier_and_runs_once_for_each_spec(
    engine: Engine, admin: Client, namespace: str, node: str
) -> None:
    """Also for what is at its run level; and its old pods are gone before the new one runs."""
    uids = []
    for form in ("1", "1", "2"):
        after = manifest(config_map(namespace, f"later-{form}"), "0000_10_z_01.yaml")
        async with engine.running(
            job(namespace, pod_template(node, "complete", form)), after
        ) as run:
            await eventually(partial(is_there, admin, namespace, f"later-{form}"))
            live = await admin.get(JOBS, "x", namespace)
            assert any(c["type"] == "Complete" for c in live["status"]["conditions"])
            async with asyncio.timeout(60):
                assert (await run).completed
            uids.append(live["metadata"]["uid"])
    assert uids[0] == uids[1] != uids[2]
    assert [write for write in engine.writes() if " jobs " in write] == [
        "create jobs x",
        "delete jobs x",
        "create jobs x",
    ]


async def test_a_failed_job_stops_everything_behind_it_until_it_is_deleted(
    engine: Engine, admin: Client, namespace: str, node: str
) -> None:
    async with engine.running(job(namespace, pod_template(node, "fail")), later(namespace, 10)):
        progress = await engine.until(lambda report: report.faults)
        assert progress.faults[0].reason == "JobFailed"
        assert "delete the Job to run it again" in progress.faults[0].message
        first = await admin.get(JOBS, "x", namespace)
        await admin.delete(JOBS, "x", namespace, propagation="Background")

        async def is_another() -> bool:
            try:
                live = await admin.get(JOBS, "x", namespace)
            except NotFound:
                return False
            return bool(live["metadata"]["uid"] != first["metadata"]["uid"])

        await eventually(is_another)
        assert not await is_there(admin, namespace)


async def test_a_job_that_has_run_is_not_run_again_on_a_settled_cluster(
    engine: Engine, admin: Client, namespace: str
) -> None:
    migration = job(namespace, pod_template("simulated", "complete"))
    await engine.run(migration)
    await admin.delete(JOBS, "x", namespace, propagation="Background")
    assert (await engine.run(migration, mode=Mode.RECONCILING)).completed
    assert engine.writes() == ["create jobs x"]


def operator(name: str, **versions: str) -> Manifest:
    return manifest(cluster_operator(name, **versions), "0000_10_part_01.yaml")


async def set_status(
    admin: Client, name: str, version: str, *, message: str = "", **conditions: str
) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    status: dict[str, Any] = {
        "conditions": [
            {
                "type": t,
                "status": s,
                "lastTransitionTime": now,
                "reason": "Test",
                "message": message,
            }
            for t, s in conditions.items()
        ],
        "versions": [{"name": "operator", "version": version}],
    }
    await admin.patch(OPERATORS, name, {"status": status}, subresource="status")


@pytest.mark.usefixtures("tidy")
async def test_a_cluster_operator_is_created_empty_and_waited_for(
    engine: Engine, admin: Client, namespace: str
) -> None:
    """Available, then not degraded, then at its version; only then what comes after it."""
    name = f"op-{namespace[-6:]}"

    def said(reason: str) -> Any:
        return lambda report: any(w.reason == reason for w in report.waiting + report.faults)

    async with engine.running(operator(name, operator="2"), later(namespace)) as run:
        await engine.until(said("ClusterOperatorNotAvailable"))
        live = await admin.get(OPERATORS, name)
        assert not live.get("status", {}).get("conditions")
        assert not engine.latest.faults
        await set_status(admin, name, "1", Available="False", Degraded="True")
        failing = await engine.until(lambda report: report.faults)
        assert failing.faults[0].reason == "ClusterOperatorNotAvailable"
        await set_status(admin, name, "1", Available="True", Degraded="True")
        await engine.until(said("ClusterOperatorDegraded"))
        await set_status(admin, name, "1", Available="True", Degraded="False", Progressing="True")
        await engine.until(said("ClusterOperatorUpdating"))
        given_up = verdict_message("all is well", "True", 1200)
        await set_status(
            admin, name, "2", message=given_up, Available="Unknown", Degraded="Unknown"
        )
        await engine.until(said("ClusterOperatorStale"))
        assert not await is_there(admin, namespace)
        await set_status(admin, name, "2", Available="True", Degraded="False", Progressing="True")
        async with asyncio.timeout(60):
            assert (await run).completed
    assert await is_there(admin, namespace)
    assert [write.split()[1] for write in engine.writes()] == ["clusteroperators", "configmaps"]
