"""The examples of `docs/authors` on a real API server."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.documents import example_files, example_module
from tests.places import DOCS

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.waiting import eventually

AUTHORS = DOCS / "authors"

# The tests of the page on testing are collected from here, with the fixtures that they name.
globals().update(
    {
        name: value
        for name, value in example_module(AUTHORS / "testing.md", "test_examples.py").items()
        if name.startswith("test_")
    }
)


def test_the_documented_program_runs_the_documented_task(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    for page, name in (("timers-and-tasks.md", "load.py"), ("running.md", "program.py")):
        (tmp_path / name).write_text(example_files(AUTHORS / page)[name])
    objects = ApiObjects(control_plane.requests(), "default")
    program = subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)},
    )
    try:
        written = eventually(lambda: objects.find("configmap", "load"), "the ConfigMap exists")
        assert written["data"]["load"].isdigit()
        objects.delete("configmap", "load")
        eventually(lambda: objects.find("configmap", "load"), "the ConfigMap exists again")
        program.send_signal(signal.SIGTERM)
        assert program.wait(30) == 0
    finally:
        program.kill()
        program.wait()
        objects.delete("configmap", "load")
