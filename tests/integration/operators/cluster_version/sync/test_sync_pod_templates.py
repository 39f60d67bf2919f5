"""Of a release's workloads the pod template's spec is the release's, whoever changes it."""

import asyncio
import copy
from typing import Any

import pytest
from tests.integration.operators.cluster_version.sync.engine import Engine, eventually, manifest
from tests.objects import foreign_container, job, pod

from quarterdeck.api.meta import DEPLOYMENTS, Object, Resource, foreign
from quarterdeck.kube import Client
from quarterdeck.operators.cluster_version.sync import run_payload
from quarterdeck.operators.cluster_version.sync.autoscaled import AUTOSCALERS
from quarterdeck.payload.graph import Mode
from quarterdeck.testing.fault_proxy import FaultProxy
from quarterdeck.testing.faults import Answer, Hold
from quarterdeck.testing.waiting import eventually_async

LABELS = {"app": "x"}
POLICIES = foreign(
    "admissionregistration.k8s.io/v1",
    "MutatingAdmissionPolicy",
    "mutatingadmissionpolicies",
    namespaced=False,
)
POLICY_BINDINGS = foreign(
    "admissionregistration.k8s.io/v1",
    "MutatingAdmissionPolicyBinding",
    "mutatingadmissionpolicybindings",
    namespaced=False,
)
SCALES = foreign("autoscaling/v1", "Scale", "deployments", namespaced=True)


def resource(api_version: str, kind: str) -> Resource[Object]:
    return foreign(api_version, kind, f"{kind.lower()}s", namespaced=True)


def pod_spec() -> Object:
    """A pod with fields of many kinds, most of which the server gives defaults inside."""
    probe = {"httpGet": {"path": "/", "port": 8080}}
    return {
        "initContainers": [{"name": "first", "image": "example.test/first:1"}],
        "containers": [
            {
                "name": "main",
                "image": "example.test/main:1",
                "args": ["--v=2"],
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                ],
                "ports": [{"containerPort": 8080}, {"containerPort": 8080, "protocol": "UDP"}],
                "livenessProbe": probe,
                "startupProbe": {"grpc": {"port": 8081}},
                "lifecycle": {"preStop": {"httpGet": {"path": "/", "port": 8080}}},
                "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
                "securityContext": {"capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True},
                "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
            }
        ],
        "volumes": [
            {"name": "scratch", "emptyDir": {}},
            {"name": "config", "configMap": {"name": "x"}},
            {"name": "host", "hostPath": {"path": "/dev/null"}},
            {
                "name": "token",
                "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
            },
        ],
        "tolerations": [{"operator": "Exists"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": LABELS},
            }
        ],
        "nodeSelector": {"kubernetes.io/os": "linux"},
    }


def workload(kind: str, namespace: str) -> Object:
    template: Object = {"metadata": {"labels": LABELS}, "spec": pod_spec()}
    selector = {"matchLabels": LABELS}
    specs: dict[str, Object] = {
        "Deployment": {"selector": selector, "template": template, "replicas": 0},
        "DaemonSet": {"selector": selector, "template": template},
        "StatefulSet": {
            "selector": selector,
            "template": template,
            "replicas": 0,
            "serviceName": "x",
        },
        "CronJob": {
            "schedule": "0 0 1 1 *",
            "suspend": True,
            "jobTemplate": {"spec": {"template": template}},
        },
    }
    if kind == "CronJob":
        template["spec"]["restartPolicy"] = "Never"
    if kind == "DaemonSet":
        template["spec"]["nodeSelector"] = {"is": "nowhere", "kubernetes.io/os": "linux"}
    return {
        "apiVersion": "batch/v1" if kind == "CronJob" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "x", "namespace": namespace},
        "spec": specs[kind],
    }


def template_of(obj: Object) -> Any:
    spec = obj["spec"]
    return (spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec)["template"]


def edited(live: Object) -> Object:
    """The object as somebody leaves it who edits all that can do harm in it."""
    after = copy.deepcopy(live)
    after["metadata"].pop("resourceVersion")
    after["metadata"]["labels"] = {"team": "theirs"}
    template = template_of(after)
    template["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "now"}
    pod = template["spec"]
    main = pod["containers"][0]
    main["image"] = "example.test/evil:1"
    main["env"].append({"name": "LD_PRELOAD", "value": "evil.so"})
    main["securityContext"] |= {"runAsUser": 0, "runAsNonRoot": False, "privileged": True}
    main["livenessProbe"]["httpGet"].pop("scheme")
    main["livenessProbe"] = {"exec": {"command": ["evil"]}}
    main["volumeMounts"].append({"name": "root", "mountPath": "/host"})
    pod["containers"].append({"name": "sidecar", "image": "example.test/evil:1"})
    pod["volumes"].append({"name": "root", "hostPath": {"path": "/"}})
    # A volume with another source under the same name.
    pod["volumes"][0] = {"name": "scratch", "hostPath": {"path": "/etc"}}
    pod["hostNetwork"] = pod["hostPID"] = True
    pod["securityContext"] = {"runAsUser": 0}
    pod["serviceAccountName"] = pod["serviceAccount"] = "evil"
    pod["dnsConfig"] = {"nameservers": ["192.0.2.1"]}
    pod["hostAliases"] = [{"ip": "192.0.2.1", "hostnames": ["registry"]}]
    pod["initContainers"].append({"name": "evil", "image": "example.test/evil:1"})
    pod["tolerations"] = [{"key": "evil", "operator": "Exists"}]
    pod["nodeSelector"]["is"] = "theirs"
    pod["imagePullSecrets"] = [{"name": "evil"}]
    pod["affinity"] = {"nodeAffinity": {}}
    pod["automountServiceAccountToken"] = True
    pod["dnsPolicy"] = "Default"
    pod["enableServiceLinks"] = False
    pod["schedulerName"] = "evil"
    pod["terminationGracePeriodSeconds"] = 3600
    main["envFrom"] = [{"secretRef": {"name": "evil"}}]
    main["workingDir"] = "/evil"
    main["tty"] = main["stdin"] = True
    main["resources"]["limits"] = {"memory": "2Gi"}
    main["ports"].append({"containerPort": 22, "hostPort": 22})
    main["imagePullPolicy"] = "Always"
    return after


KINDS = ["Deployment", "DaemonSet", "StatefulSet", "CronJob"]


@pytest.mark.parametrize("kind", KINDS)
async def test_what_somebody_adds_to_a_pod_template_goes_with_an_event_that_names_them(
    engine: Engine, admin: Client, namespace: str, kind: str
) -> None:
    """Labels, annotations and what the server fills in stay; then nothing is written any more."""
    obj = workload(kind, namespace)
    kinds = resource(obj["apiVersion"], kind)
    await engine.run(manifest(obj))
    await engine.run(manifest(obj))
    assert len(engine.writes()) == 1
    before = await admin.get(kinds, "x", namespace)
    async with engine.keeping(manifest(obj)):
        await admin.update(kinds, edited(before), field_manager="mallory")

        async def is_clean() -> bool:
            live = await admin.get(kinds, "x", namespace)
            return bool(template_of(live)["spec"] == template_of(before)["spec"])

        await eventually(is_clean)
        live = await admin.get(kinds, "x", namespace)
    assert template_of(live)["metadata"]["annotations"] == {
        "kubectl.kubernetes.io/restartedAt": "now"
    }
    assert live["metadata"]["labels"] == {"team": "theirs"}
    reason, note = engine.told[0]
    assert reason == "ForeignFieldsRemoved"
    assert "set by mallory" in note
    for part in ("containers[name=sidecar]", "hostNetwork", "env[name=LD_PRELOAD]", ".image"):
        assert part in note
    settled = len(engine.writes())
    await engine.run(manifest(obj))
    assert len(engine.writes()) == settled
    assert len(engine.told) == 1


async def test_a_conflict_after_the_take_over_is_not_announced_again(
    engine: Engine, admin: Client, namespace: str, fault_proxy: FaultProxy
) -> None:
    """The fields are the operator's then, so a second event could not name who had set them."""
    obj = workload("Deployment", namespace)
    await engine.run(manifest(obj))
    before = await admin.get(DEPLOYMENTS, "x", namespace)
    engine.connection = fault_proxy.connection()
    take_over = Hold()
    async with engine.keeping(manifest(obj)):
        fault_proxy.inject(take_over, verb="patch", resource="deployments")
        await admin.update(DEPLOYMENTS, edited(before), field_manager="mallory")
        await eventually_async(take_over.held.is_set, "the take-over is sent")
        conflict = Answer(409, reason="Conflict")
        fault_proxy.inject(conflict, verb="patch", resource="deployments")
        take_over.let_go.set()

        async def is_clean() -> bool:
            live = await admin.get(DEPLOYMENTS, "x", namespace)
            return bool(template_of(live)["spec"] == template_of(before)["spec"])

        await eventually(is_clean)
    assert [reason for reason, _ in engine.told] == ["ForeignFieldsRemoved"]
    assert "set by mallory" in engine.told[0][1]


@pytest.mark.parametrize("kind", KINDS)
async def test_what_somebody_applies_into_a_pod_template_goes_too(
    engine: Engine, admin: Client, namespace: str, kind: str
) -> None:
    """By server-side apply, they own only what they say, and nobody what the server adds to it.

    That is the old name of a pod's account.
    """
    obj = workload(kind, namespace)
    kinds = resource(obj["apiVersion"], kind)
    await engine.run(manifest(obj))
    before = await admin.get(kinds, "x", namespace)
    pod = {
        "hostNetwork": True,
        "serviceAccountName": "evil",
        "containers": [
            {"name": "main", "image": "example.test/main:1", "command": ["evil"]},
            {"name": "sidecar", "image": "example.test/evil:1"},
        ],
    }
    theirs: Object = {"template": {"spec": pod}}
    await admin.apply(
        kinds,
        {
            "metadata": {"name": "x", "namespace": namespace},
            "spec": {"jobTemplate": {"spec": theirs}} if kind == "CronJob" else theirs,
        },
        field_manager="gitops",
    )
    between = template_of(await admin.get(kinds, "x", namespace))["spec"]
    assert between["serviceAccount"] == "evil"
    await engine.run(manifest(obj))
    live = await admin.get(kinds, "x", namespace)
    assert template_of(live)["spec"] == template_of(before)["spec"]
    assert "set by gitops" in engine.told[0][1]
    settled = len(engine.writes())
    await engine.run(manifest(obj))
    assert len(engine.writes()) == settled


@pytest.mark.parametrize("kind", KINDS)
async def test_a_workload_that_somebody_else_created_becomes_the_releases(
    engine: Engine, admin: Client, namespace: str, kind: str
) -> None:
    """They own every default in it; it is written once, and settled then."""
    obj = workload(kind, namespace)
    kinds = resource(obj["apiVersion"], kind)
    theirs = copy.deepcopy(obj)
    template_of(theirs)["spec"]["containers"].append({"name": "extra", "image": "x.test/y:1"})
    await admin.create(kinds, theirs, field_manager="kubectl-create")
    await engine.run(manifest(obj))
    await engine.run(manifest(obj))
    live = await admin.get(kinds, "x", namespace)
    names = [one["name"] for one in template_of(live)["spec"]["containers"]]
    assert names == ["main"]
    settled = len(engine.writes())
    await engine.run(manifest(obj))
    assert len(engine.writes()) == settled


async def test_a_release_that_drops_the_account_is_rid_of_it(
    engine: Engine, admin: Client, namespace: str
) -> None:
    """It leaves its old name in another field, which nobody owns and which would bring it back."""
    plain, wide = workload("Deployment", namespace), workload("Deployment", namespace)
    template_of(wide)["spec"] |= {"hostNetwork": True, "serviceAccountName": "wide"}
    await engine.run(manifest(plain))
    before = await admin.get(DEPLOYMENTS, "x", namespace)
    await engine.run(manifest(wide))
    await engine.run(manifest(plain))
    live = await admin.get(DEPLOYMENTS, "x", namespace)
    assert template_of(live)["spec"] == template_of(before)["spec"]


async def test_ownership_that_was_wiped_out_hides_nothing(
    engine: Engine, admin: Client, namespace: str
) -> None:
    obj = workload("Deployment", namespace)
    await engine.run(manifest(obj))
    before = await admin.get(DEPLOYMENTS, "x", namespace)
    await admin.update(DEPLOYMENTS, edited(before), field_manager="mallory")
    await admin.patch(DEPLOYMENTS, "x", {"metadata": {"managedFields": [{}]}}, namespace)
    for _ in range(2):
        await engine.run(manifest(obj))
    live = await admin.get(DEPLOYMENTS, "x", namespace)
    assert template_of(live)["spec"] == template_of(before)["spec"]


async def test_what_the_server_itself_puts_back_at_each_write_does_not_keep_it_writing(
    engine: Engine, admin: Client, namespace: str
) -> None:
    """A policy adds a container to each Deployment, also to one that is applied without it.

    No manager owns it then, so it stays; the other fields of the template are set back.
    """
    name = f"sidecars-{namespace}"
    added = 'JSONPatch{op: "add", path: "/spec/template/spec/containers/-", value: sidecar}'
    sidecar = 'Object.spec.template.spec.containers{name: "sidecar", image: "x.test/sidecar:1"}'
    policy = {
        "apiVersion": POLICIES.api_version,
        "kind": POLICIES.kind,
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["apps"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["deployments"],
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            },
            "matchConditions": [
                {
                    "name": "without",
                    "expression": "!object.spec.template.spec.containers"
                    ".exists(one, one.name == 'sidecar')",
                }
            ],
            "mutations": [
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {"expression": f"[{added.replace('sidecar}', sidecar + '}')}]"},
                }
            ],
        },
    }
    bound = {
        "apiVersion": POLICY_BINDINGS.api_version,
        "kind": POLICY_BINDINGS.kind,
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }
    obj = workload("Deployment", namespace)
    await admin.create(POLICIES, policy)
    await admin.create(POLICY_BINDINGS, bound)
    try:

        async def acts() -> bool:
            probe = {**obj, "metadata": {"name": "probe", "namespace": namespace}}
            made = await admin.create(DEPLOYMENTS, probe)
            await admin.delete(DEPLOYMENTS, "probe", namespace)
            return len(template_of(made)["spec"]["containers"]) == 2

        await eventually(acts)
        counts = []
        for _ in range(2):
            async with engine.keeping(manifest(obj), pass_after=(0.1, 0.1)):
                await asyncio.sleep(1)
            counts.append(len(engine.writes()))
        assert counts[0] <= 4
        assert counts[1] <= counts[0] + 3
        theirs = {"spec": {"template": {"spec": {"hostNetwork": True}}}}
        await admin.patch(DEPLOYMENTS, "x", theirs, namespace, field_manager="mallory")
        await engine.run(manifest(obj))
        pod = template_of(await admin.get(DEPLOYMENTS, "x", namespace))["spec"]
        assert [one["name"] for one in pod["containers"]] == ["main", "sidecar"]
        assert "hostNetwork" not in pod
    finally:
        await admin.delete(POLICY_BINDINGS, name)
        await admin.delete(POLICIES, name)


async def test_replicas_are_the_autoscalers_where_there_is_one(
    engine: Engine, admin: Client, namespace: str
) -> None:
    """Another field is put right meanwhile, and the number comes back when the autoscaler goes."""
    obj = workload("Deployment", namespace)
    obj["spec"]["replicas"] = 2
    template_of(obj)["spec"]["nodeSelector"] = {"is": "nowhere"}
    autoscaler = {
        "apiVersion": AUTOSCALERS.api_version,
        "kind": AUTOSCALERS.kind,
        "metadata": {"name": "x", "namespace": namespace},
        "spec": {
            "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
        },
    }

    async def scale(number: int) -> None:
        await admin.patch(
            DEPLOYMENTS, "x", {"spec": {"replicas": number}}, namespace, field_manager="hpa"
        )

    def seen(replicas: int, image: str) -> Any:
        async def look() -> bool:
            there = (await admin.list(DEPLOYMENTS, namespace)).items
            if not there:
                return False
            spec = there[0]["spec"]
            found = spec["template"]["spec"]["containers"][0]["image"]
            return bool((spec["replicas"], found) == (replicas, image))

        return look

    async with engine.keeping(manifest(obj), waited_for=False):
        await eventually(seen(2, "example.test/main:1"))
        await admin.create(AUTOSCALERS, autoscaler)
        await scale(5)
        other = copy.deepcopy(await admin.get(DEPLOYMENTS, "x", namespace))
        template_of(other)["spec"]["containers"][0]["image"] = "example.test/evil:1"
        other["metadata"].pop("resourceVersion")
        await admin.update(DEPLOYMENTS, other, field_manager="mallory")
        await eventually(seen(5, "example.test/main:1"))
        assert len(engine.writes()) <= 4
        await admin.delete(AUTOSCALERS, "x", namespace)
        await eventually(seen(2, "example.test/main:1"))


async def test_a_suspended_job_whose_pods_somebody_redirects_is_made_anew(
    engine: Engine, admin: Client, namespace: str
) -> None:
    """A Job's template can be changed only while it is suspended."""
    jobs = resource("batch/v1", "Job")
    stopped = job("x", pod("x", foreign_container()), namespace=namespace, suspend=True)
    async with engine.running(manifest(stopped)):
        await engine.until(lambda report: report.waiting)
        before = await admin.get(jobs, "x", namespace)
        moved = {"spec": {"template": {"spec": {"nodeSelector": {"is": "theirs"}}}}}
        await admin.patch(jobs, "x", moved, namespace, field_manager="mallory")

        async def is_new() -> bool:
            found = (await admin.list(jobs, namespace)).items
            return any(
                one["metadata"]["uid"] != before["metadata"]["uid"]
                and "nodeSelector" not in one["spec"]["template"]["spec"]
                for one in found
            )

        await eventually(is_new)


async def test_passes_over_settled_workloads_read_memory_only(
    engine: Engine, namespace: str
) -> None:
    payload = [
        manifest(workload(kind, namespace), f"0000_10_{kind.lower()}_01.yaml") for kind in KINDS
    ]
    async with engine.cluster() as cluster:
        await run_payload(payload, Mode.INITIALIZING, cluster, engine.reports.append)
        before = engine.requests()
        for _ in range(5):
            await run_payload(payload, Mode.RECONCILING, cluster, engine.reports.append)
        assert engine.requests() == before
    assert len(engine.writes()) == len(KINDS)
