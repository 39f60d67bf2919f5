"""What the preflight says of rights, of objects of others, and of files."""

from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.unit.install.test_install_plan import OPERATORS, facts, messages, names, planned

from quarterdeck.api.meta import Object
from quarterdeck.install.conflicts import beside
from quarterdeck.install.facts import NeededRight, described, identity
from quarterdeck.install.monitoring import monitoring_objects, with_monitoring
from quarterdeck.install.plan import InstallationPlan
from quarterdeck.install.removal import own
from quarterdeck.install.rights import Needed, known_kinds, needed_rights, refused_without
from quarterdeck.install.trust import TrustError, check_trust
from quarterdeck.kube.kinds import GroupVersionKind, Kinds

OWN = own(OPERATORS)
CHECKER = ("ClusterRole", "", "quarterdeck-staleness")


def kinds_of(plan: InstallationPlan) -> Kinds:
    """The kinds of a plan, as if a server served them."""
    from quarterdeck.api.meta import foreign

    found = {}
    for obj in plan.objects:
        kind = GroupVersionKind.of(obj)
        plural = f"{kind.kind.lower()}s"
        namespaced = "namespace" in obj["metadata"]
        found[kind] = foreign(obj["apiVersion"], kind.kind, plural, namespaced=namespaced)
    return known_kinds(plan, found)


def live(obj: Object, *managers: str, **more: Any) -> Object:
    """An object of a plan, as somebody else has it."""
    entries = [{"manager": manager, "operation": "Update"} for manager in managers]
    meta = {"name": obj["metadata"]["name"], "managedFields": entries, **more}
    return {"kind": obj["kind"], "metadata": meta}


def with_others(
    plan: InstallationPlan, wanted: tuple[str, str, str], *who: str, **more: Any
) -> Any:
    (obj,) = {str(one): one for one in plan.objects if identity(one) == wanted}.values()
    return beside(plan, {wanted: live(obj, *who, **more)}, OWN)


def test_every_right_of_every_step_is_needed() -> None:
    plan = planned(facts(), trust={"pull-secret.json": b"{}"})
    needed = {one.right for one in needed_rights(plan, kinds_of(plan))}
    every = described(sorted(needed))
    for right in (
        "create, get, patch clusterrolebindings.rbac.authorization.k8s.io",
        "create, get, patch poddisruptionbudgets.policy in openshift-cluster-version",
        "create, get, patch secrets in openshift-cluster-version",
        "create, escalate, get, patch roles.rbac.authorization.k8s.io in kube-system",
        "create, get, list clusterversions.config.openshift.io",
        "bind clusterroles.rbac.authorization.k8s.io cluster-admin",
    ):
        assert right in every
    lacking = NeededRight(group="", resource="secrets", verb="patch", namespace="x")
    refused = refused_without(plan, [lacking])
    assert (refused.refused, refused.steps) == (True, ())
    assert "you may not: patch secrets in x; " in messages(refused, "error")


def test_who_has_all_rights_of_a_role_may_create_it() -> None:
    escalate = NeededRight(group="rbac", resource="roles", verb="escalate")
    first, second = (NeededRight(group="", resource="pods", verb=verb) for verb in ("get", "list"))
    needed = Needed(right=escalate, instead=(first, second))
    assert needed.lacking([first, second]) == ()
    assert needed.lacking([escalate]) == ()
    assert needed.lacking([escalate, second]) == (second,)


def test_an_object_of_somebody_else_is_not_taken_over() -> None:
    plan = planned(facts())
    refused = with_others(plan, CHECKER, "kubectl-create")
    assert (refused.refused, refused.steps) == (True, ())
    told = messages(refused, "error")
    assert "somebody else made ClusterRole quarterdeck-staleness (kubectl-create)" in told
    assert not with_others(plan, CHECKER, "quarterdeck-install", "kubectl-edit").refused


def test_a_namespace_of_somebody_else_is_used_as_it_is() -> None:
    plan = planned(facts())
    wanted = ("Namespace", "", "quarterdeck-staleness")
    found = with_others(plan, wanted, "kubectl-create")
    assert not found.refused
    assert "quarterdeck-staleness" not in names(found, "Namespace")
    assert "who may create pods there can use the rights" in messages(found, "warning")
    assert wanted[2] in names(with_others(plan, wanted, "quarterdeck-install"), "Namespace")


def test_what_is_being_deleted_is_not_applied() -> None:
    name = "clusterversions.config.openshift.io"
    wanted = ("CustomResourceDefinition", "", name)
    found = with_others(planned(facts()), wanted, "quarterdeck-install", deletionTimestamp="now")
    assert f"{wanted[0]} {name} is being deleted" in messages(found, "error")


def test_what_helm_installed_is_left_to_helm() -> None:
    more: Any = {
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "q", "meta.helm.sh/release-namespace": "n"},
    }
    found = with_others(planned(facts()), CHECKER, "helm", **more)
    assert not found.refused
    assert CHECKER[2] not in names(found, "ClusterRole")
    assert "left to Helm, which has it as the release q in the namespace n" in messages(
        found, "warning"
    )


def test_prometheus_gets_what_is_about_the_operators_that_are_there() -> None:
    found = {identity(one) for one in monitoring_objects(("staleness",))}
    assert found
    assert {namespace for _, namespace, _ in found} == {"kube-system", "quarterdeck-staleness"}
    plan = planned(facts(groups=frozenset({"monitoring.coreos.com"})), operators=("ingress",))
    made = with_monitoring(plan, facts(groups=frozenset({"monitoring.coreos.com"})), {})
    assert "does not serve ConfigMap, PodMonitor, PrometheusRule" in messages(made, "warning")
    alone = with_monitoring(planned(facts(), all_in_one=True), facts(), {})
    assert "none is applied with --all-in-one" in messages(alone, "warning")


def private_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


@pytest.mark.parametrize("option", ["--registry-ca", "--verification-key"])
def test_a_private_key_does_not_get_into_the_cluster(option: str) -> None:
    key = private_key()
    with pytest.raises(TrustError, match="must not leave its owner") as raised:
        check_trust(option, key)
    assert key.splitlines()[1].decode() not in str(raised.value)


@pytest.mark.parametrize("option", ["--registry-ca", "--verification-key", "--pull-secret"])
def test_a_file_that_is_something_else_is_refused_without_its_content(option: str) -> None:
    with pytest.raises(TrustError, match=f"^{option}: ") as raised:
        check_trust(option, b"hunter2")
    assert "hunter2" not in str(raised.value)


def test_a_plan_has_no_object_twice_but_namespaces() -> None:
    """Two objects of one name in a plan would be applied one over the other."""
    for options in ({}, {"console": True}, {"operators": ("hosted", "sample")}):
        found = [identity(obj) for obj in planned(facts(), **options).objects]
        twice = {one for one in found if found.count(one) > 1}
        assert {kind for kind, _, _ in twice} <= {"Namespace"}
