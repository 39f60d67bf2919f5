"""The whole of `local up` as an ordinary user: one that root makes up for the test."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import quarterdeck
from quarterdeck.localcluster.binaries import Binaries

USER = 54_321
"""A user id that nobody has; it needs no account."""

PYTHON = Path("/usr/bin/python3")
"""The machine's own interpreter: ours may lie where only root can go."""

LIMIT = 240


def is_usable(python: Path) -> bool:
    """Whether packages that were installed for our interpreter work with that one."""
    asked = "import sys; print(sys.version_info[:2])"
    told = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    return told.stdout.strip() == str(tuple(sys.version_info[:2]))


pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make up another user"),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is missing"),
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

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            user=USER,
            group=USER,
            extra_groups=[],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )

    def local(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self.run(str(self.python.with_name("quarterdeck")), "local", *words)


@pytest.fixture
def user(control_plane_binaries: Binaries) -> Iterator[Ordinary]:
    # Not pytest's own directory: that is for root alone.
    with tempfile.TemporaryDirectory(prefix="quarterdeck-rootless-") as directory:
        Path(directory).chmod(0o755)
        user = Ordinary(Path(directory), control_plane_binaries)
        if user.run(str(user.python), "-c", "import quarterdeck.cli.main").returncode != 0:
            pytest.skip("this clone or its environment is closed to other users")
        yield user
        user.local("down", "--purge")


def test_an_ordinary_user_runs_the_cluster_and_the_sample(user: Ordinary) -> None:
    """Up with the sample, its log, a command inside it without rights, and down."""
    up = user.local("up", "--sample")
    assert up.returncode == 0, up.stderr
    assert "leading" in up.stdout
    space = "--namespace=quarterdeck-sample"
    pod = user.local("kubectl", "get", "pods", space, "--output=name").stdout.split()[0]
    script = "id -u; grep CapEff /proc/self/status; touch /etc/x"
    inside = user.local("exec", space, pod.removeprefix("pod/"), "--", "sh", "-c", script)
    assert inside.stdout.splitlines() == [str(USER), "CapEff:\t0000000000000000"]
    assert "Read-only file system" in inside.stderr
    down = user.local("down", "--purge")
    assert down.returncode == 0, down.stderr
    assert [entry for entry in Path("/proc").glob("[0-9]*") if runs_for(USER, entry)] == []


def runs_for(user: int, entry: Path) -> bool:
    """Whether this is a process of the user; one that has ended and waits to be noticed is not."""
    try:
        return entry.stat().st_uid == user and (entry / "cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False
