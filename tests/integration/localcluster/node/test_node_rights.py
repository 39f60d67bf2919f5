"""Nothing of a pod reaches a program that has more rights than the pod.

Neither its variables (a library for the loader, a PATH) nor its volumes (which may lie over any
program and library of the machine), when it is started as another user and when it is entered.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path, PurePosixPath

import pytest
from tests.integration.localcluster.node.processes import (
    ROOT,
    Make,
    maker,
    run,
    until_written,
    written,
)
from tests.integration.pods import NAMESPACES, needs_bubblewrap

from quarterdeck.localcluster.node.sandbox.arguments import User
from quarterdeck.localcluster.node.sandbox.entry import ContainerEntry, command_inside, variables_of
from quarterdeck.localcluster.node.sandbox.mounts import Bind
from quarterdeck.localcluster.node.sandbox.process import ContainerProcess
from quarterdeck.localcluster.status import ProcessIdentity

pytestmark = needs_bubblewrap
needs_root = pytest.mark.skipif(not ROOT, reason="only root can take another user")

USER = User(1234, 1234) if ROOT else None
NO_RIGHTS = "CapEff:\t0000000000000000"

Inside = Callable[[ContainerProcess, list[str]], Awaitable[tuple[int, str]]]


async def by_probe(process: ContainerProcess, command: list[str]) -> tuple[int, str]:
    return await process.run_inside(command, 30)


async def by_local_exec(process: ContainerProcess, command: list[str]) -> tuple[int, str]:
    assert process.pid is not None
    await process._until_set_up(process.pid)
    identity = ProcessIdentity.of(process.pid)
    assert identity is not None
    sandbox = process.sandbox
    entry = ContainerEntry(process=identity, root=ROOT, user=sandbox.user, proot=sandbox.proot)
    words, variables = command_inside(entry, command)
    orders = open_orders()
    try:
        done = await asyncio.to_thread(
            subprocess.run,
            words,
            env=variables,
            pass_fds=orders,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        for order in orders:
            os.close(order)
    return done.returncode, (done.stdout + done.stderr).strip()


def open_orders() -> list[int]:
    """The descriptors of orders, and of processes that they name, which are to be inherited."""
    links = {name: Path("/proc/self/fd", name) for name in descriptors()}
    return [
        int(name)
        for name, link in links.items()
        if link.is_symlink()
        and any(kind in str(link.readlink()) for kind in ("memfd:order", "pidfd"))
        and os.get_inheritable(int(name))
    ]


both_ways = pytest.mark.parametrize(
    "inside", [pytest.param(by_probe, id="probe"), pytest.param(by_local_exec, id="local exec")]
)


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes processes, and ends those that are left."""
    made: list[ContainerProcess] = []
    of_test = maker(tmp_path)

    def make_one(*words: object, **more: object) -> ContainerProcess:
        made.append(of_test(*words, **more))
        return made[-1]

    yield make_one
    for process in made:
        process.kill()
        await process.ended


@both_ways
async def test_variables_for_the_loader_reach_only_the_command(
    make: Make, tmp_path: Path, inside: Inside
) -> None:
    """The loader of any program that runs outside would write a file where the variable says."""
    traces = tmp_path / "traces"
    traces.mkdir()
    variables = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(traces / "loader")}
    process = make("echo up; exec sleep 60", variables=variables, user=USER)
    await process.start()
    await until_written(process, "up")
    code, output = await inside(process, ["/bin/sh", "-c", "echo $LD_DEBUG"])
    assert (code, output.splitlines()[-1:]) == (0, ["files"])
    assert not list(traces.iterdir())


async def test_a_command_has_the_variables_of_a_container_that_executes_another_program(
    make: Make, tmp_path: Path
) -> None:
    """In the middle of an exec, the kernel shows no environment of the process."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "again").write_text("exec /bin/sh /v/again\n")
    process = make(
        "echo up; exec /bin/sh /v/again",
        variables={"WANTED": "value"},
        volumes=[Bind(source=str(programs), target=PurePosixPath("/v"))],
        user=USER,
    )
    await process.start()
    await until_written(process, "up")
    assert process.pid is not None
    seen = [variables_of(process.pid).get(b"WANTED") for _ in range(200)]
    assert set(seen) == {b"value"}
    for _ in range(8):
        assert await by_local_exec(process, ["/bin/sh", "-c", "echo $WANTED"]) == (0, "value")


@both_ways
async def test_a_program_of_the_pods_own_is_not_run_on_the_way_in(
    make: Make, tmp_path: Path, inside: Inside
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("nsenter", "setpriv", "env", "python", "python3"):
        (programs / name).write_text("#!/bin/sh\necho hijacked by $0\n")
        (programs / name).chmod(0o755)
    process = make(
        "echo up; exec /bin/sleep 60",
        variables={"PATH": "/v:/usr/bin:/bin"},
        volumes=[Bind(source=str(programs), target=PurePosixPath("/v"))],
        user=USER,
    )
    await process.start()
    await until_written(process, "up")
    assert await inside(process, ["grep", "CapEff", "/proc/self/status"]) == (0, NO_RIGHTS)
    # The container's PATH is the command's own, as it should be.
    assert await inside(process, ["setpriv"]) == (0, "hijacked by /v/setpriv")


@pytest.mark.skipif(
    not NAMESPACES, reason="in proot what starts the command has the pod's view and rights, too"
)
@both_ways
async def test_a_volume_over_the_loaders_list_reaches_only_the_command(
    make: Make, tmp_path: Path, inside: Inside
) -> None:
    """The loader complains once for each program that it starts with a library that is missing."""
    preload = tmp_path / "ld.so.preload"
    preload.write_text("/v/library-of-the-pod.so\n")
    volume = Bind(source=str(preload), target=PurePosixPath("/etc/ld.so.preload"), directory=False)
    process = make(["/bin/sleep", "60"], volumes=[volume], user=USER)
    await process.start()
    code, output = await inside(process, ["/bin/true"])
    assert code == 0
    assert output.count("library-of-the-pod.so") == 1
    process.kill()
    await process.ended
    _, output = await run(make(["/bin/true"], volumes=[volume], user=USER))
    assert output.count("library-of-the-pod.so") == 1


@needs_root
async def test_another_user_has_the_containers_view_from_its_first_moment(
    make: Make, tmp_path: Path
) -> None:
    """The machine's own view, from which its user is changed, cannot be got back."""
    process = make(
        "ls -Ldi / /proc/1/root /proc/self/cwd; cat /proc/1/comm; ls /proc/self/fd; pwd",
        user=User(1234, 5),
        masked=[PurePosixPath("/usr/share/doc")],
    )
    ended, output = await run(process)
    lines = output.splitlines()
    assert ended.code == 0
    assert len({line.split()[0] for line in lines[:3]}) == 1
    assert lines[3:] == ["sh", "0", "1", "2", "3", "/"]


@both_ways
async def test_a_command_that_is_not_there(make: Make, inside: Inside) -> None:
    process = make("echo up; exec sleep 60", user=USER, variables={"PATH": "/usr/bin:/bin"})
    await process.start()
    await until_written(process, "up")
    code, output = await inside(process, ["no-such-program"])
    assert (code, output) == (127, "no-such-program: No such file or directory")
    assert (await inside(process, ["/etc/passwd"]))[0] == 126
    assert (await inside(process, ["sh", "-c", "kill -9 $$"]))[0] == 137


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


async def test_a_word_that_no_process_can_have_leaves_none_behind(make: Make) -> None:
    """Nothing is registered as running that cannot be ended."""
    before = descriptors()
    process = make(["sh", "-c", "echo \0"])
    ended, _ = await run(process)
    assert ended.code == 128
    assert "null byte" in ended.start_error
    assert descriptors() == before
    process.kill()


@pytest.mark.parametrize("lines", [10, 200_000])
async def test_of_a_probes_output_the_beginning_is_kept(make: Make, lines: int) -> None:
    """Ten kilobytes; the rest is read and dropped, and the exit code is the command's own."""
    process = make("echo up; exec sleep 60", user=USER)
    await process.start()
    code, output = await process.run_inside(["sh", "-c", f"seq 1 {lines}; exit 3"], 60)
    whole = "".join(f"{number}\n" for number in range(1, lines + 1))
    assert code == 3
    assert output == whole[: 10 * 1024].strip()


@needs_root
@pytest.mark.parametrize(
    ("user", "groups"),
    [
        pytest.param(User(0, 5, (6,)), "0\n5\n5 6\n", id="groups without a user"),
        pytest.param(User(1234, 0, (7, 8)), "1234\n0\n0 7 8\n", id="a user with groups"),
    ],
)
async def test_groups(make: Make, user: User, groups: str) -> None:
    script = "id -u; id -g; id -G"
    process = make(f"{script}; grep CapEff /proc/self/status; sleep 60", user=user)
    await process.start()
    await until_written(process, NO_RIGHTS)
    assert await written(process) == f"{groups}{NO_RIGHTS}\n"
    assert await process.run_inside(["sh", "-c", script], 30) == (0, groups.strip())
