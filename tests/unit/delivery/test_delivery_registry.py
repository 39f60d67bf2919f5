"""Finding operators: ours, those of other distributions, and those that are broken."""

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.delivery.distributions import entries_in, write_distribution

from quarterdeck import operators
from quarterdeck.delivery.registry import installed, read

SAMPLE = "quarterdeck.operators.sample:OPERATOR"
STALENESS = "quarterdeck.operators.staleness:OPERATOR"


def test_every_package_of_ours_is_installed_and_sound() -> None:
    registry = installed()
    packages = [one.name.replace("_", "-") for one in pkgutil.iter_modules(operators.__path__)]
    assert [one.name for one in registry.of("quarterdeck")] == sorted(packages)
    assert registry.left_out == ()


def test_each_distribution_adds_its_own(tmp_path: Path) -> None:
    write_distribution(tmp_path, "acme-operators", {"staleness": STALENESS})
    write_distribution(tmp_path, "quarterdeck", {"sample": SAMPLE})
    registry = read(entries_in(tmp_path))
    assert list(registry.operators) == ["sample", "staleness"], "ours come first"
    assert [one.name for one in registry.of("acme-operators")] == ["staleness"]


@pytest.mark.parametrize(
    ("entry", "value", "why"),
    [
        pytest.param(
            "mine",
            "no_such_module:OPERATOR",
            "no_such_module:OPERATOR cannot be imported: ModuleNotFoundError: "
            "No module named 'no_such_module'",
            id="one that cannot be imported",
        ),
        pytest.param(
            "mine",
            "quarterdeck.operators.sample:NOPE",
            "quarterdeck.operators.sample:NOPE cannot be imported: AttributeError: "
            "module 'quarterdeck.operators.sample' has no attribute 'NOPE'",
            id="one without its declaration",
        ),
        pytest.param(
            "mine",
            "quarterdeck.delivery.registry:GROUP",
            "quarterdeck.delivery.registry:GROUP is a str; make it a Declaration",
            id="one that is something else",
        ),
        pytest.param(
            "mine",
            STALENESS,
            f"{STALENESS} has the name staleness; call the entry point so too",
            id="one by two names",
        ),
        pytest.param(
            "sample",
            SAMPLE,
            "quarterdeck has one of this name; rename one of the two",
            id="one whose name is taken",
        ),
    ],
)
def test_a_broken_one_is_told_in_a_sentence_and_harms_no_other(
    tmp_path: Path, entry: str, value: str, why: str
) -> None:
    write_distribution(tmp_path, "acme-operators", {entry: value, "staleness": STALENESS})
    write_distribution(tmp_path, "quarterdeck", {"sample": SAMPLE})
    registry = read(entries_in(tmp_path))
    assert sorted(registry.operators) == ["sample", "staleness"]
    assert [str(one) for one in registry.left_out] == [
        f"operator {entry} of acme-operators is left out: {why}"
    ]


def test_a_declaration_is_light() -> None:
    """All commands that list operators import all declarations, and no operator."""
    program = (
        "import sys\n"
        "from quarterdeck.delivery.registry import installed\n"
        "assert not installed().left_out\n"
        "print(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    imported = set(done.stdout.split())
    assert "quarterdeck.operators.sample" in imported, done.stderr
    assert not imported & {"aiohttp", "yaml", "prometheus_client", "quarterdeck.controller"}
