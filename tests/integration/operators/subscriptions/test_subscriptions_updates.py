"""Updates and installs: approval, warnings, conflicts, OperatorGroups."""

import json
import time
from pathlib import Path

from msgspec.structs import replace
from tests.integration.operators.subscriptions.bundles import (
    bundle,
    definition,
    deployment,
    group,
)
from tests.integration.operators.subscriptions.conftest import (
    LIMIT,
    REPORTED,
    Cluster,
    publish,
    write_catalog,
)

from quarterdeck.api.meta import Object
from quarterdeck.operators.subscriptions.catalog.bundles import catalog_entries
from quarterdeck.testing.audit import requests_by
from quarterdeck.testing.waiting import eventually

USER = "system:serviceaccount:openshift-operator-lifecycle-manager:subscription-operator"

ENTRY: Object = {
    "selector": {"matchLabels": {"app": "engine"}},
    "env": [{"name": "ARGS", "value": "-v=4"}],
}


def test_a_manual_update_warns_before_it_is_approved(cluster: Cluster, catalog_root: Path) -> None:
    """Then it waits, and after it the config that no longer matches is a failure."""
    renamed = deployment(labels={"app": "motor"})
    publish(
        cluster,
        catalog_root,
        bundle("1.0.0"),
        bundle("1.1.0", replaces="engine.v1.0.0", deployments=[renamed]),
    )
    cluster.subscribe(
        "engine", startingCSV="engine.v1.0.0", installPlanApproval="Manual", config=[ENTRY]
    )
    cluster.wait_condition("engine", "InstallPlanPending", "RequiresApproval")
    assert cluster.list("csv") == []
    (plan,) = cluster.list("installplan")
    cluster.patch("installplan", plan["metadata"]["name"], {"spec": {"approved": True}})
    cluster.wait_phase("engine.v1.0.0")

    warning = cluster.wait_condition("engine", "UpgradeConfigWarning")
    assert "engine.v1.1.0" in warning["message"]
    assert "No operator pods found matching selector." in warning["message"]
    cluster.wait_condition("engine", "InstallPlanPending", "RequiresApproval")
    assert cluster.condition("engine", "PodConfigSelectorFailure") is None
    status = cluster.status("subscription", "engine")
    assert (status["installedCSV"], status["currentCSV"]) == ("engine.v1.0.0", "engine.v1.1.0")
    assert status["state"] == "UpgradePending"
    cluster.patch("installplan", status["installPlanRef"]["name"], {"spec": {"approved": True}})
    cluster.wait_phase("engine.v1.1.0")
    found = cluster.wait_condition("engine", "PodConfigSelectorFailure")
    assert found["reason"] == "NoMatchingPods"
    cluster.wait_no_condition("engine", "UpgradeConfigWarning")
    eventually(lambda: cluster.find("csv", "engine.v1.0.0") is None, "the old one is gone", LIMIT)


def test_conflicts_are_conditions_and_nothing_is_half_done(
    cluster: Cluster, catalog_root: Path
) -> None:
    """Two Subscriptions to a package, a package that is not there, a definition of another."""
    group = f"{cluster.namespace}.example.com"
    shared = definition(group)
    refused = deployment("refused")
    refused["spec"]["selector"]["matchLabels"] = {"no": "pod"}
    publish(
        cluster,
        catalog_root,
        bundle("1.0.0", definitions=(shared,)),
        bundle("3.0.0", package="thief", definitions=(shared,), deployments=[deployment("thief")]),
        bundle(
            "1.0.0",
            package="needy",
            deployments=[deployment("needy")],
            required=({"name": f"others.{group}", "version": "v1", "kind": "Other"},),
        ),
        bundle("2.0.0", package="double"),
        bundle("1.0.0", package="refused", account="refused", deployments=[refused]),
    )
    cluster.subscribe("engine")
    cluster.wait_phase("engine.v1.0.0")
    cluster.subscribe("engine", name="second")
    cluster.wait_condition("second", "ResolutionFailed", "DuplicateSubscription")
    cluster.subscribe("nothing")
    cluster.wait_condition("nothing", "ResolutionFailed", "no package nothing")
    cluster.subscribe("thief")
    failed = cluster.wait_condition("thief", "InstallPlanFailed", "belongs to the package engine")
    assert f"engines.{group}" in failed["message"]
    assert cluster.find("csv", "thief.v3.0.0") is None
    cluster.subscribe("needy")
    cluster.wait_phase("needy.v1.0.0", "Pending")
    message = cluster.status("csv", "needy.v1.0.0")["message"]
    assert f"the required CustomResourceDefinition others.{group} does not exist" in message
    assert cluster.find("deployment", "needy") is None
    # It has a Deployment and an account of the same name.
    cluster.subscribe("double")
    cluster.wait_phase("double.v2.0.0", "Failed")
    assert (
        "Deployment engine belongs to engine.v1.0.0"
        in cluster.status("csv", "double.v2.0.0")["message"]
    )
    assert cluster.phase("engine.v1.0.0") == "Succeeded"
    cluster.subscribe("refused")
    cluster.wait_phase("refused.v1.0.0", "Failed")
    cluster.subscribe("engine", config=[{"volumeMounts": [{"name": "no", "mountPath": "/no"}]}])
    cluster.wait_condition("engine", "ConfigFailure", "no volume named no")
    broken_and_quiet(cluster)


def broken_and_quiet(cluster: Cluster) -> None:
    """Nothing is tried again and again: what is refused has one more attempt in half a minute."""
    log = cluster.control_plane.audit_log

    def made() -> list[tuple[str, str, str]]:
        mine = [one for one in requests_by(log, USER) if one.namespace == cluster.namespace]
        return [(one.verb, one.resource, one.name) for one in mine if one.verb != "watch"]

    time.sleep(1.0)  # What the last change caused is done, and logged.
    before = len(made())
    time.sleep(BROKEN_FOR)
    assert len(made()[before:]) <= FEW, made()[before:]
    # Nor at each change of something else: this wakes every controller for each of them.
    for one in cluster.list("subscription"):
        labels = {"labels": {"example.com/seen": "1"}}
        cluster.patch("subscription", one["metadata"]["name"], {"metadata": labels})
    time.sleep(1.0)
    writes = [one for one in made()[before:] if one[0] != "create"]
    assert len(writes) <= FEW, writes


BROKEN_FOR = 4.0
FEW = 6
"""A refused create of a Deployment, and of a plan's dry run, may come once more at this time."""


def test_a_required_package_is_installed_before(cluster: Cluster, catalog_root: Path) -> None:
    """A condition names it, nothing is done for it, and it goes on when that one is there."""
    needs = ({"packageName": "engine", "versionRange": ">=1.0.0"},)
    made = bundle(package="needy", account="needy", deployments=[deployment("needy")])
    publish(cluster, catalog_root, bundle("1.0.0"), replace(made, required=needs))
    cluster.subscribe("needy")
    found = cluster.wait_condition("needy", "ResolutionFailed", "RequiredPackageMissing")
    assert "needy.v1.0.0 requires engine >=1.0.0" in found["message"]
    assert cluster.list("installplan") == []
    cluster.subscribe("engine")
    cluster.wait_phase("needy.v1.0.0")
    cluster.wait_no_condition("needy", "ResolutionFailed")


def test_a_foreign_definition_is_never_overwritten(cluster: Cluster, catalog_root: Path) -> None:
    made = definition(f"{cluster.namespace}.example.com", "Foreign")
    cluster.apply(made)
    publish(cluster, catalog_root, bundle("1.0.0", definitions=(made,)))
    cluster.subscribe("engine")
    cluster.wait_condition("engine", "InstallPlanFailed", "was not installed by a Subscription")
    assert cluster.list("csv") == []


def test_a_broken_catalog_is_refused_with_file_and_entry(
    cluster: Cluster, catalog_root: Path
) -> None:
    directory = catalog_root / cluster.namespace
    directory.mkdir()
    (directory / "broken.yaml").write_text("schema: olm.package\nname: p\ndefaultChannel: x\n")
    cluster.catalog_source(cluster.namespace)
    cluster.subscribe("p")
    cluster.wait_condition("p", "CatalogSourcesUnhealthy")
    status = cluster.status("catalogsource", "catalog")
    assert status["message"].startswith("broken.yaml: olm.package p: the default channel 'x'")
    (directory / "broken.yaml").unlink()
    write_catalog(directory, [bundle("1.0.0", package="p")])
    cluster.wait_phase("p.v1.0.0")


def test_an_unusable_catalog_of_the_cluster_degrades_the_operator(
    cluster: Cluster, home: Cluster, catalog_root: Path
) -> None:
    """That of a user's namespace does not; and when it is mended, all is well."""

    def degraded() -> tuple[str, str]:
        found = cluster.control_plane.requests().send("GET", REPORTED).json()
        conditions = {one["type"]: one for one in found["status"]["conditions"]}
        return conditions["Degraded"]["status"], conditions["Degraded"]["reason"]

    def refused() -> bool:
        return bool(cluster.status("catalogsource", "catalog").get("reason") == "InvalidSpec")

    cluster.catalog_source("../elsewhere")
    eventually(refused, "that of the user is refused", LIMIT)
    assert degraded()[0] == "False"
    home.catalog_source("../elsewhere")
    eventually(lambda: degraded() == ("True", "CatalogsUnusable"), "Degraded", LIMIT)
    write_catalog(catalog_root / "mended", [bundle("1.0.0", package="mended")])
    home.catalog_source("mended")
    eventually(lambda: degraded()[0] == "False", "no longer Degraded", LIMIT)


def test_a_catalog_in_a_config_map(cluster: Cluster) -> None:
    files = catalog_entries([bundle("1.0.0")])
    data = {
        name.replace("/", "-"): "\n".join(map(json.dumps, entries))
        for name, entries in files.items()
    }
    api = "operators.coreos.com/v1alpha1"
    source = {"sourceType": "configmap", "configMap": "catalog"}
    cluster.apply(
        {
            "apiVersion": api,
            "kind": "CatalogSource",
            "metadata": {"name": "catalog"},
            "spec": source,
        }
    )
    cluster.subscribe("engine")
    cluster.wait_condition("engine", "ResolutionFailed", "cannot be used")
    cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "catalog"}, "data": data}
    )
    cluster.wait_phase("engine.v1.0.0")


def test_operator_groups(cluster: Cluster, catalog_root: Path) -> None:
    """Unsupported modes, several groups, a global one, and what is left after a deletion."""
    publish(cluster, catalog_root, bundle("1.0.0", modes=("OwnNamespace", "AllNamespaces")))
    cluster.apply(group(targetNamespaces=["default"]))
    cluster.subscribe("engine")
    cluster.wait_phase("engine.v1.0.0", "Failed")
    assert cluster.status("csv", "engine.v1.0.0")["reason"] == "UnsupportedOperatorGroup"
    cluster.apply(group("second"))

    def reason() -> str:
        return str(cluster.status("csv", "engine.v1.0.0").get("reason"))

    eventually(lambda: reason() == "TooManyOperatorGroups", "too many groups", LIMIT)
    # The config is judged nevertheless: a fault comes, and goes with its cause.
    mount = {"name": "certs", "mountPath": "/certs"}
    cluster.subscribe("engine", config=[{"volumeMounts": [mount]}])
    cluster.wait_condition("engine", "ConfigFailure", "no volume named certs")
    generation = cluster.subscribe("engine", config=[])["metadata"]["generation"]
    cluster.wait_no_condition("engine", "ConfigFailure")
    assert cluster.status("subscription", "engine")["observedGeneration"] == generation
    cluster.delete("operatorgroup", "group")
    cluster.wait_phase("engine.v1.0.0")
    assert cluster.list("role") == []
    owned = f"quarterdeck.dev/csv-namespace={cluster.namespace}"
    assert len(cluster.list("clusterrole", owned)) == 1
    pod = cluster.get("deployment", "engine")["spec"]["template"]
    assert pod["metadata"]["annotations"]["olm.targetNamespaces"] == ""
    assert pod["metadata"]["annotations"]["olm.operatorGroup"] == "second"
    cluster.delete("subscription", "engine")
    cluster.delete("csv", "engine.v1.0.0")
    eventually(lambda: cluster.list("clusterrole", owned) == [], "no ClusterRole", LIMIT)
    eventually(lambda: cluster.list("clusterrolebinding", owned) == [], "no binding", LIMIT)
