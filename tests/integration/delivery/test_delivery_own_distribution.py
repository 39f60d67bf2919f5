"""docs/writing-an-operator.md, "Adding yours", followed to the letter.

An operator in a distribution of its own is installed beside a copy of Quarterdeck, run, and
delivered by its Deployment and by a payload, and no file of the copy changes.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.documents import Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DOCS, ROOT

from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.testing.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), needs_bubblewrap]

EARLIER, _, ADDING = (DOCS / "writing-an-operator.md").read_text().partition("## Adding yours")
INSTALLING = EARLIER.partition("## Installing Quarterdeck")[2]
LIMIT = 120
OWN = ["theirs", "ours"]
RUN = "quarterdeck run "
ACCOUNT = "system:serviceaccount:harbour:beacon-operator"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment with a copy of Quarterdeck in it, and what it needs."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    # The libraries are those of this environment; Quarterdeck itself is found in its own first.
    packages(environment).joinpath("libraries.pth").write_text(sysconfig.get_path("purelib"))
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("src", "deploy"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    settings = pip_settings(environment)
    del settings["PIP_NO_COMPILE"]  # pods cannot write byte code
    install = Shell(copy, settings)
    followed = [command for command, _ in commands(INSTALLING) if install.succeed(command)]
    assert [command.split()[1] for command in followed] == ["wheel", "install"]
    return environment


@pytest.fixture
def author(tmp_path: Path, environment: Path, control_plane_binaries: Binaries) -> Iterator[Shell]:
    """The shell of somebody who writes an operator: its directory has the document's files."""
    home, directory = tmp_path / "home", tmp_path / "harbour-operators"
    home.mkdir()
    for name, text in re.findall(r"^```(?:python|toml) (\S+)\n(.*?)^```", ADDING, re.M | re.S):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    add_own_objects(directory / "harbour")
    bin_of = (environment / "bin", Path(sys.executable).parent)
    variables = {
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "PATH": os.pathsep.join([*map(str, bin_of), os.environ["PATH"]]),
        **pip_settings(environment),
    }
    run = Shell(directory, variables, control_plane_binaries)
    yield run
    run("quarterdeck local down --purge")


def add_own_objects(package: Path) -> None:
    """Let the operator bring objects in its own namespace: one for the administrator, one not."""
    (package / "objects.py").write_text(
        "def config_map(name):\n"
        "    metadata = {'name': name, 'namespace': 'harbour'}\n"
        "    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': metadata}\n"
        "THEIRS, OURS = (config_map('theirs'),), (config_map('ours'),)\n"
    )
    declaration = package / "__init__.py"
    parts = (
        "    parts=(\n"
        "        PayloadPart(name='theirs', run_level=60, objects='harbour.objects:THEIRS'),\n"
        "        PayloadPart(\n"
        "            name='ours', run_level=60, objects='harbour.objects:OURS', kept=True\n"
        "        ),\n"
        "    ),\n"
    )
    text = declaration.read_text().replace(
        "Declaration, Deployed", "Declaration, Deployed, PayloadPart"
    )
    declaration.write_text(text.replace("    run_level=60,\n", f"    run_level=60,\n{parts}"))


def test_an_operator_of_another_distribution_is_run_and_delivered(
    author: Shell, environment: Path, tmp_path: Path
) -> None:
    before = digests(packages(environment) / "quarterdeck")
    assert before, "the copy is where it is looked for"
    followed = []
    for command, _ in commands(ADDING):
        followed.append(command)
        if command.startswith(RUN):
            check_run(author, command, tmp_path / "run.log")
            continue
        done = author.succeed(command)
        if command.endswith("--operator beacons"):
            assert "The operator of beacons. Its log:" in done.stdout
            check_delivered(author)
        if command.endswith("--payload"):
            assert "The operator of beacons. Its log:" in done.stdout
            check_applied(author)
    assert followed[0] == "pip install ."
    assert sum(command.startswith(RUN) for command in followed) == 1
    assert digests(packages(environment) / "quarterdeck") == before


def check_run(run: Shell, command: str, log: Path) -> None:
    """Run by hand it does its work, with the setting that was given."""
    process = run.start(f"{command} --probe-address 127.0.0.1:0", log)
    try:
        eventually(lambda: light_beacon(run, "first"), "the type is served", LIMIT)
        eventually(lambda: shines(run, "first") == "green", f"it works; see {log}", LIMIT)
    finally:
        process.terminate()
        process.wait(LIMIT)
    assert process.returncode == 0, log.read_text()


def check_delivered(run: Shell) -> None:
    """From its Deployment it does its work with the rights that were derived, and no others."""
    eventually(lambda: shines(run, "first") == "white", "the Deployment's default", LIMIT)
    assert [own_object(run, name)["metadata"]["name"] for name in OWN] == OWN
    asked = {
        question: run(
            f"quarterdeck local kubectl auth can-i {question} --all-namespaces --as={ACCOUNT}"
        ).stdout.strip()
        for question in (
            "watch beacons",
            "patch beacons --subresource=status",
            "patch beacons",
            "get secrets",
        )
    }
    assert asked == {
        "watch beacons": "yes",
        "patch beacons --subresource=status": "yes",
        "patch beacons": "no",
        "get secrets": "no",
    }


def check_applied(run: Shell) -> None:
    """The release has brought it, and it has reported the release's version."""
    reported = kubectl_json(run, "get clusteroperator beacons")["status"]["versions"]
    assert reported == [{"name": "operator", "version": "0.1.0"}]
    created = "release.openshift.io/create-only"
    marks = [own_object(run, name)["metadata"]["annotations"].get(created) for name in OWN]
    assert marks == ["true", None]
    assert light_beacon(run, "second")
    eventually(lambda: shines(run, "second") == "white", "the release's operator works", LIMIT)


def light_beacon(run: Shell, name: str) -> bool:
    beacon = {"apiVersion": "harbour.example.com/v1", "kind": "Beacon", "metadata": {"name": name}}
    text = json.dumps({**beacon, "spec": {}})
    made = run(f"echo '{text}' | quarterdeck local kubectl apply --filename -")
    return made.returncode == 0


def shines(run: Shell, name: str) -> str:
    found = kubectl_json(run, f"get beacon {name}")
    return str((found.get("status") or {}).get("shines", ""))


def own_object(run: Shell, name: str) -> dict[str, Any]:
    return kubectl_json(run, f"get configmap {name} --namespace harbour")


def kubectl_json(run: Shell, words: str) -> dict[str, Any]:
    done = run(f"quarterdeck local kubectl {words} --output json")
    found: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    return found


def packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python3*/site-packages")
    return found


def pip_settings(environment: Path) -> dict[str, str]:
    """What lets `pip install .` work without a network: all that it would fetch is there."""
    return {
        "PIP_PYTHON": str(environment / "bin" / "python"),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        # pip reads this one as the value of `build isolation`.
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        # What is imported is compiled then.
        "PIP_NO_COMPILE": "1",
    }


def digests(directory: Path) -> dict[str, str]:
    """Each file with what is in it; compiled files come and go."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
