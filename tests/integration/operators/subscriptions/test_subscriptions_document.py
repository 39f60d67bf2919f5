"""What the document and the issue ask for by name, on a real API server."""

from pathlib import Path

import yaml
from tests.integration.operators.subscriptions.bundles import bundle, deployment
from tests.integration.operators.subscriptions.conftest import (
    LIMIT,
    Cluster,
    RealBundle,
    publish,
    write_catalog,
)

from quarterdeck.api.meta import Object
from quarterdeck.testing.waiting import eventually

EXAMPLE = """
- selector:
    matchLabels:
      name: etcd-operator-alm-owned
  resources:
    requests:
      memory: "64Mi"
      cpu: "250m"
    limits:
      memory: "128Mi"
      cpu: "500m"
  nodeSelector:
    disktype: ssd
  tolerations:
  - key: "key"
    operator: "Equal"
    value: "value"
    effect: "NoSchedule"
  # provide application config via a configmap volume
  volumes:
  - name: config-volume
    configMap:
      name: etcd-operator-config
  volumeMounts:
  - mountPath: /config
    name: config-volume
  # provide application config via env variables
  env:
  - name: SPECIAL_LEVEL_KEY
    valueFrom:
      configMapKeyRef:
        name: special-config
        key: special.how
  envFrom:
  - configMapRef:
      name: etcd-env-config
"""
"""The document's example, with the label that the real etcd operator has."""


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_the_first_example_of_the_document(
    cluster: Cluster, catalog_root: Path, real_bundle: RealBundle
) -> None:
    """All fields of one entry, on the real etcd operator; each missing object is named first."""
    name = "etcdoperator.v0.9.4"
    publish(cluster, catalog_root, real_bundle(name))
    (entry,) = yaml.safe_load(EXAMPLE)
    cluster.apply(
        {
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "Subscription",
            "metadata": {"name": "my-operator"},
            "spec": {
                "package": "etcd",
                "source": "catalog",
                "startingCSV": name,
                "config": [entry],
            },
        }
    )
    found = cluster.wait_condition("my-operator", "ConfigFailure", "etcd-operator-config")
    assert found["reason"] == "EnvFailure"
    assert '"SPECIAL_LEVEL_KEY" couldn\'t be applied' in found["message"]
    assert "there is no ConfigMap etcd-env-config" in found["message"]
    assert cluster.find("deployment", "etcd-operator") is None
    cluster.apply(config_map("etcd-operator-config", any="thing"))
    cluster.apply(config_map("etcd-env-config", ANY="thing"))
    cluster.apply(config_map("special-config", wrong="key"))
    words = "ConfigMap special-config has no key special.how"
    assert cluster.wait_condition("my-operator", "ConfigFailure", words)["message"].count(";") < 3
    cluster.apply(config_map("special-config", **{"special.how": "very"}))
    cluster.wait_no_condition("my-operator", "ConfigFailure")
    pod = cluster.get("deployment", "etcd-operator")["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == entry["nodeSelector"]
    assert pod["tolerations"] == entry["tolerations"]
    assert pod["volumes"][-1]["configMap"]["name"] == "etcd-operator-config"
    assert len(pod["containers"]) == 3
    for container in pod["containers"]:
        assert container["resources"] == entry["resources"]
        assert container["env"][-1] == entry["env"][0]
        assert container["envFrom"] == entry["envFrom"]
        assert container["volumeMounts"][-1] == entry["volumeMounts"][0]


def test_an_approval_counts_for_its_subscription_only(cluster: Cluster, catalog_root: Path) -> None:
    other = bundle("1.0.0", package="other", account="other", deployments=[deployment("other")])
    publish(cluster, catalog_root, bundle("1.0.0"), other)
    for package in ("engine", "other"):
        cluster.subscribe(package, installPlanApproval="Manual")
        cluster.wait_condition(package, "InstallPlanPending", "RequiresApproval")
    plan = cluster.status("subscription", "engine")["installPlanRef"]["name"]
    cluster.patch("installplan", plan, {"spec": {"approved": True}})
    cluster.wait_phase("engine.v1.0.0")
    assert cluster.condition("other", "InstallPlanPending") is not None
    assert cluster.find("csv", "other.v1.0.0") is None


def test_a_deployment_that_the_api_server_refuses(cluster: Cluster, catalog_root: Path) -> None:
    """Not because of the config: the version is Failed with the cause, and its other one runs."""
    refused = deployment("refused")
    refused["spec"]["selector"]["matchLabels"] = {"no": "pod"}
    made = bundle("1.0.0", deployments=[refused, deployment("engine")])
    publish(cluster, catalog_root, made)
    cluster.subscribe("engine", config=[{"env": [{"name": "ARGS", "value": "-v=4"}]}])
    cluster.wait_phase("engine.v1.0.0", "Failed")
    status = cluster.status("csv", "engine.v1.0.0")
    assert status["reason"] == "InstallComponentFailed"
    assert "Deployment refused: spec.template.metadata.labels" in status["message"]
    assert cluster.find("deployment", "refused") is None
    assert cluster.env("engine")["ARGS"]["value"] == "-v=4"
    assert cluster.condition("engine", "ConfigFailure") is None


def test_a_version_that_somebody_else_owns(cluster: Cluster, catalog_root: Path) -> None:
    """One that was made by hand; it is not touched, and goes on when it is deleted."""
    made = bundle("1.0.0")
    by_hand = {**made.objects[0], "metadata": {"name": made.name, "labels": {"by": "hand"}}}
    before = cluster.apply(by_hand)
    write_catalog(catalog_root / cluster.namespace, [made])
    cluster.catalog_source(cluster.namespace)
    cluster.subscribe("engine", config=[{"env": [{"name": "ARGS", "value": "-v=4"}]}])
    found = cluster.wait_condition("engine", "ResolutionFailed", "ClusterServiceVersionOwned")
    assert "belongs to somebody else" in found["message"]
    assert cluster.list("installplan") == []
    # It is installed as it is, without the config of a Subscription that does not own it.
    cluster.wait_phase(made.name)
    assert "ARGS" not in cluster.env("engine")
    cluster.delete("csv", made.name)

    def is_another() -> bool:
        live = cluster.find("csv", made.name)
        return live is not None and live["metadata"]["uid"] != before["metadata"]["uid"]

    eventually(is_another, "the Subscription's own version", LIMIT)
    cluster.wait_phase(made.name)
    eventually(lambda: "ARGS" in cluster.env("engine"), "with the config", LIMIT)
