"""Two hundred HostedClusters at once: each has what it needs, and nothing is written twice."""

from collections import Counter

import pytest
from tests.integration.operators.hosted.management import HC, HCP, Management, configuration

from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.operators.hosted.names import CONFIG_MAP
from quarterdeck.testing.namespaces import create_namespace
from quarterdeck.testing.operator_process import OwnOperators
from quarterdeck.testing.plugin import NewControlPlane
from quarterdeck.testing.waiting import until

COUNT = 200
LEVELS = ("Normal", "Debug", "Trace", "TraceAll")
LIMIT = 240.0
NEEDED = {
    ("patch", "hostedclusters"): 1,
    ("create", "namespaces"): 1,
    ("create", "rolebindings"): 1,
    ("create", "hostedcontrolplanes"): 1,
    ("create", "configmaps"): 1,
    ("create", "secrets"): 1,
    ("create", "deployments"): 1,
    # Not available yet, and available.
    ("patch", "hostedcontrolplanes/status"): 2,
    ("patch", "hostedclusters/status"): 2,
}
NEEDED_FOR_A_LEVEL = {
    ("patch", "hostedcontrolplanes"): 1,
    ("patch", "configmaps"): 1,
    # The generation that was acted on.
    ("patch", "hostedcontrolplanes/status"): 1,
    ("patch", "hostedclusters/status"): 1,
}


def files(management: Management) -> dict[str, str]:
    """The last line of each ConfigMap's file, by namespace."""
    path = f"/api/v1/configmaps?fieldSelector=metadata.name={CONFIG_MAP}"
    found = management.plane.requests().send("GET", path).json()["items"]
    return {it["metadata"]["namespace"]: it["data"]["config.yaml"].splitlines()[-1] for it in found}


def settled(management: Management) -> int:
    """How many HostedClusters are available, with the status of their latest generation."""
    count = 0
    for kind in (HC, HCP):
        path = f"/apis/hypershift.openshift.io/v1beta1/{kind}s"
        for it in management.plane.requests().send("GET", path).json()["items"]:
            status = it.get("status") or {}
            available = [
                c["status"] for c in status.get("conditions", ()) if c["type"] == "Available"
            ]
            count += available == ["True"] and (
                status["observedGeneration"] == it["metadata"]["generation"]
            )
    return count


def counted(management: Management, before: int) -> dict[str, Counter[tuple[str, str]]]:
    """The operator's writes since then, by the namespace of the control plane that they are for."""
    written: dict[str, Counter[tuple[str, str]]] = {}
    for it in management.writes()[before:]:
        if it.resource.startswith("hostedclusters"):
            place = management.place(it.name)
        else:
            place = it.name if it.resource == "namespaces" else it.namespace
        written.setdefault(place, Counter())[it.verb, it.resource] += 1
    return written


@pytest.mark.slow
def test_many_hosted_clusters_get_exactly_what_they_need(
    new_control_plane: NewControlPlane, own_operators: OwnOperators
) -> None:
    plane = new_control_plane(audit=True)
    install_own_definitions(plane.requests())
    create_namespace(plane.requests(), "clusters")
    management = Management(plane, "clusters")
    management.set_gate(on=True)
    management.add_kubeconfig()
    start = own_operators(plane, "hosted", "--hosted-releases=", "--hosted-replicas=1")
    operator = start()

    def level(number: int, turn: int) -> str:
        return LEVELS[(number + turn) % len(LEVELS)]

    def wanted(turn: int) -> dict[str, str]:
        return {
            management.place(f"c{number}"): f"  operatorLogLevel: {level(number, turn)}"
            for number in range(COUNT)
        }

    def each(needed: dict[tuple[str, str], int]) -> dict[str, Counter[tuple[str, str]]]:
        return {place: Counter(needed) for place in wanted(0)}

    for number in range(COUNT):
        management.add(f"c{number}", operatorConfiguration=configuration(level(number, 0)))
    until(lambda: settled(management), lambda it: it == 2 * COUNT, "all are available", LIMIT)
    assert files(management) == wanted(0)
    assert counted(management, 0) == each(NEEDED)

    before = len(management.writes())
    for number in range(COUNT):
        management.set_level(f"c{number}", level(number, 1))
    until(lambda: files(management) == wanted(1), bool, "all have the new level", LIMIT)
    until(lambda: settled(management), lambda it: it == 2 * COUNT, "all say so", LIMIT)
    assert counted(management, before) == each(NEEDED_FOR_A_LEVEL)

    # A new process looks at everything once more, and finds nothing to do.
    operator.kill()
    before = len(management.writes())
    again = start()
    looks = 'controller_runtime_reconcile_total{controller="hosted-cluster",result="success"}'
    until(lambda: again.metric(looks), lambda it: it >= COUNT, "a look at each", LIMIT)
    assert counted(management, before) == {}
