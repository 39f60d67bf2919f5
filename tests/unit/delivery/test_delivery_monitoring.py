"""The Service and the ServiceMonitor of each operator, from its declaration."""

import pytest

from quarterdeck.delivery.declaration import Declaration, Deployed
from quarterdeck.delivery.files import files
from quarterdeck.delivery.manifests import workload
from quarterdeck.delivery.monitoring import service_monitor_objects
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


def test_a_static_pod_has_none() -> None:
    (staleness,) = (one for one in OURS if one.name == "staleness")
    assert service_monitor_objects(staleness) == []
