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
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.pods import needs_bubblewrap

import quarterdeck
from quarterdeck.localcluster.binaries import Binaries

USER = 54_321 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
"""A user id that nobody has; it needs no account. Another one for each worker, so that tests beside
each other do not see each other's processes."""

PYTHON = Path("/usr/bin/python3")
"""The machine's own interpreter: ours may lie where only root can go."""

TESTS = Path(__file__).parent
LIMIT = 240


def is_usable(python: Path) -> bool:
    """Whether packages that were installed for our interpreter work with that one."""
    asked = "import sys; print(sys.version_info[:2])"
    told = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    return told.stdout.strip() == str(tuple(sys.version_info[:2]))


pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make up another user"),
    needs_bubblewrap,
    pytest.mark.skipif(not is_usable(PYTHON), reason=f"{PYTHON} is of another version than ours"),
]


class Ordinary:
    """A user with a home of its own: an environment, the cluster's programs, nothing else."""

    def __init__(self, home: Path, binaries: Binaries) -> None:
        self.home = home
        programs = home / "programs"
        programs.mkdir()
        for name, path in binaries.paths.items():
            try:
                (programs / name).hardlink_to(path.resolve())
            except OSError:  # another file system
                shutil.copy2(path, programs / name)
        self.python = home / "venv" / "bin" / "python"
        self.environment = {
            "HOME": str(home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "KUBEBUILDER_ASSETS": str(programs),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        os.chown(home, USER, USER)
        self.run(str(PYTHON), "-m", "venv", "--without-pip", str(home / "venv"))
        self._install()

    def _install(self) -> None:
        """Our package and its dependencies, where they are; and the program `quarterdeck`."""
        (site,) = (self.home / "venv" / "lib").glob("python3*/site-packages")
        package = Path(quarterdeck.__file__).parents[1]
        dependencies = Path(pytest.__file__).parents[1]
        (site / "ours.pth").write_text(f"{package}\n{dependencies}\n")
        program = self.python.with_name("quarterdeck")
        program.write_text(f"#!{self.python}\nfrom quarterdeck.cli.main import main\nmain()\n")
        program.chmod(0o755)

    def run(
        self, *command: str, limit: float = LIMIT, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            user=USER,
            group=USER,
            extra_groups=[],
            env=self.environment | environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
        )

    def start(self, *words: str) -> "Foreground":
        """Start our program, as from a shell."""
        return Foreground(
            subprocess.Popen(
                [self.python.with_name("quarterdeck"), *words],
                user=USER,
                group=USER,
                extra_groups=[],
                env=self.environment,
                cwd=self.home,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )

    def pytest(self, *words: str, limit: float = LIMIT) -> "subprocess.CompletedProcess[str]":
        """Run tests of this clone as the user."""
        quiet = ("-q", "-n0", "-p", "no:cacheprovider", f"--basetemp={self.home}/tests")
        where = f"--rootdir={TESTS.parent.parent}"
        paths = [str(TESTS / word) if word.endswith(".py") else word for word in words]
        config = ("-c", str(TESTS.parent.parent / "pyproject.toml"), where)
        program = (str(self.python), "-m", "pytest", *config, *quiet)
        return self.run(*program, *paths, limit=limit, TMPDIR=str(self.home))

    def local(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self.run(str(self.python.with_name("quarterdeck")), "local", *words)


class Foreground:
    """A program that runs beside the test, and what it shows."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def read_until(self, text: str) -> str:
        """What it has shown, up to the line with the text."""
        assert self.process.stdout is not None
        shown = ""
        for line in self.process.stdout:
            shown += line
            if text in line:
                return shown
        raise AssertionError(f"ended without {text!r}: {shown}")


def flags_of_make_up() -> list[str]:
    """What the Makefile adds to `local up --foreground`."""
    makefile = (TESTS.parent.parent / "Makefile").read_text()
    found = re.search(r"local up --foreground ([a-z -]+)", makefile)
    assert found is not None
    return found[1].split()


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


@pytest.mark.slow
def test_an_ordinary_user_runs_the_cluster_and_its_operators(user: Ordinary) -> None:
    """As `make up` does: our release, the checker, a command in a pod without rights, Ctrl-C."""
    up = user.start("local", "up", "--foreground", *flags_of_make_up())
    try:
        shown = up.read_until("Ctrl-C stops all of it")
        assert "leading" in shown
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
        "-k",
        "process or readiness_that or pre_stop or certificate or every_step",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_all_of_the_nodes_tests_for_an_ordinary_user(user: Ordinary) -> None:
    names = sorted(path.name for path in TESTS.glob("test_node_*.py"))
    chosen = [name for name in names if name not in ("test_node_soak.py", Path(__file__).name)]
    done = user.pytest(*chosen, limit=1700)
    assert done.returncode == 0, done.stdout + done.stderr


# Makes a user namespace in which there may be no other, and runs a command in it as a user. The
# limit is of that namespace alone; nobody else's is touched.
WITHOUT_NAMESPACES = """
import ctypes, os, sys

CLONE_NEWUSER = 0x10000000
user, command = int(sys.argv[1]), sys.argv[2:]
made, mapped = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    if ctypes.CDLL(None).unshare(CLONE_NEWUSER) != 0:
        os._exit(77)
    os.write(made[1], b"x")
    os.read(mapped[0], 1)
    try:
        with open("/proc/sys/user/max_user_namespaces", "w") as limit:
            limit.write("0")
    except OSError:
        os._exit(77)
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    os.execv(command[0], command)
os.close(made[1])
if os.read(made[0], 1):
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{child}/{name}", "w") as file:
            file.write("0 0 65536")
    os.write(mapped[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_where_user_namespaces_are_forbidden_it_says_so_in_one_line(user: Ordinary) -> None:
    """And ends with 2, before it has started or built anything."""
    quarterdeck = str(user.python.with_name("quarterdeck"))
    words = (quarterdeck, "local", "up", "--state-dir", str(user.home / "refused"))
    refused = subprocess.run(
        [sys.executable, "-c", WITHOUT_NAMESPACES, str(USER), *words],
        env=user.environment,
        cwd=user.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    if refused.returncode == 77:
        pytest.skip("user namespaces cannot be limited here")
    assert refused.returncode == 2, refused.stdout + refused.stderr
    (line,) = refused.stderr.splitlines()
    assert "bubblewrap may not make namespaces here" in line
    assert line.endswith("sudo sysctl user.max_user_namespaces=15000, or run as root")
    assert refused.stdout == ""


def runs_for(user: int, entry: Path) -> bool:
    """Whether this is a process of the user; one that has ended and waits to be noticed is not."""
    try:
        return entry.stat().st_uid == user and (entry / "cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False
