"""The pods of routers are found by Prometheus, on the port that serves their metrics."""

from tests.ingress_controllers import ingress_controller, to_container, typed

from quarterdeck.operators.ingress import OPERATOR, names
from quarterdeck.operators.ingress.router_pod import desired_pod_template, logging_additions
from quarterdeck.operators.ingress.settings import Settings


def test_the_declared_label_and_port_are_those_of_the_pods() -> None:
    controller, settings = typed(ingress_controller("a", logging=to_container())), Settings()
    added = logging_additions(controller, settings)
    template = desired_pod_template(controller, added, settings)
    (found,) = OPERATOR.operand_metrics
    assert found.label in template["metadata"]["labels"]
    assert found.namespace == names.NAMESPACE
    ports = [port for one in template["spec"]["containers"] for port in one.get("ports", [])]
    assert found.port in [port["name"] for port in ports]
