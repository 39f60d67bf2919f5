"""An OperatorGroup that names an account: everything but definitions is written as that account."""

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from tests.integration.operators.subscriptions.bundles import (
    RULES,
    bundle,
    definition,
    group,
    service,
)
from tests.integration.operators.subscriptions.conftest import LIMIT, Cluster, publish

from quarterdeck.api.meta import DEPLOYMENTS, SERVICE_ACCOUNTS, Key, Object, Resource
from quarterdeck.api.operators_v1alpha1 import CLUSTER_SERVICE_VERSIONS
from quarterdeck.controller import Objects
from quarterdeck.kube import Cache, Client, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.operators.subscriptions.groups import Target
from quarterdeck.operators.subscriptions.install.writers import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    SERVICES,
    Impersonated,
    Writers,
)
from quarterdeck.testing.audit import writes_by
from quarterdeck.testing.waiting import eventually

OPERATOR = "system:serviceaccount:openshift-operator-lifecycle-manager:subscription-operator"
RBAC = "rbac.authorization.k8s.io"
WRITE = ["get", "create", "patch"]
SECRETS: Object = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}
RIGHTS: dict[str, Object] = {
    "core": {
        "apiGroups": ["", "apps"],
        "resources": ["serviceaccounts", "deployments"],
        "verbs": WRITE,
    },
    "roles": {"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": WRITE},
    "services": {"apiGroups": [""], "resources": ["services"], "verbs": WRITE},
    "csvs": {
        "apiGroups": ["operators.coreos.com"],
        "resources": ["clusterserviceversions"],
        "verbs": ["create"],
    },
    "granted": RULES[0],
    "secrets": SECRETS,
}


def allow(cluster: Cluster, **rights: Object) -> None:
    """Give the account `installer` exactly these rights, and let the group name it."""
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer"}})
    named: Object = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": "installer"}}
    cluster.apply({**named, "kind": "Role", "rules": list(rights.values())})
    subject = {"kind": "ServiceAccount", "name": "installer", "namespace": cluster.namespace}
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "installer"}
    cluster.apply({**named, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})


def use_account(cluster: Cluster, **more: Any) -> None:
    targets = [cluster.namespace]
    cluster.apply(group(targetNamespaces=targets, serviceAccountName="installer", **more))


def nudge(cluster: Cluster) -> None:
    """Change the group: what was refused is tried again after a while, or at such a change."""
    made = cluster.get("operatorgroup", "group")
    said = made["metadata"].get("annotations", {}).get("again", "0")
    cluster.patch(
        "operatorgroup", "group", {"metadata": {"annotations": {"again": str(int(said) + 1)}}}
    )


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        pytest.param("csvs", "clusterserviceversions", id="the ClusterServiceVersion"),
        pytest.param("services", "services", id="a Service of the bundle"),
    ],
)
def test_a_plan_that_the_account_may_not_carry_out_changes_nothing(
    cluster: Cluster, catalog_root: Path, missing: str, words: str
) -> None:
    """Not even the definitions; the message names the account and the rule."""
    kind = definition(f"{cluster.namespace}.example.com")
    publish(cluster, catalog_root, bundle(definitions=(kind,), services=(service("engine"),)))
    allow(cluster, **{name: rule for name, rule in RIGHTS.items() if name != missing})
    use_account(cluster)
    cluster.subscribe("engine")
    found = cluster.wait_condition("engine", "InstallPlanFailed", "cannot create resource")
    assert f'"system:serviceaccount:{cluster.namespace}:installer"' in found["message"]
    assert f'"{words}"' in found["message"]
    assert cluster.list("csv") == []
    assert cluster.find("service", "engine") is None
    assert cluster.find("customresourcedefinition", kind["metadata"]["name"]) is None
    allow(cluster, **RIGHTS)
    nudge(cluster)
    cluster.wait_phase("engine.v1.0.0")
    assert cluster.find("service", "engine") is not None


def test_the_account_grants_no_more_than_it_has(cluster: Cluster, catalog_root: Path) -> None:
    """The rule that it does not have is named; all writes but of definitions are its own."""
    kind = definition(f"{cluster.namespace}.example.com")
    made = bundle(rules=[SECRETS], definitions=(kind,), services=(service("engine"),))
    publish(cluster, catalog_root, made)
    allow(cluster, **{name: rule for name, rule in RIGHTS.items() if name != "secrets"})
    use_account(cluster)
    cluster.subscribe("engine")
    cluster.wait_phase("engine.v1.0.0", "Failed")
    message = cluster.status("csv", "engine.v1.0.0")["message"]
    assert "not currently held" in message
    assert "secrets" in message
    assert cluster.find("deployment", "engine") is None
    allow(cluster, **RIGHTS)
    nudge(cluster)
    cluster.wait_phase("engine.v1.0.0")
    log = cluster.control_plane.audit_log

    def written(impersonated: str) -> set[tuple[str, str]]:
        return {
            (one.verb, one.resource)
            for one in writes_by(log, OPERATOR)
            if one.namespace == cluster.namespace
            and one.impersonated == impersonated
            and "/" not in one.resource
        }

    account = f"system:serviceaccount:{cluster.namespace}:installer"
    # The server logs a request a moment after its answer.
    eventually(lambda: ("create", "deployments") in written(account), "they are logged", LIMIT)
    # As itself it writes its own plan, and the finalizer.
    assert written("") == {("create", "installplans"), ("patch", "clusterserviceversions")}


async def test_what_an_account_writes_is_in_the_caches_at_once(
    cluster: Cluster, control_plane: ControlPlane
) -> None:
    """Before a watch says so: these caches have none. Else a plan seems to have lost its result."""
    allow(cluster, **RIGHTS)
    async with Client(load_kubeconfig(control_plane.kubeconfig)) as client:

        def objects(resource: Resource[Any]) -> Objects[Any]:
            return Objects(resource, Cache(client, resource), client, "test")

        own = Writers(
            accounts=objects(SERVICE_ACCOUNTS),
            roles=objects(ROLES),
            bindings=objects(ROLE_BINDINGS),
            cluster_roles=objects(CLUSTER_ROLES),
            cluster_bindings=objects(CLUSTER_ROLE_BINDINGS),
            deployments=objects(DEPLOYMENTS),
            services=objects(SERVICES),
            csvs=objects(CLUSTER_SERVICE_VERSIONS),
        )
        here = cluster.namespace
        target = Target(namespace=here, namespaces=(here,), account="installer")
        new = {**bundle().objects[0], "metadata": {"name": "engine.v1.0.0", "namespace": here}}
        async with aclosing(Impersonated(client, "test", own)) as impersonated:
            made = await (await impersonated.writers(target)).csvs.create(new)
            held = own.csvs.get(Key(here, "engine.v1.0.0"))
            assert held is not None
            assert held.metadata.uid == made.metadata.uid


def test_without_the_group_nothing_is_granted_that_was_refused(
    cluster: Cluster, catalog_root: Path
) -> None:
    """A group may be gone for a moment; only one that names no account lifts the limit."""
    publish(cluster, catalog_root, bundle(rules=[SECRETS]))
    allow(cluster, **{name: rule for name, rule in RIGHTS.items() if name != "secrets"})
    use_account(cluster)
    cluster.subscribe("engine")
    cluster.wait_phase("engine.v1.0.0", "Failed")
    assert cluster.status("csv", "engine.v1.0.0")["installedAs"] == "installer"

    def reason() -> str:
        return str(cluster.status("csv", "engine.v1.0.0").get("reason"))

    cluster.delete("operatorgroup", "group")
    eventually(lambda: reason() == "NoOperatorGroup", "it waits for a group", LIMIT)
    assert [one["metadata"]["name"] for one in cluster.list("role")] == ["installer"]
    assert cluster.find("deployment", "engine") is None
    use_account(cluster)
    eventually(lambda: reason() == "InstallComponentFailed", "refused again", LIMIT)
    cluster.delete("operatorgroup", "group")
    cluster.apply(group("open", targetNamespaces=[cluster.namespace]))
    cluster.wait_phase("engine.v1.0.0")
    assert "installedAs" not in cluster.status("csv", "engine.v1.0.0")


def test_cluster_wide_rights_are_refused_too(cluster: Cluster, catalog_root: Path) -> None:
    publish(cluster, catalog_root, bundle(cluster_rules=[SECRETS]))
    allow(cluster, **RIGHTS)
    use_account(cluster)
    cluster.subscribe("engine")
    cluster.wait_phase("engine.v1.0.0", "Failed")
    assert "clusterroles" in cluster.status("csv", "engine.v1.0.0")["message"]
    owned = f"quarterdeck.dev/csv-namespace={cluster.namespace}"
    assert cluster.list("clusterrole", owned) == []
    assert cluster.find("deployment", "engine") is None
