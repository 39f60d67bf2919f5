"""The local cluster for an ordinary user, one that root makes up for the test.

The whole of `make up`, the node's own tests run by that user, and the refusal where the user may
make no user namespaces.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.localcluster.node.made_up_user import (
    LIMIT,
    NOT_BY_A_MADE_UP_USER,
    PYTHON,
    TESTS,
    USER,
    WITHOUT_NAMESPACES,
    Ordinary,
    flags_of_make_up,
    is_usable,
    runs_for,
)
from tests.integration.localcluster.node.without_namespaces import CANNOT
from tests.integration.pods import needs_bubblewrap
from tests.places import ROOT as CLONE

from quarterdeck.localcluster.binaries import Binaries

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make up another user"),
    needs_bubblewrap,
    pytest.mark.skipif(not is_usable(PYTHON), reason=f"{PYTHON} is of another version than ours"),
]


@pytest.fixture(scope="module")
def user(control_plane_binaries: Binaries) -> Iterator[Ordinary]:
    # Not pytest's own directory: that is for root alone.
    with tempfile.TemporaryDirectory(prefix="quarterdeck-rootless-") as directory:
        Path(directory).chmod(0o755)
        user = Ordinary(Path(directory), control_plane_binaries)
        if user.run(str(user.python), "-c", "import quarterdeck.cli.main").returncode != 0:
            pytest.skip("this clone or its environment is closed to other users")
        yield user
        user.local("down", "--purge")


def plain(text: str) -> str:
    """The words of what `make up` prints, without what is another one each time."""
    for pattern, name in {
        r"\\\n": " ",
        r"http://localhost:\d+/link/\S+": "LINK",
        r"\S*/quarterdeck(?=\s)": "quarterdeck",
        r"\S*/kubeconfig": "KUBECONFIG",
        r"sample-operator-\w+-\w+": "POD",
        r"\d+": "0",
    }.items():
        text = re.sub(pattern, name, text)
    words = " ".join(text.split())
    return words.replace("POD standing by POD leading", "POD leading POD standing by")


def parts_of_readme() -> list[str]:
    """What README.md shows of `make up` when the cluster is ready, in its parts."""
    shown = (CLONE / "README.md").read_text().split("$ make up")[1].split("```")[2]
    ready = shown[shown.index("Kubernetes") :]
    return [plain(part) for part in ready.split("\n…\n")]


@pytest.mark.slow
def test_an_ordinary_user_runs_the_cluster_and_its_operators(user: Ordinary) -> None:
    """As `make up` does: our release, the checker, a command in a pod without rights, Ctrl-C."""
    up = user.start("local", "up", "--foreground", *flags_of_make_up())
    try:
        shown = up.read_until("Ctrl-C stops all of it")
        for part in parts_of_readme():
            assert part in plain(shown), f"README.md shows what is not printed: {part}\n{shown}"
        link = re.search(r"http://localhost:\d+/link/\S+", shown)
        assert link is not None, shown
        with urllib.request.urlopen(link[0], timeout=LIMIT) as page:  # noqa: S310
            assert "This link logs you in once" in page.read().decode()
        operators = user.local("kubectl", "get", "clusterversion,clusteroperators,pods", "-A")
        assert "version   0.1.0" in operators.stdout
        assert "staleness-this-machine" in operators.stdout
        space = "--namespace=quarterdeck-sample"
        pod = user.local("kubectl", "get", "pods", space, "--output=name").stdout.split()[0]
        script = "id -u; grep CapEff /proc/self/status; touch /etc/x"
        inside = user.local("exec", space, pod.removeprefix("pod/"), "--", "sh", "-c", script)
        assert inside.stdout.splitlines() == [str(USER), "CapEff:\t0000000000000000"]
        assert "Read-only file system" in inside.stderr
    finally:
        up.process.send_signal(signal.SIGINT)
        left = up.process.communicate(timeout=LIMIT)[0]
    assert up.process.returncode == 0, left
    assert "stopped; the state is left in" in left
    assert user.local("down", "--purge").returncode == 0
    assert [entry for entry in Path("/proc").glob("[0-9]*") if runs_for(USER, entry)] == []


@pytest.mark.slow
def test_hooks_probes_and_kills_for_an_ordinary_user(user: Ordinary) -> None:
    """The node's tests of what differs without root: the ways into a container and out of it."""
    done = user.pytest(
        *("test_node_process.py", "test_node_static_credentials.py"),
        *("test_node_agent_killed_steps.py", "test_node_lifecycle_live.py"),
        *("-m", "not soak"),
        "-k",
        "process or readiness_that or pre_stop or certificate or every_step",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_all_of_the_nodes_tests_for_an_ordinary_user(user: Ordinary) -> None:
    names = sorted(path.name for path in TESTS.glob("test_node_*.py"))
    chosen = [name for name in names if name not in NOT_BY_A_MADE_UP_USER]
    done = user.pytest(*chosen, limit=1700)
    assert done.returncode == 0, done.stdout + done.stderr


def test_where_user_namespaces_are_forbidden_it_says_so_in_one_line(user: Ordinary) -> None:
    """And ends with 2, before it has started or built anything, if there is no proot either."""
    programs = user.home / "without-proot"
    programs.mkdir()
    (programs / "bwrap").symlink_to(shutil.which("bwrap") or "/usr/bin/bwrap")
    quarterdeck = str(user.python.with_name("quarterdeck"))
    words = (quarterdeck, "local", "up", "--state-dir", str(user.home / "refused"))
    refused = subprocess.run(
        [sys.executable, str(WITHOUT_NAMESPACES), str(USER), *words],
        env=user.environment | {"PATH": str(programs)},
        cwd=user.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    if refused.returncode == CANNOT:
        pytest.skip("user namespaces cannot be limited here")
    assert refused.returncode == 2, refused.stdout + refused.stderr
    (line,) = refused.stderr.splitlines()
    assert "bubblewrap may not make namespaces here" in line
    assert "sudo sysctl user.max_user_namespaces=15000, or run as root; or install proot" in line
    assert line.endswith("sudo apt-get install proot")
    assert refused.stdout == ""
