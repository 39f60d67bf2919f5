"""Child processes: their identity, their end, their logs, and that none outlives its parent."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.localcluster.process import ComponentProcess, Spawner, how_it_ended, tail
from quarterdeck.localcluster.status import ProcessIdentity
from quarterdeck.testing.waiting import eventually

LIMIT = 30.0


@pytest.fixture
def spawner() -> Iterator[Spawner]:
    spawner = Spawner()
    yield spawner
    spawner.close()


def process(spawner: Spawner, tmp_path: Path, *argv: str) -> ComponentProcess:
    log = tmp_path / "child.log"
    return ComponentProcess("child", argv, spawner=spawner, environment={"WORD": "hello"}, log=log)


def test_a_process_writes_to_its_log_and_sees_only_its_environment(
    spawner: Spawner, tmp_path: Path
) -> None:
    child = process(spawner, tmp_path, "/usr/bin/env")
    child.start()
    eventually(lambda: child.exit_code is not None, "the child has ended")
    assert child.exit_code == 0
    assert "WORD=hello" in child.last_lines().splitlines()
    assert "HOME=" not in child.last_lines()


def test_a_second_start_keeps_the_log_of_the_first(spawner: Spawner, tmp_path: Path) -> None:
    child = process(spawner, tmp_path, "/bin/sh", "-c", "echo $$")
    for _ in range(2):
        child.start()
        eventually(lambda: child.exit_code is not None, "the child has ended")
    assert tail(tmp_path / "child.previous.log") != tail(tmp_path / "child.log")


def test_stop_asks_first(spawner: Spawner, tmp_path: Path) -> None:
    """A program that ends in good order on SIGTERM is not killed, even when it was paused."""
    child = process(
        spawner,
        tmp_path,
        "/bin/sh",
        "-c",
        "trap 'exit 7' TERM; echo up; while :; do sleep .1; done",
    )
    child.start()
    eventually(lambda: child.last_lines() == "up", "the child is up")
    child.pause()
    child.stop(grace=LIMIT)
    assert child.exit_code == 7


def test_stop_kills_what_does_not_listen(spawner: Spawner, tmp_path: Path) -> None:
    child = process(spawner, tmp_path, "/bin/sh", "-c", "trap '' TERM; echo up; exec sleep 1000")
    child.start()
    eventually(lambda: child.last_lines() == "up", "the child is up")
    child.stop(grace=0.1)
    assert child.exit_code == -signal.SIGKILL


def test_a_stopped_process_cannot_be_paused(spawner: Spawner, tmp_path: Path) -> None:
    child = process(spawner, tmp_path, "/bin/true")
    with pytest.raises(ProcessLookupError, match="child is not running"):
        child.pause()


def test_a_process_survives_the_thread_that_asked_for_it(spawner: Spawner, tmp_path: Path) -> None:
    """The kernel counts the forking thread as the parent; that must not be the caller's."""
    child = process(spawner, tmp_path, "/bin/sleep", "1000")
    thread = threading.Thread(target=child.start)
    thread.start()
    thread.join()
    marker = process(spawner, tmp_path / "..", "/bin/true")
    marker.start()
    eventually(
        lambda: marker.exit_code is not None, "the child has ended"
    )  # had a signal been sent, it were there now
    assert child.pid is not None
    child.kill()


PARENT = """
import sys, time
from pathlib import Path
from quarterdeck.localcluster.process import ComponentProcess, Spawner
log = Path(sys.argv[1])
options = {"spawner": Spawner(), "environment": {}, "log": log}
child = ComponentProcess("child", ["/bin/sleep", "1000"], **options)
child.start()
print(child.pid, flush=True)
time.sleep(1000)
"""


def test_no_orphan_after_kill_9(tmp_path: Path) -> None:
    """A parent that is killed, and cannot clean up, takes its child with it."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = ProcessIdentity.of(int(parent.stdout.readline()))
        assert child is not None
        parent.kill()
    eventually(lambda: not child.is_alive, "the child is gone")


def test_a_child_whose_parent_is_gone_already_does_not_start() -> None:
    """The parent may die before the kernel knows what to do then."""
    from quarterdeck.localcluster import die_with_parent

    argv = [sys.executable, die_with_parent.__file__, "1", "/bin/echo", "started"]
    result = subprocess.run(argv, capture_output=True, check=False)
    assert (result.returncode, result.stdout) == (1, b"")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param(3, "ended with exit code 3", id="an exit code is given"),
        pytest.param(-9, "was killed by SIGKILL", id="a signal is named"),
    ],
)
def test_how_it_ended(code: int, words: str) -> None:
    assert how_it_ended(code) == words


def test_tail_gives_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(10_000)))
    assert tail(log, 2) == "line 9998\nline 9999"


def test_tail_of_no_file_is_empty(tmp_path: Path) -> None:
    assert tail(tmp_path / "none") == ""


def test_an_identity_is_alive_until_its_process_ends() -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as child:
        identity = ProcessIdentity.of(child.pid)
        assert identity is not None
        assert identity.is_alive
        child.kill()
        eventually(lambda: not identity.is_alive, "a zombie is gone")  # a zombie is no life
    assert ProcessIdentity.of(child.pid) is None


def test_a_later_process_with_the_same_id_is_another() -> None:
    me = ProcessIdentity.of(os.getpid())
    assert me is not None
    earlier = ProcessIdentity(me.pid, me.started - 1, me.boot)
    assert not earlier.is_alive
    assert not ProcessIdentity(me.pid, me.started, "another boot").is_alive
    assert earlier.end(signal.SIGKILL, 0), "it has ended, so there is nobody to signal"


def test_end_says_whether_the_process_has_ended() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; echo up; exec sleep 1000"]) as child:
        identity = ProcessIdentity.of(child.pid)
        assert identity is not None
        assert not identity.end(signal.SIGCONT, 0.05)
        assert identity.end(signal.SIGKILL, LIMIT)


LEAVES_ONE_BEHIND = (
    "(setsid sleep 1000 >/dev/null 2>&1 & echo $! >$0/left); echo up; exec sleep 1000"
)
"""Its child of a child of its own session: nothing ties it to this program."""


def leaving(spawner: Spawner, tmp_path: Path, script: str) -> ComponentProcess:
    """A program that is ended with all its descendants; it gets a directory as $0."""
    return ComponentProcess(
        "child",
        ("/bin/sh", "-c", script, str(tmp_path)),
        spawner=spawner,
        environment={"PATH": os.defpath},
        log=tmp_path / "child.log",
        with_descendants=True,
    )


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_what_a_program_leaves_behind_is_ended(spawner: Spawner, tmp_path: Path) -> None:
    """While it runs: whoever loses its parent is no longer wanted."""
    child = leaving(spawner, tmp_path, LEAVES_ONE_BEHIND)
    child.start()
    eventually(lambda: child.last_lines() == "up", "the child is up")
    left = int((tmp_path / "left").read_text())
    eventually(lambda: is_gone(left), "what it left behind is ended")
    assert child.pid is not None
    child.kill()


@pytest.mark.parametrize("paused", [False, True])
def test_nothing_is_left_when_the_kill_returns(
    spawner: Spawner, tmp_path: Path, paused: bool
) -> None:
    """A child with a child, of which each would go on without its parent."""
    ignores = "trap '' TERM HUP"
    (tmp_path / "two.sh").write_text(f"{ignores}; echo $$ >$1/two; while :; do sleep 1; done")
    (tmp_path / "one.sh").write_text(
        f"{ignores}; echo $$ >$1/one; setsid sh $1/two.sh $1 & echo up; wait"
    )
    child = leaving(spawner, tmp_path, "setsid sh $0/one.sh $0 & wait")
    child.start()
    eventually(lambda: child.last_lines() == "up", "the grandchild is up")
    eventually(lambda: (tmp_path / "two").exists() and (tmp_path / "two").read_text(), "all are up")
    left = [int((tmp_path / name).read_text()) for name in ("one", "two")]
    if paused:
        for pid in left:
            os.kill(pid, signal.SIGSTOP)
    child.kill()
    assert child.exit_code == -signal.SIGKILL
    assert all(is_gone(pid) for pid in left)


def test_its_exit_code_is_that_of_the_program(spawner: Spawner, tmp_path: Path) -> None:
    child = leaving(spawner, tmp_path, "trap 'exit 7' TERM; echo up; while :; do sleep .1; done")
    child.start()
    eventually(lambda: child.last_lines() == "up", "the child is up")
    child.pause()
    child.stop(grace=LIMIT)
    assert child.exit_code == 7
    missing = ComponentProcess(
        "missing",
        ("/no/such/program",),
        spawner=spawner,
        environment={},
        log=tmp_path / "missing.log",
        with_descendants=True,
    )
    missing.start()
    eventually(lambda: missing.exit_code is not None, "it has ended")
    assert missing.exit_code == 127


def test_everything_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """As when the supervisor is killed: its thread ends, and the kernel tells."""
    spawner = Spawner()
    child = leaving(spawner, tmp_path, "sleep 1000 & echo $! >$0/left; echo up; wait")
    child.start()
    eventually(lambda: child.last_lines() == "up", "the child is up")
    left = int((tmp_path / "left").read_text())
    spawner.close()
    eventually(lambda: child.exit_code is not None and is_gone(left), "both have ended")
