"""The examples of `docs/authors` and of the comparison: complete, type-checked, and set up."""

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.documents import example_files, example_module
from tests.places import DOCS, ROOT

from quarterdeck.api.meta import Key
from quarterdeck.api.samples_v1alpha1 import Note
from quarterdeck.controller import InvalidSpec, recorded_uses
from quarterdeck.testing import plugin

AUTHORS = DOCS / "authors"
COMPARISON = DOCS / "comparison.md"
PAGES = [*sorted(AUTHORS.glob("*.md")), COMPARISON]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOTE: dict[str, Any] = {
    "metadata": {"name": "hello", "namespace": "team-a", "uid": "1"},
    "spec": {"text": "hi"},
}
KOPF = "kopf_website.py"
"""The only example that is not for Quarterdeck."""


def note(**metadata: Any) -> Note:
    return msgspec.convert({**NOTE, "metadata": NOTE["metadata"] | metadata}, Note)


def rights(page: str, name: str, *settings: Any) -> set[tuple[str, str, str]]:
    """Resource, namespace and verb of each request that the example's `setup` declares."""
    setup = example_module(AUTHORS / page, name)["setup"]
    uses = recorded_uses(lambda manager: setup(manager, *settings))
    return {(use.resource.plural, use.namespace, verb) for use in uses for verb in use.verbs}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [one for one in targets if not (page.parent / one).exists()] == []


def test_every_page_is_listed() -> None:
    text = (AUTHORS / "README.md").read_text()
    assert [page.name for page in PAGES if page.stem != "README" and page.name not in text] == []


@pytest.mark.slow
def test_the_examples_pass_the_strict_type_check(tmp_path: Path) -> None:
    for page in PAGES:
        for name, code in example_files(page).items():
            if name != KOPF:
                (tmp_path / name).write_text(code)
    options = ["--strict", f"--cache-dir={ROOT / '.mypy_cache' / 'docs'}", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_examples_have_the_style_of_this_repository(tmp_path: Path) -> None:
    for page in PAGES:
        for name, code in example_files(page).items():
            (tmp_path / name).write_text(code)
    ruff = [sys.executable, "-m", "ruff", "format", "--check", "--diff"]
    config = f"--config={ROOT / 'pyproject.toml'}"
    done = subprocess.run(
        [*ruff, config, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_note_expires_an_hour_after_its_creation() -> None:
    seconds_left = example_module(AUTHORS / "timers-and-tasks.md", "expiry.py")["seconds_left"]
    created = note(creationTimestamp="2026-01-01T00:00:00Z")
    assert seconds_left(created, NOW) == 3600
    assert seconds_left(created, NOW + timedelta(hours=2)) == -3600


@pytest.mark.parametrize(
    ("page", "name", "wanted"),
    [
        ("timers-and-tasks.md", "expiry.py", ("notes", "", "delete")),
        ("timers-and-tasks.md", "load.py", ("configmaps", "default", "patch")),
        ("indexes.md", "pod_count.py", ("nodes", "", "patch")),
        ("foreign-kinds.md", "unready.py", ("certificates", "", "watch")),
        ("foreign-kinds.md", "with_certificates.py", ("certificates", "", "patch")),
        ("foreign-kinds.md", "checksum.py", ("secrets", "", "watch")),
        ("website.md", "websites.py", ("configmaps", "website-mirrors", "delete")),
    ],
)
def test_an_example_can_be_set_up(page: str, name: str, wanted: tuple[str, str, str]) -> None:
    assert wanted in rights(page, name)


def test_chosen_namespaces_need_rights_only_there() -> None:
    settings = example_module(AUTHORS / "namespaces.md", "chosen.py")["Settings"]()
    found = rights("namespaces.md", "chosen.py", settings)
    assert {namespace for _, namespace, _ in found} == {"team-a", "team-b"}
    assert ("configmaps", "team-b", "patch") in found


def test_a_pod_is_found_by_its_node() -> None:
    pod_count = example_module(AUTHORS / "indexes.md", "pod_count.py")
    assert pod_count["to_node"]({"spec": {"nodeName": "one"}}) == [Key("", "one")]
    assert pod_count["to_node"]({"spec": {}}) == []


def test_a_certificate_says_why_it_is_not_ready() -> None:
    why_not_ready = example_module(AUTHORS / "foreign-kinds.md", "unready.py")["why_not_ready"]
    failed = {"type": "Ready", "status": "False", "message": "no issuer"}
    assert why_not_ready({"status": {"conditions": [failed]}}) == "no issuer"
    assert why_not_ready({}) == ""


def test_a_kind_is_there_when_its_crd_is_established() -> None:
    module = example_module(AUTHORS / "foreign-kinds.md", "with_certificates.py")
    established = {"status": {"conditions": [{"type": "Established", "status": "True"}]}}
    assert module["is_established"](established)
    assert not module["is_established"]({"status": {"conditions": None}})
    assert not module["is_established"](None)
    assert module["desired_certificate"](note())["spec"]["secretName"] == "hello-tls"


def test_a_note_names_a_secret_of_its_namespace() -> None:
    module = example_module(AUTHORS / "foreign-kinds.md", "checksum.py")
    assert module["secret_names"](None) == module["secret_names"](note()) == []
    named = note(annotations={"example.com/secret": "token"})
    assert module["secret_names"](named) == [Key("team-a", "token")]
    assert module["checksum"](None) is None
    assert module["checksum"]({"data": {"a": "1"}}) != module["checksum"]({"data": {"a": "2"}})


def test_the_page_of_fixtures_lists_each_of_the_plugin() -> None:
    listed = re.findall(r"^    (\w+) +\S", plugin.__doc__ or "", re.MULTILINE)
    text = (AUTHORS / "testing.md").read_text()
    assert len(listed) > 10
    assert [name for name in listed if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("print_crd.py", '"kind": "CustomResourceDefinition"'),
        ("print_rights.py", "configmaps in default: "),
    ],
)
def test_a_small_program_prints_what_it_promises(
    tmp_path: Path, program: str, printed: str
) -> None:
    files = example_files(AUTHORS / "running.md")
    load = example_files(AUTHORS / "timers-and-tasks.md")["load.py"]
    (tmp_path / "load.py").write_text(load)
    (tmp_path / program).write_text(files[program])
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert printed in run([sys.executable, program]).stdout


def test_the_moved_operator_writes_pages_and_refuses_an_empty_one() -> None:
    module = example_module(COMPARISON, "website.py")
    uses = recorded_uses(module["setup"])
    assert {use.resource.plural for use in uses} == {"websites", "configmaps"}
    website = msgspec.convert({**NOTE, "spec": {"html": "<p>"}}, module["Website"])
    assert module["desired_page"](website)["data"] == {"index.html": "<p>"}
    empty = msgspec.convert({**NOTE, "spec": {"html": " "}}, module["Website"])
    with pytest.raises(InvalidSpec, match=r"spec\.html"):
        module["desired_page"](empty)


def test_the_compared_figures_are_those_of_the_performance_page() -> None:
    speed = COMPARISON.read_text().partition("## Speed")[2].partition("\n## ")[0]
    measured = (DOCS / "performance.md").read_text()
    rows = [line for line in speed.splitlines() if line.startswith("| ")]
    figures = [
        one for row in rows[1:] for one in re.findall(r"\d[\d.,]*\d|\d", row.split("|", 2)[2])
    ]
    assert len(figures) > 20
    assert [one for one in figures if one not in measured] == []


def test_the_finalizer_needs_rights_on_notes_and_on_copies() -> None:
    declared = rights("finalizers.md", "archive.py")
    assert ("notes", "", "patch") in declared
    assert ("configmaps", "archive", "delete") in declared


def test_the_copy_of_a_note_leads_back_to_it_and_a_long_text_is_refused() -> None:
    archive = example_module(AUTHORS / "finalizers.md", "archive.py")
    copy = archive["desired_copy"](note())
    assert copy == {
        "metadata": {"namespace": "archive", "name": "team-a.hello"},
        "data": {"text": "hi"},
    }
    assert archive["to_note"](copy) == [Key("team-a", "hello")]
    long = msgspec.convert({**NOTE, "spec": {"text": "x" * 1001}}, Note)
    with pytest.raises(InvalidSpec, match=r"spec\.text: .*: use at most 1000 characters"):
        archive["desired_copy"](long)
