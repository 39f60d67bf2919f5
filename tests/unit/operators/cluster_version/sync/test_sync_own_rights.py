"""Which writes would take the operator's own rights, and what stands in for them."""

from typing import Any

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.operators.cluster_version.sync.own_rights import (
    OwnAccount,
    can_take_rights,
    refusal,
)
from quarterdeck.payload.model import ObjectIdentity

RBAC = "rbac.authorization.k8s.io"
ME = OwnAccount(
    name="system:serviceaccount:home:me",
    groups=frozenset({"system:serviceaccounts", "system:serviceaccounts:home"}),
)
MINE = {"kind": "ServiceAccount", "namespace": "home", "name": "me"}
THEIRS = {"kind": "ServiceAccount", "namespace": "home", "name": "they"}
MY_GROUP = {"kind": "Group", "name": "system:serviceaccounts:home"}


def binding(
    *subjects: Object, role: str = "cluster-admin", name: str = "b", namespace: str = ""
) -> Object:
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, "namespace": namespace, "uid": name},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": list(subjects),
    }


def role(*verbs: str) -> Object:
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": [verb]} for verb in verbs]
    return {"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": rules}


def is_refused(live: Object, desired: Object | None, *others: Object, **where: Any) -> bool:
    meta = live["metadata"]
    group = where.get("group", RBAC)
    identity = ObjectIdentity(group, live["kind"], meta.get("namespace", ""), meta["name"])
    everything = [live, *others] if "roleRef" in live else list(others)
    refused = refusal(identity, live, desired, ME, everything) is not None
    assert can_take_rights(identity, live, desired) or not refused, "it would not be asked"
    return refused


@pytest.mark.parametrize("subject", [MINE, MY_GROUP])
def test_the_only_binding_is_not_taken(subject: Object) -> None:
    own = binding(subject)
    assert is_refused(own, None)
    assert is_refused(own, binding(subject, role="view"))
    assert is_refused(own, binding(THEIRS))
    assert is_refused(own, binding())
    assert not is_refused(own, binding(subject, THEIRS)), "it still names the operator"


def test_bindings_of_others_are_free() -> None:
    own = binding(MINE, name="own")
    for desired in (None, binding(THEIRS, role="view"), binding()):
        assert not is_refused(binding(THEIRS), desired, own)


def test_another_binding_to_the_same_role_or_to_everything_stands_in() -> None:
    own = binding(MINE, role="r")
    assert not is_refused(own, None, binding(MY_GROUP, role="r", name="other"))
    assert not is_refused(own, None, binding(MINE, name="other"))
    assert is_refused(own, None, binding(MINE, role="view", name="other"))
    assert is_refused(own, None, binding(MINE, role="r", name="o", namespace="home"))


def test_a_role_keeps_the_rules_that_the_operator_has_by_it() -> None:
    own = binding(MINE, role="r")
    assert is_refused(role("get", "list"), role("get"), own)
    assert is_refused(role("get"), None, own)
    assert not is_refused(role("get"), role("get", "list"), own)
    assert not is_refused(role("get"), None, binding(THEIRS, role="r"))
    assert not is_refused(role("get"), None, own, binding(MINE, name="all"))


def test_a_rule_that_becomes_wider_is_kept() -> None:
    own = binding(MINE, role="r")
    named = role("get") | {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
    assert not is_refused(named, role("*"), own)
    assert is_refused(role("*"), named, own)
    rule = named["rules"][0]
    only_one = named | {"rules": [rule | {"resourceNames": ["a"]}]}
    assert is_refused(named, only_one, own)
    assert not is_refused(only_one, named, own)


def test_a_role_does_not_become_an_aggregated_one() -> None:
    """The server would replace its rules by those of the roles that it selects: none."""
    own = binding(MINE, role="r")
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"to": "r"}}]}
    aggregated = role("get") | {"aggregationRule": selectors}
    assert is_refused(role("get"), aggregated, own)
    assert not is_refused(aggregated, aggregated, own)
    other = {"clusterRoleSelectors": [{"matchLabels": {"to": "another"}}]}
    assert is_refused(aggregated, aggregated | {"aggregationRule": other}, own)


def test_a_role_that_the_operators_role_has_rules_from_keeps_them() -> None:
    own = binding(MINE, role="r")
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"to": "r"}}]}
    aggregated = role("get") | {"aggregationRule": selectors}
    identity = ObjectIdentity(RBAC, "ClusterRole", "", "part")

    def part(*verbs: str, **labels: str) -> Object:
        return role(*verbs) | {"metadata": {"name": "part", "labels": labels}}

    def refused(live: Object, desired: Object | None) -> bool:
        found = refusal(identity, live, desired, ME, [own], [aggregated]) is not None
        assert can_take_rights(identity, live, desired) or not found
        return found

    live = part("get", "list", to="r")
    assert refused(live, None)
    assert refused(live, part("get", to="r"))
    assert refused(live, part("get", "list"))
    assert not refused(live, part("get", "list", "watch", to="r"))
    assert not refused(part("get", to="other"), None)


def test_who_may_do_everything_anyway_loses_nothing() -> None:
    master = OwnAccount(name="system:admin", groups=frozenset({"system:masters"}))
    own = binding({"kind": "Group", "name": "system:masters"})
    identity = ObjectIdentity(RBAC, "ClusterRoleBinding", "", "b")
    assert refusal(identity, own, None, master, [own]) is None


def test_who_has_which_rights_is_asked_only_where_some_can_be_lost() -> None:
    of_role = ObjectIdentity(RBAC, "ClusterRole", "", "r")
    labelled = role("get") | {"metadata": {"name": "r", "labels": {"a": "b"}}}
    assert not can_take_rights(of_role, role("get"), labelled)
    assert not can_take_rights(of_role, role("get"), role("get", "list"))
    assert can_take_rights(of_role, role("get", "list"), role("get"))
    assert can_take_rights(of_role, role("get"), None)
    home, there = ObjectIdentity("", "Namespace", "", "home"), {"metadata": {"name": "home"}}
    assert not can_take_rights(home, there, there)
    assert can_take_rights(home, there, None)
    assert can_take_rights(
        ObjectIdentity(RBAC, "ClusterRoleBinding", "", "b"), binding(), binding()
    )
    assert not can_take_rights(ObjectIdentity("", "ConfigMap", "home", "c"), there, None)


def test_the_account_and_its_namespace_are_not_deleted() -> None:
    account = {"kind": "ServiceAccount", "metadata": {"name": "me", "namespace": "home"}}
    other = {"kind": "ServiceAccount", "metadata": {"name": "me", "namespace": "elsewhere"}}
    home = {"kind": "Namespace", "metadata": {"name": "home"}}
    assert is_refused(account, None, group="")
    assert not is_refused(account, account, group="")
    assert not is_refused(other, None, group="")
    assert is_refused(home, None, group="")
    assert not is_refused({"kind": "Namespace", "metadata": {"name": "x"}}, None, group="")
