"""docs/applying-a-payload.md explains every reason that the engine gives."""

import re

from tests.places import ROOT

SOURCE = ROOT / "src" / "quarterdeck"
MODULES = [
    *(SOURCE / "operators" / "cluster_version" / "sync").glob("*.py"),
    SOURCE / "status" / "definitions.py",
    SOURCE / "status" / "rollout.py",
]
TEXT = (ROOT / "docs" / "applying-a-payload.md").read_text()


def reasons() -> set[str]:
    """The reasons in the code."""
    sources = "".join(path.read_text() for path in MODULES)
    given = re.findall(r'(?:Failed|Waiting|Done)\(\s*"([A-Z]\w+)"', sources)
    named = re.findall(r'= "([A-Z]\w+)", "([A-Z]\w+)"', sources)
    return {*given, *(word for pair in named for word in pair)}


def test_every_reason_is_explained_and_none_that_is_not_given() -> None:
    section = TEXT.partition("## Reasons")[2]
    told = {
        word
        for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        for word in re.findall(r"`(\w+)`", row)
    }
    assert len(reasons()) >= 20
    assert told == reasons()
