"""Process 1 of a real node starts each program again, whichever ends and whenever."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.testing.waiting import eventually

NAMES = ("containerd", "kubelet", "kube-proxy")
KEEPER = """
import sys
from pathlib import Path
from quarterdeck.localcluster.real_nodes import first_process
first_process.RESTART_PERIOD = 0.1
programs = first_process.Programs({}, Path(sys.argv[1]))
every = {name: ["/bin/sh", "-c", "grep SigIgn /proc/$$/status"] for name in sys.argv[2:]}
for name, command in every.items():
    programs.start(name, command)
programs.keep(every)
"""


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[list[Path]]:
    """The logs of programs that are kept running, and end at once."""
    keeper = subprocess.Popen([sys.executable, "-c", KEEPER, str(tmp_path), *NAMES])
    yield [tmp_path / f"{name}.log" for name in NAMES]
    keeper.kill()
    keeper.wait()


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def test_programs_that_end_at_the_same_time_are_all_started_again(logs: list[Path]) -> None:
    """One ends while another one is started."""

    def starts() -> list[int]:
        return [len(lines(log)) for log in logs]

    eventually(lambda: min(starts()) >= 4, "each was started four times", 30)


def test_a_program_ignores_no_signal_that_python_ignores(logs: list[Path]) -> None:
    (line,) = eventually(lambda: lines(logs[0])[:1], "it has started", 30)
    ignored = int(line.split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1))
