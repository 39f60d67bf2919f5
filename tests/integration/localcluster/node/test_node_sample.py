"""The sample operator from its own Deployment, under its own account, on `this-machine`."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.pods import needs_bubblewrap
from tests.objects import note
from tests.places import DEPLOY

from quarterdeck import __version__
from quarterdeck.api.meta import Object
from quarterdeck.status.staleness_marks import checking_message, verdict_message
from quarterdeck.testing.answer_monitor import AnswerMonitor
from quarterdeck.testing.this_machine import ThisMachine

pytestmark = needs_bubblewrap

NAMESPACE = "quarterdeck-sample"


@pytest.fixture
def sample(
    this_machine: ThisMachine, crds: list[str], clean_cluster: None
) -> Iterator[ThisMachine]:
    """The node in the sample's namespace, where its two replicas are ready."""
    node = ThisMachine(this_machine.plane, NAMESPACE)
    for manifest in ("sample/rbac.yaml", "sample/deployment.yaml"):
        node.plane.kubectl("apply", "--server-side", f"--filename={DEPLOY / manifest}")
    node.wait_rolled_out("sample-operator")
    yield node
    # A namespace is quicker to go when its pods are gone already.
    node.kubectl("delete", "deployment", "sample-operator", "--cascade=orphan")
    node.kubectl("delete", "replicasets,pods", "--all", "--grace-period=0", "--force")


def leader(node: ThisMachine) -> str:
    """The pod that holds the Lease; empty while nobody does."""
    found = node.get("lease", "sample-operator")["spec"].get("holderIdentity", "")
    return str(found).partition("_")[0]


def condition(seen: Object) -> dict[str, Any]:
    conditions = seen.get("status", {}).get("conditions") or [{}]
    return dict(conditions[0])


def text_of(node: ThisMachine, name: str) -> str:
    found = node.find("configmap", name)
    return str(found["data"]["text"]) if found else ""


def test_a_note_becomes_a_config_map(sample: ThisMachine) -> None:
    """Two replicas are ready, one of them leads, and the note is answered."""
    names = {pod["metadata"]["name"] for pod in sample.list("pods", "app=sample-operator")}
    assert len(names) == 2
    sample.apply(note("hello", "hi there", NAMESPACE))
    sample.wait(lambda: text_of(sample, "hello"), lambda seen: seen == "hi there")
    assert sample.wait(lambda: leader(sample)) in names


def test_when_the_leaders_pod_is_deleted_the_other_takes_over(sample: ThisMachine) -> None:
    sample.apply(note("before", "1", NAMESPACE))
    sample.wait(lambda: text_of(sample, "before"))
    old = leader(sample)
    sample.kubectl("delete", "pod", old, "--wait=false")
    began = time.monotonic()
    new = sample.wait(lambda: leader(sample), lambda seen: seen not in ("", old))
    assert new != old
    # It hands its Lease back when it is told to stop: nobody waits for it to run out.
    assert time.monotonic() - began < 12
    sample.apply(note("after", "2", NAMESPACE))
    sample.wait(lambda: text_of(sample, "after"), lambda seen: seen == "2")


def test_rights_taken_away_are_told_and_given_back_it_goes_on(sample: ThisMachine) -> None:
    """The log and the note's condition say what is missing; then it goes on by itself."""
    sample.apply(note("first", "1", NAMESPACE))
    sample.wait(lambda: text_of(sample, "first"))
    role = sample.get("role", "quarterdeck-sample")
    rules = [
        rule | {"verbs": ["list", "watch"]} if rule["resources"] == ["configmaps"] else rule
        for rule in role["rules"]
    ]
    patch = {"apiVersion": role["apiVersion"], "kind": "Role", "rules": rules}
    name = {"metadata": {"name": "quarterdeck-sample"}}
    sample.kubectl("replace", "--filename=-", manifest={**patch, **name})

    def refused() -> Object:
        # RBAC reaches the API server's authorizer a moment later: ask again until it has.
        sample.apply(note("second", f"{time.monotonic()}", NAMESPACE))
        return sample.get("note", "second")

    sample.wait(refused, lambda seen: condition(seen).get("status") == "False")
    told = condition(sample.get("note", "second"))
    assert told["reason"] == "Forbidden"
    assert "configmaps" in told["message"]
    assert "Forbidden" in sample.wait_logged(leader(sample), "Forbidden")
    sample.kubectl("replace", "--filename=-", manifest={**patch, **name, "rules": role["rules"]})
    sample.wait(
        lambda: condition(sample.get("note", "second")), lambda seen: seen.get("status") == "True"
    )
    text = sample.get("note", "second")["spec"]["text"]
    sample.wait(lambda: text_of(sample, "second"), lambda seen: seen == text)


def test_it_reports_and_answers_the_staleness_challenge(
    sample: ThisMachine, answer_monitor: AnswerMonitor
) -> None:
    """With nothing to do; asked twice, the second time by a verdict on all its conditions."""

    def reported() -> Object:
        found: Object = sample.find("clusteroperator", "sample") or {}
        return dict(found.get("status", {}))

    said = sample.wait(reported)
    assert {it["type"]: it["status"] for it in said["conditions"]} == {
        "Available": "True",
        "Progressing": "False",
        "Degraded": "False",
        "Upgradeable": "True",
    }
    assert said["versions"] == [{"name": "operator", "version": __version__}]
    assert [(it["resource"], it["name"]) for it in said["relatedObjects"]] == [
        ("namespaces", NAMESPACE),
        ("leases", "sample-operator"),
        ("notes", ""),
    ]

    def mark(conditions: list[Object]) -> None:
        patch = json.dumps({"status": {"conditions": conditions}})
        how = ("--subresource=status", "--type=merge", "--field-manager=quarterdeck-staleness")
        sample.kubectl("patch", "clusteroperator", "sample", *how, f"--patch={patch}")

    def told() -> list[tuple[str, str, str]]:
        return [(it["type"], it["status"], it["message"]) for it in reported()["conditions"]]

    before = told()
    mark([it | {"message": checking_message(it["message"])} for it in said["conditions"]])
    sample.wait(told, lambda seen: seen == before)
    verdict = [
        it | {"status": "Unknown", "message": verdict_message(it["message"], it["status"], 1200)}
        for it in said["conditions"]
    ]
    mark(verdict)
    sample.wait(told, lambda seen: seen == before)
    assert sample.wait(lambda: "sample" in answer_monitor.slowest), "the monitor has measured it"
