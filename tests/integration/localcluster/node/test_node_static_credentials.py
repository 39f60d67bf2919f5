"""A static pod with a certificate of its own: it speaks to the API server as its own user."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.pods import READ_ONLY, needs_bubblewrap, needs_namespaces

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.static_pods import StaticPodRequest, add_static_pod
from quarterdeck.testing.this_machine import ThisMachine

pytestmark = needs_bubblewrap

USER = "system:quarterdeck:reader"

# Reads what its user may read, tries what it may not, and looks for the cluster's own keys.
SCRIPT = """
import asyncio, os, pathlib, time
from quarterdeck.api.meta import NODES, SECRETS
from quarterdeck.kube import Client, KubeError, load_kubeconfig

async def main():
    async with Client(load_kubeconfig("/credentials/kubeconfig")) as client:
        while True:
            try:
                print("node", (await client.get(NODES, "this-machine"))["metadata"]["name"])
                break
            except KubeError as error:
                print("not yet", error)
                await asyncio.sleep(0.5)
        try:
            await client.get(SECRETS, "any", "default")
        except KubeError as error:
            print("refused", error)
    state = pathlib.Path(os.environ["STATE"])
    print("keys", [path.exists() for path in (state / "kubeconfig", state / "pki" / "ca.key")])
    try:
        pathlib.Path("/credentials/kubeconfig").write_text("")
    except OSError as error:
        print("write", error.strerror)
    print("done", os.getuid(), flush=True)
    time.sleep(1000)

asyncio.run(main())
"""


def manifest(
    path: Path, name: str, command: list[str], *, state: Path | str = "", **context: Any
) -> Path:
    main = {
        "name": "main",
        "image": "quarterdeck",
        "command": command,
        "env": [{"name": "STATE", "value": str(state)}],
        "volumeMounts": [
            {"name": "credentials", "mountPath": "/credentials", "readOnly": True},
        ],
    }
    volumes = [{"name": "credentials", "hostPath": {"path": "/etc/kubernetes/reader"}}]
    spec = {
        "containers": [main],
        "volumes": volumes,
        "securityContext": context,
        "terminationGracePeriodSeconds": 0,
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    path.write_text(yaml.safe_dump(pod))
    return path


def wait_until_there(node: ThisMachine, name: str, *, there: bool = True) -> None:
    def names() -> list[str]:
        return [pod["metadata"]["name"] for pod in node.list("pods")]

    node.wait(names, lambda seen: (f"{name}-this-machine" in seen) is there)


@pytest.fixture
def reader(node_agent: ControlPlane) -> Iterator[str]:
    """A name for the pod, whose user may read nodes; nothing of it is left."""
    plane, name = node_agent, "reader"
    plane.kubectl("create", "clusterrole", "reader", "--verb=get", "--resource=nodes")
    plane.kubectl(
        "create", "clusterrolebinding", "reader", "--clusterrole=reader", f"--user={USER}"
    )
    yield name
    (plane.layout.manifests / f"{name}.yaml").unlink()
    (plane.layout.credentials_of(name) / "kubeconfig").unlink()
    wait_until_there(ThisMachine(plane, "default"), name, there=False)
    plane.kubectl("delete", "clusterrole,clusterrolebinding", "reader")


def test_a_static_pod_is_the_user_of_its_certificate_and_no_more(
    node_agent: ControlPlane, reader: str, tmp_path: Path
) -> None:
    plane, node = node_agent, ThisMachine(node_agent, "default")
    command = ["python", "-uc", SCRIPT]
    file = manifest(tmp_path / "pod.yaml", reader, command, state=plane.layout.root)
    plane.add_static_pod(StaticPodRequest(manifest=file, user=USER))
    wait_until_there(node, reader)
    lines = node.wait_logged(f"{reader}-this-machine", "done").splitlines()
    assert "node this-machine" in lines
    (refused,) = [line for line in lines if line.startswith("refused")]
    assert f'User "{USER}" cannot get resource "secrets"' in refused
    assert "keys [False, False]" in lines
    assert f"write {READ_ONLY}" in lines
    written = plane.layout.credentials_of(reader) / "kubeconfig"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


@needs_namespaces
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another user")
def test_a_static_pod_of_another_user_can_read_its_credentials(
    node_agent: ControlPlane, reader: str, tmp_path: Path
) -> None:
    """And only they can: the file is theirs, beside the rest of the state, which is ours."""
    plane, node = node_agent, ThisMachine(node_agent, "default")
    script = "grep -c client-key-data /credentials/kubeconfig; echo done $(id -u); sleep 1000"
    file = manifest(tmp_path / "pod.yaml", reader, ["sh", "-c", script], runAsUser=4321)
    plane.add_static_pod(StaticPodRequest(manifest=file, user=USER))
    wait_until_there(node, reader)
    assert node.wait_logged(f"{reader}-this-machine", "done") == "1\ndone 4321\n"
    written = plane.layout.credentials_of(reader) / "kubeconfig"
    assert (written.stat().st_uid, stat.S_IMODE(written.stat().st_mode)) == (4321, 0o600)


def test_each_start_renews_the_certificate_and_leaves_the_pod_as_it_is(
    node_agent: ControlPlane, tmp_path: Path
) -> None:
    """The file that the node reads is the same, so that it is the same pod."""
    setup = node_agent.setup
    wanted = StaticPodRequest(
        manifest=manifest(tmp_path / "pod.yaml", "renewed", ["true"]), user=USER
    )
    written = setup.layout.credentials_of("renewed") / "kubeconfig"
    try:
        file = add_static_pod(setup, wanted)
        first = (file.read_bytes(), written.read_bytes())
        add_static_pod(setup, wanted)
        assert file.read_bytes() == first[0]
        assert written.read_bytes() != first[1]
    finally:
        file.unlink()
        written.unlink()
