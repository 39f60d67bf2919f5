"""Roles from what operators ask their managers for: that, and no more."""

import sys
import types
from typing import Any

import msgspec
import pytest
import yaml
from tests.places import DEPLOY

from quarterdeck.api.meta import CONFIG_MAPS, NAMESPACES, Object
from quarterdeck.controller import Manager, Selection, recorded_uses
from quarterdeck.controller.uses import Use, Verb
from quarterdeck.delivery.declaration import Declaration, Deployed, PolicyRule, StaticPodDelivery
from quarterdeck.delivery.manifests import account_objects
from quarterdeck.delivery.registry import installed
from quarterdeck.delivery.rights import role_objects, rules
from quarterdeck.delivery.setting_up import delivered_options, uses

MINE = Declaration(
    name="mine",
    title="Mine",
    setup="nowhere:setup",
    namespace="mine",
    account="mine-operator",
    delivery=Deployed(),
)
WATCH: frozenset[Verb] = frozenset({"watch", "list"})
OURS = [one for one in installed().of("quarterdeck") if not one.cluster_admin]


def test_settings_that_its_deployment_gives_decide_its_rights() -> None:
    """A build of the machine API operator that leaves metal3 alone may not touch it."""
    declared = installed().operators["machine-api"]
    assert isinstance(declared.delivery, Deployed)
    delivery = msgspec.structs.replace(declared.delivery, args=("--metal3-build=D", "--other"))
    without = msgspec.structs.replace(declared, delivery=delivery)
    assert delivered_options(without) == {"metal3_build": "D"}
    assert "deployments" in {use.resource.plural for use in uses(declared)}
    assert {use.resource.plural for use in uses(without)} == {"clusteroperators"}


def events(made: list[PolicyRule]) -> list[str]:
    return [rule.namespace for rule in made if rule.resources == ("events",)]


@pytest.mark.parametrize(
    ("watched", "places"),
    [
        pytest.param([Use(resource=CONFIG_MAPS, verbs=WATCH)], [""], id="everywhere"),
        pytest.param(
            [Use(resource=CONFIG_MAPS, namespace="here", verbs=WATCH)],
            ["here"],
            id="in one namespace",
        ),
        pytest.param(
            [Use(resource=NAMESPACES, verbs=WATCH)], ["default"], id="objects without a namespace"
        ),
        pytest.param(
            [
                Use(resource=NAMESPACES, verbs=WATCH),
                Use(resource=CONFIG_MAPS, namespace="here", verbs=WATCH),
            ],
            ["default", "here"],
            id="both",
        ),
        pytest.param([Use(resource=CONFIG_MAPS, verbs=frozenset({"get"}))], [], id="none"),
    ],
)
def test_events_are_allowed_where_the_watched_objects_are(
    watched: list[Use], places: list[str]
) -> None:
    assert events(rules(MINE, watched)) == places


def test_a_role_is_as_narrow_as_what_was_asked_for() -> None:
    asked = [
        Use(resource=CONFIG_MAPS, namespace="here", name="one", verbs=WATCH),
        Use(resource=NAMESPACES, name="two", subresource="status", verbs=frozenset({"patch"})),
    ]
    made = role_objects(MINE, asked)
    found = {
        (one["kind"], one["metadata"].get("namespace")): one.get("rules")
        for one in made
        if not one["kind"].endswith("Binding")
    }
    assert found["ClusterRole", None] == [
        rule("", "namespaces/status", ["patch"], resourceNames=["two"])
    ]
    assert found["Role", "here"] == [
        rule("", "configmaps", ["list", "watch"], resourceNames=["one"]),
        rule("events.k8s.io", "events", ["create", "patch"]),
    ]
    assert found["Role", "mine"] == [
        rule("coordination.k8s.io", "leases", ["create"]),
        rule("coordination.k8s.io", "leases", ["get", "update"], resourceNames=["mine-operator"]),
    ]
    subjects = [one["subjects"] for one in made if "subjects" in one]
    account = {"kind": "ServiceAccount", "name": "mine-operator", "namespace": "mine"}
    assert subjects == [[account]] * 3


def test_a_role_that_the_operator_binds_by_itself_has_no_binding() -> None:
    """What it allows is in no other role: the operator may do it only where it binds the role."""
    asked = [
        Use(resource=CONFIG_MAPS, verbs=WATCH),
        Use(resource=CONFIG_MAPS, name="one", role="there", verbs=frozenset({"patch"})),
    ]
    made = role_objects(MINE, asked)
    roles = {one["metadata"]["name"]: one["rules"] for one in made if one["kind"] == "ClusterRole"}
    assert roles == {
        "mine-operator-there": [rule("", "configmaps", ["patch"], resourceNames=["one"])],
        "mine-operator": [
            rule("", "configmaps", ["list", "watch"]),
            rule("events.k8s.io", "events", ["create", "patch"]),
        ],
    }
    bound = [one["roleRef"]["name"] for one in made if "roleRef" in one]
    assert "mine-operator-there" not in bound


def test_writes_by_another_role_are_recorded_with_it() -> None:
    def setup(manager: Manager) -> None:
        manager.objects(CONFIG_MAPS, Selection(name="one"), writes=["ensure"], role="there")

    found = recorded_uses(setup)
    assert {(use.role, use.name): sorted(use.verbs) for use in found} == {
        ("", "one"): ["list", "watch"],
        ("there", ""): ["create"],
        ("there", "one"): ["get", "patch"],
    }


def test_what_cannot_be_derived_comes_on_top() -> None:
    nodes = PolicyRule(group="", resources=("nodes",), verbs=("get",))
    declared = Declaration(
        name="mine", title="Mine", setup="nowhere:setup", namespace="mine", rights=(nodes,)
    )
    assert rules(declared, []) == [nodes]


def test_the_sample_may_do_only_this() -> None:
    """Objects by namespace or by name; only a create cannot be limited to a name."""
    operators, events = "clusteroperators", rule("events.k8s.io", "events", ["create", "patch"])
    group, mine = "config.openshift.io", {"resourceNames": ["sample"]}
    found = {
        (one["metadata"].get("namespace", ""), one["metadata"]["name"]): one["rules"]
        for one in delivered("sample")
        if "rules" in one
    }
    del found["quarterdeck-sample", "sample-operator-lease"]
    assert found == {
        ("", "quarterdeck-sample"): [
            rule(group, operators, ["create"]),
            rule(group, operators, ["list", "watch"], **mine),
            rule(group, f"{operators}/status", ["patch"], **mine),
        ],
        ("default", "quarterdeck-sample"): [events],
        ("quarterdeck-sample", "quarterdeck-sample"): [
            rule("", "configmaps", ["get", "list", "watch", "create", "patch"]),
            rule("samples.quarterdeck.dev", "notes", ["list", "watch"]),
            rule("samples.quarterdeck.dev", "notes/status", ["patch"]),
            events,
        ],
    }
    deployment = yaml.safe_load((DEPLOY / "sample" / "deployment.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert "--namespace=quarterdeck-sample" in container["args"]


def test_a_static_pod_cannot_be_told_to_stay_in_its_namespace() -> None:
    with pytest.raises(ValueError, match="only_own_namespace: True"):
        Declaration(
            name="mine",
            title="Mine",
            setup="nowhere:setup",
            namespace="mine",
            only_own_namespace=True,
            delivery=StaticPodDelivery(user="mine", port=1),
        )


def test_only_one_of_both_limits_to_namespaces_is_given() -> None:
    with pytest.raises(ValueError, match="use one of both"):
        Declaration(
            name="mine",
            title="Mine",
            setup="nowhere:setup",
            namespace="mine",
            only_own_namespace=True,
            only_namespaces=("other",),
        )


def test_the_staleness_checker_may_do_only_this() -> None:
    found = {
        one["metadata"].get("namespace", ""): one["rules"]
        for one in delivered("staleness")
        if "rules" in one
    }
    assert found == {
        "": [
            rule("config.openshift.io", "clusteroperators", ["get", "list", "watch"]),
            rule("config.openshift.io", "clusteroperators/status", ["patch"]),
            rule("coordination.k8s.io", "leases", ["get"]),
            # It asks for its next certificate, and cannot approve that.
            rule("certificates.k8s.io", "certificatesigningrequests", ["get", "create"]),
        ],
        "default": [rule("events.k8s.io", "events", ["create", "patch"])],
        # What it publishes about itself.
        "kube-system": [
            rule("", "configmaps", ["create"]),
            rule("", "configmaps", ["patch"], resourceNames=["quarterdeck-staleness"]),
        ],
    }


def test_the_certificate_approver_may_do_only_this() -> None:
    """It may approve for one signer, and cannot make or sign a request."""
    group, requests = "certificates.k8s.io", "certificatesigningrequests"
    signer = ["kubernetes.io/kube-apiserver-client"]
    found = {
        one["metadata"].get("namespace", ""): one["rules"]
        for one in delivered("certificates")
        if "rules" in one and not one["metadata"]["name"].endswith("-lease")
    }
    assert found == {
        "": [
            rule(group, requests, ["list", "watch"]),
            rule(group, f"{requests}/approval", ["patch"]),
            rule(group, "signers", ["approve"], resourceNames=signer),
        ],
        "default": [rule("events.k8s.io", "events", ["create", "patch"])],
    }


@pytest.mark.parametrize("declared", OURS, ids=lambda one: str(one.name))
def test_the_cluster_operator_that_is_declared_is_the_one_that_is_reported(
    declared: Declaration,
) -> None:
    reported = {
        use.name
        for use in uses(declared)
        if use.resource.plural == "clusteroperators" and use.name and use.subresource
    }
    assert reported == ({declared.cluster_operator} if declared.cluster_operator else set())


def rule(group: str, resource: str, verbs: list[str], **more: Any) -> Object:
    return {"apiGroups": [group], "resources": [resource], **more, "verbs": verbs}


def delivered(operator: str) -> list[Object]:
    return list(yaml.safe_load_all((DEPLOY / operator / "rbac.yaml").read_text()))


def test_what_an_operator_reads_in_its_own_namespace_it_may_read_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its namespace is known to `setup` as it will be where the operator runs."""

    def setup(manager: Manager) -> None:
        assert (manager.name, manager.field_manager) == ("mine", "mine-operator")
        manager.objects(CONFIG_MAPS, Selection(namespace=manager.home.namespace))

    module = types.ModuleType("home_reader")
    module.__dict__["setup"] = setup
    monkeypatch.setitem(sys.modules, "home_reader", module)
    declared = msgspec.structs.replace(MINE, setup="home_reader:setup")
    assert {use.namespace for use in uses(declared)} == {"mine"}
    assert not [obj for obj in account_objects(declared) if obj["kind"] == "ClusterRole"]
