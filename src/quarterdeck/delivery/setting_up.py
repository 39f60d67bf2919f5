"""Calls the `setup` of an operator, to run it or to record what it asks for."""

import inspect
from collections.abc import Callable, Mapping
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
    _check_arguments(declared, setup)
    if declared.settings:
        setup(manager, load(declared.settings)(**options))
    else:
        setup(manager)


def _check_arguments(declared: Declaration, setup: Callable[..., Any]) -> None:
    from quarterdeck.controller.mistakes import WrongSetup

    given = ("manager", "settings") if declared.settings else ("manager",)
    try:
        inspect.signature(setup).bind(*given)
    except TypeError:
        raise WrongSetup(setup, given, declared.settings) from None


@cache
def uses(declared: Declaration) -> tuple["Use", ...]:
    """What the operator's `setup` asks the manager for, with the settings in its Deployment."""
    from quarterdeck.api.meta import Key
    from quarterdeck.controller import recorded_uses

    return recorded_uses(
        partial(set_up, declared, delivered_options(declared)),
        name=declared.name,
        field_manager=declared.field_manager,
        home=Key(declared.namespace, declared.account),
        namespaces=declared.watched_namespaces,
    )


def delivered_options(declared: Declaration) -> dict[str, str]:
    """The settings that the arguments of its Deployment give; only texts, which can select parts.

    An argument is `--flag=value`.
    """
    if declared.delivery is None:
        return {}
    given = dict(arg.split("=", 1) for arg in declared.delivery.args if "=" in arg)
    options = options_of(declared)
    return {one.field: given[one.flag] for one in options if one.type is str and one.flag in given}
