"""The documented operator is the real one, which the integration tests run."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.documents import example_module
from tests.places import DOCS

import quarterdeck.operators.sample.controller as sample
from quarterdeck.api.meta import Key
from quarterdeck.api.samples_v1alpha1 import Note
from quarterdeck.controller import InvalidSpec, recorded_uses

DOCUMENT = DOCS / "writing-an-operator.md"
NOTE = {"metadata": {"name": "hello", "namespace": "here"}, "spec": {"text": "hi"}}


def documented() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return str(code)


def test_the_documented_operator_is_the_sample_operator() -> None:
    assert documented() == Path(sample.__file__).read_text()


def test_it_is_complete_in_under_sixty_lines() -> None:
    assert len(documented().splitlines()) < 60


@pytest.fixture
def archive() -> dict[str, Any]:
    """The module of the document's operator with a finalizer."""
    return example_module(DOCUMENT, "archive.py")


def test_the_documented_finalizer_can_be_set_up_with_the_rights_that_it_declares(
    archive: dict[str, Any],
) -> None:
    uses = {
        (use.resource.plural, use.namespace, verb)
        for use in recorded_uses(archive["setup"])
        for verb in use.verbs
    }
    assert ("notes", "", "patch") in uses
    assert ("configmaps", "archive", "delete") in uses


def test_the_documented_copy_refuses_a_text_that_is_too_long(archive: dict[str, Any]) -> None:
    note = msgspec.convert(NOTE, Note)
    assert archive["desired_copy"](note) == {
        "metadata": {"namespace": "archive", "name": "here.hello"},
        "data": {"text": "hi"},
    }
    assert archive["to_note"](archive["desired_copy"](note)) == [Key("here", "hello")]
    long = msgspec.convert({**NOTE, "spec": {"text": "x" * 1001}}, Note)
    with pytest.raises(InvalidSpec, match=r"spec\.text: .*: use at most 1000 characters"):
        archive["desired_copy"](long)
