"""The console beside a local cluster: an end that nobody asked for is told."""

import json
import os
import signal
from pathlib import Path

import pytest

from quarterdeck.cli.local_console import local_console
from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.status import ClusterStatus, ProcessIdentity
from quarterdeck.testing.waiting import eventually

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "current-context": "a",
}


@pytest.mark.parametrize("crashes", [True, False])
def test_a_console_that_crashes_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], crashes: bool
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(KUBECONFIG))
    own = ProcessIdentity.of(os.getpid())
    assert own is not None
    status = ClusterStatus(phase="ready", supervisor=own, since=0, kubeconfig=str(file))
    said = ""
    with local_console(Layout(tmp_path), "a") as console:
        console.start(status)
        assert console._process is not None
        # Ctrl-C goes to the group in the foreground, and is the user's wish.
        assert os.getpgid(console._process.pid) != os.getpgrp()
        if crashes:
            os.kill(console._process.pid, signal.SIGKILL)
            said = eventually(lambda: capfd.readouterr().err, "its end is told", 60)
    said += capfd.readouterr().err
    assert ("The web console was killed by SIGKILL; start another one" in said) is crashes
