"""What the package offers, and the small things around a process."""

import pytest

import quarterdeck.controller as package
from quarterdeck.controller import LeadershipLost
from quarterdeck.controller.metadata import reference_to
from quarterdeck.controller.process import root_cause


def test_everything_exported_is_there_and_in_order() -> None:
    assert all(hasattr(package, name) for name in package.__all__)
    constants = [name for name in package.__all__ if name.isupper()]
    types = [name for name in package.__all__ if name[0].isupper() and not name.isupper()]
    functions = [name for name in package.__all__ if name[0].islower()]
    assert package.__all__ == [*sorted(constants), *sorted(types), *sorted(functions)]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(ValueError("a"), "a", id="a plain fault is itself"),
        pytest.param(
            ExceptionGroup("g", [ExceptionGroup("h", [ValueError("deep")]), KeyError("b")]),
            "deep",
            id="the first of several, however deep",
        ),
        pytest.param(
            ExceptionGroup("g", [ValueError("a"), LeadershipLost("lost")]),
            "lost",
            id="lost leadership before all others",
        ),
    ],
)
def test_one_fault_is_told_of_many(error: Exception, told: str) -> None:
    assert str(root_cause(error)) == told


@pytest.mark.parametrize("namespace", ["ns", ""])
def test_a_reference_names_the_very_object(namespace: str) -> None:
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": "x", "uid": "u", "resourceVersion": "5"},
    }
    reference = reference_to(obj)
    assert reference.pop("namespace", "") == namespace
    assert reference == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "x",
        "uid": "u",
        "resourceVersion": "5",
    }
