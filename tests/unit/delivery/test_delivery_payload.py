"""A payload from declarations: names, annotations, shared namespaces."""

import re
import sys
import types
from typing import Any

import msgspec
import pytest

from quarterdeck.delivery.declaration import (
    Declaration,
    Deployed,
    HostPath,
    LocalOption,
    PayloadPart,
    PolicyRule,
    StaticPodDelivery,
)
from quarterdeck.delivery.manifests import (
    account_objects,
    foreign_namespaces,
    missing_namespace,
    replace_args,
    workload,
)
from quarterdeck.delivery.payload import payload
from quarterdeck.delivery.placement import CONTROL_PLANE, CONTROL_PLANE_ROLES, NodeLabel, affinity

NOTES = "quarterdeck.api.samples_v1alpha1:NOTES"
INCLUDE = "include.release.openshift.io/"


def declared(**fields: Any) -> Declaration:
    base = Declaration(
        name="mine",
        title="Mine",
        setup="mine_setup:setup",
        namespace="shared",
        account="mine-operator",
        delivery=Deployed(),
    )
    return msgspec.structs.replace(base, **fields)


@pytest.fixture(autouse=True)
def setup_that_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("mine_setup")
    module.__dict__["setup"] = lambda _: None
    monkeypatch.setitem(sys.modules, "mine_setup", module)


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> str:
    """An object with annotations of its own, where a declaration can name it."""
    annotated = {"name": "x", "annotations": {"release.openshift.io/create-only": "true"}}
    module = types.ModuleType("mine_objects")
    module.__dict__["OBJECTS"] = ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": annotated},)
    monkeypatch.setitem(sys.modules, "mine_objects", module)
    return "mine_objects:OBJECTS"


def test_files_are_named_by_run_level_in_the_order_in_which_one_needs_the_other() -> None:
    mine = declared(run_level=7, kinds=(NOTES,), cluster_operator="mine")
    assert list(payload([mine])) == [
        "0000_07_mine_01_notes.crd.yaml",
        "0000_07_mine_02_rbac.yaml",
        "0000_07_mine_03_deployment.yaml",
        "0000_07_mine_03_disruption-budget.yaml",
        "0000_07_mine_04_clusteroperator.yaml",
        "image-references",
    ]


def test_an_annotation_that_a_manifest_has_is_kept_beside_those_by_which_it_counts(
    objects: str,
) -> None:
    part = PayloadPart(name="extra", run_level=9, objects=objects)
    (obj,) = payload([declared(parts=(part,), profiles=("one",))])["0000_09_extra_02_objects.yaml"]
    assert obj["metadata"]["annotations"] == {
        "release.openshift.io/create-only": "true",
        f"{INCLUDE}one": "true",
    }


def test_the_images_of_operands_are_part_of_the_release() -> None:
    delivery = Deployed(other_images=("mine-router",), env=(("ROUTER_IMAGE", "mine-router"),))
    (images,) = payload([declared(delivery=delivery)])["image-references"]
    assert [tag["name"] for tag in images["spec"]["tags"]] == ["mine-router", "quarterdeck"]
    with pytest.raises(ValueError, match=r"other_images: '': write one line"):
        Deployed(other_images=("",))


def test_a_capability_is_on_every_manifest() -> None:
    mine = declared(capability="Console", kinds=(NOTES,))
    for name, objects in payload([mine]).items():
        for obj in objects if name != "image-references" else ():
            found = obj["metadata"]["annotations"]["capability.openshift.io/name"]
            assert found == "Console", name


def test_other_namespaces_come_with_the_operators_own_and_before_its_roles() -> None:
    mine = declared(other_namespaces=("operands", "shared"))
    kinds = [(obj["kind"], obj["metadata"]["name"]) for obj in account_objects(mine)]
    assert kinds[:3] == [
        ("Namespace", "shared"),
        ("Namespace", "operands"),
        ("ServiceAccount", "mine-operator"),
    ]
    with pytest.raises(ValueError, match="other_namespaces: 'No'"):
        declared(other_namespaces=("No",))


def test_a_namespace_with_rights_and_from_nobody_is_named() -> None:
    rights = tuple(
        PolicyRule(group="", resources=("secrets",), verbs=("list",), namespace=namespace)
        for namespace in ("kube-system", "operands", "elsewhere", "")
    )
    mine = declared(rights=rights, other_namespaces=("operands",))
    assert foreign_namespaces(mine) == ["elsewhere"]
    assert "add it to `other_namespaces`" in missing_namespace(mine, "elsewhere")


def test_a_namespace_that_two_operators_share_comes_once_and_first() -> None:
    made = payload([declared(run_level=30), declared(name="other", account="o", run_level=20)])
    found = [
        name for name, objects in made.items() for obj in objects if obj["kind"] == "Namespace"
    ]
    assert found == ["0000_20_other_02_rbac.yaml"]


def test_what_two_operators_share_counts_wherever_one_of_the_two_does() -> None:
    """Without the first one's capability the second one would have no namespace."""
    first = declared(run_level=20, capability="Console", profiles=("one",), kinds=(NOTES,))
    other = declared(name="other", account="o", profiles=("two",), kinds=(NOTES,))
    made = payload([first, other])
    (namespace,) = (
        obj for objects in made.values() for obj in objects if obj["kind"] == "Namespace"
    )
    (definition,) = made["0000_20_mine_01_notes.crd.yaml"]
    both = {f"{INCLUDE}one": "true", f"{INCLUDE}two": "true"}
    assert namespace["metadata"]["annotations"] == both
    assert "capability.openshift.io/name" not in definition["metadata"]["annotations"]
    (deployment,) = made["0000_20_mine_03_deployment.yaml"]
    assert deployment["metadata"]["annotations"]["capability.openshift.io/name"] == "Console"


def test_a_part_says_whether_its_objects_are_the_administrators(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = types.ModuleType("mine_objects")
    account: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "router"},
    }
    module.__dict__["OBJECTS"] = (account,)
    monkeypatch.setitem(sys.modules, "mine_objects", module)
    found = {}
    for kept in (False, True):
        part = PayloadPart(name="extra", run_level=9, objects="mine_objects:OBJECTS", kept=kept)
        (obj,) = payload([declared(parts=(part,))])["0000_09_extra_02_objects.yaml"]
        found[kept] = obj["metadata"]["annotations"].get("release.openshift.io/create-only")
    assert found == {False: "true", True: None}
    assert "annotations" not in account["metadata"], "what the operator has is left as it is"


def test_a_type_that_two_operators_bring_comes_once_and_files_of_one_name_are_joined() -> None:
    part = PayloadPart(name="shared", run_level=10, kinds=(NOTES,))
    other = declared(name="other", account="other-operator", namespace="other", kinds=(NOTES,))
    made = payload(
        [declared(parts=(part,), component="x"), msgspec.structs.replace(other, component="x")]
    )
    definitions = [name for name in made if name.endswith(".crd.yaml")]
    assert definitions == ["0000_10_shared_01_notes.crd.yaml"]
    deployments = [one["metadata"]["name"] for one in made["0000_50_x_03_deployment.yaml"]]
    assert deployments == ["mine-operator", "other-operator"]


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        pytest.param({"name": "My Operator"}, "name: 'My Operator': use lower-case", id="a name"),
        pytest.param({"namespace": ""}, "namespace: '': use lower-case", id="no namespace"),
        pytest.param({"account": ""}, "account: '': name the ServiceAccount", id="no account"),
        pytest.param({"run_level": 100}, "run_level: 100: use 0 to 99", id="a run level"),
        pytest.param({"setup": "mine.setup"}, "'mine.setup': write it as module:", id="a setup"),
        pytest.param({"kinds": ("mine",)}, "'mine': write it as module:", id="a kind"),
        pytest.param(
            {"name": "a" * 52, "part_of": "quarterdeck"},
            "use at most 51 characters",
            id="a long name",
        ),
        pytest.param({"name": "a\n"}, "name: 'a\\n': use lower-case", id="a name of two lines"),
        pytest.param({"title": "It\nis"}, "title: 'It\\nis': write one line", id="a title"),
        pytest.param({"account": "a" * 64}, "at most 63 of them", id="a long account"),
        pytest.param({"component": "../x"}, "component: '../x': use lower", id="a component"),
        pytest.param({"cluster_operator": "a/b"}, "cluster_operator: 'a/b': use", id="a report"),
        pytest.param({"profiles": ("a: b",)}, "profiles: 'a: b': use letters", id="a profile"),
        pytest.param({"capability": "a\nb"}, "capability: 'a\\nb': use", id="a capability"),
    ],
)
def test_what_could_not_be_delivered_cannot_be_declared(fields: dict[str, Any], fault: str) -> None:
    base: dict[str, Any] = {
        "name": "mine",
        "title": "Mine",
        "setup": "mine:setup",
        "namespace": "mine",
        "account": "mine",
        "delivery": Deployed(),
    }
    with pytest.raises(ValueError, match=re.escape(fault)):
        Declaration(**(base | fields))


@pytest.mark.parametrize(
    ("kind", "fields", "fault"),
    [
        pytest.param(Deployed, {"replicas": 0}, "delivery.replicas: 0: use 1", id="no replica"),
        pytest.param(Deployed, {"memory": "much"}, "'much': write it like 64Mi", id="memory"),
        pytest.param(Deployed, {"memory_limit": "1gb"}, "'1gb': write it like", id="a limit"),
        pytest.param(
            Deployed, {"env": (("A=B", ""),)}, "'A=B': write it like LOG", id="a variable"
        ),
        pytest.param(Deployed, {"cpu": "10Mi"}, "'10Mi': write it like 10m", id="CPU"),
        pytest.param(
            Deployed,
            {"priority_class": "High_"},
            "delivery.priority_class: 'High_': use names",
            id="a priority class",
        ),
        pytest.param(
            Deployed,
            {"tolerated_taints": ("a/b/c",)},
            "delivery.tolerated_taints: 'a/b': use names",
            id="a taint",
        ),
        pytest.param(NodeLabel, {"key": "x y"}, "nodes.key: 'x y': use letters", id="a node label"),
        pytest.param(
            NodeLabel,
            {"key": "x", "values": ("", "a,b")},
            "nodes.values: 'a,b': use letters",
            id="a node label's value",
        ),
        pytest.param(Deployed, {"image": ""}, "delivery.image: '': write one line", id="an image"),
        pytest.param(
            StaticPodDelivery,
            {"user": "", "port": 1},
            "delivery.user: '': write one line",
            id="a user",
        ),
        pytest.param(
            StaticPodDelivery,
            {"user": "u", "port": 70000},
            "delivery.port: 70000: use 1",
            id="a port",
        ),
        pytest.param(
            HostPath,
            {"name": "x", "path": "etc", "mount": "/x"},
            "host_paths.path: 'etc': use an absolute path",
            id="a relative path",
        ),
        pytest.param(
            HostPath,
            {"name": "x", "path": "/x", "mount": "/x/../y"},
            "host_paths.mount: '/x/../y': use an absolute path",
            id="a path that leads up",
        ),
        pytest.param(
            PayloadPart,
            {"name": "../p", "run_level": 1},
            "parts.name: '../p': use lower",
            id="a file",
        ),
        pytest.param(
            PayloadPart,
            {"name": "rbac", "run_level": 1},
            "the operator's own file",
            id="our own file",
        ),
        pytest.param(
            PayloadPart,
            {"name": "p", "run_level": -1},
            "parts.run_level: -1: use 0 to 99",
            id="a level",
        ),
        pytest.param(
            PolicyRule,
            {"group": "", "resources": ("pods",), "verbs": ("create",), "names": ("x",)},
            "grant create by a rule of its own",
            id="a create by name",
        ),
        pytest.param(
            LocalOption,
            {"flag": "--x", "help": "", "choices": ("a",), "kind": "X", "field": ()},
            "--x: name choices, and the field to set",
            id="an option that sets nothing",
        ),
    ],
)
def test_what_no_cluster_would_take_cannot_be_declared(
    kind: type[msgspec.Struct], fields: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        kind(**fields)


def test_two_parts_of_one_name_would_be_one_file() -> None:
    parts = (PayloadPart(name="p", run_level=1), PayloadPart(name="p", run_level=2))
    with pytest.raises(ValueError, match=r"parts\.name: 'p': there are two"):
        declared(parts=parts)


def test_what_is_no_deployment_is_in_no_payload() -> None:
    static = declared(delivery=StaticPodDelivery(user="system:mine", port=1234))
    assert list(payload([static, declared(name="by-hand", delivery=None)])) == ["image-references"]


@pytest.mark.parametrize("delivery", [Deployed(), StaticPodDelivery(user="system:mine", port=1234)])
def test_every_operator_has_a_memory_limit(delivery: Deployed | StaticPodDelivery) -> None:
    made = workload(declared(delivery=delivery)) or {}
    pod = made["spec"]["template"]["spec"] if isinstance(delivery, Deployed) else made["spec"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"memory": delivery.memory_limit} != {"memory": ""}


@pytest.mark.parametrize("delivery", [Deployed(), StaticPodDelivery(user="system:mine", port=1234)])
def test_no_operator_runs_as_root(delivery: Deployed | StaticPodDelivery) -> None:
    """Nor a static pod, which no admission checks, and which has the host's network."""
    made = workload(declared(delivery=delivery)) or {}
    pod = made["spec"]["template"]["spec"] if isinstance(delivery, Deployed) else made["spec"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (container,) = pod["containers"]
    assert container["securityContext"]["allowPrivilegeEscalation"] is False


def test_a_memory_limit_and_arguments_of_its_own() -> None:
    delivery = Deployed(memory_limit="256Mi", args=("--x=1",), env=(("A", "b"),), replicas=1)
    made = workload(declared(delivery=delivery)) or {}
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"memory": "256Mi"}
    assert container["args"][-1] == "--x=1"
    assert {"name": "A", "value": "b"} in container["env"]


def test_the_priority_nodes_and_requests_that_are_declared() -> None:
    delivery = Deployed(
        priority_class="system-node-critical",
        preferred_nodes=CONTROL_PLANE,
        tolerated_taints=CONTROL_PLANE_ROLES,
        cpu="50m",
        memory="100Mi",
    )
    pod = (workload(declared(delivery=delivery)) or {})["spec"]["template"]["spec"]
    assert pod["priorityClassName"] == "system-node-critical"
    terms = pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    keys = [term["preference"]["matchExpressions"][0]["key"] for term in terms]
    assert keys == [it["key"] for it in pod["tolerations"]] == list(CONTROL_PLANE_ROLES)
    (container,) = pod["containers"]
    assert container["resources"]["requests"] == {"cpu": "50m", "memory": "100Mi"}


def test_without_a_placement_its_fields_are_absent() -> None:
    pod = (workload(declared(delivery=Deployed(replicas=1))) or {})["spec"]["template"]["spec"]
    fields = {"priorityClassName", "affinity", "tolerations", "topologySpreadConstraints"}
    assert not fields & set(pod)


def test_replicas_spread_over_nodes_also_where_nodes_have_no_zone() -> None:
    """One constraint about a label that a node lacks would switch off all of them for it."""
    pod = (workload(declared(delivery=Deployed(replicas=2))) or {})["spec"]["template"]["spec"]
    (constraint,) = pod["topologySpreadConstraints"]
    assert constraint["topologyKey"] == "kubernetes.io/hostname"
    (zone,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert zone["podAffinityTerm"]["topologyKey"] == "topology.kubernetes.io/zone"
    for one in (constraint, zone["podAffinityTerm"]):
        assert one["labelSelector"] == {"matchLabels": {"app": "mine-operator"}}
        assert one["matchLabelKeys"] == ["pod-template-hash"]


def test_one_of_the_required_labels_is_enough() -> None:
    wanted = affinity(required=(NodeLabel("disk", ("ssd", "nvme")), NodeLabel("fast")))
    assert wanted == {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}
                        ]
                    },
                    {"matchExpressions": [{"key": "fast", "operator": "Exists"}]},
                ]
            }
        }
    }


def test_arguments_take_the_place_of_those_with_the_same_flag() -> None:
    assert replace_args(["run", "--a=1", "--b"], ["--a=2", "--c"]) == ["run", "--a=2", "--b", "--c"]
