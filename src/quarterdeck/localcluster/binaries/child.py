"""Runs `go` and `pip`, reports their output line by line, and leaves no orphans."""

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

TICK_SECONDS = 1.0


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    on_line: Callable[[str], None],
    on_tick: Callable[[], None],
) -> int:
    """Run a command, and return its exit code.

    Each line of its output goes to the log and to `on_line`. `on_tick` is called at least once a
    second. The command and its children end with this process, also if this process is killed.
    """
    guard = [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py"))]
    process = subprocess.Popen(
        [*guard, *command],
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        with log.open("ab") as file:
            file.write(f"$ {' '.join(command)}\n".encode())
            _follow(process, file.write, on_line, on_tick)
        return process.wait()
    finally:
        # It has ended in the normal case; on Ctrl-C or an error this ends the compilers too.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _follow(
    process: subprocess.Popen[bytes],
    write: Callable[[bytes], object],
    on_line: Callable[[str], None],
    on_tick: Callable[[], None],
) -> None:
    if process.stdout is None:  # pragma: no cover - it is a pipe, see the caller
        return
    descriptor = process.stdout.fileno()
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if selector.select(TICK_SECONDS):
                chunk = os.read(descriptor, 65536)
                if not chunk:
                    break
                write(chunk)
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    on_line(line.decode(errors="replace"))
            elif process.poll() is not None:
                # The guard was killed; other processes may still hold the pipe open.
                break
            on_tick()
    if rest:
        on_line(rest.decode(errors="replace"))
