"""The config of a Subscription on a real API server: applied, healed, refused, taken back."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.integration.operators.subscriptions.bundles import bundle, deployment, service
from tests.integration.operators.subscriptions.conftest import LIMIT, Cluster, write_catalog

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.audit import writes_by
from quarterdeck.testing.namespaces import create_namespace, delete_namespace
from quarterdeck.testing.operator_process import OperatorProcess
from quarterdeck.testing.waiting import eventually

USER = "system:serviceaccount:openshift-operator-lifecycle-manager:subscription-operator"


@pytest.fixture
def engine(cluster: Cluster, catalog_root: Path) -> Cluster:
    """A catalog with one version of an operator with two Deployments and a Service."""
    both = [deployment("engine"), deployment("helper")]
    made = bundle(deployments=both, services=(service("engine"),))
    write_catalog(catalog_root / cluster.namespace, [made])
    cluster.catalog_source(cluster.namespace)
    return cluster


@pytest.fixture(scope="module")
def shared_engine(
    control_plane: ControlPlane, operator: OperatorProcess, catalog_root: Path
) -> Iterator[Cluster]:
    """The same, installed once for tests that change only its config."""
    name = "shared-engine"
    create_namespace(control_plane.requests(), name)
    made = bundle(package="engine", deployments=[deployment("engine"), deployment("helper")])
    write_catalog(catalog_root / name, [made])
    cluster = Cluster(control_plane, name)
    cluster.catalog_source(name)
    cluster.subscribe("engine")
    cluster.wait_phase("engine.v1.0.0")
    yield cluster
    delete_namespace(control_plane, name)


def env_is(cluster: Cluster, name: str, value: Any, of: str = "engine") -> bool:
    found = cluster.env(of).get(name)
    return bool((found or {}).get("value") == value)


def configure(cluster: Cluster, *entries: Object) -> None:
    cluster.subscribe("engine", config=list(entries))


ARGS: Object = {
    "selector": {"matchLabels": {"app": "engine"}},
    "env": [{"name": "ARGS", "value": "-v=4"}],
}


def test_one_roll_out_for_an_install_with_config(engine: Cluster) -> None:
    """Also: only the matching Deployment, foreign objects with the label untouched, no writes."""
    foreign = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "foreign", "labels": {"app": "engine"}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "engine", "deployment": "foreign"}},
            "template": {
                "metadata": {"labels": {"app": "engine", "deployment": "foreign"}},
                "spec": {"containers": [{"name": "main", "image": "example.com/x:1"}]},
            },
        },
    }
    engine.apply(foreign)
    before = engine.get("deployment", "foreign")["spec"]
    pod = {"containers": [{"name": "main", "image": "example.com/x:1"}]}
    labels = {"app": "engine", "deployment": "engine"}
    single = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "foreign", "labels": labels}}
    alone = engine.apply({**single, "spec": pod})
    configure(engine, ARGS)
    engine.wait_phase("engine.v1.0.0")
    template = engine.get("deployment", "engine")["spec"]["template"]
    assert template["spec"]["containers"][0]["env"][-1] == {"name": "ARGS", "value": "-v=4"}
    assert template["metadata"]["annotations"]["olm.targetNamespaces"] == engine.namespace
    assert "ARGS" not in engine.env("helper")
    sets = [
        one for one in engine.list("replicaset") if one["metadata"]["name"].startswith("engine")
    ]
    assert len(sets) == 1
    assert engine.get("deployment", "foreign")["spec"] == before
    still = engine.get("pod", "foreign")
    assert still["metadata"]["uid"] == alone["metadata"]["uid"]
    assert still["metadata"]["labels"] == labels
    assert "env" not in still["spec"]["containers"][0]
    status = engine.status("subscription", "engine")
    assert (status["installedCSV"], status["state"]) == ("engine.v1.0.0", "AtLatestKnown")
    assert status.get("conditions", []) == []


def test_what_is_edited_or_deleted_by_hand_is_restored_and_a_deletion_takes_all_along(
    engine: Cluster,
) -> None:
    """The config goes with its Subscription, everything with the version; not the catalog."""
    configure(engine, ARGS)
    engine.wait_phase("engine.v1.0.0")
    containers = engine.get("deployment", "engine")["spec"]["template"]["spec"]["containers"]
    containers[0]["env"][1]["value"] = "edited"
    template = {"spec": {"containers": containers}}
    edited = engine.patch("deployment", "engine", {"spec": {"template": template}})
    assert edited["spec"]["template"]["spec"]["containers"][0]["env"][1]["value"] == "edited"
    eventually(lambda: env_is(engine, "ARGS", "-v=4"), "the edit is healed", LIMIT)
    # Also when there is no catalog any more from which they came.
    engine.delete("catalogsource", "catalog")
    engine.wait_condition("engine", "ResolutionFailed")
    made = {kind: engine.get(kind, "engine") for kind in ("service", "serviceaccount")}
    made["role"] = engine.list("role")[0]
    made["rolebinding"] = engine.list("rolebinding")[0]
    engine.patch("service", "engine", {"spec": {"selector": {"app": "other"}}})
    eventually(lambda: selected(engine, "engine") == "engine", "the Service is healed", LIMIT)
    for kind, before in made.items():
        engine.delete(kind, before["metadata"]["name"])
    for kind, before in made.items():
        eventually(partial(is_again, engine, kind, before), f"the {kind} is back", LIMIT)
    assert selected(engine, "engine") == "engine"
    engine.delete("subscription", "engine")
    eventually(lambda: "ARGS" not in engine.env("engine"), "the config is gone", LIMIT)
    assert engine.find("csv", "engine.v1.0.0") is not None
    engine.delete("csv", "engine.v1.0.0")
    eventually(lambda: engine.find("deployment", "engine") is None, "no Deployment", LIMIT)
    eventually(lambda: engine.find("serviceaccount", "engine") is None, "no account", LIMIT)
    eventually(lambda: engine.find("service", "engine") is None, "no Service", LIMIT)
    assert engine.list("role") == []
    assert engine.list("rolebinding") == []


def selected(cluster: Cluster, service: str) -> str:
    """The pods to which a Service leads, by their label `app`."""
    found = cluster.find("service", service)
    return str(found["spec"]["selector"]["app"]) if found is not None else ""


def is_again(cluster: Cluster, kind: str, before: Object) -> bool:
    """Whether there is another object of the name, with the same owner."""
    found = (cluster.find(kind, before["metadata"]["name"]) or {"metadata": {}})["metadata"]
    was = before["metadata"]
    same = found.get("ownerReferences") == was["ownerReferences"]
    return bool(same and found["uid"] != was["uid"])


KEY = {"configMapKeyRef": {"name": "special-config", "key": "special.how"}}


@pytest.mark.parametrize(
    ("entry", "reason", "words"),
    [
        pytest.param(
            {"env": [{"name": "A", "value": "x", "valueFrom": KEY}]},
            "EnvFailure",
            "both value and valueFrom",
            id="env",
        ),
        pytest.param(
            {"env": [{"name": "A=B", "value": "x"}]},
            "EnvFailure",
            "config[0].env",
            id="env refused",
        ),
        pytest.param(
            {"envFrom": [{"configMapRef": {"name": "none"}}]},
            "EnvFromFailure",
            "there is no ConfigMap none",
            id="envFrom",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "secret": {"secretName": "none"}}]},
            "VolumeFailure",
            "there is no Secret none",
            id="volume",
        ),
        pytest.param(
            {"volumeMounts": [{"name": "certs", "mountPath": "/c"}]},
            "VolumeMountFailure",
            "no volume named certs in Deployment engine",
            id="volumeMount",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Sometimes"}]},
            "TolerationFailure",
            "Sometimes",
            id="toleration",
        ),
        pytest.param(
            {"nodeSelector": {"not a label": "x"}},
            "NodeSelectorFailure",
            "config[0].nodeSelector",
            id="nodeSelector",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
            "ResourceRequestFailure",
            "above the limit",
            id="request",
        ),
        pytest.param(
            {"resources": {"limits": {"bogus": "1"}}}, "ResourceLimitFailure", "bogus", id="limit"
        ),
    ],
)
def test_each_failure_comes_and_goes(
    shared_engine: Cluster, entry: Object, reason: str, words: str
) -> None:
    """The Deployment keeps the spec that was last applied; the other one goes on."""
    engine = shared_engine
    configure(engine)
    eventually(lambda: engine.env("engine").keys() == {"NAMESPACES"}, "no config", LIMIT)
    engine.wait_no_condition("engine", "ConfigFailure")
    before = engine.get("deployment", "engine")["spec"]
    bad = {"selector": {"matchLabels": {"app": "engine"}}, **entry}
    mark = {"name": "MARK", "value": reason + words}
    configure(engine, bad, {"env": [mark]})
    found = engine.wait_condition("engine", "ConfigFailure", words)
    assert (found["status"], found["reason"]) == ("True", reason)
    eventually(lambda: env_is(engine, "MARK", mark["value"], "helper"), "helper goes on", LIMIT)
    assert engine.get("deployment", "engine")["spec"] == before
    configure(engine, {"env": [mark]})
    engine.wait_no_condition("engine", "ConfigFailure")
    eventually(lambda: env_is(engine, "MARK", mark["value"]), "engine goes on", LIMIT)


def test_a_first_install_with_a_bad_entry_waits(engine: Cluster) -> None:
    """As the document's SPECIAL_LEVEL_KEY: it goes on by itself when the ConfigMap comes."""
    variable = {"name": "SPECIAL_LEVEL_KEY", "valueFrom": KEY}
    configure(engine, {"selector": {"matchLabels": {"app": "engine"}}, "env": [variable]})
    engine.wait_phase("engine.v1.0.0", "InstallReady")
    found = engine.wait_condition("engine", "ConfigFailure", "SPECIAL_LEVEL_KEY")
    assert found["reason"] == "EnvFailure"
    assert engine.find("deployment", "engine") is None
    assert engine.find("deployment", "helper") is not None
    engine.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "special-config"},
            "data": {"special.how": "very"},
        }
    )
    engine.wait_phase("engine.v1.0.0")
    engine.wait_no_condition("engine", "ConfigFailure")


def test_a_selector_that_matches_nothing_comes_and_goes(shared_engine: Cluster) -> None:
    engine = shared_engine
    configure(engine, {"selector": {"matchLabels": {"olm.cahash": "123"}}})
    found = engine.wait_condition("engine", "PodConfigSelectorFailure")
    assert found["reason"] == "NoMatchingPods"
    assert found["message"] == "config[0]: No operator pods found matching selector."
    configure(engine)
    engine.wait_no_condition("engine", "PodConfigSelectorFailure")


def test_a_corrected_config_is_taken_past_the_progress_deadline(
    cluster: Cluster, catalog_root: Path
) -> None:
    slow = deployment()
    slow["spec"]["progressDeadlineSeconds"] = 1
    write_catalog(catalog_root / cluster.namespace, [bundle(deployments=[slow])])
    cluster.catalog_source(cluster.namespace)
    cluster.subscribe("engine", config=[{"nodeSelector": {"no": "such-node"}}])
    cluster.wait_phase("engine.v1.0.0", "Failed")
    cluster.subscribe("engine", config=[])
    cluster.wait_phase("engine.v1.0.0")


def test_nothing_is_written_while_nothing_changes(engine: Cluster) -> None:
    configure(engine, ARGS)
    engine.wait_phase("engine.v1.0.0")
    eventually(
        lambda: engine.status("subscription", "engine").get("state") == "AtLatestKnown",
        "the Subscription is settled",
        LIMIT,
    )
    log = engine.control_plane.audit_log

    def writes() -> list[tuple[str, str, str]]:
        done = [one for one in writes_by(log, USER) if one.namespace == engine.namespace]
        return [(one.verb, one.resource, one.name) for one in done]

    def marked(name: str) -> list[tuple[str, str, str]]:
        """The writes so far, once that about a Subscription that cannot be resolved is logged.

        The server logs a request a moment after its answer.
        """
        engine.subscribe("no-such-package", name=name)
        engine.wait_condition(name, "ResolutionFailed")
        mark = ("patch", "subscriptions/status", name)
        eventually(lambda: mark in writes(), f"the write to {name} is logged", LIMIT)
        return writes()

    before = marked("early")
    # Each of these wakes every controller of the operator for this Subscription. Labels, because a
    # new annotation of a Deployment is a new generation of it, which its controller has to observe.
    for kind, name in (
        ("subscription", "engine"),
        ("csv", "engine.v1.0.0"),
        ("deployment", "engine"),
    ):
        engine.patch(kind, name, {"metadata": {"labels": {"example.com/seen": "1"}}})
    # The later one is a duplicate of the earlier one, which is another failure.
    assert marked("late")[len(before) :] == [("patch", "subscriptions/status", "late")]
