"""The lock of a cache directory, between real processes."""

import io
import subprocess
import sys
import threading
from pathlib import Path

from quarterdeck.localcluster.binaries.lock import directory_lock
from quarterdeck.localcluster.binaries.progress import LineProgress

HOLD = """
import sys, time
from pathlib import Path
from quarterdeck.localcluster.binaries.lock import directory_lock
from quarterdeck.localcluster.binaries.progress import LineProgress
with directory_lock(Path(sys.argv[1]), LineProgress(sys.stderr)):
    print("held", flush=True)
    time.sleep(600)
"""


class Shown(io.StringIO):
    """Output that tells when there is some."""

    def __init__(self) -> None:
        super().__init__()
        self.there = threading.Event()

    def write(self, text: str) -> int:
        self.there.set()
        return super().write(text)


def test_waiter_names_the_holder_and_takes_over_when_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        shown, entered = Shown(), threading.Event()

        def wait() -> None:
            with directory_lock(tmp_path, LineProgress(shown)):
                entered.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        assert shown.there.wait(30)
        assert shown.getvalue() == f"waiting for the build of process {holder.pid}\n"
        assert not entered.is_set()
        holder.kill()
        assert entered.wait(30)
        waiter.join()


def test_lock_can_be_had_again_without_a_word(tmp_path: Path) -> None:
    out = io.StringIO()
    for _ in range(2):
        with directory_lock(tmp_path / "new", LineProgress(out)):
            pass
    assert out.getvalue() == ""
