"""The commands of docs/console.md, and its pictures."""

import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import yaml
from tests.documents import commands
from tests.places import DOCS

from quarterdeck.testing.plugin import Kubectl

TEXT = (DOCS / "console.md").read_text()


def test_the_console_starts_as_the_document_says(kubeconfig: Path) -> None:
    command, _ = commands(TEXT)[0]
    words = shlex.split(command)
    assert words[0] == "quarterdeck"
    options = [f"--kubeconfig={kubeconfig}", "--port=0"]
    run = [sys.executable, "-m", *words, *options]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline() for _ in range(2)]
        process.terminate()
        assert process.wait(30) == 0
    shown = re.findall(r"```\n(console at.*?)```", TEXT, re.DOTALL)[0].splitlines()
    for line, documented in zip(printed, shown, strict=True):
        port = re.sub(r"localhost:\d+", "localhost:8443", line.strip())
        assert re.sub(r"/link/.*", "/link/…", port) == documented


def test_a_port_that_is_taken_is_told_with_what_to_do(kubeconfig: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = ["quarterdeck", "console", f"--kubeconfig={kubeconfig}", f"--port={port}"]
        run = [sys.executable, "-m", *command]
        done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    told = f"127.0.0.1:{port}: Address already in use; choose others with --address and --port"
    assert done.stderr == f"error: {told}\n"


def test_a_token_as_the_document_makes_it(kubectl: Kubectl) -> None:
    command, _ = commands(TEXT)[1]
    words = shlex.split(command)
    assert words[0] == "kubectl"
    assert kubectl(*words[1:]).stdout.count(".") == 2


def test_every_picture_of_the_document_is_there() -> None:
    for name in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", TEXT):
        assert (DOCS / name).stat().st_size > 10_000, name
        assert (DOCS / name).read_bytes().startswith(b"\x89PNG")


def test_the_deployment_is_accepted_and_has_no_replica(kubectl: Kubectl) -> None:
    file = DOCS.parent / "deploy" / "console" / "deployment.yaml"
    made = kubectl("apply", "--dry-run=client", "--output=name", f"--filename={file}").stdout
    assert "deployment.apps/console" in made
    assert "replicas: 0" in file.read_text()
    (documented,) = re.findall(r"^kubectl (set image .*)$", TEXT, re.MULTILINE)
    _, _, target, image = documented.split()[:4]
    (found,) = (one for one in yaml.safe_load_all(file.read_text()) if one["kind"] == "Deployment")
    (container,) = found["spec"]["template"]["spec"]["containers"]
    assert target == f"deployment/{found['metadata']['name']}"
    assert image.partition("=")[0] == container["name"]
    assert file.read_text().count("automountServiceAccountToken: false") == 2
