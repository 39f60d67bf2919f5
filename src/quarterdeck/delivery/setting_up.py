"""Calls the `setup` of an operator, to run it or to record what it asks for."""

from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from quarterdeck.delivery.declaration import Declaration, load
from quarterdeck.delivery.options import options_of

if TYPE_CHECKING:
    from quarterdeck.controller import Manager, Use


def set_up(declared: Declaration, options: Mapping[str, Any], manager: "Manager") -> None:
    """Import an operator and call its `setup`; `options` are the fields of its settings."""
    setup = load(declared.setup)
    if declared.settings:
        options_of(declared)  # raises if a setting cannot be an option
        setup(manager, load(declared.settings)(**options))
    else:
        setup(manager)


@cache
def uses(declared: Declaration) -> tuple["Use", ...]:
    """What the operator's `setup` asks the manager for with default settings."""
    from quarterdeck.api.meta import Key
    from quarterdeck.controller import recorded_uses

    return recorded_uses(
        partial(set_up, declared, {}),
        name=declared.name,
        field_manager=declared.field_manager,
        home=Key(declared.namespace, declared.account),
        namespace=declared.namespace if declared.only_own_namespace else "",
    )
