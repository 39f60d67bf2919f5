"""Pods as processes on a real control plane: from the pod's spec to what its process sees."""

import json
from typing import Any

import pytest
from tests.integration.pods import READ_ONLY, host_name, needs_bubblewrap
from tests.objects import config_map, container, deployment, job, pod, secret

from quarterdeck.api.meta import Object
from quarterdeck.testing.this_machine import ThisMachine

pytestmark = needs_bubblewrap


def phase(seen: Object) -> str:
    return str(seen["status"]["phase"])


def state(seen: Object, index: int = 0) -> dict[str, Any]:
    statuses = seen["status"].get("containerStatuses")
    return dict(statuses[index]["state"]) if statuses else {}


def succeeded(node: ThisMachine, name: str) -> str:
    """The log of a pod that has run to its end, well."""
    node.wait_pod(name, lambda seen: phase(seen) in ("Succeeded", "Failed"))
    log = node.logs(name)
    assert phase(node.get("pod", name)) == "Succeeded", log
    return log


def bind(node: ThisMachine, name: str) -> None:
    """Place a pod here, as the scheduler does."""
    path = f"/api/v1/namespaces/{node.namespace}/pods/{name}/binding"
    target = {"apiVersion": "v1", "kind": "Node", "name": "this-machine"}
    binding = {"metadata": {"name": name}, "target": target}
    node.kubectl(
        "create",
        f"--raw={path}",
        "--filename=-",
        manifest={"apiVersion": "v1", "kind": "Binding", **binding},
    )


def test_a_pod_of_ours_runs_here_and_a_foreign_one_is_simulated(this_machine: ThisMachine) -> None:
    this_machine.apply(pod("ours", container("sleep 60")))
    foreign = pod("foreign", {"name": "main", "image": "docker.io/library/nginx:1"})
    this_machine.apply(foreign)
    mixed = pod("mixed", container("true"), {"name": "other", "image": "nginx"})
    this_machine.apply(mixed)
    for name, node in (("ours", "this-machine"), ("foreign", "simulated"), ("mixed", "simulated")):
        running = this_machine.wait_pod(name, lambda seen: phase(seen) == "Running")
        assert running["spec"]["nodeName"] == node


@pytest.mark.parametrize(
    "command", [("logs", "foreign"), ("exec", "foreign", "--", "true"), ("attach", "foreign")]
)
def test_a_simulated_pod_says_that_it_is_one(
    this_machine: ThisMachine, command: tuple[str, ...]
) -> None:
    """To whoever wants its log, or a command in it; and in an event, to whoever waits for it."""
    this_machine.apply(pod("foreign", {"name": "main", "image": "docker.io/library/nginx:1"}))
    this_machine.wait_pod("foreign", lambda seen: phase(seen) == "Running")
    answer = this_machine.kubectl(*command, check=False)
    assert f"{this_machine.namespace}/foreign is simulated: no process runs for it" in answer
    events = this_machine.wait(
        lambda: [one for one in this_machine.list("events") if one["reason"] == "Simulated"],
        lambda seen: len(seen) > 0,
    )
    assert "quarterdeck.dev/simulate" in events[0]["message"]


def test_a_pod_that_selects_the_master_role_runs_here(this_machine: ThisMachine) -> None:
    """The policy adds to a selector that is there already."""
    selector = {"node-role.kubernetes.io/master": ""}
    this_machine.apply(pod("master", container("sleep 60"), nodeSelector=selector))
    running = this_machine.wait_pod("master", lambda seen: phase(seen) == "Running")
    assert running["spec"]["nodeName"] == "this-machine"
    assert selector.items() <= running["spec"]["nodeSelector"].items()


def test_a_daemon_set_that_tolerates_this_node_runs_on_it(this_machine: ThisMachine) -> None:
    template = pod("ds", container("echo up; sleep 60"), tolerations=[{"operator": "Exists"}])
    manifest = deployment("ds", template) | {"kind": "DaemonSet"}
    del manifest["spec"]["replicas"]
    this_machine.apply(manifest)
    nodes = this_machine.wait(
        lambda: {
            each["spec"].get("nodeName")
            for each in this_machine.list("pods", "app=ds")
            if phase(each) == "Running"
        },
        lambda seen: len(seen) == 2,
    )
    assert nodes == {"this-machine", "simulated"}


def test_variables_arguments_and_the_downward_api(this_machine: ThisMachine) -> None:
    """Every way into a container's environment, `$(VAR)` and `$$(VAR)` in args and env."""
    this_machine.apply(secret(name="s", PASSWORD="pw"))
    this_machine.apply(config_map(name="c", A="1", B="2"))
    env = [
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "PASSWORD"}}},
        {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory"}}},
        {"name": "BOTH", "value": "$(NAME)-$$(NAME)"},
    ]
    downward = {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}
    this_machine.apply(
        pod(
            "env",
            {
                "name": "main",
                "image": "registry.example/team/quarterdeck:v1",
                "command": ["sh", "-c"],
                "args": [
                    'echo "$0|$1|$A$B|$PASSWORD|$MEM|$BOTH|$IP|$(hostname)"; cat /info/labels',
                    "$(NAME)",
                    "$$(NAME)",
                ],
                "env": env,
                "envFrom": [{"configMapRef": {"name": "c"}}],
                "resources": {"requests": {"memory": "1Ki"}},
                "volumeMounts": [{"name": "info", "mountPath": "/info"}],
            },
            volumes=[{"name": "info", "downwardAPI": downward}],
            restartPolicy="Never",
        )
    )
    log = succeeded(this_machine, "env")
    ip = this_machine.get("pod", "env")["status"]["podIP"]
    assert log == f'env|$(NAME)|12|pw|1024|env-$(NAME)|{ip}|{host_name("env")}\napp="env"\n'
    assert ip.startswith("127.")


def test_mount_points_that_are_not_on_the_host(this_machine: ThisMachine) -> None:
    """In the root, in /etc, shared between containers, and one file of a ConfigMap."""
    this_machine.apply(config_map("", "c", None, **{"app.conf": "x=1\n"}))
    mounts = [
        {"name": "shared", "mountPath": "/shared-by-us"},
        {"name": "c", "mountPath": "/etc/our-app/app.conf", "subPath": "app.conf"},
    ]
    init = "echo from-init > /shared-by-us/f"
    main = "cat /shared-by-us/f /etc/our-app/app.conf; touch /etc/our-app/n"
    this_machine.apply(
        pod(
            "mounts",
            container(main, volumeMounts=mounts),
            initContainers=[container(init, "init", volumeMounts=mounts)],
            volumes=[{"name": "shared", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c"}}],
            restartPolicy="Never",
        )
    )
    this_machine.wait_pod("mounts", lambda seen: phase(seen) == "Failed")
    log = this_machine.logs("mounts")
    assert log.startswith("from-init\nx=1\n")
    assert READ_ONLY in log


def test_the_pods_account_decides_what_it_may_do(this_machine: ThisMachine) -> None:
    """Its token speaks for its ServiceAccount; RBAC refuses, and allows once there is a role."""
    asks = """
import os, ssl, time, urllib.error, urllib.request
own = "/var/run/secrets/kubernetes.io/serviceaccount/"
read = lambda name: open(own + name).read()
url = "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}".format_map(os.environ)
url += f"/api/v1/namespaces/{read('namespace')}/configmaps"
tls = ssl.create_default_context(cafile=own + "ca.crt")
while True:
    bearer = {"Authorization": "Bearer " + read("token")}
    try:
        request = urllib.request.Request(url, headers=bearer)
        print(urllib.request.urlopen(request, context=tls).status, flush=True)
    except urllib.error.HTTPError as error:
        print(error.code, flush=True)
    time.sleep(0.3)
"""
    main = container("") | {"command": ["python", "-c", asks]}
    this_machine.kubectl("create", "serviceaccount", "reader")
    this_machine.apply(pod("asks", main, serviceAccountName="reader"))
    this_machine.wait_logged("asks", "403")
    this_machine.kubectl("create", "role", "read", "--verb=list", "--resource=configmaps")
    account = f"--serviceaccount={this_machine.namespace}:reader"
    this_machine.kubectl("create", "rolebinding", "read", "--role=read", account)
    this_machine.wait_logged("asks", "200")


def test_files_of_a_config_map_change_under_the_running_process(this_machine: ThisMachine) -> None:
    """By a swap of `..data`: the process sees all old or all new files."""
    this_machine.apply(config_map(name="c", a="1", b="1"))
    script = 'while :; do echo "$(cat /c/..data/a /c/..data/b) $(readlink /c/a)"; sleep 0.1; done'
    this_machine.apply(
        pod(
            "watches",
            container(script, volumeMounts=[{"name": "c", "mountPath": "/c"}]),
            volumes=[{"name": "c", "configMap": {"name": "c"}}],
        )
    )
    this_machine.wait_logged("watches", "11 ..data/a")
    this_machine.apply(config_map(name="c", a="2", b="2"))
    log = this_machine.wait_logged("watches", "22 ..data/a")
    assert set(log.splitlines()) <= {"11 ..data/a", "22 ..data/a"}


def test_a_secret_is_never_open_to_the_world_and_goes_with_its_pod(
    this_machine: ThisMachine,
) -> None:
    this_machine.apply(secret(name="s", key="very secret"))
    mount = [{"name": "s", "mountPath": "/s"}]
    volume = {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o644}}
    this_machine.apply(
        pod("keeps", container("cat /s/key; echo; sleep 60", volumeMounts=mount), volumes=[volume])
    )
    this_machine.wait_logged("keeps", "very secret")
    uid = this_machine.get("pod", "keeps")["metadata"]["uid"]
    directory = this_machine.plane.layout.pods / uid
    files = [path for path in (directory / "volumes" / "s").rglob("*") if not path.is_symlink()]
    assert any(path.is_file() for path in files)
    assert all(path.stat().st_mode & 0o007 == 0 for path in files)
    assert directory.parent.stat().st_mode & 0o077 == 0
    this_machine.kubectl("delete", "pod", "keeps")
    this_machine.wait(lambda: not directory.exists())


def test_a_pod_sees_no_keys_no_other_pods_and_writes_nothing_outside(
    this_machine: ThisMachine,
) -> None:
    """The cluster's state, the admin's kubeconfig, other pods' files: not there for it."""
    root = this_machine.plane.layout.root
    script = (
        f"ls -A {root} | wc -l; cat {root}/kubeconfig; ls {root}/pods; ls ~/.kube /root/.kube; "
        f"touch {root}/x /usr/x /etc/x /x; echo done"
    )
    this_machine.apply(pod("spies", container(script), restartPolicy="Never"))
    this_machine.wait_pod("spies", lambda seen: phase(seen) in ("Succeeded", "Failed"))
    log = this_machine.logs("spies")
    assert "done" in log
    assert "certificate-authority-data" not in log
    assert "kubeconfig: No such file" in log
    assert log.count(READ_ONLY) >= 3
    assert not (root / "x").exists()


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        pytest.param(
            {"env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "no", "key": "k"}}}]},
            "CreateContainerConfigError",
            'configmap "no" not found',
            id="a ConfigMap that is not there",
        ),
        pytest.param(
            {"image": "example.com/unknown:1"},
            "ErrImageNeverPull",
            "whose repository ends in quarterdeck",
            id="an image that is not ours",
        ),
    ],
)
def test_what_keeps_a_container_from_starting_is_said(
    this_machine: ThisMachine, spec: dict[str, Any], reason: str, message: str
) -> None:
    placed = {"quarterdeck.dev/node": "this-machine"}
    tolerations = [{"operator": "Exists"}]
    manifest = pod("stuck", container("true") | spec, nodeSelector=placed, tolerations=tolerations)
    this_machine.apply(manifest)
    stuck = this_machine.wait_pod(
        "stuck", lambda seen: state(seen).get("waiting", {}).get("reason") == reason
    )
    assert message in state(stuck)["waiting"]["message"]
    assert phase(stuck) == "Pending"


def test_a_config_map_that_comes_later_lets_the_container_start(this_machine: ThisMachine) -> None:
    volume = {"name": "c", "configMap": {"name": "late"}}
    mount = [{"name": "c", "mountPath": "/c"}]
    this_machine.apply(
        pod(
            "waits",
            container("cat /c/a", volumeMounts=mount),
            volumes=[volume],
            restartPolicy="Never",
        )
    )
    this_machine.wait_pod("waits", lambda seen: state(seen).get("waiting", {}).get("message"))
    this_machine.apply(config_map(name="late", a="came"))
    assert succeeded(this_machine, "waits") == "came\n"


def test_unsupported_fields_are_said_in_an_event_once(this_machine: ThisMachine) -> None:
    limited = container("sleep 60", resources={"limits": {"memory": "1Mi"}}, tty=True)
    this_machine.apply(pod("asks-much", limited))

    def notes() -> list[str]:
        events = this_machine.list("events.events.k8s.io")
        return [event["note"] for event in events if event["reason"] == "Unsupported"]

    this_machine.wait(notes, lambda seen: len(seen) == 2)
    assert sorted(notes()) == [
        "container main: resources.limits (memory): not enforced",
        "container main: stdin, tty: not offered",
    ]


def test_a_job_runs_to_completion(this_machine: ThisMachine) -> None:
    """The first try fails, the second one succeeds; the Job is complete."""
    script = "[ -e /v/tried ] && echo second || { touch /v/tried; echo first; exit 1; }"
    mount = [{"name": "v", "mountPath": "/v"}]
    template = pod(
        "job",
        container(script, volumeMounts=mount),
        restartPolicy="OnFailure",
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    this_machine.apply(job("job", template))
    done = this_machine.wait(
        lambda: this_machine.get("job", "job"), lambda seen: seen["status"].get("succeeded")
    )
    assert done["status"]["succeeded"] == 1
    (run,) = this_machine.list("pods", "job-name=job")
    assert run["status"]["containerStatuses"][0]["restartCount"] == 1
    assert this_machine.logs(run["metadata"]["name"]) == "second\n"


def test_a_pod_that_has_finished_lets_go_of_its_address(this_machine: ThisMachine) -> None:
    """There are 254, and a Job's pods may stay for ever; their status keeps it."""
    this_machine.apply(pod("done", container("true"), restartPolicy="Never"))
    done = this_machine.wait_pod("done", lambda seen: phase(seen) == "Succeeded")
    address = done["status"]["podIP"]
    # Who has been told of an address gets that one, if it is free: as after the agent's restart.
    this_machine.apply(pod("next", container("sleep 1000"), schedulerName="by-hand"))
    told = json.dumps({"status": {"podIP": address, "podIPs": [{"ip": address}]}})
    this_machine.kubectl(
        "patch", "pod", "next", "--subresource=status", "--type=merge", f"--patch={told}"
    )
    bind(this_machine, "next")
    running = this_machine.wait_pod("next", lambda seen: "running" in state(seen))
    assert running["status"]["podIP"] == address
    assert this_machine.get("pod", "done")["status"]["podIP"] == address


def test_a_token_is_renewed_before_it_expires(this_machine: ThisMachine) -> None:
    """The file gets another token while the process runs."""
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
    volume = {"name": "t", "projected": {"sources": [token]}}
    script = "while :; do md5sum < /t/token; sleep 0.5; done"
    mount = [{"name": "t", "mountPath": "/t"}]
    this_machine.apply(pod("holds", container(script, volumeMounts=mount), volumes=[volume]))
    first = this_machine.wait_logged("holds", "-").split()[0]
    # After a hundredth of its ten minutes: the fixture's agent runs with that share.
    this_machine.wait(
        lambda: this_machine.logs("holds"),
        lambda seen: any(word != first and len(word) == 32 for word in seen.split()),
    )


def test_a_service_does_not_lead_to_a_pod_and_says_so(this_machine: ThisMachine) -> None:
    """Kubernetes takes no loopback address as an endpoint; the controller manager warns."""
    this_machine.apply(pod("web", container("sleep 60")))
    this_machine.wait_pod("web", lambda seen: phase(seen) == "Running")
    this_machine.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        }
    )
    this_machine.wait(
        lambda: [
            event
            for event in this_machine.list("events")
            if event["involvedObject"]["name"] == "web"
            and event["involvedObject"]["kind"] == "Service"
            and event["type"] == "Warning"
        ]
    )
