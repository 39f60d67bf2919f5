"""The local cluster where no namespaces may be made, as in a plain container: pods run in proot.

As root without CAP_SYS_ADMIN, and as an ordinary user; both in a user namespace whose own limit of
user namespaces is 0. What only namespaces give is skipped by its tests, with the reason.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.localcluster.node.made_up_user import (
    NOT_BY_A_MADE_UP_USER,
    PYTHON,
    TESTS,
    USER,
    Ordinary,
    flags_of_make_up,
    is_usable,
    runs_for,
)
from tests.integration.localcluster.node.test_node_soak import SECONDS as SOAK_SECONDS
from tests.integration.localcluster.node.without_namespaces import CANNOT

from quarterdeck.localcluster.binaries import Binaries

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make up another user"),
    pytest.mark.skipif(shutil.which("proot") is None, reason="proot is missing"),
    pytest.mark.skipif(not is_usable(PYTHON), reason=f"{PYTHON} is of another version than ours"),
]

SAMPLE = "--namespace=quarterdeck-sample"
UP_AND_DOWN = f"""
set -e
trap '$LOCAL down --purge' EXIT
$LOCAL up "$@" >up.out 2>up.err || {{ cat up.out up.err; exit 1; }}
cat up.err
$LOCAL kubectl wait --for=condition=Ready pods --all {SAMPLE} --timeout=90s
pod=$($LOCAL kubectl get pods {SAMPLE} --output=name | head -1)
$LOCAL exec {SAMPLE} ${{pod#pod/}} -- sh -c 'id -u; grep CapEff /proc/self/status; touch /etc/x' ||
    echo exec ended with $?
"""


@pytest.fixture(scope="module", params=[0, USER], ids=["root", "user"])
def someone(request: pytest.FixtureRequest, control_plane_binaries: Binaries) -> Iterator[Ordinary]:
    """Root without CAP_SYS_ADMIN, or an ordinary user, who can make no namespaces."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-plain-") as directory:
        Path(directory).chmod(0o755)
        try:
            made = Ordinary(
                Path(directory), control_plane_binaries, uid=request.param, namespaces=False
            )
        except ValueError:  # nothing was installed
            pytest.skip("user namespaces cannot be limited here")
        tried = made.run(str(made.python), "-c", "import quarterdeck.cli.main")
        if tried.returncode == CANNOT:
            pytest.skip("user namespaces cannot be limited here")
        if tried.returncode != 0:
            pytest.skip("this clone or its environment is closed to other users")
        yield made


def up_and_down(someone: Ordinary, *flags: str) -> list[str]:
    """What is said by `local up`, a command in a pod, and `local down`."""
    local = f"{someone.python.with_name('quarterdeck')} local"
    done = someone.run("/bin/sh", "-c", UP_AND_DOWN, "sh", *flags, LOCAL=local)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cannot touch '/etc/x': Permission denied" in done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "someone",
    [pytest.param(0, id="root"), pytest.param(USER, id="user", marks=pytest.mark.soak)],
    indirect=True,
    scope="module",
)
def test_local_up_says_what_is_weaker_and_comes_up(someone: Ordinary) -> None:
    """And `local exec` brings a command into the view of a pod that runs."""
    lines = up_and_down(someone, "--sample")
    assert lines[0].startswith("bubblewrap may make no namespaces here, so pods run in proot: ")
    assert str(someone.uid) in lines
    assert "CapEff:\t0000000000000000" in lines
    assert "exec ended with 1" in lines
    if someone.uid:
        assert not [entry for entry in Path("/proc").glob("[0-9]*") if runs_for(USER, entry)]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_processes_in_proot(someone: Ordinary) -> None:
    """What they see, how they end, what enters them: the node's own tests."""
    done = someone.pytest(
        *("test_node_process.py", "test_node_rights.py"),
        *("test_node_swapped.py", "test_node_attackers_table.py"),
        *("-m", "not soak"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "no namespaces may be made here" in done.stdout


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_make_up_without_namespaces(someone: Ordinary) -> None:
    """With our release and the checker, as `make up` does; its console is for the foreground."""
    up_and_down(someone, *(flag for flag in flags_of_make_up() if flag != "--console"))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_all_of_the_nodes_tests_without_namespaces(someone: Ordinary) -> None:
    names = sorted(path.name for path in TESTS.glob("test_node_*.py"))
    chosen = [name for name in names if name not in NOT_BY_A_MADE_UP_USER]
    done = someone.pytest(*chosen, limit=1700)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no namespaces may be made here" in done.stdout


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS + 900)
def test_nothing_is_left_of_pods_that_come_and_go(
    someone: Ordinary, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in `test_node_soak`, which says what is measured."""
    done = someone.pytest(
        *("test_node_soak.py", "-m", "soak"),
        limit=SOAK_SECONDS + 800,
        QUARTERDECK_SOAK_SECONDS=f"{SOAK_SECONDS:g}",
    )
    with capsys.disabled():
        sys.stdout.write(done.stdout)  # its figures
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
