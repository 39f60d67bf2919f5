"""The plugin's manners: it costs nothing to who does not use it, and names things well."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.testing.namespaces import name_for

SHOW_IMPORTS = """
import sys
import pytest
before = set(sys.modules)
import quarterdeck.testing.plugin
print(" ".join(set(sys.modules) - before))
"""


def test_the_plugin_imports_nothing_but_itself() -> None:
    """pytest loads it in every session, also in those that want no control plane."""
    result = subprocess.run(
        [sys.executable, "-c", SHOW_IMPORTS], capture_output=True, text=True, check=True
    )
    imported = set(result.stdout.split())
    assert imported == {"quarterdeck", "quarterdeck.testing", "quarterdeck.testing.plugin"}


def test_no_fixture_is_autouse(pytester: pytest.Pytester) -> None:
    """A suite that does not ask for a control plane starts none."""
    pytester.makepyfile("def test_plain(): pass")
    result = pytester.runpytest_subprocess("--setup-plan", "-p", "no:asyncio")
    assert "control_plane" not in result.stdout.str()


@given(st.text(max_size=200))
def test_a_namespaces_name_is_valid_whatever_the_test_is_called(test: str) -> None:
    name = name_for(test)
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name)
    assert len(name) <= 63


def test_a_namespace_tells_which_test_it_belongs_to() -> None:
    assert re.fullmatch(r"pods-end-fail-[0-9a-f]{6}", name_for("test_pods_end[fail]"))
