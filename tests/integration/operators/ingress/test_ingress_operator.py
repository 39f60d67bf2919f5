"""The ingress operator on a real control plane: what it makes, heals, leaves alone and removes."""

import json
import subprocess
import sys
from itertools import permutations

from tests.ingress_controllers import (
    HOME,
    ROUTERS,
    ingress_controller,
    to_container,
    to_syslog,
)
from tests.integration.operators.ingress.routers import IMAGE, OWNER, Routers, as_text
from tests.objects import config_map

from quarterdeck.api.meta import DEPLOYMENTS, Object
from quarterdeck.testing.answer_monitor import AnswerMonitor
from quarterdeck.testing.operator_process import OperatorProcess
from quarterdeck.testing.waiting import eventually, until

LOGGING = {"container": to_container(), "syslog": to_syslog(), "off": None}
ORDERS = {"-".join(order): order for order in permutations(LOGGING)}


def router_env(deployment: Object) -> dict[str, str]:
    """The variables of the router in a Deployment."""
    (router,) = (
        one
        for one in deployment["spec"]["template"]["spec"]["containers"]
        if one["name"] == "router"
    )
    return {one["name"]: one.get("value", "") for one in router["env"]}


def containers(deployment: Object) -> list[str]:
    """The names of the containers in a Deployment."""
    return [one["name"] for one in deployment["spec"]["template"]["spec"]["containers"]]


def volumes(deployment: Object) -> set[str]:
    """The names of the volumes in a Deployment."""
    return {one["name"] for one in deployment["spec"]["template"]["spec"].get("volumes") or ()}


def test_every_order_of_destinations_leaves_nothing_behind_and_ends_at_a_fixed_point(
    routers: Routers, operator: OperatorProcess
) -> None:
    for step in range(3):
        for name, order in ORDERS.items():
            routers.apply(name, logging=LOGGING[order[step]])
        for name, order in ORDERS.items():
            routers.wait_settled(name)
            logs = order[step]
            expected = {
                f"Deployment router-{name}",
                f"Service router-internal-{name}",
                f"IngressClass quarterdeck-{name}",
            }
            if logs == "container":
                expected.add(f"ConfigMap rsyslog-conf-{name}")
            until(lambda: routers.made(name), lambda made: made == expected, f"{name}: {expected}")  # noqa: B023
            live = routers.deployment(name)
            assert containers(live) == (["router", "logs"] if logs == "container" else ["router"])
            added = {"rsyslog-socket", "rsyslog-config"} if logs == "container" else set()
            assert volumes(live) == {"router-state", *added}
            env = router_env(live)
            assert {
                "container": env.get("ROUTER_SYSLOG_ADDRESS") == "/var/lib/rsyslog/rsyslog.sock",
                "syslog": env.get("ROUTER_SYSLOG_ADDRESS") == "192.0.2.9:514",
                "off": not {key for key in env if "LOG" in key or "CAPTURE" in key},
            }[logs]
            if logs == "off":
                assert routers.condition(name, "AccessLoggingReady") is None
            else:
                # A simulated pod reports nothing.
                routers.wait_condition(name, "AccessLoggingReady", "Unknown", "NotReported")
        routers.wait_fixed_point(operator, *ORDERS)


def test_an_ingress_controller_is_deleted_with_everything(
    routers: Routers, operator: OperatorProcess
) -> None:
    routers.apply("gone", logging=to_container())
    routers.wait_settled("gone")
    assert routers.pods("gone")
    routers.delete("gone")
    eventually(lambda: routers.is_gone("gone"), "nothing is left")


def test_drift_is_healed_at_once(routers: Routers, operator: OperatorProcess) -> None:
    routers.apply("healed", logging=to_container())
    routers.wait_settled("healed")
    good = routers.deployment("healed")["spec"]["template"]["spec"]
    conf = routers.objects.get("configmap", "rsyslog-conf-healed")["data"]

    routers.objects.patch("configmap", "rsyslog-conf-healed", {"data": {"rsyslog.conf": "bad"}})
    eventually(
        lambda: routers.objects.get("configmap", "rsyslog-conf-healed")["data"] == conf,
        "the ConfigMap is as before",
    )
    routers.objects.delete("configmap", "rsyslog-conf-healed")
    eventually(
        lambda: (
            (routers.objects.find("configmap", "rsyslog-conf-healed") or {}).get("data") == conf
        ),
        "the ConfigMap is there again",
    )
    no_labels: Object = {"metadata": {"labels": None}}
    routers.objects.patch("ingressclass", "quarterdeck-healed", no_labels)
    eventually(
        lambda: "IngressClass quarterdeck-healed" in routers.made("healed"),
        "the IngressClass has its label again",
    )
    for change in ("env", "sidecar", "labels"):
        live = routers.deployment("healed")
        pod = live["spec"]["template"]["spec"]
        if change == "env":
            (level,) = (one for one in pod["containers"][0]["env"] if "LEVEL" in one["name"])
            level["value"] = "debug"
        elif change == "sidecar":
            pod["containers"] = [one for one in pod["containers"] if one["name"] != "logs"]
        else:
            live["metadata"]["labels"] = {}
        replace(routers, live)
        eventually(
            lambda: (
                routers.deployment("healed")["spec"]["template"]["spec"] == good
                and routers.deployment("healed")["metadata"].get("labels")
            ),
            f"{change} is as before",
        )
    routers.objects.delete("service", "router-internal-healed")
    eventually(
        lambda: routers.objects.find("service", "router-internal-healed"), "the Service is back"
    )


def replace(routers: Routers, obj: Object) -> None:
    """Write a whole object, whatever was written since it was read."""
    del obj["metadata"]["resourceVersion"]
    path = DEPLOYMENTS.path(ROUTERS, obj["metadata"]["name"])
    answer = routers.plane.requests().send("PUT", path, as_text(obj).encode())
    assert answer.ok, answer.body


def test_another_order_of_env_and_volumes_is_no_change(
    routers: Routers, operator: OperatorProcess
) -> None:
    routers.apply("order", logging=to_container())
    routers.wait_settled("order")
    live = routers.deployment("order")
    pod = live["spec"]["template"]["spec"]
    pod["volumes"].reverse()
    pod["containers"][0]["env"].reverse()
    pod["containers"].reverse()
    before = len(routers.writes())
    replace(routers, live)
    routers.wait_rolled_out("order")
    routers.wait_fixed_point(operator, "order")
    assert {it.resource for it in routers.writes()[before:]} <= {
        "ingresscontrollers/status",
        "clusteroperators/status",
    }
    assert routers.deployment("order")["spec"]["template"] == live["spec"]["template"]


def test_replicas_change_without_a_roll_out(routers: Routers, operator: OperatorProcess) -> None:
    routers.apply("scaled", logging=to_container())
    routers.wait_settled("scaled")
    before = routers.replica_sets("scaled")
    routers.plane.kubectl(
        "scale", "ingresscontroller/scaled", "--replicas=3", f"--namespace={HOME}"
    )
    eventually(lambda: len(routers.pods("scaled")) == 3, "three pods")
    routers.wait_settled("scaled")
    assert routers.replica_sets("scaled") == before
    until(
        lambda: routers.get("scaled")["status"],
        lambda status: status.get("availableReplicas") == 3,
        "three replicas in the status",
    )


HOSTILE = {
    "%ci %zz": ("character 5", "zz"),
    "%ci %": ("character 5", ""),
    "a\nlog 192.0.2.1 local0": ("character 2", ""),
    "%[no_such_fetch]": ("character 1", "no_such_fetch"),
    "x %[path]": ("character 3", "path"),
    "%[src": ("character 1", ""),
}
"""Formats that cannot be used, where the fault is, and HAProxy's own words about it."""


def test_a_hostile_format_is_refused_and_the_running_pods_keep_the_last_good_one(
    routers: Routers, operator: OperatorProcess
) -> None:
    routers.apply("strict", logging=to_container(httpLogFormat="%ci ok"))
    routers.wait_settled("strict")
    before = routers.deployment("strict")
    for log_format, (position, words) in HOSTILE.items():
        routers.apply("strict", logging=to_container(httpLogFormat=log_format))
        found = routers.wait_condition("strict", "Admitted", "False", "InvalidLogFormat")
        assert "spec.logging.access.httpLogFormat" in found["message"]
        assert f"{position} " in found["message"]
        assert words in found["message"]
        routers.wait_condition("strict", "Available", "True")
        after = routers.deployment("strict")
        assert after["metadata"]["generation"] == before["metadata"]["generation"]
        assert router_env(after)["ROUTER_SYSLOG_FORMAT"] == "%ci ok"
    until(
        lambda: routers.objects.list("events.events.k8s.io", namespace=HOME),
        lambda events: any(one["reason"] == "InvalidLogFormat" for one in events),
        "an event",
    )
    routers.wait_fixed_point(operator, "strict")
    routers.apply("strict", logging=to_container())
    routers.wait_condition("strict", "Admitted", "True")
    routers.wait_settled("strict")


def explained(routers: Routers, *arguments: str, text: str = "") -> tuple[int, Object]:
    """The exit code and the output of `quarterdeck ingress explain`."""
    command = [sys.executable, "-m", "quarterdeck", "ingress", "explain", "--output=json"]
    done = subprocess.run(
        [*command, f"--kubeconfig={routers.plane.kubeconfig}", *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_explain_tells_what_a_change_would_do_and_that_happens(
    routers: Routers, operator: OperatorProcess
) -> None:
    routers.apply("told", logging=to_container())
    routers.wait_settled("told")
    code, now = explained(routers, "told")
    assert (code, now["admitted"], now["consequences"]["changes"]) == (0, True, [])
    assert now["environment"]["ROUTER_SYSLOG_ADDRESS"] == "/var/lib/rsyslog/rsyslog.sock"

    scaled = ingress_controller("told", replicas=2, logging=to_container())
    _, change = explained(routers, "told", "--file=-", text=as_text(scaled))
    assert change["consequences"]["podsRoll"] is False
    (only,) = change["consequences"]["changes"]
    assert only["object"] == "Deployment openshift-ingress/router-told"
    assert only["details"] == ["spec.replicas"]

    syslog = ingress_controller("told", replicas=1, logging=to_syslog())
    _, change = explained(routers, "told", "--file=-", text=as_text(syslog))
    assert change["consequences"]["podsRoll"] is True
    actions = {(one["action"], one["object"]) for one in change["consequences"]["changes"]}
    assert actions == {
        ("update", "Deployment openshift-ingress/router-told"),
        ("delete", "ConfigMap openshift-ingress/rsyslog-conf-told"),
    }
    details = change["consequences"]["changes"][0]["details"]
    assert "ROUTER_SYSLOG_ADDRESS: /var/lib/rsyslog/rsyslog.sock -> 192.0.2.9:514" in details

    before, written = routers.replica_sets("told"), len(routers.writes())
    routers.apply("told", logging=to_syslog())
    until(lambda: routers.replica_sets("told"), lambda now: now and now != before, "new pods")
    routers.wait_settled("told")
    eventually(lambda: "ConfigMap rsyslog-conf-told" not in routers.made("told"), "no ConfigMap")
    assert {it.resource for it in routers.writes()[written:]} <= {
        "deployments",
        "configmaps",
        "ingresscontrollers/status",
        "clusteroperators/status",
    }
    assert explained(routers, "told")[1]["consequences"]["changes"] == []
    assert explained_error(routers, "absent") == 2


def explained_error(routers: Routers, name: str) -> int:
    """The exit code for an IngressController that does not exist."""
    command = [sys.executable, "-m", "quarterdeck", "ingress", "explain", name]
    done = subprocess.run(
        [*command, f"--kubeconfig={routers.plane.kubeconfig}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "all there are: kubectl get ingresscontrollers" in done.stderr
    return done.returncode


def test_each_strategy_has_its_service(routers: Routers, operator: OperatorProcess) -> None:
    for strategy, service, kind in (
        ("Private", "router-internal-it", "ClusterIP"),
        ("NodePortService", "router-nodeport-it", "NodePort"),
        ("LoadBalancerService", "router-it", "LoadBalancer"),
        ("HostNetwork", "", ""),
    ):
        routers.apply("it", endpointPublishingStrategy={"type": strategy})
        expected = {service} if service else set()
        until(
            lambda: {one["metadata"]["name"] for one in routers.objects.list("services")},
            expected.__eq__,
            f"{strategy}: {expected}",
        )
        if service:
            assert routers.objects.get("service", service)["spec"]["type"] == kind
        if strategy == "LoadBalancerService":
            routers.wait_condition("it", "Progressing", "True", "LoadBalancerPending")
            address = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}
            routers.objects.patch("service", service, address, subresource="status")
        routers.wait_settled("it")
    assert routers.deployment("it")["spec"]["template"]["spec"]["hostNetwork"] is True


def test_an_object_of_somebody_else_is_not_taken_over(
    routers: Routers, operator: OperatorProcess
) -> None:
    foreign = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "router-internal-mine", "namespace": ROUTERS},
        "spec": {"ports": [{"port": 1}]},
    }
    routers.objects.apply(foreign)
    # Anybody can set a label: an object that only has the label is of no concern.
    labelled = config_map(ROUTERS, "notes", text="mine")
    labelled["metadata"]["labels"] = {OWNER: "mine"}
    routers.objects.apply(labelled)
    try:
        routers.apply("mine")
        found = routers.wait_condition("mine", "Admitted", "False", "NameTaken")
        assert "Service openshift-ingress/router-internal-mine" in found["message"]
        assert routers.deployment("mine") is None
        routers.apply("mine", endpointPublishingStrategy={"type": "HostNetwork"})
        routers.delete("mine")
        eventually(
            lambda: routers.objects.find("ingresscontroller", "mine", namespace=HOME) is None,
            "the IngressController goes",
        )
        assert routers.made("mine") == {"ConfigMap notes"}
        assert routers.objects.find("service", "router-internal-mine") is not None
    finally:
        routers.objects.delete("service", "router-internal-mine")
        routers.objects.delete("configmap", "notes")


def test_two_names_with_the_same_service_do_not_fight_over_it(
    routers: Routers, operator: OperatorProcess
) -> None:
    """`router-internal-it` could be of `internal-it` or of `it`; of the same age, by the name."""
    routers.apply("internal-it", endpointPublishingStrategy={"type": "LoadBalancerService"})
    eventually(lambda: routers.objects.find("service", "router-internal-it"), "it has its Service")
    before = routers.objects.get("service", "router-internal-it")
    routers.apply("it", endpointPublishingStrategy={"type": "Private"})
    found = routers.wait_condition("it", "Admitted", "False", "NameTaken")
    assert "internal-it" in found["message"]
    routers.delete("it")
    eventually(
        lambda: routers.objects.find("ingresscontroller", "it", namespace=HOME) is None,
        "the younger one goes",
    )
    after = routers.objects.get("service", "router-internal-it")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["type"] == "LoadBalancer"


def test_the_cluster_operator_follows_default_and_answers_a_challenge(
    routers: Routers, operator: OperatorProcess, answer_monitor: AnswerMonitor
) -> None:
    answer_monitor.runs("ingress")
    try:
        until(
            lambda: routers.operator_condition("Available").get("reason"),
            lambda reason: reason == "NoDefaultIngressController",
            "no default yet",
        )
        routers.apply("default")
        routers.wait_settled("default")
        until(
            lambda: [
                routers.operator_condition(type_).get("status")
                for type_ in ("Available", "Progressing", "Degraded")
            ],
            lambda seen: seen == ["True", "False", "False"],
            "as default",
        )
        versions = routers.objects.get("clusteroperator", "ingress")["status"]["versions"]
        assert {"name": "ingress-controller", "version": IMAGE} in versions
        assert "operator" in {one["name"] for one in versions}
        probe = [sys.executable, "-m", "quarterdeck", "staleness", "probe", "ingress"]
        answer = subprocess.run(
            [*probe, f"--kubeconfig={routers.plane.kubeconfig}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        routers.apply("default", replicas=0)
        until(
            lambda: routers.operator_condition("Available").get("status"),
            lambda status: status == "False",
            "default has no replicas",
        )
    finally:
        answer_monitor.runs("ingress", running=False)
