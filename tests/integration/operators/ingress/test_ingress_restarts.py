"""The ingress operator killed, started with other settings, and replaced by an older build."""

from pathlib import Path

import pytest
import yaml
from tests.changed_package import ChangedPackage
from tests.ingress_controllers import to_container
from tests.integration.operators.ingress.routers import Routers

from quarterdeck.testing.fault_proxy import FaultProxy, Hold
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually, until


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        pytest.param("delete", "deployments", id="before the first deletion"),
        pytest.param("delete", "ingressclasses", id="between two deletions"),
        pytest.param("patch", "ingresscontrollers", id="before the finalizer is removed"),
    ],
)
def test_a_deletion_ends_also_when_the_operator_is_killed_on_the_way(
    routers: Routers,
    start: StartOperator,
    account: Path,
    tmp_path: Path,
    verb: str,
    resource: str,
) -> None:
    token = yaml.safe_load(account.read_text())["users"][0]["user"]["token"]
    with FaultProxy(routers.plane.kubeconfig) as proxy:
        through = proxy.write_kubeconfig(tmp_path / "through-proxy", token)
        first = start(f"--kubeconfig={through}")
        routers.apply("killed", logging=to_container())
        routers.wait_settled("killed")
        hold = Hold()
        proxy.inject(hold, verb=verb, resource=resource)
        routers.delete("killed")
        assert hold.held.wait(60)
        first.kill()
    assert not routers.is_gone("killed")
    start()
    eventually(lambda: routers.is_gone("killed"), "nothing is left")


def test_the_content_of_the_config_map_rolls_the_pods(
    routers: Routers, start: StartOperator
) -> None:
    first = start()
    routers.apply("rolled", logging=to_container())
    routers.wait_settled("rolled")
    before = routers.replica_sets("rolled")
    first.kill()
    start("--omstdout")
    eventually(
        lambda: (
            "omstdout"
            in routers.objects.get("configmap", "rsyslog-conf-rolled")["data"]["rsyslog.conf"]
        ),
        "other content",
    )
    until(lambda: routers.replica_sets("rolled"), lambda now: now and now != before, "new pods")


@pytest.mark.parametrize("count", [12, pytest.param(500, marks=pytest.mark.soak)])
def test_many_settle_with_exactly_the_writes_that_are_needed(
    routers: Routers, start: StartOperator, count: int
) -> None:
    """For each: finalizer, Deployment, Service, IngressClass, ConfigMap; then only its status."""
    names = [f"many-{number}" for number in range(count)]
    for name in names:
        routers.apply(name, replicas=0, logging=to_container())
    before = len(routers.writes())
    operator = start()
    for name in names:
        routers.wait_condition(name, "Progressing", "False")
    made = [f"{it.verb} {it.resource}" for it in routers.writes()[before:]]
    for once in (
        "patch ingresscontrollers",
        "create deployments",
        "create services",
        "create ingressclasses",
        "create configmaps",
    ):
        assert made.count(once) == len(names), once
    others = {one for one in made if "status" not in one}
    assert others - {"create clusteroperators"} == {
        "patch ingresscontrollers",
        "create deployments",
        "create services",
        "create ingressclasses",
        "create configmaps",
    }
    routers.wait_fixed_point(operator, *names)


def test_a_build_without_logging_removes_sidecar_and_volumes(
    routers: Routers, start: StartOperator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a downgrade; the ConfigMap may remain there, and goes with its Deployment."""
    first = start()
    routers.apply("old", logging=to_container())
    routers.wait_settled("old")
    assert len(routers.deployment("old")["spec"]["template"]["spec"]["containers"]) == 2
    first.kill()
    build = ChangedPackage(tmp_path)
    build.replace(
        "operators/ingress/router_pod.py",
        "return additions(controller.spec.logging, context)",
        "return Additions()",
    )
    monkeypatch.setenv("PYTHONPATH", build.environment["PYTHONPATH"])
    older = start()
    pod = until(
        lambda: routers.deployment("old")["spec"]["template"]["spec"],
        lambda pod: len(pod["containers"]) == 1,
        "no sidecar",
    )
    assert [one["name"] for one in pod["volumes"]] == ["router-state"]
    assert not [one["name"] for one in pod["containers"][0]["env"] if "LOG" in one["name"]]
    routers.wait_settled("old")
    routers.wait_fixed_point(older, "old")
    routers.delete("old")
    eventually(lambda: routers.is_gone("old"), "nothing is left")
