"""Which rights of an account an audit log shows to be used."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import SeldomUsed
from quarterdeck.delivery.manifests import account_objects
from quarterdeck.delivery.registry import installed
from quarterdeck.testing.rbac import Request, RoleMissing, rights_of, unused, users
from quarterdeck.testing.unused_rights import main, unused_by_operator, unused_rights

USER = "system:serviceaccount:ns:acme"
SUBJECT = {"kind": "ServiceAccount", "name": "acme", "namespace": "ns"}


def role(*rules: Object, namespace: str = "", name: str = "acme") -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"kind": "Role" if namespace else "ClusterRole", "metadata": metadata, "rules": [*rules]}


def binding(to: Object, namespace: str = "", subject: Object = SUBJECT) -> Object:
    metadata = {"name": "acme"} | ({"namespace": namespace} if namespace else {})
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"kind": to["kind"], "name": to["metadata"]["name"]},
        "subjects": [subject],
    }


def rule(resources: str, verbs: str, names: str = "", groups: str = "apps") -> Object:
    named = {"resourceNames": names.split()} if names else {}
    return {
        "apiGroups": groups.split(",") if groups else [""],
        "resources": resources.split(),
        "verbs": verbs.split(),
        **named,
    }


def left(given: Object, *requests: Request) -> list[str]:
    """The unused rights of a ClusterRole with this rule, without its name."""
    made = role(given)
    rights = rights_of(USER, [made, binding(made)])
    return [str(one).removeprefix("ClusterRole acme: ") for one in unused(rights, requests)]


def asked(
    verb: str, resource: str, name: str = "", namespace: str = "ns", group: str = "apps"
) -> Request:
    return Request(verb=verb, group=group, resource=resource, namespace=namespace, name=name)


def test_a_verb_is_used_and_another_is_not() -> None:
    given = rule("deployments", "get list")
    assert left(given, asked("get", "deployments")) == ["list deployments.apps"]
    assert left(given) == ["get deployments.apps", "list deployments.apps"]
    assert left(given, asked("get", "deployments"), asked("list", "deployments")) == []


def test_a_group_of_the_same_resource_is_another() -> None:
    given = rule("events", "create", groups="events.k8s.io")
    assert left(given, asked("create", "events", group="")) == ["create events.events.k8s.io"]


@pytest.mark.parametrize(
    ("given", "used_by", "not_by"),
    [
        (rule("*", "get"), asked("get", "daemonsets"), asked("list", "daemonsets")),
        (rule("deployments", "*"), asked("delete", "deployments"), asked("delete", "daemonsets")),
        (
            rule("deployments", "get", groups="*"),
            asked("get", "deployments", group="any.example.com"),
            asked("get", "daemonsets", group="any.example.com"),
        ),
        (
            rule("*/scale", "patch"),
            asked("patch", "deployments/scale"),
            asked("patch", "deployments"),
        ),
        (
            rule("deployments/status", "patch"),
            asked("patch", "deployments/status"),
            asked("patch", "deployments"),
        ),
        (
            rule("deployments", "patch"),
            asked("patch", "deployments"),
            asked("patch", "deployments/status"),
        ),
        (
            rule("deployments", "get", names="mine"),
            asked("get", "deployments", name="mine"),
            asked("get", "deployments", name="other"),
        ),
        (
            rule("deployments", "list", names="mine"),
            asked("list", "deployments", name="mine"),
            asked("list", "deployments"),
        ),
    ],
)
def test_wildcards_names_and_subresources(given: Object, used_by: Request, not_by: Request) -> None:
    assert left(given, used_by, not_by) == []
    assert len(left(given, not_by)) == 1


def test_each_name_of_a_rule_counts_by_itself() -> None:
    given = rule("deployments", "get", names="a b")
    assert left(given, asked("get", "deployments", name="a")) == ["get deployments.apps b"]


def test_a_subresource_of_all_is_not_a_pattern_of_one() -> None:
    """RBAC knows `*/scale`, and nothing like `deployments/*`."""
    given = rule("deployments/*", "patch")
    assert left(given, asked("patch", "deployments/scale")) != []


@pytest.mark.parametrize(
    ("path", "used_by", "not_by"),
    [
        ("/healthz", "/healthz", "/healthz/etcd"),
        ("/healthz/*", "/healthz/etcd", "/livez"),
        ("*", "/version", ""),
    ],
)
def test_paths(path: str, used_by: str, not_by: str) -> None:
    given = {"nonResourceURLs": [path], "verbs": ["get"]}
    assert left(given, Request(verb="get", path=used_by)) == []
    assert left(given, Request(verb="get", path=not_by) if not_by else asked("get", "x"))
    assert left(given, Request(verb="post", path=used_by)) == [f"get {path}"]


def test_a_role_counts_where_it_is_bound() -> None:
    local = role(rule("deployments", "get"), namespace="ns")
    shared = role(rule("daemonsets", "get"), name="shared")
    objects = [local, shared, binding(local, "ns"), binding(shared, "other")]
    rights = list(rights_of(USER, objects))
    there = [asked("get", "deployments"), asked("get", "daemonsets", namespace="other")]
    assert unused(rights, there) == []
    elsewhere = [asked("get", "deployments", namespace="x"), asked("get", "daemonsets")]
    assert [str(one) for one in unused(rights, elsewhere)] == [
        "ClusterRole shared: get daemonsets.apps in other",
        "Role ns/acme: get deployments.apps in ns",
    ]


def test_roles_of_others_and_of_groups_do_not_count() -> None:
    made = role(rule("deployments", "get"))
    group = {"kind": "Group", "name": "system:serviceaccounts:ns"}
    other = {"kind": "ServiceAccount", "name": "acme", "namespace": "elsewhere"}
    objects = [made, binding(made, subject=group), binding(made, subject=other)]
    assert list(rights_of(USER, objects)) == []
    without = {"kind": "ServiceAccount", "name": "acme"}
    assert len(list(rights_of(USER, [made, binding(made, "ns", without)]))) == 1


def test_a_role_that_is_not_there_is_named() -> None:
    with pytest.raises(RoleMissing, match="ClusterRole acme, to which system:serviceaccount"):
        list(rights_of(USER, [binding(role())]))


def entry(verb: str, resource: str = "", **fields: Any) -> Object:
    """A line of an audit log."""
    group = fields.pop("group", "apps")
    about = {"resource": resource, "apiGroup": group, "namespace": "ns"}
    about |= {key: fields.pop(key) for key in ("name", "subresource") if key in fields}
    made: Object = {
        "stage": "ResponseComplete",
        "verb": verb,
        "requestURI": "/apis/x?watch=true",
        "user": {"username": USER},
        "responseStatus": {"code": fields.pop("code", 200)},
        "annotations": {"authorization.k8s.io/decision": fields.pop("decision", "allow")},
        **({"objectRef": about} if resource else {}),
    }
    return made | fields


def log_of(directory: Path, *entries: Object) -> Path:
    path = directory / "audit.log"
    path.write_text("".join(json.dumps(one) + "\n" for one in entries))
    return path


def used(directory: Path, given: Object, *entries: Object) -> bool:
    """Whether these requests use a role with one right."""
    made = role(given)
    return not unused_rights([log_of(directory, *entries)], [made, binding(made)], USER)


def test_an_apply_that_creates_uses_create(tmp_path: Path) -> None:
    given = rule("deployments", "create")
    assert used(tmp_path, given, entry("patch", "deployments", name="a", code=201))
    assert not used(tmp_path, given, entry("patch", "deployments", name="a"))


def test_the_name_of_a_new_object_is_not_known_to_rbac(tmp_path: Path) -> None:
    given = rule("deployments", "create", names="a")
    assert not used(tmp_path, given, entry("create", "deployments", name="a"))
    assert used(
        tmp_path,
        rule("pods/eviction", "create", names="a"),
        entry("create", "pods", subresource="eviction", name="a"),
    )


def test_what_was_denied_uses_nothing(tmp_path: Path) -> None:
    given = rule("deployments", "get")
    assert not used(tmp_path, given, entry("get", "deployments", code=403, decision="forbid"))
    assert not used(tmp_path, given, entry("get", "deployments", code=403, annotations={}))
    # Admission has refused it, after RBAC allowed it.
    assert used(tmp_path, given, entry("get", "deployments", code=403))
    assert not used(tmp_path, given, entry("get", "deployments", stage="RequestReceived"))
    assert not used(tmp_path, given, entry("get", "deployments", user={"username": "other"}))


def test_verbs_that_no_request_has(tmp_path: Path) -> None:
    rbac = "rbac.authorization.k8s.io"
    escalate = rule("roles", "escalate", groups=rbac)
    bind = rule("clusterroles", "bind", names="view", groups=rbac)
    writes_role = entry("patch", "roles", group=rbac, name="x")
    writes_binding = entry("create", "rolebindings", group=rbac)
    assert used(tmp_path, escalate, writes_role)
    assert not used(tmp_path, escalate, writes_binding)
    assert used(tmp_path, bind, writes_binding)
    assert not used(tmp_path, bind, writes_role)


def test_a_request_as_somebody_else(tmp_path: Path) -> None:
    other = {"impersonatedUser": {"username": "system:serviceaccount:x:y"}}
    made = entry("get", "deployments", **other)
    assert used(tmp_path, rule("serviceaccounts", "impersonate", names="y", groups=""), made)
    assert not used(tmp_path, rule("users", "impersonate", groups=""), made)
    assert not used(tmp_path, rule("deployments", "get"), made)
    as_user = entry("get", "deployments", impersonatedUser={"username": "jo"})
    assert used(tmp_path, rule("users", "impersonate", names="jo", groups=""), as_user)
    by_admin = {"user": {"username": "admin"}, "impersonatedUser": {"username": USER}}
    assert used(tmp_path, rule("deployments", "get"), entry("get", "deployments", **by_admin))


def test_a_path_is_told_without_its_query(tmp_path: Path) -> None:
    given = {"nonResourceURLs": ["/livez"], "verbs": ["get"]}
    assert used(tmp_path, given, entry("get", requestURI="/livez?verbose"))
    assert not used(tmp_path, given, entry("get", "deployments", requestURI="/livez"))


def test_a_line_that_is_being_written_is_left_for_later(tmp_path: Path) -> None:
    log = log_of(tmp_path, entry("get", "deployments"))
    with log.open("a") as stream:
        stream.write('{"stage": "Respo')
    made = role(rule("deployments", "get"))
    assert unused_rights([log], [made, binding(made)], USER) == []


SAMPLE = installed().operators["sample"]


def test_what_an_operator_says_it_seldom_uses_is_not_listed(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    all_of_it = {str(one) for one in unused_by_operator([log], SAMPLE)}
    assert "ClusterRole quarterdeck-sample: watch clusteroperators.config.openshift.io sample" in (
        all_of_it
    )
    assert not any("events" in one or "get configmaps" in one for one in all_of_it)
    why = SeldomUsed(group="", resource="configmaps", verbs=("watch",), why="for the test")
    fewer = unused_by_operator([log], msgspec.structs.replace(SAMPLE, seldom_used=(why,)))
    gone = all_of_it - {str(one) for one in fewer}
    assert gone == {
        "Role quarterdeck-sample/quarterdeck-sample: watch configmaps in quarterdeck-sample"
    }


def test_a_role_that_an_operator_binds_by_itself_counts_too(tmp_path: Path) -> None:
    hosted = installed().operators["hosted"]
    found = {str(one) for one in unused_by_operator([log_of(tmp_path)], hosted)}
    role = "ClusterRole quarterdeck-hosted-control-plane"
    assert f"{role}: delete deployments.apps cluster-version-operator" in found
    about = {
        "user": {"username": f"system:serviceaccount:{hosted.namespace}:{hosted.account}"},
        "name": "cluster-version-operator",
    }
    log = log_of(tmp_path, entry("delete", "deployments", **about))
    fewer = {str(one) for one in unused_by_operator([log], hosted)}
    assert found - fewer == {f"{role}: delete deployments.apps cluster-version-operator"}


def test_an_operator_with_all_rights_has_none_to_list(tmp_path: Path) -> None:
    assert unused_by_operator([log_of(tmp_path)], installed().operators["cluster-version"]) == []


def test_what_is_seldom_used_is_a_right_of_the_operator() -> None:
    """A right that is gone needs no reason any more."""
    for declared in installed().of("quarterdeck"):
        if declared.cluster_admin or declared.delivery is None:
            continue
        objects = account_objects(declared)
        rights = [right for user in users(objects) for right in rights_of(user, objects)]
        have = {(one.group, one.resource, one.verb) for one in rights}
        for one in declared.seldom_used:
            for verb in one.verbs:
                assert (one.group, one.resource, verb) in have, (declared.name, one)


def test_a_reason_is_given() -> None:
    with pytest.raises(ValueError, match=r"seldom_used\.why"):
        SeldomUsed(group="", resource="pods", verbs=("get",), why=" ")


def test_as_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = role(rule("deployments", "get list"))
    objects = tmp_path / "rbac.yaml"
    objects.write_text(yaml.safe_dump_all([made, binding(made), None]))
    log = log_of(tmp_path, entry("get", "deployments"))
    assert main(["--objects", str(objects), str(log)]) == 1
    assert capsys.readouterr().out == f"{USER}: ClusterRole acme: list deployments.apps\n"
    log_of(tmp_path, entry("get", "deployments"), entry("list", "deployments"))
    assert main(["--objects", str(objects), str(log)]) == 0
    assert main(["--operator", "sample", str(log)]) == 1
    assert "sample: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["--objects", "no-such-file"], ["--objects", __file__], ["--operator", "sample"]]
)
def test_what_cannot_be_read_is_one_line_and_code_2(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "audit.log"
    log.write_text("no JSON\n")
    assert main([*words, str(log)]) == 2
    assert capsys.readouterr().err
