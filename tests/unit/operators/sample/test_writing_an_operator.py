"""The documented operator is the real one, which the integration tests run."""

import re
from pathlib import Path

from tests.places import DOCS

import quarterdeck.operators.sample.controller as sample

DOCUMENT = DOCS / "writing-an-operator.md"


def documented() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return str(code)


def test_the_documented_operator_is_the_sample_operator() -> None:
    assert documented() == Path(sample.__file__).read_text()


def test_it_is_complete_in_under_sixty_lines() -> None:
    assert len(documented().splitlines()) < 60
