"""Pods in proot on a kernel without Landlock: what holds there, and that the rest is said.

Runs itself again where there are no namespaces and no Landlock.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
from tests.integration.localcluster.node.made_up_user import WITHOUT_NAMESPACES
from tests.integration.localcluster.node.processes import maker, run
from tests.integration.localcluster.node.without_namespaces import CANNOT
from tests.places import ROOT as CLONE

from quarterdeck.localcluster.node.sandbox.isolation import (
    Isolation,
    find_isolation,
    landlock_version,
    proot_warning,
)

WITHOUT_LANDLOCK = WITHOUT_NAMESPACES.with_name("without_landlock.py")
THERE = "QUARTERDECK_TEST_WITHOUT_LANDLOCK"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can limit user namespaces")
@pytest.mark.skipif(shutil.which("proot") is None, reason="proot is missing")
@pytest.mark.skipif(THERE in os.environ, reason="we are there already")
def test_without_landlock() -> None:
    programs = [str(WITHOUT_NAMESPACES), "0", sys.executable, str(WITHOUT_LANDLOCK)]
    quiet = ("-q", "-n0", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, *programs, sys.executable, "-m", "pytest", *quiet, __file__],
        env=os.environ | {THERE: "yes"},
        cwd=CLONE,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == CANNOT:
        pytest.skip("user namespaces cannot be limited here")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.skipif(
    THERE not in os.environ, reason="test_without_landlock runs it where it belongs"
)
async def test_there(tmp_path: Path) -> None:
    """Pods run without capabilities, and by path nothing that is hidden can be read."""
    assert landlock_version() < 1
    assert find_isolation() is Isolation.PROOT
    assert proot_warning().count("\n") == 0
    assert "they can write what you can write (the kernel offers no Landlock)" in proot_warning()
    hidden = PurePosixPath("/usr/share/doc")
    places = [hidden, *(f"/proc/{pid}/root{hidden}" for pid in ("self", os.getpid()))]
    script = "grep -hE 'CapEff|NoNewPrivs' /proc/self/status; "
    script += "; ".join(f"ls -A {place}; cd {place} && ls -A" for place in places)
    _, output = await run(maker(tmp_path)(script, masked=[hidden]))
    shown = [line for line in output.splitlines() if "/proc/" not in line]  # what is refused
    assert shown == ["CapEff:\t0000000000000000", "NoNewPrivs:\t1"]
