"""What a real API server refuses is said on the object, once, and nothing is written after that."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.integration.controller.processes import LIMIT, make_process, operator, running, when
from tests.objects import config_map, note

from quarterdeck.api.meta import CONFIG_MAPS, EVENTS, SECRETS, Key, Object, foreign
from quarterdeck.api.samples_v1alpha1 import NOTES
from quarterdeck.backoff import Backoff
from quarterdeck.controller import DONE, Controller, Manager, Result, Selection, StatusWriter, Watch
from quarterdeck.kube import Client, KubeError, LabelSelector, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.operators.sample.controller import desired_status
from quarterdeck.testing.audit import writes_by

QUOTAS = foreign("v1", "ResourceQuota", "resourcequotas", namespaced=True)
ADMISSION = "admissionregistration.k8s.io/v1"
POLICIES = foreign(
    ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
)
BINDINGS = foreign(
    ADMISSION,
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    namespaced=False,
)
OURS = {"example.test/made-by": "maker"}
REMEDY = "change what the object asks for, or what forbids it"


def named(namespace: str, name: str, **rest: Any) -> Object:
    return {"metadata": {"namespace": namespace, "name": name}, **rest}


class Maker:
    """An operator that makes for each note what the server refuses, by the note's name."""

    def __init__(self, namespace: str) -> None:
        self.runs: Counter[str] = Counter()
        self._namespace = namespace

    def setup(self, manager: Manager) -> None:
        notes = manager.objects(NOTES, writes=["status"])
        ours = Selection(labels=LabelSelector(match_labels=OURS))
        config_maps = manager.objects(CONFIG_MAPS, ours, writes=["ensure"])
        secrets = manager.objects(SECRETS, writes=["ensure"])

        async def reconcile(key: Key) -> Result:
            if notes.get(key) is None:
                return DONE
            self.runs[key.name] += 1
            data: dict[str, dict[str, str]] = {
                "invalid": {"no/key": "x"},
                "huge": {"a": "x" * 4_000_000},
            }
            where = secrets if key.name == "quota" else config_maps
            metadata = {"namespace": self._namespace, "name": key.name, "labels": OURS}
            await where.ensure({"metadata": metadata, "data": data.get(key.name, {})})
            return DONE

        told = StatusWriter(notes, desired_status)
        pace = Backoff(base=0.1, limit=0.4)
        manager.add(
            Controller("maker", reconcile, [Watch(notes)], workers=4, status=told, backoff=pace)
        )


@asynccontextmanager
async def forbidden_by_policy(admin: Client, namespace: str) -> AsyncIterator[None]:
    """No ConfigMap named `policy` or `random` here; the second is refused in ever new words."""
    rules = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    constraints = {"resourceRules": [rules], "namespaceSelector": selector}
    validation = {
        "expression": "!(object.metadata.name in ['policy', 'random'])",
        "messageExpression": "object.metadata.name == 'policy' ? 'not here' : "
        "'request ' + string(object.metadata.uid)",
        "reason": "Forbidden",
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": constraints,
        "validations": [validation],
    }
    kind = {"apiVersion": ADMISSION, "kind": POLICIES.kind}
    await admin.create(POLICIES, {**kind, "metadata": {"name": namespace}, "spec": spec})
    bound = {"policyName": namespace, "validationActions": ["Deny"]}
    kind = {"apiVersion": ADMISSION, "kind": BINDINGS.kind}
    await admin.create(BINDINGS, {**kind, "metadata": {"name": namespace}, "spec": bound})
    probe = config_map(namespace, "policy")
    try:
        async with asyncio.timeout(LIMIT):
            while True:  # until the server has heard of it
                try:
                    await admin.create(CONFIG_MAPS, probe)
                except KubeError:
                    break
                await admin.delete(CONFIG_MAPS, "policy", namespace)
                await asyncio.sleep(0.1)
        yield
    finally:
        await admin.delete(BINDINGS, namespace)
        await admin.delete(POLICIES, namespace)


async def test_each_refusal_is_one_condition_and_one_event_and_then_nothing_is_written(
    control_plane: ControlPlane, kubeconfig: Path, crds: list[str], namespace: str
) -> None:
    user = f"maker-{namespace}"
    masters = control_plane.kubeconfig_for(user, ["system:masters"])
    maker = Maker(namespace)
    process = make_process(masters, [operator("maker", maker.setup)], namespace)
    names = ("quota", "policy", "taken", "invalid", "huge")

    def written() -> Counter[str]:
        found = writes_by(control_plane.audit_log, user)
        return Counter(it.name for it in found if it.resource == "notes/status")

    async def conditions() -> dict[str, tuple[str, str]]:
        found = (await admin.list(NOTES, namespace)).items
        return {
            it.metadata.name: (it.status.conditions[0].reason, it.status.conditions[0].message)
            for it in found
            if it.status.conditions
        }

    async with Client(load_kubeconfig(kubeconfig)) as admin, forbidden_by_policy(admin, namespace):
        quota = {"apiVersion": "v1", "kind": QUOTAS.kind, "spec": {"hard": {"secrets": "0"}}}
        await admin.create(QUOTAS, quota | named(namespace, "none"))
        await admin.create(CONFIG_MAPS, config_map(namespace, "taken"))
        for name in (*names, "random"):
            await admin.create(NOTES, note(name, "x", namespace))
        async with running(process) as task:
            await when(lambda: all(maker.runs[it] >= 5 for it in (*names, "random")), task)
            before = dict(maker.runs)
            await when(lambda: all(maker.runs[it] >= before[it] + 3 for it in names), task)
        said = await conditions()
        events = (await admin.list(EVENTS, namespace)).items
        assert {it: reason for it, (reason, _) in said.items()} == {
            "quota": "Forbidden",
            "policy": "Forbidden",
            "random": "Forbidden",
            "taken": "AlreadyExists",
            "invalid": "Invalid",
            "huge": "RequestEntityTooLarge",
        }
        assert "quota: none" in said["quota"][1]
        for name in ("quota", "policy", "random"):
            assert said[name][1].endswith(REMEDY), said
        told = Counter(it["regarding"]["name"] for it in events if it["type"] == "Warning")
        assert {name: told[name] for name in names} == dict.fromkeys(names, 1)
        assert {name: written()[name] for name in names} == dict.fromkeys(names, 1)
        # Other words for the same refusal of the same object are no news.
        assert (told["random"], written()["random"]) == (1, 1)
