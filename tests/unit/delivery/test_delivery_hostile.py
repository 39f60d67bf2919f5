"""A distribution beside ours that is careless or means harm: it is told, and harms nobody."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.delivery.distributions import entries_in, write_distribution

from quarterdeck.delivery.files import write
from quarterdeck.delivery.registry import installed, read

OURS = len(installed().of("quarterdeck"))

HEAD = """
import sys
from typing import Annotated

import msgspec

from quarterdeck.delivery.declaration import *
from quarterdeck.delivery.options import option


def operator(**fields):
    base = {
        "name": "evil",
        "title": "The evil operator",
        "setup": "evil:setup",
        "namespace": "evil",
        "account": "evil-operator",
        "delivery": Deployed(),
    }
    return Declaration(**(base | fields))


def setup(manager, settings=None):
    pass


def local_option(flag):
    return Local(options=(LocalOption(flag=flag, help="", choices=("a",), kind="X", field=("a",)),))


class Settings(msgspec.Struct, frozen=True):
    {setting}


"""
LEFT_OUT = "operator evil of acme-operators is left out: "


def install(directory: Path, source: str, setting: str = "pass") -> dict[str, str]:
    """The environment of somebody who has the operator beside Quarterdeck."""
    write_distribution(directory, "acme-operators", {"evil": "evil:OPERATOR"})
    (directory / "evil.py").write_text(HEAD.replace("{setting}", setting) + source)
    return os.environ | {"PYTHONPATH": str(directory)}


def run(environment: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )


def told(environment: dict[str, str]) -> str:
    """What the registry says of the operator; that it has all of ours is looked at too."""
    program = (
        "from quarterdeck.delivery.registry import installed\n"
        "found = installed()\n"
        f"assert len(found.of('quarterdeck')) == {OURS}, found\n"
        "print(*found.left_out, sep='\\n')"
    )
    done = run(environment, "-c", program)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("source", "why"),
    [
        pytest.param("sys.exit(3)", "SystemExit: 3", id="ends the process"),
        pytest.param(
            r"raise ValueError('one\ntwo\x1b[31m')", "ValueError: one two[31m", id="a terminal"
        ),
        pytest.param("OPERATOR = operator(delivery=Deployed)", "of the wrong type", id="a class"),
        pytest.param("OPERATOR = operator(cluster_admin='no')", "of the wrong type", id="a type"),
        pytest.param(
            "OPERATOR = operator(namespace='quarterdeck-sample', account='sample-operator')",
            "its account quarterdeck-sample/sample-operator is that of sample of quarterdeck; "
            "rename one of the two",
            id="our account, Lease and Deployment",
        ),
        pytest.param(
            "OPERATOR = operator(cluster_operator='sample')",
            "its ClusterOperator sample is that of sample of quarterdeck",
            id="our ClusterOperator",
        ),
        pytest.param(
            "OPERATOR = operator(local=local_option('--sample'))",
            "its option --sample of `quarterdeck local up` is that of sample of quarterdeck",
            id="our option of local up",
        ),
        pytest.param(
            "OPERATOR = operator(local=local_option('--cvo-log-level'))",
            "its option --cvo-log-level of `quarterdeck local up` is that of cluster-version",
            id="an option that sets something",
        ),
        pytest.param(
            "OPERATOR = operator(local=local_option('port'))",
            "local.options.flag: 'port': write it like --log-level",
            id="no option at all",
        ),
        pytest.param(
            "OPERATOR = operator(delivery=StaticPodDelivery(user='evil', port=10270))",
            "its port 10270 is that of staleness of quarterdeck",
            id="our port",
        ),
    ],
)
def test_what_takes_something_of_ours_or_is_malformed_is_left_out(
    tmp_path: Path, source: str, why: str
) -> None:
    (line,) = told(install(tmp_path, source)).splitlines()
    assert line.startswith(LEFT_OUT)
    assert why in line


def test_a_list_for_a_tuple_is_taken(tmp_path: Path) -> None:
    """Declarations are looked up by value, which a list would not allow."""
    assert told(install(tmp_path, "OPERATOR = operator(profiles=['x'], kinds=[])")).strip() == ""


def test_distributions_that_were_removed_by_halves_are_no_fault(tmp_path: Path) -> None:
    write_distribution(tmp_path, "acme-operators", {"a": "nowhere:A"})
    write_distribution(tmp_path, "gone", {"b": "nowhere:B"})
    (tmp_path / "gone-1.0.dist-info" / "METADATA").unlink()
    left_out = [one.distribution for one in read(entries_in(tmp_path)).left_out]
    assert left_out == ["acme-operators", "an unknown distribution"]


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param("x: Annotated[int, option(flag='interval')] = 1", id="a flag that is none"),
        pytest.param(
            "x: Annotated[int, option(flag='--a')] = 1\n"
            "    y: Annotated[int, option(flag='--a')] = 1",
            id="a flag twice",
        ),
        pytest.param(
            "x: Annotated[int, option(env='HOME')] = 1", id="a variable that does not fit"
        ),
        pytest.param("x: int", id="a setting without a default"),
        pytest.param("x: list[int] = []", id="a type that is no option"),
        pytest.param("x: int | str = 1", id="one of two types"),
    ],
)
def test_settings_keep_no_other_operator_from_running(tmp_path: Path, setting: str) -> None:
    source = "OPERATOR = operator(settings='evil:Settings')"
    environment = install(tmp_path, source, setting)
    words = ("-m", "quarterdeck", "run", "--operator=sample", f"--kubeconfig={tmp_path}/none")
    done = run(environment, *words)
    assert f"{tmp_path}/none" in done.stderr, "it went on until it needs a cluster"
    assert "Traceback" not in done.stderr


def test_one_that_lacks_a_setting_keeps_the_others_from_nothing_unless_it_is_named(
    tmp_path: Path,
) -> None:
    environment = install(tmp_path, "OPERATOR = operator(settings='evil:Settings')", "x: int")
    words = ("-m", "quarterdeck", "run", "--all", f"--kubeconfig={tmp_path}/none")
    assert f"{tmp_path}/none" in run(environment, *words).stderr
    assert "evil needs --x" in run(environment, *words, "--operator=evil").stderr


def test_ours_are_set_up_before_others(tmp_path: Path) -> None:
    """What is one of a kind in a process, as a controller's name, is ours if we have it."""
    source = 'OPERATOR = operator(name="a")'
    environment = install(tmp_path, source)
    (tmp_path / "acme_operators-1.0.dist-info" / "entry_points.txt").write_text(
        "[quarterdeck.operators]\na = evil:OPERATOR\n"
    )
    program = (
        "from quarterdeck.delivery.registry import installed\n"
        "print(*installed().chosen(('a', 'sample')))"
    )
    done = run(environment, "-c", program)
    assert done.stdout.splitlines()[0] == "sample a", done.stderr


@pytest.mark.parametrize(
    ("source", "why"),
    [
        pytest.param(
            "OPERATOR = operator(kinds=('os:path',))",
            "os:path is a module; make it a CustomResource",
            id="a kind that is none",
        ),
        pytest.param(
            "OBJECTS = ('x', 5)\n"
            "parts = (PayloadPart(name='p', run_level=5, objects='evil:OBJECTS'),)\n"
            "OPERATOR = operator(parts=parts)",
            "evil:OBJECTS: 'x': make it an object with apiVersion, kind and metadata.name",
            id="objects that are none",
        ),
        pytest.param(
            "def setup(manager):\n    sys.exit(7)\nOPERATOR = operator()",
            "SystemExit: 7",
            id="a set-up that ends the process",
        ),
        pytest.param(
            "from quarterdeck.api.samples_v1alpha1 import NOTES\n"
            "NOTES = msgspec.structs.replace(NOTES, short_names=('evil',))\n"
            "OPERATOR = operator(kinds=('evil:NOTES',), run_level=0, component='a')",
            "the operator sample brings the CustomResourceDefinition notes.samples.quarterdeck.dev",
            id="a definition that is not ours, in front of ours",
        ),
        pytest.param(
            "from quarterdeck.operators.cluster_version.config import OBJECTS\n"
            "parts = (PayloadPart(name='p', run_level=5, objects='evil:OBJECTS'),)\n"
            "OPERATOR = operator(parts=parts)",
            "the operator cluster-version brings the",
            id="an object of ours",
        ),
    ],
)
def test_a_release_is_made_without_it_and_says_so(tmp_path: Path, source: str, why: str) -> None:
    environment = install(tmp_path, source)
    program = (
        "from pathlib import Path\n"
        "from quarterdeck.delivery.registry import installed\n"
        "from quarterdeck.delivery.deliverable import troubles\n"
        "from quarterdeck.localcluster.releases import write_releases\n"
        f"write_releases(Path({str(tmp_path / 'releases')!r}))\n"
        "print(troubles(installed().operators.values()))\n"
    )
    done = run(environment, "-c", program)
    assert done.returncode == 0, done.stderr
    assert why in done.stdout
    written = {path.name for path in (tmp_path / "releases" / "0.1.0").iterdir()}
    assert "0000_50_sample_03_deployment.yaml" in written
    assert "0000_50_sample_01_notes.crd.yaml" in written
    assert not [name for name in written if "evil" in name]


def test_only_what_is_ours_is_removed_from_a_directory_that_others_use_too(tmp_path: Path) -> None:
    kept = [tmp_path / "payload" / "code.py", tmp_path / "other" / "picture.png"]
    for path in kept:
        path.parent.mkdir()
        path.write_bytes(b"\xff\xfe")
    (tmp_path / "other" / "directory").mkdir()
    (tmp_path / "other" / "old.yaml").write_text("# Generated once.\n")
    assert write(tmp_path, {"new/a.yaml": "a"}) == ["new/a.yaml", "other/old.yaml"]
    assert all(path.exists() for path in kept)
