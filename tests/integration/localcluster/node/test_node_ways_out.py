"""Ways out of a container that were found by trying, and that are shut: each was open once."""

import asyncio
from pathlib import Path, PurePosixPath

import msgspec
import pytest
from tests.integration.localcluster.node.processes import (
    ROOT,
    Make,
    command_line,
    maker,
    processes,
    run,
    until_written,
)
from tests.integration.pods import NAMESPACES, needs_bubblewrap, needs_namespaces

from quarterdeck.localcluster.node.images import this_installation
from quarterdeck.localcluster.node.pod.probes import ProbeAnswer, make_probe
from quarterdeck.localcluster.node.sandbox.arguments import User
from quarterdeck.localcluster.node.sandbox.isolation import landlock_version
from quarterdeck.localcluster.node.sandbox.mounts import Bind
from quarterdeck.localcluster.node.sandbox.process import ContainerProcess
from quarterdeck.localcluster.node.volumes.opened import open_path

pytestmark = needs_bubblewrap

USERS = [pytest.param(None, id="us")]
if ROOT:
    USERS += [
        pytest.param(User(0, 0, (7,)), id="a group"),
        pytest.param(User(1234, 1234), id="1234"),
    ]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return maker(tmp_path)


def in_directory(process: ContainerProcess, directory: str) -> ContainerProcess:
    process.sandbox = msgspec.structs.replace(process.sandbox, working_directory=directory)
    return process


@needs_namespaces
@pytest.mark.parametrize("user", USERS)
async def test_a_working_directory_is_never_the_machines(make: Make, user: User | None) -> None:
    """What starts a container has descriptors and a directory of the machine's until it begins."""
    hidden = PurePosixPath("/usr/share/doc")
    kept = this_installation().directories
    for name in ("cwd", "root", *(f"fd/{number}" for number in range(3, 12))):
        process = make("ls ./usr/share/doc; ls -d ./[0-9]*", user=user, masked=[hidden], kept=kept)
        ended, output = await run(in_directory(process, f"/proc/self/{name}"))
        assert ended.code != 0
        assert "cannot access './[0-9]*'" in output or "No such file" in output
        assert "\n" not in output.strip()


@pytest.mark.parametrize("user", USERS)
async def test_a_working_directory(make: Make, user: User | None) -> None:
    kept = this_installation().directories
    ended, output = await run(in_directory(make("pwd", user=user, kept=kept), "/usr/share"))
    assert (ended.code, output) == (0, "/usr/share\n")
    ended, output = await run(in_directory(make("pwd", user=user, kept=kept), "/no/such"))
    assert ended.code == 128
    if NAMESPACES:
        assert output == "workingDir /no/such: No such file or directory\n"


@needs_namespaces
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("kind", ["file", "directory"])
async def test_a_link_at_a_mount_point_makes_nothing_on_the_machine(
    make: Make, tmp_path: Path, user: User | None, kind: str
) -> None:
    """bubblewrap made the mount point where the link led, with all its rights."""
    volume, machine, config = (tmp_path / name for name in ("volume", "machine", "config"))
    volume.mkdir()
    machine.mkdir()
    config.write_text("content\n")
    (volume / "link").symlink_to(f"/oldroot{machine}" + ("/made" if kind == "file" else ""))
    source, target = (config, "link") if kind == "file" else (volume, "link/made")
    binds = [
        Bind(source=str(volume), target=PurePosixPath("/v"), read_only=False),
        Bind(source=str(source), target=PurePosixPath("/v", target), directory=kind != "file"),
    ]
    ended, _ = await run(make("true", user=user, volumes=binds))
    assert "Read-only file system" in ended.start_error
    assert not list(machine.iterdir())


@pytest.mark.parametrize("user", USERS)
async def test_a_mount_in_a_volume(make: Make, tmp_path: Path, user: User | None) -> None:
    volume, config = tmp_path / "volume", tmp_path / "config"
    volume.mkdir()
    volume.chmod(0o777)
    config.write_text("content\n")
    binds = [
        Bind(source=str(volume), target=PurePosixPath("/v"), read_only=False),
        Bind(source=str(config), target=PurePosixPath("/v/file"), directory=False),
    ]
    script = "cat /v/file; echo > /dev/null; echo x > /v/made; echo x > /v/file; ls /dev/shm"
    _, output = await run(make(script, user=user, volumes=binds))
    *_, read, refused = output.splitlines()  # proot says before that it makes no mount points
    assert read == "content"
    assert "/v/file" in refused, "and no other write"
    assert (volume / "made").read_text() == "x\n"
    assert config.read_text() == "content\n"


@needs_namespaces
async def test_a_container_with_a_mount_in_a_volume_is_entered(make: Make, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    binds = [
        Bind(source=str(volume), target=PurePosixPath("/v"), read_only=False),
        Bind(source=str(volume), target=PurePosixPath("/v/inner")),
    ]
    process = make("touch /v/inner/x || echo up; exec sleep 60", volumes=binds)
    await process.start()
    try:
        await until_written(process, "up")
        assert await process.run_inside(["ls", "/v"], 30) == (0, "inner")
    finally:
        process.kill()
        assert (await process.ended).code == 137


@needs_namespaces
async def test_a_mount_that_a_link_leads_elsewhere_does_not_start(
    make: Make, tmp_path: Path
) -> None:
    """Else a volume that is to be read-only could be left writable, by a link that changes."""
    volume, config = tmp_path / "volume", tmp_path / "config"
    volume.mkdir()
    config.mkdir()
    (volume / "link").symlink_to("/newroot/tmp")
    binds = [
        Bind(source=str(volume), target=PurePosixPath("/v"), read_only=False, replaceable=False),
        Bind(
            source=str(config),
            target=PurePosixPath("/v/link"),
            opened=open_path(config),
            replaceable=False,
        ),
    ]
    ended, output = await run(make("echo ran", volumes=binds))
    assert ended.code == 128
    assert "/v/link" in ended.start_error
    assert output == ""


async def test_output_that_another_process_goes_on_with_does_not_hold_the_agent(
    make: Make, tmp_path: Path
) -> None:
    """A container can hand its output to another one, through a volume they share."""
    volume = tmp_path / "volume"
    volume.mkdir()
    binds = [Bind(source=str(volume), target=PurePosixPath("/v"), read_only=False)]
    kept = this_installation().directories
    takes = """
import os, socket
server = socket.socket(socket.AF_UNIX); server.bind("/v/s"); server.listen()
print("up", flush=True)
_, handed, _, _ = socket.recv_fds(server.accept()[0], 1, 1)
while True: os.write(handed[0], b"x\\n" * 30000)
"""
    hands = """
import socket, time
client = socket.socket(socket.AF_UNIX); client.connect("/v/s")
socket.send_fds(client, [b"x"], [1]); time.sleep(1)
"""
    python = "/usr/bin/python3"
    other = make([python, "-c", takes], volumes=binds, kept=kept)
    await other.start()
    try:
        await until_written(other, "up")
        process = make([python, "-c", hands], volumes=binds, kept=kept)
        await process.start()
        assert (await asyncio.wait_for(process.ended, 30)).code == 0
    finally:
        other.kill()
        await other.ended


async def probe(process: ContainerProcess, script: str, seconds: int) -> ProbeAnswer:
    asked = {"exec": {"command": ["sh", "-c", script]}, "timeoutSeconds": seconds}
    async with asyncio.timeout(40):
        return await make_probe(asked, {}, "", process.run_inside)


async def test_what_a_probe_leaves_behind_does_not_hold_up_the_next(make: Make) -> None:
    """It keeps the probe's output open: the end of that was waited for, for ever."""
    process = make("echo up; exec sleep 60")
    await process.start()
    try:
        await until_written(process, "up")
        outcome = await probe(process, "setsid sleep 61.125 & sleep 60", 1 if NAMESPACES else 4)
        assert "no answer" in outcome.message
        assert (await probe(process, "setsid sleep 61.125 & echo well", 30)).ok
        if NAMESPACES:  # the command itself is no zombie, whose first process waits for none
            _, output = await process.run_inside(["sh", "-c", "cat /proc/[0-9]*/stat"], 10)
            assert "(sh) Z" not in output
    finally:
        process.kill()
        await process.ended


@pytest.mark.skipif(NAMESPACES, reason="pods run in namespaces here")
async def test_a_pod_in_proot_gives_no_program_another_user(make: Make, tmp_path: Path) -> None:
    """Landlock does not know modes; a program of the machine's belongs to whom the pod runs as."""
    program = tmp_path / "volume" / "program"
    program.parent.mkdir()
    program.touch()
    binds = [Bind(source=str(program.parent), target=PurePosixPath("/v"))]
    _, output = await run(make("chmod 4755 /v/program; chmod 2755 /v/program", volumes=binds))
    assert output.count("Operation not permitted") == 2
    assert program.stat().st_mode & 0o6000 == 0


@pytest.mark.skipif(NAMESPACES, reason="pods run in namespaces here")
@pytest.mark.skipif(landlock_version() < 1, reason="the kernel offers no Landlock")
@pytest.mark.parametrize("report", ["nonsense", "child-pid 1", "exit-code x"])
async def test_a_report_that_a_pod_makes_up_ends_it_and_nothing_else(
    make: Make, report: str
) -> None:
    """Its processes can open the pipe by which the first of them reports."""
    script = f"for f in /proc/$PPID/fd/*; do [ -p $f ] && echo {report} > $f; done"
    process = make(f"({script}) 2>/dev/null; exec sleep 61.375")
    await run(process)
    assert not [pid for pid in processes() if b"61.375" in command_line(pid)]
