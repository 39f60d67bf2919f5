"""Two local clusters side by side, each with both nodes and pods: nothing of theirs collides."""

import json
from typing import Any

import pytest
from tests.integration.pods import needs_bubblewrap
from tests.objects import deployment, foreign_container, pod

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.plugin import NewControlPlane
from quarterdeck.testing.this_machine import ThisMachine

pytestmark = needs_bubblewrap

# Listens on its own address and says which API server it was told of.
SERVER = (
    "import http.server,os;print('api',os.environ['KUBERNETES_SERVICE_PORT'],flush=True);"
    "http.server.HTTPServer((os.environ['POD_IP'],8080),http.server.SimpleHTTPRequestHandler)"
    ".serve_forever()"
)


def replicated(name: str, image: str, **more: Any) -> Object:
    main = foreign_container(image, **more)
    return deployment(name, pod(name, main, terminationGracePeriodSeconds=0), 2)


POD_IP = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
WEB = replicated(
    "web",
    "quarterdeck",
    command=["python", "-c", SERVER],
    env=[POD_IP],
    readinessProbe={"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
)
PLAYED = replicated("played", "example.test/web")


def addresses(node: ThisMachine) -> set[str]:
    return {pod["status"]["podIP"] for pod in node.list("pods", "app=web")}


def ports(plane: ControlPlane) -> set[int]:
    return set(json.loads(plane.layout.ports.read_bytes()).values())


@pytest.mark.slow
def test_two_clusters_with_the_same_pods_do_not_know_of_each_other(
    this_machine: ThisMachine, new_control_plane: NewControlPlane
) -> None:
    """Ports, addresses and files are apart; when one goes, the other does not notice.

    One is the cluster of this test worker, the other of this test alone.
    """
    plane = new_control_plane()
    plane.add_this_machine()
    plane.start("this-machine")
    one, other = this_machine, ThisMachine(plane, "default")
    for node in (one, other):
        node.apply(WEB)
        node.apply(PLAYED)
    for node in (one, other):
        node.wait_rolled_out("web")
        node.wait_rolled_out("played")
        nodes = {pod["spec"]["nodeName"] for pod in node.list("pods", "app=played")}
        assert nodes == {"simulated"}
    assert len(addresses(one) | addresses(other)) == 4
    assert ports(one.plane).isdisjoint(ports(other.plane))
    for node in (one, other):
        api = node.plane.setup.ports.kube_apiserver
        for web in node.list("pods", "app=web"):
            assert node.wait_logged(web["metadata"]["name"], "api").startswith(f"api {api}\n")
    before = {
        pod["metadata"]["name"]: pod["status"]["containerStatuses"][0]["containerID"]
        for pod in one.list("pods", "app=web")
    }
    uids = {pod["metadata"]["uid"] for pod in one.list("pods", "app=web")}

    plane.close()

    one.wait_rolled_out("web")
    after = {
        pod["metadata"]["name"]: pod["status"]["containerStatuses"][0]["containerID"]
        for pod in one.list("pods", "app=web")
    }
    assert after == before
    assert uids <= {path.name for path in one.plane.layout.pods.iterdir()}
