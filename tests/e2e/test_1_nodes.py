"""Two real nodes: pods, their logs, commands in them, Services and names; a node that is killed."""

import urllib.request
from collections.abc import Iterator

import pytest
from tests.e2e.cluster import LIMIT, RealCluster, conditions, deployment
from tests.e2e.conftest import Images
from tests.e2e.machine import Machine, differences, machine

from quarterdeck.testing.waiting import eventually

SERVER = """
import http.server, socket
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{socket.gethostname()} for {self.client_address[0]}\\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
print("serving", flush=True)
http.server.ThreadingHTTPServer(("", 8080), Handler).serve_forever()
"""
ASK = "import urllib.request; print(urllib.request.urlopen({url!r}, timeout=5).read().decode())"
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
}


@pytest.fixture(scope="module")
def web(cluster: RealCluster, images: Images) -> Iterator[dict[str, str]]:
    """A web server on each node, and its Service: the node of each pod."""
    command = ("/usr/bin/python3.11", "-c", SERVER)
    cluster.apply(deployment("web", images.operators, command, replicas=2), SERVICE)
    cluster.roll_out("default", "deployment/web")
    yield {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in cluster.pods("default", "app=web")
    }
    # In the foreground: the next tests compare all objects, and the pods are some of them.
    gone = ("delete", "deployment/web", "service/web", "--namespace=default")
    cluster.kubectl(*gone, "--cascade=foreground", f"--timeout={LIMIT:.0f}s")


def test_both_nodes_are_ready(cluster: RealCluster) -> None:
    nodes = {one["metadata"]["name"]: one for one in cluster.get("nodes")["items"]}
    assert nodes.keys() == {"node-1", "node-2", "simulated"}
    for name in ("node-1", "node-2"):
        assert conditions(nodes[name])["Ready"] == "True"
        info = nodes[name]["status"]["nodeInfo"]
        assert info["kubeletVersion"] == "v1.36.4"
        assert info["containerRuntimeVersion"] == "containerd://2.4.2"


def test_running_nodes_change_nothing_but_cgroups(cluster: RealCluster, before: Machine) -> None:
    assert differences(before, machine()).keys() == {"cgroups"}


def test_pods_run_from_the_pushed_image_on_both_nodes(
    cluster: RealCluster, images: Images, web: dict[str, str]
) -> None:
    assert sorted(web.values()) == ["node-1", "node-2"]
    digest = images.operators.partition("@")[2]
    for pod in cluster.pods("default", "app=web"):
        (status,) = pod["status"]["containerStatuses"]
        assert status["imageID"].endswith(digest)


def test_kubectl_reads_logs_and_runs_commands(cluster: RealCluster, web: dict[str, str]) -> None:
    for pod in web:
        assert cluster.kubectl("logs", pod).splitlines()[0] == "serving"
        assert cluster.python(pod, "import os; print(os.getuid())").strip() == "65532"


def test_pods_reach_services_by_name_on_both_nodes(
    cluster: RealCluster, web: dict[str, str]
) -> None:
    ask = ASK.format(url="http://web.default.svc.cluster.local")
    for asker in web:
        seen: set[str] = set()
        for _ in range(40):  # Each connection goes to either pod.
            seen.add(cluster.python(asker, ask).split()[0])
            if seen == set(web):
                break
        assert seen == set(web)


def test_pods_reach_the_api_server_by_name(cluster: RealCluster, web: dict[str, str]) -> None:
    code = (
        "import ssl, urllib.request as r; "
        "d = '/var/run/secrets/kubernetes.io/serviceaccount/'; "
        "q = r.Request('https://kubernetes.default.svc/version', "
        "headers={'Authorization': 'Bearer ' + open(d + 'token').read()}); "
        "c = ssl.create_default_context(cafile=d + 'ca.crt'); "
        "print(r.urlopen(q, context=c, timeout=5).read().decode())"
    )
    for pod in web:
        assert "v1.36.4" in cluster.python(pod, code)


def test_port_forward_reaches_a_pod_from_the_machine(
    cluster: RealCluster, web: dict[str, str]
) -> None:
    for pod in web:
        with cluster.forwarded("default", f"pod/{pod}", 8080) as port:
            url = f"http://127.0.0.1:{port}/"
            with urllib.request.urlopen(url, timeout=30) as answer:
                assert answer.read().decode().startswith(pod)


def test_restricted_pod_security_is_enforced(cluster: RealCluster, images: Images) -> None:
    level = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", "default", level)
    try:
        said = cluster.kubectl(
            "run", "loose", f"--image={images.operators}", "--dry-run=server", check=False
        )
        assert "violates PodSecurity" in said
    finally:
        cluster.kubectl("label", "namespace", "default", f"{level.partition('=')[0]}-")


def test_a_killed_node_comes_back_with_its_pods(cluster: RealCluster, web: dict[str, str]) -> None:
    pod = next(name for name, node in web.items() if node == "node-2")
    cluster.kill("node-2")
    # Its network went with it, at once; the API server notices when the Lease expires.
    cluster.running("node-2")

    def serves_again() -> bool:
        (now,) = (
            one for one in cluster.pods("default", "app=web") if one["metadata"]["name"] == pod
        )
        (container,) = now["status"]["containerStatuses"]
        return bool(container["restartCount"] == 1 and container["ready"])

    eventually(serves_again, f"{pod} serves again", limit=LIMIT)
    ask = ASK.format(url="http://web.default.svc.cluster.local")

    def answers() -> bool:
        # The pods of the node got new addresses: for a moment the Service leads to an old one,
        # which CoreDNS may have now.
        said = cluster.python(pod, ask, check=False).split()
        return bool(said) and said[0] in web

    eventually(answers, "the Service leads to a web server", limit=LIMIT)
