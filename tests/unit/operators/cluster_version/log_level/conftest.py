"""The log of the process that runs the tests."""

import io
from collections.abc import Iterator

import pytest

from quarterdeck import log as logs


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What is logged while the test runs; the process's logging is left as it was."""
    before = (logs._Output.verbosity, logs._Output.stream, logs._Output.processors)
    stream = io.StringIO()
    logs.configure(fmt="json", stream=stream)
    yield stream
    logs._Output.verbosity, logs._Output.stream, logs._Output.processors = before
