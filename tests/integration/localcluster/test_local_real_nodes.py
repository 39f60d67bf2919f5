"""`quarterdeck local up --real-nodes` where it cannot be: one line, and exit code 2."""

import os
import subprocess
import sys
from pathlib import Path


def refused(tmp_path: Path, *options: str, as_root: bool) -> str:
    """The only line that the command says, as root of this machine or as somebody else."""
    # In a user namespace without a mapping, root is nobody in particular.
    somebody = ["unshare", "--user"] if not as_root and os.geteuid() == 0 else []
    done = subprocess.run(
        [*somebody, sys.executable, "-m", "quarterdeck", "local", "up", "--real-nodes", *options],
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    assert not list(tmp_path.iterdir())
    return line


def test_who_is_not_root_is_told_so(tmp_path: Path) -> None:
    assert "real nodes need root" in refused(tmp_path, "2", as_root=False)


def test_options_that_install_something_are_refused(tmp_path: Path) -> None:
    for option in ("--payload", "--all", "--sample"):
        assert "the cluster is empty" in refused(tmp_path, "2", option, as_root=True)
