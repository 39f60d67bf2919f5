"""Processes in bubblewrap, or in proot: what they see, what they may not, how they end."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path, PurePosixPath

import pytest
from tests.integration.localcluster.node.processes import (
    ROOT,
    Make,
    command_line,
    maker,
    processes,
    run,
    until_written,
    written,
)
from tests.integration.pods import NAMESPACES, READ_ONLY, needs_bubblewrap, needs_namespaces
from tests.places import ROOT as CLONE

from quarterdeck.localcluster.node.sandbox.arguments import Sandbox, User
from quarterdeck.localcluster.node.sandbox.mounts import Bind
from quarterdeck.localcluster.node.sandbox.process import Ended
from quarterdeck.testing.waiting import eventually_async

pytestmark = needs_bubblewrap


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes a process of a shell script, with the volumes and masks that a test wants."""
    return maker(tmp_path)


@needs_namespaces
async def test_a_process_has_a_name_and_process_numbers_of_its_own(make: Make) -> None:
    ended, output = await run(make("echo $$ $(hostname) $SECRET $HOME; exit 7"))
    assert ended == Ended(7)
    assert output == "1 pod-1 s3cret\n"


async def test_variables_are_not_on_a_command_line(make: Make) -> None:
    """Any user of the machine may read command lines."""
    process = make("echo up; exec sleep 60")
    await process.start()
    try:
        await until_written(process, "up")
        assert process._bubblewrap is not None
        line = command_line(str(process._bubblewrap.pid))
        assert (b"--args" if NAMESPACES else b"keeper.py") in line
        assert not [pid for pid in processes() if b"s3cret" in command_line(pid)]
    finally:
        process.kill()
        await process.ended


async def test_the_host_is_read_only_and_scratch_is_private(make: Make, tmp_path: Path) -> None:
    script = f"touch /etc/x; touch /usr/x; touch /tmp/mine && ls /tmp; ls {tmp_path}"
    _, output = await run(make(script))
    assert output.count(READ_ONLY) == 2
    assert "mine\n" in output
    assert f"cannot access '{tmp_path}'" in output
    assert not os.access("/tmp/mine", os.F_OK)


async def test_a_read_only_root_has_no_scratch(make: Make) -> None:
    _, output = await run(make("touch /tmp/x /run/x", read_only_root=True))
    assert output.count(READ_ONLY) == 2


async def test_no_capabilities(make: Make) -> None:
    """Without them a process could not make the root writable again."""
    _, output = await run(
        make("grep -E 'CapEff|NoNewPrivs' /proc/self/status; mount -o remount,rw /")
    )
    assert "CapEff:\t0000000000000000" in output
    assert "NoNewPrivs:\t1" in output
    assert "denied" in output or "must be superuser" in output


async def test_volumes_at_mount_points_that_the_host_lacks(make: Make, tmp_path: Path) -> None:
    """In /etc, in the root itself, and through /var/run; /etc is whole beside them."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("content\n")
    volumes = [
        Bind(source=str(source), target=PurePosixPath(target), read_only=False)
        for target in ("/etc/quarterdeck/new", "/payload-of-ours", "/var/run/secrets/x")
    ]
    script = "cat /etc/quarterdeck/new/file /payload-of-ours/file /var/run/secrets/x/file; "
    script += "cat /etc/passwd | head -1; touch /etc/y; touch /z; echo new > /payload-of-ours/made"
    ended, output = await run(make(script, volumes=volumes))
    assert ended.code == 0
    assert output.startswith("content\n" * 3 + "root:")
    assert output.count(READ_ONLY) == 2
    assert (source / "made").read_text() == "new\n"


async def test_masked_directories_are_empty(make: Make) -> None:
    hidden = PurePosixPath("/usr/share/doc")
    _, output = await run(make(f"ls -A {hidden}; touch {hidden}/x", masked=[hidden]))
    assert output.count("\n") == 1
    assert READ_ONLY in output


async def test_a_swap_of_a_link_in_a_volume_is_seen_inside(make: Make, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "one").mkdir(parents=True)
    (source / "two").mkdir()
    (source / "link").symlink_to("one")
    bind = Bind(source=str(source), target=PurePosixPath("/tmp/v"))
    process = make(
        "echo up; until [ $(readlink /tmp/v/link) = two ]; do sleep 0.05; done", volumes=[bind]
    )
    await process.start()
    await until_written(process, "up")
    (source / "new").symlink_to("two")
    (source / "new").rename(source / "link")
    assert await asyncio.wait_for(process.ended, 30) == Ended(0)


async def test_signals_reach_the_process_and_its_handler_runs(make: Make) -> None:
    process = make("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done")
    await process.start()
    await until_written(process, "up")
    process.signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.ended, 30) == Ended(3)
    assert "bye" in await written(process)


async def test_a_killed_process_ends_with_137_and_takes_its_children_along(make: Make) -> None:
    process = make("sleep 61.25 & echo up; wait")
    await process.start()
    await until_written(process, "up")
    process.kill()
    assert await asyncio.wait_for(process.ended, 30) == Ended(137)
    assert not [pid for pid in processes() if b"61.25" in command_line(pid)]


async def test_a_program_that_is_not_there_is_a_start_error(make: Make, tmp_path: Path) -> None:
    process = make("")
    process.sandbox = Sandbox(
        command=["no-such-program"],
        hostname="x",
        variables={"PATH": "/usr/bin"},
        mounts=process.sandbox.mounts,
        root=ROOT,
        proot=process.sandbox.proot,
    )
    ended, _ = await run(process)
    assert ended.code == 128
    assert "no-such-program: No such file or directory" in ended.start_error


async def test_all_output_is_there_when_the_process_has_ended(make: Make) -> None:
    ended, output = await run(make("seq 1 20000; echo err >&2"))
    assert ended.code == 0
    lines = output.splitlines()
    assert len(lines) == 20_001
    assert [line for line in lines if line != "err"] == [str(n) for n in range(1, 20_001)]


@pytest.mark.skipif(not ROOT, reason="only root can take another user")
async def test_another_user_and_no_way_back(make: Make) -> None:
    _, output = await run(
        make("id -u; id -g; id -G; grep CapEff /proc/self/status", user=User(1234, 5, (5, 6)))
    )
    assert output == "1234\n5\n5 6\nCapEff:\t0000000000000000\n"


@pytest.mark.skipif(not ROOT, reason="only root can take another user")
async def test_another_user_reaches_the_volumes(make: Make, tmp_path: Path) -> None:
    """The directories that are made on the way to a mount point are open to everybody."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("content\n")
    places = ("/var/run/a/b/c", "/etc/a/b/c", "/a/b/c")
    binds = [Bind(source=str(source), target=PurePosixPath(place)) for place in places]
    script = " ".join(["cat", *(f"{place}/file" for place in places)])
    ended, output = await run(make(script, user=User(1234, 5), volumes=binds))
    assert output == "content\n" * 3
    assert ended.code == 0


async def test_a_command_inside_sees_what_the_container_sees(make: Make) -> None:
    """The same files, variables, process numbers; no more rights."""
    process = make("touch /tmp/mine; exec sleep 60")
    await process.start()
    try:
        script = "until [ -e /tmp/mine ]; do sleep 0.05; done; "
        script += "ls /tmp | grep mine; hostname; echo $SECRET; grep CapEff /proc/self/status; "
        script += "ls -d /proc/[0-9]* | wc -l; exit 4"
        code, output = await process.run_inside(["sh", "-c", script], 30)
        assert code == 4
        lines = output.splitlines()
        name = "pod-1" if NAMESPACES else socket.gethostname()
        assert lines[:4] == ["mine", name, "s3cret", "CapEff:\t0000000000000000"]
        assert not NAMESPACES or int(lines[4]) < 8
        assert await process.run_inside(["sleep", "60"], 0.2) == (128, "no answer within 0.2s")
    finally:
        process.kill()
        await process.ended


async def test_processes_die_with_their_parent(tmp_path: Path) -> None:
    """The agent killed with -9 leaves nothing behind."""
    script = f"""
import asyncio, pathlib
from tests.integration.localcluster.node.processes import maker, until_written
async def main():
    make = maker(pathlib.Path({str(tmp_path)!r}))
    process = make("sleep 61.75 & echo up; sleep 61.75")
    await process.start()
    await until_written(process, "up")
    print("up", flush=True)
    await process.ended
asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE, cwd=CLONE
    )
    assert parent.stdout is not None
    assert await asyncio.wait_for(parent.stdout.readline(), 30) == b"up\n"
    parent.kill()
    await parent.wait()
    # The kernel tells nobody when a stranger's process is gone: look again and again.
    await eventually_async(
        lambda: not any(b"61.75\0" in command_line(pid) for pid in processes()),
        "the process is gone",
        30,
    )
