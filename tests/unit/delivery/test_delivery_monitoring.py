"""What Prometheus and Grafana are given of each operator, from its declaration."""

import json
import re

import msgspec
import pytest
import yaml
from tests.places import DEPLOY

from quarterdeck.delivery.alerts import alerts
from quarterdeck.delivery.dashboard import dashboard, dashboard_object, panels
from quarterdeck.delivery.declaration import Declaration, Deployed, PodMetrics, StaticPodDelivery
from quarterdeck.delivery.files import files
from quarterdeck.delivery.manifests import workload
from quarterdeck.delivery.monitoring import pod_monitor_objects, service_monitor_objects
from quarterdeck.delivery.registry import installed

OURS = installed().of("quarterdeck")
DEPLOYED = [one for one in OURS if isinstance(one.delivery, Deployed)]


@pytest.mark.parametrize("declared", DEPLOYED, ids=lambda one: one.name)
def test_it_leads_to_the_metrics_of_the_operators_pods(declared: Declaration) -> None:
    service, monitor = service_monitor_objects(declared)
    deployment = workload(declared)
    assert deployment is not None
    template = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    (container,) = template["spec"]["containers"]
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in [one["name"] for one in container["ports"]]
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["path"]) == (port["name"], "/metrics")
    places = {one["metadata"]["namespace"] for one in (service, monitor, deployment)}
    assert places == {declared.namespace}


def test_no_payload_has_one_as_clusters_without_that_type_would_refuse_it() -> None:
    made = files(OURS)
    with_monitor = {name for name, content in made.items() if "kind: ServiceMonitor" in content}
    assert with_monitor == {f"monitoring/{one.name}-service.yaml" for one in DEPLOYED}


def test_a_static_pod_has_a_pod_monitor_instead() -> None:
    (staleness,) = (one for one in OURS if one.name == "staleness")
    assert service_monitor_objects(staleness) == []
    pod = workload(staleness)
    deployed = staleness.as_deployment()
    assert deployed is not None
    deployment = workload(deployed)
    assert pod is not None
    assert deployment is not None
    namespaces = [one["metadata"]["namespace"] for one in (pod, deployment)]
    for monitor, namespace, template in zip(
        pod_monitor_objects(staleness),
        namespaces,
        (pod, deployment["spec"]["template"]),
        strict=True,
    ):
        selected = monitor["spec"]["selector"]["matchLabels"]
        assert selected.items() <= template["metadata"]["labels"].items()
        assert monitor["metadata"]["namespace"] == namespace
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        (container,) = template["spec"]["containers"]
        assert endpoint["port"] in [one["name"] for one in container["ports"]]


def test_no_pod_is_found_twice_as_sums_would_be_wrong() -> None:
    for declared in DEPLOYED:
        assert [one["metadata"]["name"] for one in pod_monitor_objects(declared)] == [
            one.name for one in declared.operand_metrics
        ]
        assert declared.namespace not in {one.namespace for one in declared.operand_metrics}


def test_every_yaml_file_of_the_directory_is_objects_to_apply() -> None:
    directory = DEPLOY / "monitoring"
    assert {path.suffix for path in directory.iterdir() if path.is_file()} == {".yaml"}
    for path in directory.glob("*.yaml"):
        for obj in yaml.safe_load_all(path.read_text()):
            assert obj["apiVersion"], path
            assert obj["kind"], path
            assert obj["metadata"]["namespace"], path


def test_the_files_of_an_operator_begin_with_its_name() -> None:
    """So an installer can leave out those of operators that are not there."""
    names = {one.name for one in OURS}
    for path in (DEPLOY / "monitoring").glob("*.yaml"):
        assert re.sub("-(service|pods)$", "", path.stem) in names | {"dashboard"}


def test_the_dashboard_is_the_same_for_the_sidecar_and_for_an_import() -> None:
    config_map = dashboard_object(OURS)
    assert config_map["metadata"]["labels"] == {"grafana_dashboard": "1"}
    (text,) = config_map["data"].values()
    assert text == (DEPLOY / "monitoring" / "files" / "dashboard.json").read_text()
    assert json.loads(text) == dashboard(OURS)


def test_the_panels_lie_beside_each_other() -> None:
    places = [tuple(one["gridPos"].values()) for one in dashboard(OURS)["panels"]]
    assert len(places) == len(set(places)) == len(panels(OURS))
    assert all(x + width <= 24 for x, _, width, _ in places)
    assert len({one["id"] for one in dashboard(OURS)["panels"]}) == len(places)


def test_each_alert_names_its_own_operators_pods() -> None:
    for declared in OURS:
        (errors,) = (one for one in alerts(declared) if one.name == "OperatorReconcileErrors")
        if not isinstance(declared.delivery, StaticPodDelivery):
            assert f'pod=~"{declared.account}-.+"' in errors.expr
            continue
        # Wherever it runs: as a static pod, or from its Deployment.
        deployed = declared.as_deployment()
        assert deployed is not None
        assert f'namespace=~"{declared.namespace}|{deployed.namespace}"' in errors.expr
        assert f'pod=~"({declared.name}|{deployed.account})-.+"' in errors.expr
        for named in (declared.namespace, deployed.namespace):
            assert named in errors.description


def test_an_operator_that_is_only_run_by_hand_has_nothing() -> None:
    by_hand = msgspec.structs.replace(OURS[0], delivery=None, operand_metrics=())
    assert not alerts(by_hand)
    assert not service_monitor_objects(by_hand)
    assert not pod_monitor_objects(by_hand)


@pytest.mark.parametrize("reference", ["quarterdeck:__name__", "quarterdeck.log:get_logger"])
def test_what_are_no_alerts_is_refused_by_its_name(reference: str) -> None:
    wrong = msgspec.structs.replace(OURS[0], alerts=reference)
    with pytest.raises(TypeError):
        alerts(wrong)


@pytest.mark.parametrize("field", ["name", "namespace", "label", "port"])
def test_pods_that_cannot_be_selected_are_refused(field: str) -> None:
    good = {"name": "router", "namespace": "ns", "label": "example.com/router", "port": "metrics"}
    PodMetrics(**good)
    with pytest.raises(ValueError, match=field):
        PodMetrics(**good | {field: "no good\n"})
