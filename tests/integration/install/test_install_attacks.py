"""Installation and removal under attack: little rights, objects of others, kills, refusals.

After each test all objects are those of before it.
"""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.all_objects import all_objects
from tests.documents import Done, Shell
from tests.objects import config_map
from tests.registry_process import PASSWORD, pull_secret

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.audit import writes_by
from quarterdeck.testing.fault_proxy import Answer, Cut, FaultProxy, Hold
from quarterdeck.testing.waiting import until

pytestmark = pytest.mark.slow

IMAGE = "registry.example.test/ship/quarterdeck:1.0.0"
INSTALL = f"quarterdeck install --image {IMAGE} --no-wait"
UNINSTALL = "quarterdeck uninstall --yes --timeout 60s"
WHO = "system:serviceaccount:default:deckhand"
OURS = "openshift-cluster-version"
CHECKER = "quarterdeck-staleness"


@pytest.fixture(autouse=True)
def unchanged(plane: ControlPlane) -> Iterator[None]:
    """After the test all objects are those of before."""
    before = all_objects(plane.kubeconfig)
    yield
    assert all_objects(plane.kubeconfig) == before


@pytest.fixture
def deckhand(plane: ControlPlane) -> Iterator[Path]:
    """The kubeconfig of a user without rights."""
    plane.kubectl("create", "serviceaccount", "deckhand")
    yield plane.kubeconfig_for_service_account("default", "deckhand")
    names = [f"{kind}/deckhand" for kind in ("clusterrolebinding", "clusterrole", "serviceaccount")]
    plane.kubectl("delete", *names, "--ignore-not-found")


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[FaultProxy]:
    with FaultProxy(plane.kubeconfig) as running:
        yield running


@pytest.fixture
def proxied(proxy: FaultProxy, tmp_path: Path) -> Shell:
    """A shell whose requests go through the proxy."""
    return Shell(tmp_path, {"KUBECONFIG": str(proxy.write_kubeconfig(tmp_path / "proxied"))})


def is_one_line(done: Done) -> bool:
    """Whether an error is told in a line, after the lines of steps and without a traceback."""
    last = done.stderr.strip().splitlines()[-1]
    return "Traceback" not in done.stderr and last.startswith("error: ")


def named_rights(done: Done) -> list[dict[str, Any]]:
    """The rules of a role with exactly the rights that an error names."""
    (text,) = re.findall(r"you may not: (.*?); (?:install|uninstall|what may)", done.stderr)
    rules = []
    for part in text.split("; "):
        verbs, resource, name = re.findall(r"((?:[a-z]+, )*[a-z]+) (\S+)(?: (?!in )(\S+))?", part)[
            0
        ]
        named, slash, subresource = resource.partition("/")
        plural, _, group = named.partition(".")
        plural += slash + subresource
        rule = {"apiGroups": [group], "resources": [plural], "verbs": verbs.split(", ")}
        rules.append(rule | ({"resourceNames": [name]} if name else {}))
    return rules


def grant(plane: ControlPlane, rules: list[dict[str, Any]]) -> None:
    """Give the deckhand these rights in the whole cluster, and no others."""
    group = "rbac.authorization.k8s.io"
    metadata = {"name": "deckhand"}
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": metadata}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "deckhand"},
        "subjects": [{"kind": "ServiceAccount", "name": "deckhand", "namespace": "default"}],
    }
    for obj in (role | {"rules": rules}, binding):
        plane.kubectl("apply", "--filename=-", input=json.dumps(obj))
    last = rules[-1]
    kind = ".".join(filter(None, (last["resources"][0], last["apiGroups"][0])))
    question = ("auth", "can-i", last["verbs"][0], f"{kind}/{last.get('resourceNames', ['x'])[0]}")
    until(
        lambda: plane.kubectl(*question, f"--as={WHO}", check=False).stdout.strip(),
        lambda seen: seen == "yes",
        "the rights to count",
    )


def test_every_missing_right_is_named_and_no_other_is_needed(
    plane: ControlPlane, shell: Shell, deckhand: Path
) -> None:
    """With the rights that the messages name, and no others, both commands do their work."""
    rules: list[dict[str, Any]] = []
    for command in (INSTALL, UNINSTALL):
        line = f"{command} --kubeconfig {deckhand}"
        for _ in range(4):
            writes = len(writes_by(plane.audit_log, WHO))
            done = shell(line)
            if done.returncode == 0:
                break
            assert is_one_line(done)
            assert len(writes_by(plane.audit_log, WHO)) == writes, "refused before the first write"
            rules += named_rights(done)
            grant(plane, rules)
        assert done.returncode == 0, done.stderr


def test_a_check_writes_nothing_and_shows_no_secret(
    plane: ControlPlane, shell: Shell, deckhand: Path, tmp_path: Path
) -> None:
    grant(plane, [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    written = len(writes_by(plane.audit_log, WHO))
    secret = pull_secret(tmp_path, "registry.example.test")
    options = f"--image {IMAGE} --pull-secret {secret} --kubeconfig {deckhand} --console"
    for form in ("--dry-run", "-o yaml", "-o yaml --dry-run", "--dry-run --all-in-one"):
        done = shell.succeed(f"quarterdeck install {options} {form}")
        for text in (PASSWORD, json.loads(secret.read_text())["auths"].popitem()[1]["auth"]):
            assert text not in done.stdout + done.stderr
        if "yaml" in form:
            objects = list(yaml.safe_load_all(done.stdout))
            assert {"Deployment", "CustomResourceDefinition"} < {one["kind"] for one in objects}
            assert "Secret" not in {one["kind"] for one in objects}
            assert "kubectl create secret generic pull-secret" in done.stderr
    refused = shell(f"quarterdeck install {options} -o yaml --operators harbour")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "nothing of Quarterdeck" in shell.succeed(f"{UNINSTALL} --kubeconfig {deckhand}").stdout
    assert len(writes_by(plane.audit_log, WHO)) == written


def test_what_others_made_is_neither_taken_over_nor_deleted(
    plane: ControlPlane, shell: Shell
) -> None:
    """A role, a namespace, objects in our namespaces, and copies of our objects."""
    plane.kubectl("create", "clusterrole", CHECKER, "--verb=get", "--resource=pods")
    refused = shell(INSTALL)
    assert refused.returncode == 1
    assert f"somebody else made ClusterRole {CHECKER} (kubectl-create)" in refused.stderr
    assert "nothing was changed" in refused.stderr
    plane.kubectl("delete", "clusterrole", CHECKER)

    plane.kubectl("create", "namespace", CHECKER)
    make(plane, config_map(CHECKER, "theirs", a="b"))
    theirs = json.loads(plane.kubectl("get", "namespace", CHECKER, "-o=json").stdout)
    for _ in range(2):
        done = shell.succeed(INSTALL)
        assert f"used as it is, because others made it: Namespace {CHECKER}" in done.stdout
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "theirs", "namespace": OURS}}
    secure = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    inner = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    box = {"name": "main", "image": "example.test/theirs:1", "securityContext": inner}
    make(plane, pod | {"spec": {"securityContext": secure, "containers": [box]}})
    make(plane, config_map(OURS, "treasure", a="b"))
    make(plane, config_map("default", "treasure", a="of the same name"))
    copied = {"quarterdeck.dev/owner": "quarterdeck"}
    make(plane, config_map("default", "copy", annotations=copied))
    plane.kubectl("rollout", "restart", "deployment/staleness-checker", f"--namespace={CHECKER}")
    rules = '--patch=[{"op":"add","path":"/rules/-","value":{"apiGroups":[""],"resources":["pods"],'
    plane.kubectl("patch", "clusterrole", CHECKER, "--type=json", rules + '"verbs":["get"]}}]')

    assert (
        f"kept, because others use it: Namespace {OURS}"
        in shell.succeed("quarterdeck uninstall --dry-run").stdout
    )
    done = shell.succeed(UNINSTALL)
    assert f"left, because others use it: Namespace {OURS} (" in done.stdout
    left = all_objects(plane.kubeconfig)
    for key in (
        ("ConfigMap.", "default", "copy"),
        ("ConfigMap.", OURS, "treasure"),
        ("ConfigMap.", CHECKER, "theirs"),
    ):
        assert key in left
    assert "Running" in plane.kubectl("get", "pod", "theirs", f"--namespace={OURS}").stdout
    now = json.loads(plane.kubectl("get", "namespace", CHECKER, "-o=json").stdout)
    assert now == theirs, "not written at all"
    assert not [key for key in left if "quarterdeck-staleness" in key[2] and key[0] != "Namespace."]
    assert "nothing of Quarterdeck is installed" in shell.succeed(UNINSTALL).stdout

    plane.kubectl("delete", "configmap", "copy", "treasure", "--namespace=default")
    plane.kubectl("delete", f"--namespace={OURS}", "configmap/treasure", "pod/theirs", "--force")
    plane.kubectl("delete", "namespace", CHECKER)
    shell.succeed(UNINSTALL)


def make(plane: ControlPlane, obj: Any) -> None:
    plane.kubectl("create", "--filename=-", input=json.dumps(obj))


def test_killed_or_cut_off_anywhere_and_run_again(
    plane: ControlPlane, shell: Shell, proxied: Shell, proxy: FaultProxy, tmp_path: Path
) -> None:
    """Also two at once; the end is that of one run without a fault."""
    wanted = names(shell.succeed(f"quarterdeck install --image {IMAGE} -o yaml").stdout)
    for point in (0, 7, 15):
        killed_at(proxied, proxy, INSTALL, "patch", point, tmp_path)
    said = stopped_at(proxied, proxy, INSTALL, "patch", 11, tmp_path)
    assert "error: stopped; what is applied stays: run this again to continue" in said
    refused_at(proxied, proxy, INSTALL, "patch", 12, Answer(500))
    both = [shell.start(INSTALL, tmp_path / f"install-{number}") for number in range(2)]
    assert [one.wait(120) for one in both] == [0, 0], (tmp_path / "install-0").read_text()
    there = all_objects(plane.kubeconfig)
    assert {(kind.partition(".")[0], space, name) for kind, space, name in there} >= wanted
    shell.succeed(INSTALL)
    assert all_objects(plane.kubeconfig) == there

    refused_at(proxied, proxy, UNINSTALL, "delete", 0, Cut())
    said = stopped_at(proxied, proxy, UNINSTALL, "delete", 0, tmp_path)
    assert "error: stopped; what is removed is gone: run this again to continue" in said
    for point in (0, 3, 6):
        killed_at(proxied, proxy, UNINSTALL, "delete", point, tmp_path)
    both = [shell.start(UNINSTALL, tmp_path / f"uninstall-{number}") for number in range(2)]
    assert 0 in [one.wait(120) for one in both]
    assert "nothing of Quarterdeck is installed" in shell.succeed(UNINSTALL).stdout


def names(text: str) -> set[tuple[str, str, str]]:
    """Kind, namespace and name of the objects in YAML."""
    found = [(one["kind"], one["metadata"]) for one in yaml.safe_load_all(text)]
    return {(kind, meta.get("namespace", ""), meta["name"]) for kind, meta in found}


def killed_at(
    run: Shell, proxy: FaultProxy, command: str, verb: str, point: int, directory: Path
) -> None:
    """Kill a command (-9) while one of its writes is under way, which happens or not."""
    _, code = signalled_at(run, proxy, command, verb, point, directory, signal.SIGKILL)
    assert code == -signal.SIGKILL


def stopped_at(
    run: Shell, proxy: FaultProxy, command: str, verb: str, point: int, directory: Path
) -> str:
    """Stop a command by Ctrl-C there; what it says, without a traceback."""
    said, code = signalled_at(run, proxy, command, verb, point, directory, signal.SIGINT)
    assert code == 2, said
    assert "Traceback" not in said
    return said


def signalled_at(
    run: Shell, proxy: FaultProxy, command: str, verb: str, point: int, directory: Path, number: int
) -> tuple[str, int]:
    """Send a command a signal while one of its writes is under way; its output and exit code."""
    log, hold = directory / "signalled", Hold()
    proxy.inject(hold, verb=verb, skip=point)
    process = run.start(command, log)
    until(lambda: hold.held.wait(1) or process.poll() is not None, bool, "the write or the end")
    assert process.poll() is None, log.read_text()
    process.send_signal(number)
    code = process.wait(60)
    hold.let_go.set()
    proxy.clear()
    return log.read_text(), code


def refused_at(
    run: Shell, proxy: FaultProxy, command: str, verb: str, point: int, fault: Answer | Cut
) -> None:
    proxy.inject(fault, verb=verb, skip=point, times=None)
    done = run(command)
    proxy.clear()
    assert done.returncode == 2, done.stdout + done.stderr
    assert is_one_line(done), done.stderr
    assert "run this again to continue" in done.stderr


def test_what_cannot_be_listed_is_named_and_is_not_taken_for_nothing(
    plane: ControlPlane, shell: Shell
) -> None:
    """A kind of others whose conversion webhook is gone; an installation does not need it."""
    group, names = "broken.example.test", {"kind": "Widget", "plural": "widgets"}
    kind = f"widgets.{group}"
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [
        {"name": name, "served": True, "storage": name == "v2", "schema": schema}
        for name in ("v1", "v2")
    ]
    service = {"service": {"namespace": "default", "name": "gone"}}
    webhook = {"clientConfig": service, "conversionReviewVersions": ["v1"]}
    spec = {"group": group, "names": names, "scope": "Cluster", "versions": versions}
    spec["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    crds = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    make(plane, {**crds, "metadata": {"name": kind}, "spec": spec})
    plane.kubectl("wait", f"crd/{kind}", "--for=condition=Established", "--timeout=60s")
    widget = {"apiVersion": f"{group}/v2", "kind": "Widget", "metadata": {"name": "one"}}
    make(plane, widget)
    shell.succeed(INSTALL)
    done = shell(UNINSTALL)
    assert done.returncode == 2
    assert is_one_line(done)
    assert f"{kind} cannot be listed: conversion webhook for {group}" in done.stderr
    assert f"mend what serves {kind}, or remove it" in done.stderr
    plane.kubectl("delete", f"widgets.v2.{group}", "one")
    plane.kubectl("delete", "crd", kind)
    until(lambda: shell(UNINSTALL), lambda seen: seen.returncode == 0, "removed without it")


def test_what_refuses_or_does_not_go_is_named(plane: ControlPlane, shell: Shell) -> None:
    """A policy, as a webhook would; a finalizer; and an installation into what is being deleted."""
    deny(plane, "CREATE", "poddisruptionbudgets", "policy")
    done = until(lambda: shell(INSTALL), lambda seen: seen.returncode != 0, "refused by the policy")
    assert is_one_line(done)
    assert "poddisruptionbudgets" in done.stderr
    assert "ValidatingAdmissionPolicy 'no'" in done.stderr
    allow(plane)
    until(lambda: shell(INSTALL), lambda seen: seen.returncode == 0, "allowed")

    deny(plane, "DELETE", "clusterroles", "rbac.authorization.k8s.io")
    until(
        lambda: plane.kubectl("delete", "clusterrole", "view", "--dry-run=server", check=False),
        lambda seen: "denied" in seen.stderr,
        "the policy to count",
    )
    version = "config.openshift.io/v1"
    held: Any = {"name": "version", "finalizers": ["example.test/hold"]}
    plane.kubectl("patch", "clusterversion", "version", "--type=merge", patch({"metadata": held}))
    done = shell(UNINSTALL)
    assert done.returncode == 1
    assert f"ClusterRole {CHECKER} is not removed: " in done.stderr
    assert "ValidatingAdmissionPolicy 'no'" in done.stderr
    allow(plane)

    done = until(
        lambda: shell("quarterdeck uninstall --yes --timeout 3s"),
        lambda seen: "ClusterRole" not in seen.stderr,
        "the policy not to count",
    )
    assert done.returncode == 1
    kind = "clusterversions.config.openshift.io"
    assert f"CustomResourceDefinition {kind} waits for its objects" in done.stderr
    done = shell(INSTALL)
    assert done.returncode == 1
    assert f"CustomResourceDefinition {kind} is being deleted" in done.stderr
    held["finalizers"] = []
    plane.kubectl("patch", "clusterversion", "version", "--type=merge", patch({"metadata": held}))
    shell.succeed(UNINSTALL)
    assert version not in plane.kubectl("api-versions").stdout.split()


def patch(change: Any) -> str:
    return f"--patch={json.dumps(change)}"


def deny(plane: ControlPlane, operation: str, resource: str, group: str) -> None:
    """A policy that refuses an operation on all objects of a resource."""
    rule = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": [operation],
        "resources": [resource],
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "not on this ship"}],
    }
    meta = {"name": "no"}
    policy = {"kind": "ValidatingAdmissionPolicy", "metadata": meta, "spec": spec}
    binding = {
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": meta,
        "spec": {"policyName": "no", "validationActions": ["Deny"]},
    }
    for obj in (policy, binding):
        make(plane, {"apiVersion": "admissionregistration.k8s.io/v1", **obj})


def allow(plane: ControlPlane) -> None:
    kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy"
    plane.kubectl("delete", kinds, "no")
