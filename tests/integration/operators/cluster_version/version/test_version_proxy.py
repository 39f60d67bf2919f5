"""Release images and update graphs through a real proxy, which is away and refuses at first."""

import json
from pathlib import Path

import pytest
from tests.integration.operators.cluster_version.version.releases import (
    Cluster,
    Releases,
    config_map,
)
from tests.proxy_process import PROXY_PASSWORD, PROXY_USER, running_proxy
from tests.registry_process import Tls, free_port, pull_secret
from tests.release_images import release_image
from tests.scripted_registry import scripted_registry
from tests.unit.update_graph.graphs import graph

from quarterdeck.testing.operator_process import StartOperator


def test_a_release_and_a_graph_through_a_proxy(
    cluster: Cluster,
    releases: Releases,
    run_cvo: StartOperator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing goes round the proxy, what it refuses is told, and its password never is."""
    port = free_port()
    for scheme in ("http", "https"):
        value = f"http://{PROXY_USER}:{PROXY_PASSWORD}@127.0.0.1:{port}"
        monkeypatch.setenv(f"{scheme}_proxy", value)
    monkeypatch.setenv("no_proxy", "127.0.0.1,10.0.0.0/8")
    here, tls = cluster.namespace, Tls(tmp_path / "pki")
    releases.write("1.0.0", {"0000_10_cargo_00.json": config_map("cargo", here, version="1.0.0")})
    with scripted_registry(tls) as registry, scripted_registry(tls, encrypted=False) as service:
        service.stored["/graph"] = ("application/json", graph(("1.0.0", "1.0.1"), (0, 1)))
        manifests = {"0000_10_cargo_00.json": config_map("cargo", here, version="1.1.0")}
        image = registry.put("q", release_image("1.1.0", manifests, ["1.0.0"]))
        image = image.replace("127.0.0.1", "localhost")
        secret = pull_secret(tmp_path, image.partition("/")[0])
        process = run_cvo(
            "1.0.0",
            f"--pull-secret={secret}",
            f"--registry-ca={tls.ca}",
            "--upstream-interval=1s",
        )
        cluster.wait_release("1.0.0")

        cluster.ask(image=image)
        seen = cluster.wait_condition("ReleaseAccepted", "False", "no connection")
        assert seen["reason"] == "RegistryUnreachable"
        assert "check the address, the network and the proxy" in seen["message"]
        with running_proxy(tmp_path / "other", port, password="another-word") as refusing:
            cluster.wait_condition(
                "ReleaseAccepted", "False", "the proxy refuses the connection: status 401"
            )
            assert refusing.asked
            seen = cluster.condition("ReleaseAccepted")
            assert "check the proxy and its password" in seen["message"]
        assert registry.asked == []
        with running_proxy(tmp_path / "proxy", port) as proxy:
            cluster.wait_release("1.1.0")
            address = image.partition("/")[0]
            assert f"CONNECT {address}" in proxy.asked
            upstream = f"http://localhost:{service.server.server_port}/graph"
            spec = {"upstream": upstream, "channel": "stable-1", "desiredUpdate": None}
            cluster.patch("clusterversion", "version", {"spec": spec})
            cluster.wait_condition("RetrievedUpdates", "False", "does not have 1.1.0")
            assert any(one.startswith(f"GET {upstream}?") for one in proxy.asked)
        told = json.dumps(cluster.find("clusterversion", "version")) + process.log.read_text()
        assert PROXY_PASSWORD not in told
        assert "another-word" not in told
    assert cluster.find("configmap", "cargo")["data"] == {"version": "1.1.0"}
