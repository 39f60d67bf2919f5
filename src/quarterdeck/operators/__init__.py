"""The operators, one package each, and where to find them by name.

Nothing is imported until an operator is asked for.
"""

import importlib
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from quarterdeck.controller import Manager


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's names."""

    setup: str
    """`module:function`; the function is given a Manager."""
    namespace: str
    """Where it runs unless POD_NAMESPACE says otherwise; its Lease is there."""
    lease: str
    """The name of its Lease, ServiceAccount and Deployment."""


OPERATORS = {
    "sample": Registered(
        setup="quarterdeck.operators.sample.controller:setup",
        namespace="quarterdeck-sample",
        lease="sample-operator",
    ),
}


def field_manager(name: str) -> str:
    """Whose fields an operator's are, on the objects that it applies."""
    return f"quarterdeck-{name}"


def set_up(name: str, manager: "Manager") -> None:
    """Import an operator and let it add its controllers."""
    module, _, function = OPERATORS[name].setup.partition(":")
    setup: Callable[[Manager], None] = getattr(importlib.import_module(module), function)
    setup(manager)
