"""A pod's life on a real control plane: probes, restarts, hooks, ends, and its logs."""

import http.client
import os
import re
import ssl
import subprocess
import time
from contextlib import closing
from typing import Any

import pytest
from tests.integration.pods import needs_bubblewrap
from tests.objects import container, deployment, pod

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.api_request import ComponentResponse, Requests
from quarterdeck.localcluster.status import kubectl_environment
from quarterdeck.testing.this_machine import ThisMachine

pytestmark = needs_bubblewrap

SERVER = (
    "import http.server,os;"
    "http.server.HTTPServer((os.environ['POD_IP'],8080),http.server.SimpleHTTPRequestHandler)"
    ".serve_forever()"
)
POD_IP = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
EMPTY = [{"name": "v", "emptyDir": {}}]
AT_V = [{"name": "v", "mountPath": "/v"}]


def first(seen: Object, field: str = "containerStatuses") -> dict[str, Any]:
    statuses = seen["status"].get(field)
    return dict(statuses[0]) if statuses else {"state": {}, "lastState": {}, "restartCount": 0}


def is_ready(seen: Object) -> bool:
    conditions = seen["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_a_rolling_update_with_both_replicas_on_one_port(this_machine: ThisMachine) -> None:
    """Each pod has an address of its own, so old and new can listen on the same port."""
    server: dict[str, Any] = {
        "name": "web",
        "image": "quarterdeck",
        "command": ["python", "-c", SERVER],
        "env": [*POD_IP, {"name": "ROUND", "value": "1"}],
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1},
    }
    template = pod("web", server, terminationGracePeriodSeconds=1)
    strategy = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    manifest = deployment("web", template, 2, strategy=strategy)
    this_machine.deploy(manifest)
    before = {each["status"]["podIP"] for each in this_machine.list("pods", "app=web")}
    assert len(before) == 2
    server["env"][1]["value"] = "2"
    this_machine.deploy(manifest)
    after = this_machine.wait(
        lambda: this_machine.list("pods", "app=web"), lambda seen: len(seen) == 2
    )
    assert all(is_ready(each) for each in after)
    assert {each["status"]["podIP"] for each in after}.isdisjoint(before)


def test_readiness_that_fails_then_holds(this_machine: ThisMachine) -> None:
    """The pod is ready while the probe passes, and only then; nothing is restarted."""
    probe = {
        "exec": {"command": ["test", "-e", "/v/ok"]},
        "periodSeconds": 1,
        "failureThreshold": 1,
    }
    script = "sleep 3; touch /v/ok; sleep 4; rm /v/ok; sleep 60"
    main = container(script, readinessProbe=probe, volumeMounts=AT_V)
    this_machine.apply(pod("ready", main, volumes=EMPTY))
    this_machine.wait_pod("ready", lambda seen: first(seen)["state"].get("running"))
    assert not is_ready(this_machine.get("pod", "ready"))
    this_machine.wait_pod("ready", is_ready)
    last = this_machine.wait_pod("ready", lambda seen: not is_ready(seen))
    assert first(last)["restartCount"] == 0


def test_liveness_that_fails_restarts_the_container(this_machine: ThisMachine) -> None:
    """A tcpSocket probe on a port that nobody listens on, after a startup probe has passed."""
    liveness = {"tcpSocket": {"port": 9}, "periodSeconds": 1, "failureThreshold": 2}
    startup = {"exec": {"command": ["true"]}, "periodSeconds": 1}
    script = "trap 'echo ended; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    main = container(script, livenessProbe=liveness, startupProbe=startup)
    this_machine.apply(pod("alive", main))
    restarted = this_machine.wait_pod("alive", lambda seen: first(seen)["restartCount"] >= 1)
    assert first(restarted)["lastState"]["terminated"]["exitCode"] == 0
    assert "ended" in this_machine.wait_logged("alive", "ended", "--previous")
    events = this_machine.list("events.events.k8s.io")
    notes = [event["note"] for event in events if event["reason"] == "Unhealthy"]
    assert any("Liveness probe of main failed" in note for note in notes)


def test_a_crash_loop_backs_off_and_keeps_the_previous_log(this_machine: ThisMachine) -> None:
    script = "n=$(cat /v/n 2>/dev/null || echo 0); echo $((n+1)) > /v/n; echo run $n; exit 3"
    main = container(script, volumeMounts=AT_V)
    this_machine.apply(pod("crashes", main, volumes=EMPTY))
    looping = this_machine.wait_pod(
        "crashes",
        lambda seen: (
            first(seen)["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"
            and first(seen)["restartCount"] >= 2
        ),
    )
    ended = first(looping)["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (3, "Error")
    assert re.search("back-off [0-9]+s restarting", first(looping)["state"]["waiting"]["message"])

    def runs() -> tuple[int, int] | None:
        """The numbers of two runs in one look: the latest and the one before."""
        now = this_machine.logs("crashes", check=False).split()
        before = this_machine.logs("crashes", "--previous", check=False).split()
        again = this_machine.logs("crashes", check=False).split()
        if now != again or now[:1] != ["run"] or before[:1] != ["run"]:
            return None
        return int(now[1]), int(before[1])

    latest, previous = this_machine.wait(runs)
    assert latest == previous + 1


def test_init_containers_run_in_order_and_a_failed_one_is_tried_again(
    this_machine: ThisMachine,
) -> None:
    second = "echo two >> /v/order; [ -e /v/x ] || { touch /v/x; exit 1; }"
    inits = [
        container("echo one >> /v/order", "one", volumeMounts=AT_V),
        container(second, "two", volumeMounts=AT_V),
    ]
    main = container("cat /v/order; sleep 60", volumeMounts=AT_V)
    this_machine.apply(pod("inits", main, initContainers=inits, volumes=EMPTY))
    assert this_machine.wait_logged("inits", "two\ntwo\n", "-cmain") == "one\ntwo\ntwo\n"
    # The log may be there before the status.
    seen = this_machine.wait_pod("inits", lambda seen: seen["status"]["phase"] == "Running")
    statuses = seen["status"]["initContainerStatuses"]
    assert [each["restartCount"] for each in statuses] == [0, 1]
    assert [each["state"]["terminated"]["reason"] for each in statuses] == ["Completed"] * 2


def test_an_init_container_that_fails_for_good_fails_the_pod(this_machine: ThisMachine) -> None:
    init = container("exit 7", "init")
    manifest = pod("fails", container("true"), initContainers=[init], restartPolicy="Never")
    this_machine.apply(manifest)
    failed = this_machine.wait_pod("fails", lambda seen: seen["status"]["phase"] == "Failed")
    assert first(failed, "initContainerStatuses")["state"]["terminated"]["exitCode"] == 7
    assert first(failed)["state"]["waiting"]["reason"] == "PodInitializing"


def test_pre_stop_then_sigterm_whose_handler_runs(this_machine: ThisMachine) -> None:
    """Followed to its end: the hook first, then the handler, and then the log ends too."""
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo hook > /v/log"]}}}
    script = "trap 'cat /v/log; echo handler; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    main = container(script, lifecycle=hook, volumeMounts=AT_V)
    this_machine.apply(pod("stops", main, volumes=EMPTY))
    this_machine.wait_logged("stops", "up")
    plane = this_machine.plane
    command = ["--namespace", this_machine.namespace, "logs", "stops", "--follow"]
    # The log may be there before the status, without which kubectl does not follow.
    this_machine.wait_pod("stops", lambda seen: seen["status"]["phase"] == "Running")
    follower = subprocess.Popen(
        [plane.binaries.kubectl, *command],
        env=os.environ | kubectl_environment(plane.layout),
        stdout=subprocess.PIPE,
        text=True,
    )
    with follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "up\n"
        this_machine.kubectl("delete", "pod", "stops")
        assert follower.communicate(timeout=60)[0] == "hook\nhandler\n"


def test_the_grace_period_ends_with_sigkill(this_machine: ThisMachine) -> None:
    """A process that ignores SIGTERM is killed, not before its time."""
    script = "trap '' TERM; echo up; while :; do sleep 0.1; done"
    this_machine.apply(pod("stubborn", container(script), terminationGracePeriodSeconds=2))
    this_machine.wait_logged("stubborn", "up")
    began = time.monotonic()
    this_machine.kubectl("delete", "pod", "stubborn")
    assert 1.9 < time.monotonic() - began < 30


def test_a_deleted_pod_of_a_deployment_is_replaced(this_machine: ThisMachine) -> None:
    template = pod("d", container("sleep 60"), terminationGracePeriodSeconds=1)
    this_machine.deploy(deployment("d", template))
    (old,) = this_machine.list("pods", "app=d")
    this_machine.kill(old["metadata"]["name"])
    this_machine.wait(
        lambda: [
            each
            for each in this_machine.list("pods", "app=d")
            if is_ready(each) and each["metadata"]["uid"] != old["metadata"]["uid"]
        ]
    )


@pytest.fixture
def counted(this_machine: ThisMachine) -> ThisMachine:
    """A pod that writes ten lines, half a second apart from the fifth on, and stays."""
    script = "seq 1 5; sleep 3; seq 6 10; echo error >&2; sleep 300"
    this_machine.apply(pod("lines", container(script)))
    this_machine.wait_logged("lines", "error")
    return this_machine


def test_every_flag_of_kubectl_logs(counted: ThisMachine) -> None:
    assert counted.logs("lines").split()[:10] == [str(n) for n in range(1, 11)]
    assert counted.logs("lines", "--tail=2").split()[-1] == "error"
    assert counted.logs("lines", "--limit-bytes=5") == "1\n2\n3"
    stamped = counted.logs("lines", "--timestamps").splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z 1", stamped[0])
    sixth = stamped[5].split()[0]
    since = counted.logs("lines", f"--since-time={sixth[:19]}Z").split()
    assert since[0] == "6"
    assert "1" not in counted.logs("lines", "--since=1s").split()
    assert "previous terminated container" in counted.logs("lines", "--previous", check=False)


def test_logs_of_a_container_that_waits_say_so(this_machine: ThisMachine) -> None:
    missing = [{"configMapRef": {"name": "no"}}]
    this_machine.apply(pod("waits", container("true", envFrom=missing)))
    this_machine.wait_pod(
        "waits", lambda seen: first(seen)["state"].get("waiting", {}).get("message")
    )
    assert "is waiting to start" in this_machine.logs("waits", check=False)


def test_only_the_api_server_reads_from_the_log_endpoint(counted: ThisMachine) -> None:
    """Neither without a certificate nor with another one of the same authority."""
    plane = counted.plane
    node = plane.requests().send("GET", "/api/v1/nodes/this-machine").json()
    port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    path = f"/containerLogs/{counted.namespace}/lines/main"

    def ask(user: str, query: str = "") -> ComponentResponse:
        return Requests(port, plane.layout.pki, user=user).send("GET", path + query)

    assert ask("admin").status == 403
    assert ask("kubelet-client").body.startswith(b"1\n2\n")
    refused = ask("kubelet-client", "?colour=red")
    assert refused.status == 400
    assert b"this node understands only" in refused.body

    def ask_without_certificate() -> None:
        tls = ssl.create_default_context(cafile=plane.layout.pki / "ca.crt")
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=tls, timeout=10)
        with closing(connection):
            connection.request("GET", path)
            connection.getresponse()

    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask_without_certificate()
