"""The commands of docs/install.md for the staleness checker as a static pod.

They are run for a node whose directory is one of the test; its checker is a process here.
"""

import stat
from pathlib import Path

import pytest
import yaml
from tests.documents import Shell
from tests.integration.install.test_install_docs import documented, like
from tests.integration.operators.staleness.board import Board

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.testing.operator_process import OwnOperators

HEADING = "The staleness checker as a static pod"
MANIFESTS = "/etc/kubernetes/manifests"
RELEASE = "registry.example.test/quarterdeck@sha256:" + "0123456789abcdef" * 4
APPROVER = ("namespace", "quarterdeck-certificates")


@pytest.mark.slow
def test_the_checker_is_put_on_a_node_as_it_is_told(
    control_plane: ControlPlane,
    crds: list[str],
    clean_cluster: None,
    control_plane_binaries: Binaries,
    own_operators: OwnOperators,
    tmp_path: Path,
) -> None:
    """It signs in by the certificate of the page, from the kubeconfig of the page."""
    node, manifests = tmp_path / "node", tmp_path / "manifests"
    manifests.mkdir()
    environment = {"KUBECONFIG": str(control_plane.kubeconfig), "RELEASE": RELEASE}
    run = Shell(tmp_path, environment, control_plane_binaries)
    for command, shown in documented(HEADING):
        if command.startswith("export DIRECTORY="):
            command = f"export DIRECTORY={node}"
        if command.startswith("chown"):
            continue  # Not everybody may do that, and the checker has our own user here.
        command = command.replace(MANIFESTS, str(manifests))
        command = command.replace("https://localhost:6443", control_plane.url)
        done = run.succeed(command)
        assert like(shown, done.stdout), f"{command}: {done.stdout}"
    try:
        assert sorted(one.name for one in node.iterdir()) == ["ca.crt", "client.pem", "kubeconfig"]
        assert {stat.S_IMODE(one.stat().st_mode) for one in (node, node / "client.pem")} == {
            0o700,
            0o600,
        }
        _check_manifest(manifests / "quarterdeck-staleness.yaml", node)
        board = Board(control_plane)
        board.create("dead")
        options = ("--interval=1s", "--grace=0s", "--renew-certificate=90d")
        start = own_operators(control_plane, "staleness", account=node / "kubeconfig")
        checker = start(*options)
        board.wait_given_up("dead")
        assert checker.get("/readyz")[0] == 200
    finally:
        control_plane.kubectl("delete", "certificatesigningrequests", "--all")
        control_plane.kubectl("delete", *APPROVER, "--wait=false")


def _check_manifest(file: Path, node: Path) -> None:
    pod = yaml.safe_load(file.read_text())
    (container,) = pod["spec"]["containers"]
    assert container["image"] == RELEASE
    assert "--kubeconfig=/etc/quarterdeck/staleness/kubeconfig" in container["args"]
    assert "--renew-certificate=90d" in container["args"]
    # Only names: the directory has another path in the pod.
    user = yaml.safe_load((node / "kubeconfig").read_text())["users"][0]["user"]
    assert user == {"client-certificate": "client.pem", "client-key": "client.pem"}
