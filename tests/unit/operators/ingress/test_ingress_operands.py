"""The objects of an IngressController, and which specs are refused."""

import subprocess
from datetime import timedelta
from typing import Any

import pytest
from tests.ingress_controllers import ingress_controller, logging, to_container, typed

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1 import IngressController
from quarterdeck.operators.ingress import names
from quarterdeck.operators.ingress.admission import (
    LONGEST_VARIABLE,
    admission,
    is_made_by,
    name_is_free,
    taken,
    variables_fit,
)
from quarterdeck.operators.ingress.explain import LiveObjects, live_settings
from quarterdeck.operators.ingress.live_order import in_live_order
from quarterdeck.operators.ingress.local_default import local_objects
from quarterdeck.operators.ingress.logging.additions import Additions
from quarterdeck.operators.ingress.operands import (
    desired_config_map,
    desired_ingress_class,
    desired_operands,
    desired_service,
)
from quarterdeck.operators.ingress.router_pod import router_variables
from quarterdeck.operators.ingress.settings import Settings
from quarterdeck.router.proxy import STOP_GRACE_PERIOD
from quarterdeck.router.settings import read_settings

SETTINGS = Settings(router_image="r:1")


def pod_of(**spec: Any) -> Object:
    made = desired_operands(typed(ingress_controller("it", **spec)), SETTINGS)
    pod: Object = made.deployment["spec"]["template"]["spec"]
    return pod


def test_the_deployment_is_found_by_the_label_of_its_pods() -> None:
    made = desired_operands(typed(ingress_controller("it", replicas=3)), SETTINGS).deployment
    labels = {"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "it"}
    assert made["metadata"]["namespace"] == "openshift-ingress"
    assert made["metadata"]["name"] == "router-it"
    assert made["spec"]["replicas"] == 3
    assert made["spec"]["selector"]["matchLabels"] == labels
    assert made["spec"]["template"]["metadata"]["labels"] == labels
    assert "ownerReferences" not in made["metadata"]


def test_two_replicas_are_the_default() -> None:
    made = desired_operands(typed(ingress_controller()), SETTINGS).deployment
    assert made["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("strategy", "name", "kind"),
    [
        pytest.param(None, "router-internal-it", "ClusterIP", id="private by default"),
        pytest.param("Private", "router-internal-it", "ClusterIP", id="private"),
        pytest.param("NodePortService", "router-nodeport-it", "NodePort", id="node ports"),
        pytest.param("LoadBalancerService", "router-it", "LoadBalancer", id="load balancer"),
    ],
)
def test_service(strategy: str | None, name: str, kind: str) -> None:
    given = {"endpointPublishingStrategy": {"type": strategy}} if strategy else {}
    service = desired_service(typed(ingress_controller("it", **given)))
    assert service is not None
    assert service["metadata"]["name"] == name
    assert service["spec"]["type"] == kind
    policy = service["spec"].get("externalTrafficPolicy")
    assert policy == (None if kind == "ClusterIP" else "Local")
    assert [one["port"] for one in service["spec"]["ports"]][:2] == [80, 443]


def test_on_the_hosts_network_there_are_ports_and_no_service() -> None:
    ports = {"httpPort": 18080, "httpsPort": 18443, "statsPort": 11936}
    strategy = {"type": "HostNetwork", "hostNetwork": ports}
    obj = typed(ingress_controller("it", endpointPublishingStrategy=strategy))
    made = desired_operands(obj, SETTINGS)
    pod = made.deployment["spec"]["template"]["spec"]
    assert made.service is None
    assert pod["hostNetwork"] is True
    router = pod["containers"][0]
    assert [one["hostPort"] for one in router["ports"]] == [18080, 18443, 11936]
    env = {one["name"]: one.get("value") for one in router["env"]}
    assert (env["ROUTER_SERVICE_HTTP_PORT"], env["STATS_PORT"]) == ("18080", "11936")
    assert "ROUTER_GRACEFUL_SHUTDOWN_DELAY" not in env
    assert pod["terminationGracePeriodSeconds"] == 60
    assert "add" not in router["securityContext"]["capabilities"]
    assert made.deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 0


def test_a_router_behind_a_service_takes_connections_while_that_learns_of_its_end() -> None:
    pod = pod_of()
    env = {one["name"]: one.get("value", "") for one in pod["containers"][0]["env"]}
    delay = read_settings(env).stop_delay
    # Then its requests have half a minute, and the last access lines a few seconds.
    assert delay == 5
    assert pod["terminationGracePeriodSeconds"] > delay + STOP_GRACE_PERIOD + 10


def test_only_privileged_ports_of_the_host_need_a_capability() -> None:
    on_host = pod_of(endpointPublishingStrategy={"type": "HostNetwork"})
    capabilities = on_host["containers"][0]["securityContext"]["capabilities"]
    assert capabilities == {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}
    assert pod_of()["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_selectors_and_domain_reach_the_router() -> None:
    router = pod_of(
        domain="apps.example.com",
        routeSelector={"matchLabels": {"shard": "a"}},
        namespaceSelector={"matchExpressions": [{"key": "x", "operator": "Exists"}]},
    )["containers"][0]
    env = {one["name"]: one.get("value") for one in router["env"]}
    assert env["ROUTE_LABELS"] == "shard=a"
    assert env["NAMESPACE_LABELS"] == "x"
    assert env["ROUTER_CANONICAL_HOSTNAME"] == "router-it.apps.example.com"
    assert env["ROUTER_INGRESS_CLASS"] == "quarterdeck-it"


def test_placement() -> None:
    term = {"key": "zone", "operator": "In", "values": ["a"]}
    pod = pod_of(
        nodePlacement={
            "nodeSelector": {"matchLabels": {"role": "edge"}, "matchExpressions": [term]},
            "tolerations": [{"key": "edge", "operator": "Exists"}],
        }
    )
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "role": "edge"}
    (required,) = pod["affinity"]["nodeAffinity"].values()
    assert required == {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    assert pod["tolerations"] == [{"key": "edge", "operator": "Exists"}]


def test_the_ingress_class_leads_to_the_ingress_controller() -> None:
    made = desired_ingress_class(typed(ingress_controller("it")))
    assert made["metadata"]["name"] == "quarterdeck-it"
    assert made["spec"]["parameters"]["name"] == "it"
    assert made["spec"]["parameters"]["namespace"] == "openshift-ingress-operator"


def test_the_deployment_owns_the_config_map() -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "router-it", "namespace": "openshift-ingress", "uid": "u"},
    }
    made = desired_config_map(typed(ingress_controller("it")), owner, "rsyslog-conf-it", {"a": "b"})
    (reference,) = made["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"]) == ("Deployment", "u")
    assert made["metadata"]["namespace"] == "openshift-ingress"


def test_desired_lists_take_the_order_of_the_live_ones() -> None:
    desired = desired_operands(typed(ingress_controller("it", logging=to_container())), SETTINGS)
    live = in_live_order(desired.deployment, None)
    assert live is desired.deployment
    turned: Object = {**live, "spec": {**live["spec"], "template": {"spec": {}}}}
    pod = live["spec"]["template"]["spec"]
    turned["spec"]["template"]["spec"] = {
        "volumes": pod["volumes"][::-1],
        "containers": [{**one, "env": one.get("env", [])[::-1]} for one in pod["containers"][::-1]],
    }
    found = in_live_order(desired.deployment, turned)["spec"]["template"]["spec"]
    assert found["volumes"] == pod["volumes"][::-1]
    assert [one["name"] for one in found["containers"]] == ["logs", "router"]
    assert found["containers"][1]["env"] == pod["containers"][0]["env"][::-1]


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        pytest.param(ingress_controller("a" * 48), "metadata.name", id="too long a name"),
        pytest.param(ingress_controller("a.b"), "no dot", id="a name with a dot"),
        pytest.param(ingress_controller(replicas=-1), "spec.replicas: -1", id="negative replicas"),
        pytest.param(
            ingress_controller(
                endpointPublishingStrategy={
                    "type": "HostNetwork",
                    "hostNetwork": {"httpPort": 80, "httpsPort": 80},
                }
            ),
            "httpPort: 80: httpsPort is the same",
            id="one port twice",
        ),
        pytest.param(
            ingress_controller(
                endpointPublishingStrategy={"type": "HostNetwork", "hostNetwork": {"httpPort": 0}}
            ),
            "httpPort: 0",
            id="port 0",
        ),
        pytest.param(
            ingress_controller(
                routeSelector={"matchExpressions": [{"key": "a", "operator": "Is"}]}
            ),
            "spec.routeSelector",
            id="an unknown operator of a selector",
        ),
        pytest.param(
            ingress_controller("it", {"quarterdeck.dev/access-log-socket": "tcp"}),
            "use stream or datagram",
            id="an unknown socket",
        ),
        pytest.param(
            ingress_controller(logging=logging({"type": "Syslog"})),
            "spec.logging.access.destination.syslog",
            id="a union without its member",
        ),
        pytest.param(
            ingress_controller(logging=logging({"type": "Pigeon"})),
            "destination.type: 'Pigeon'",
            id="a destination of another release",
        ),
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_field_and_remedy(
    obj: Object, words: str
) -> None:
    found = admission(typed(obj))
    assert (found.admitted, found.reason) == (False, "InvalidSpec")
    assert words in found.message


def test_what_is_valid_is_admitted() -> None:
    assert admission(typed(ingress_controller("a" * 47, logging=to_container()))).admitted


def test_an_object_of_another_manager_is_not_ours() -> None:
    ours = {"kind": "Service", "metadata": {"name": "x", "managedFields": [{"manager": "me"}]}}
    theirs = {"kind": "Service", "metadata": {"name": "x", "namespace": "y"}}
    assert is_made_by(ours, "me")
    assert not is_made_by(theirs, "me")
    assert taken([ours], "me").admitted
    found = taken([ours, theirs], "me")
    assert (found.reason, "Service y/x" in found.message) == ("NameTaken", True)


def test_the_older_of_two_with_the_same_service_name_keeps_it() -> None:
    """Both would have a Service `router-internal-a`."""

    def made(name: str, second: int) -> IngressController:
        obj = ingress_controller(name)
        obj["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{second:02d}Z"
        return typed(obj)

    assert "a" in names.rivals("internal-a")
    assert "internal-a" in names.rivals("a")
    assert name_is_free(made("a", 1), [made("internal-a", 2)]).admitted
    refused = name_is_free(made("a", 2), [made("internal-a", 1)])
    assert (refused.admitted, refused.reason) == (False, "NameTaken")
    assert "IngressController internal-a" in refused.message


def test_the_default_of_a_local_cluster_is_admitted_and_logs_to_its_sidecar() -> None:
    (obj,) = local_objects({"http": 21080, "https": 21443, "stats": 21936})
    controller = typed(obj)
    assert controller.metadata.name == "default"
    assert admission(controller).admitted
    router, sidecar = desired_operands(controller, SETTINGS).deployment["spec"]["template"]["spec"][
        "containers"
    ]
    assert [one["hostPort"] for one in router["ports"]] == [21080, 21443, 21936]
    assert "add" not in router["securityContext"]["capabilities"]
    assert sidecar["name"] == "logs"


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        pytest.param(SETTINGS, set(), id="neither, as delivered"),
        pytest.param(
            Settings(external_names=True), {"ROUTER_ALLOW_EXTERNAL_NAMES"}, id="external names"
        ),
        pytest.param(
            Settings(external_names=True, loopback_backends=True),
            {"ROUTER_ALLOW_EXTERNAL_NAMES", "ROUTER_ALLOW_LOOPBACK_BACKENDS"},
            id="on this machine",
        ),
    ],
)
def test_what_routers_may_reach_is_a_setting_of_the_operator(
    settings: Settings, variables: set[str]
) -> None:
    controller = typed(ingress_controller("it"))
    made = router_variables(controller, Additions(), settings)
    assert {name for name in made if "ALLOW" in name} == variables


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        Settings(router_image="r:2", omstdout=True),
        Settings(router_image="r:3", external_names=True, loopback_backends=True),
        Settings(router_image="r:4", router_stop_delay=timedelta(0)),
    ],
)
def test_explain_reads_the_settings_of_the_operator_from_what_it_wrote(settings: Settings) -> None:
    """Otherwise it would tell of a roll-out that does not come."""
    controller = typed(ingress_controller("it", logging=to_container()))
    made = desired_operands(controller, settings)
    ((name, data),) = made.config_maps.items()
    live = LiveObjects(
        deployment=made.deployment, config_maps=({"metadata": {"name": name}, "data": data},)
    )
    assert live_settings(Settings(), live) == settings


def test_a_variable_with_which_no_process_starts_is_refused_with_its_field() -> None:
    """The kernel counts bytes, and the name with its equals sign."""
    room = LONGEST_VARIABLE - len("ROUTER_SYSLOG_FORMAT=")
    assert variables_fit({"ROUTER_SYSLOG_FORMAT": "a" * room}).admitted
    for value in ("a" * (room + 1), "\u00e9" * (room // 2 + 1)):
        found = variables_fit({"POD": "short", "ROUTER_SYSLOG_FORMAT": value})
        assert (found.admitted, found.reason) == (False, "InvalidSpec")
        assert "spec.logging.access.httpLogFormat" in found.message
        assert f"use at most {LONGEST_VARIABLE}" in found.message
        assert len(found.message) < 300


def test_the_kernel_really_has_that_limit() -> None:
    for value, starts in (("a" * (LONGEST_VARIABLE - 2), True), ("a" * LONGEST_VARIABLE, False)):
        environment = {"X": value}
        if starts:
            subprocess.run(["/bin/true"], env=environment, check=True)
        else:
            with pytest.raises(OSError, match="Argument list too long"):
                subprocess.run(["/bin/true"], env=environment, check=True)


@pytest.mark.parametrize(
    "value",
    ["b,c=d", "b)", "b in (c)", " ", "b\nc", "x" * 64, "!b"],
)
def test_a_selector_cannot_become_another_one_on_the_way_to_the_router(value: str) -> None:
    """It is passed as text, and commas, brackets and blanks mean something there."""
    for field in ("routeSelector", "namespaceSelector"):
        selectors: list[Object] = [
            {"matchLabels": {"a": value}},
            {"matchLabels": {value: "a"}},
            {"matchExpressions": [{"key": "a", "operator": "In", "values": [value]}]},
        ]
        for selector in selectors:
            obj = ingress_controller()
            obj["spec"][field] = selector
            found = admission(typed(obj))
            assert not found.admitted, selector
            assert f"spec.{field}" in found.message
