"""The options of `quarterdeck local up` for operators, from their declarations.

`--operator NAME` and `--NAME` deploy an operator. So does an option that an operator declares for a
field of its own objects. With `--all` the payload installs the operators that it contains.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from quarterdeck.cli.run_options import OperatorName, own_flags
from quarterdeck.delivery.declaration import Declaration, LocalOption, StaticPodDelivery
from quarterdeck.delivery.registry import installed


class UpCommand(click.Command):
    """A command with the options of all operators that can be deployed."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters, with those of the operators before `--help`."""
        *own, help_option = super().get_params(ctx)
        taken = {"--operator", "--help", *own_flags(own)}
        theirs = [_as_click(one) for one in _options() if one.flag not in taken]
        return [*own, _names(), *_aliases(taken), *theirs, help_option]


def operators_in(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """The operators that any option asks for, in the order of their run levels."""
    wanted = {
        one.name
        for one in _deliverable()
        if one.name in parameters["names"]
        or parameters.get(_alias(one))
        or (parameters["everything"] and isinstance(one.delivery, StaticPodDelivery))
        or any(parameters.get(_parameter(option)) for option in one.local.options)
    }
    return tuple(one.name for one in _deliverable() if one.name in wanted)


def changes_in(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The changes to the operators' own objects, by kind."""
    changes: dict[str, Any] = {}
    for option in _options():
        if value := parameters.get(_parameter(option)):
            at = changes.setdefault(option.kind, {})
            *above, last = option.field
            for name in above:
                at = at.setdefault(name, {})
            at[last] = value
    return changes


def _deliverable() -> list[Declaration]:
    found = [one for one in installed().operators.values() if one.delivery is not None]
    return sorted(found, key=lambda one: (one.run_level, one.name))


def _options() -> Iterator[LocalOption]:
    for declared in _deliverable():
        yield from declared.local.options


def _names() -> click.Option:
    names = [one.name for one in _deliverable()]
    return click.Option(
        ["--operator", "names"],
        type=OperatorName(installed(), names),
        multiple=True,
        metavar="NAME",
        help=f"Also run this operator: {', '.join(names)}. You can give the option several times.",
    )


def _aliases(taken: set[str]) -> list[click.Option]:
    return [
        click.Option(
            [f"--{one.name}", _alias(one)],
            is_flag=True,
            help=f"{one.title}: the same as --operator {one.name}.",
        )
        for one in _deliverable()
        if f"--{one.name}" not in taken
    ]


def _as_click(option: LocalOption) -> click.Option:
    return click.Option(
        [option.flag, _parameter(option)],
        type=click.Choice(option.choices, case_sensitive=False),
        help=option.help,
    )


def _alias(declared: Declaration) -> str:
    return f"alias__{declared.name}".replace("-", "_")


def _parameter(option: LocalOption) -> str:
    return f"option__{option.flag.removeprefix('--')}".replace("-", "_")
