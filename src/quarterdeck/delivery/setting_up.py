"""Setting an operator up: for a manager that runs it, or to find out what it asks for."""

from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from quarterdeck.delivery.declaration import Declaration, load
from quarterdeck.delivery.options import options_of

if TYPE_CHECKING:
    from quarterdeck.controller import Manager, Use


def set_up(declared: Declaration, options: Mapping[str, Any], manager: "Manager") -> None:
    """Import an operator and let it add its controllers; options are fields of its settings."""
    setup = load(declared.setup)
    if declared.settings:
        options_of(declared)  # raises for settings that no option can be made of
        setup(manager, load(declared.settings)(**options))
    else:
        setup(manager)


@cache
def uses(declared: Declaration) -> tuple["Use", ...]:
    """What the operator asks its manager for with the settings that it has by itself."""
    from quarterdeck.controller import recorded_uses

    return recorded_uses(partial(set_up, declared, {}))
