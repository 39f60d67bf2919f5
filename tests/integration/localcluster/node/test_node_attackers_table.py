"""What a pod can and cannot do, by the table in `docs/local-cluster.md`: each line has a test."""

import asyncio
from pathlib import Path, PurePosixPath

import pytest
from tests.integration.localcluster.node.processes import Make, maker, run
from tests.integration.pods import NAMESPACES, READ_ONLY, needs_bubblewrap, needs_namespaces
from tests.places import ROOT

from quarterdeck.localcluster.node.sandbox.isolation import landlock_version
from quarterdeck.localcluster.node.sandbox.mounts import Bind

pytestmark = needs_bubblewrap

TESTS = {
    "to write to the machine's files": (
        "test_node_process.py::test_the_host_is_read_only_and_scratch_is_private",
        "test_node_attackers_table.py::test_a_pod_writes_to_a_host_path_unless_it_is_read_only",
        "test_node_attackers_table.py::test_a_pod_writes_only_to_the_host_path_that_is_writable",
        "test_node_ways_out.py::test_a_pod_in_proot_gives_no_program_another_user",
    ),
    "to read the machine's files": (
        "test_node_attackers_table.py::test_a_pod_reads_the_machines_files",
    ),
    "to read the cluster's keys": (
        "test_node_hostile_pods.py::test_the_state_directory_cannot_be_mounted",
        "test_node_process.py::test_masked_directories_are_empty",
        "test_node_volumes.py::test_host_paths_never_show_what_is_hidden",
        "test_node_places.py::test_other_places",
    ),
    "to leave its files": (
        "test_node_ways_out.py::test_a_working_directory_is_never_the_machines",
        "test_node_ways_out.py::test_a_link_at_a_mount_point_makes_nothing_on_the_machine",
        "test_node_ways_out.py::test_a_mount_that_a_link_leads_elsewhere_does_not_start",
    ),
    "to swap the directory": (
        "test_node_swapped.py::test_a_sub_path_that_is_swapped_never_shows_the_outside",
        "test_node_swapped.py::test_a_mount_that_is_not_what_was_opened_does_not_start",
    ),
    "to have the node load a library": (
        "test_node_rights.py::test_variables_for_the_loader_reach_only_the_command",
        "test_node_rights.py::test_a_program_of_the_pods_own_is_not_run_on_the_way_in",
        "test_node_rights.py::test_a_volume_over_the_loaders_list_reaches_only_the_command",
    ),
    "to gain capabilities": (
        "test_node_process.py::test_no_capabilities",
        "test_node_process.py::test_another_user_and_no_way_back",
        "test_node_ways_out.py::test_a_pod_in_proot_gives_no_program_another_user",
    ),
    "to write options of bubblewrap": (
        "test_node_hostile_pods.py::test_a_config_map_cannot_write_options_of_bubblewrap",
        "test_node_hostile_pods.py::test_a_nul_byte_is_refused_by_its_field",
    ),
    "to see or signal processes": (
        "test_node_attackers_table.py::test_a_pod_neither_sees_nor_signals_other_processes",
        "test_node_attackers_table.py::"
        "test_a_pod_in_proot_signals_no_other_process_and_reads_no_memory",
        "test_node_volumes.py::test_a_host_path_shows_no_processes",
    ),
    "to use up the agent's memory": (
        "test_node_rights.py::test_of_a_probes_output_the_beginning_is_kept",
    ),
    "to stop its probes": (
        "test_node_ways_out.py::test_what_a_probe_leaves_behind_does_not_hold_up_the_next",
        "test_node_volumes.py::test_a_tree_that_is_deeper_than_any_path_is_removed",
    ),
    "to use up memory": ("test_node_parts.py::test_unsupported",),
    "to reach the network": (
        "test_node_attackers_table.py::test_a_pod_reaches_what_listens_on_the_machine",
    ),
}
"""The tests that show each line of the table, by its beginning."""


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return maker(tmp_path)


def test_each_line_of_the_table_has_a_test() -> None:
    page = ROOT / "docs" / "local-cluster.md"
    table = page.read_text().split("| the pod tries |")[1].split("\n\n")[0]
    lines = [line.removeprefix("| ") for line in table.splitlines()[2:]]
    assert len(lines) == len(TESTS)
    for line, (beginning, tests) in zip(lines, TESTS.items(), strict=True):
        assert line.startswith(beginning)
        for test in tests:
            file, _, name = test.partition("::")
            (found,) = (ROOT / "tests").rglob(f"localcluster/node/{file}")
            assert f"def {name}(" in found.read_text(), test


async def test_a_pod_reads_the_machines_files(make: Make) -> None:
    ended, output = await run(make("cat /etc/passwd"))
    assert ended.code == 0
    assert "root:" in output


@needs_namespaces
async def test_a_pod_writes_to_a_host_path_unless_it_is_read_only(
    make: Make, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    binds = [
        Bind(source=str(shared), target=PurePosixPath("/rw"), read_only=False),
        Bind(source=str(shared), target=PurePosixPath("/ro")),
    ]
    _, output = await run(make("touch /rw/one; touch /ro/two; ls /ro", volumes=binds))
    assert "Read-only file system" in output
    assert output.endswith("one\n")


async def test_a_pod_writes_only_to_the_host_path_that_is_writable(
    make: Make, tmp_path: Path
) -> None:
    """In proot, too, as long as it is not the same directory."""
    for name in ("rw", "ro"):
        (tmp_path / name).mkdir()
    binds = [
        Bind(source=str(tmp_path / "rw"), target=PurePosixPath("/rw"), read_only=False),
        Bind(source=str(tmp_path / "ro"), target=PurePosixPath("/ro")),
    ]
    _, output = await run(make("touch /rw/one; touch /ro/two; ls /rw /ro", volumes=binds))
    assert READ_ONLY in output
    assert "one\n" in output
    assert "two\n" not in output


@pytest.mark.skipif(NAMESPACES, reason="pods run in namespaces here")
@pytest.mark.skipif(landlock_version() < 6, reason="the kernel does not bound signals")
async def test_a_pod_in_proot_signals_no_other_process_and_reads_no_memory(make: Make) -> None:
    other = await asyncio.create_subprocess_exec("/bin/sleep", "60", env={"KEY": "s3cret"})
    try:
        script = f"kill -9 {other.pid}; cat /proc/{other.pid}/environ"
        _, output = await run(make(script))
        assert "Operation not permitted" in output
        assert "Permission denied" in output
        assert "s3cret" not in output
        assert other.returncode is None
    finally:
        other.kill()
        await other.wait()


@needs_namespaces
async def test_a_pod_neither_sees_nor_signals_other_processes(make: Make) -> None:
    other = await asyncio.create_subprocess_exec("/bin/sleep", "60")
    try:
        script = f"kill -9 {other.pid}; ls -d /proc/[0-9]* | wc -l; mount -t proc proc /tmp"
        _, output = await run(make(script))
        assert "No such process" in output
        assert other.returncode is None
        assert any(line.isdecimal() and int(line) < 8 for line in output.splitlines())
    finally:
        other.kill()
        await other.wait()


async def test_a_pod_reaches_what_listens_on_the_machine(make: Make) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    ended, _ = await run(make(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"]))
    server.close()
    assert ended.code == 0
