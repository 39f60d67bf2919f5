"""Images, objects, commands and programs of real nodes, as values."""

from pathlib import Path

from quarterdeck.localcluster.binaries import ALL, REAL_NODES
from quarterdeck.localcluster.binaries.build import build_command, stale_command
from quarterdeck.localcluster.binaries.catalog import CATALOG
from quarterdeck.localcluster.real_nodes import network, objects
from quarterdeck.localcluster.real_nodes.addresses import REGISTRY, RealNode, real_nodes
from quarterdeck.localcluster.real_nodes.first_process import (
    NodeOrder,
    commands,
    decode,
    encode,
)
from quarterdeck.localcluster.real_nodes.images import program_image, pushed_as

ORDER = NodeOrder(
    number=1,
    count=2,
    directory=Path("/state/node-1"),
    programs={name: Path("/bin", name) for name in REAL_NODES},
    network=7,
)


def test_an_order_survives_as_an_argument() -> None:
    assert decode(encode(ORDER)) == ORDER


def test_programs_of_real_nodes_are_built_only_on_request() -> None:
    assert not set(ALL) & set(REAL_NODES)
    assert {program.name for program in CATALOG.programs} >= {*ALL, *REAL_NODES}
    for name in REAL_NODES:
        module = CATALOG.modules / CATALOG.program(name).module
        assert (module / "go.mod").is_file()
        assert (module / "go.sum").is_file()


def test_build_tags_hold_for_the_list_and_the_build() -> None:
    program = CATALOG.program("containerd")
    for command in (
        build_command(Path("/go"), program, Path("/out")),
        stale_command(Path("/go"), program),
    ):
        assert command[command.index("-tags") + 1] == "no_btrfs,no_devmapper,no_zfs"
    assert "-tags" not in build_command(Path("/go"), CATALOG.program("kubelet"), Path("/out"))


def test_the_same_program_gives_the_same_image(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(b"\x7fELF")
    made = program_image(program, "amd64")
    assert made.descriptor == program_image(program, "amd64").descriptor
    target = pushed_as("pause", "1", made)
    assert str(target) == f"{REGISTRY}/pause:1@{made.descriptor.digest}"


def test_coredns_meets_restricted_pod_security() -> None:
    deployment = objects.dns("registry/coredns@sha256:1")[-1][1]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry/coredns@sha256:1"
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_each_node_knows_the_way_to_the_other_nodes_pods() -> None:
    first, second = real_nodes(2)
    inside = network.inner_commands(first, [second])
    assert ["ip", "route", "add", second.pods, "via", second.address] in inside
    outside = network.bridge_commands([first, second])
    assert ["ip", "route", "add", first.pods, "via", first.address] in outside


def test_a_node_gets_its_cable_by_its_process() -> None:
    delete, add, _ = network.outer_commands(RealNode(1), 1)
    assert delete[:3] == ["ip", "link", "delete"]
    assert add[-2:] == ["netns", "1"]


def test_containerd_starts_before_the_kubelet() -> None:
    assert list(commands(RealNode(1), ORDER.programs)) == ["containerd", "kubelet", "kube-proxy"]
