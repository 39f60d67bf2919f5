"""The options of `quarterdeck run` that select operators, and the operators' own options.

They follow from the operators' declarations, so they are built when the command is used. Without an
option the operator's default applies. A setting may also name an environment variable of its
container, such as the release's version.
"""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

import click

from quarterdeck.cli.durations import Duration, show_duration
from quarterdeck.delivery.options import SettingOption, options_of
from quarterdeck.delivery.registry import InstalledOperators, installed


class OperatorName(click.Choice[str]):
    """The name of an installed operator; for one that was left out the error gives the reason."""

    def __init__(self, registry: InstalledOperators, names: Collection[str]) -> None:
        super().__init__(sorted(names))
        self._left_out = registry.left_out

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, or a usage error with the valid names."""
        if value not in self.choices:
            for one in self._left_out:
                if one.name == value:
                    self.fail(str(one), param, ctx)
        return super().convert(value, param, ctx)


class RunCommand(click.Command):
    """A command with an option for each setting of each installed operator."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters, with those of the operators before `--help`."""
        registry = installed()
        names = click.Option(
            ["--operator", "names"],
            type=OperatorName(registry, registry.operators),
            multiple=True,
            metavar="NAME",
            help=f"Run this operator: {', '.join(registry.operators)}. You can give the option "
            "several times.",
        )
        *own, help_option = super().get_params(ctx)
        theirs = [_as_click(option) for option in operator_options(registry, own_flags(own))]
        return [names, *own, *theirs, help_option]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; the error for an unknown option names operators without options."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            missing = unreadable_settings(installed())
            whys = [f"\nThe operator {name} has no options here: {why}" for name, why in missing]
            if not whys:
                raise
            raise click.UsageError(error.format_message() + "".join(whys), ctx) from error


def own_flags(parameters: Collection[click.Parameter]) -> set[str]:
    """The flags of these parameters."""
    return {flag for one in parameters for flag in (*one.opts, *one.secondary_opts)}


def operator_options(
    registry: InstalledOperators, taken: Collection[str] = ()
) -> list[SettingOption]:
    """All options of all operators.

    An operator whose settings cannot be read has none here; its set-up fails with the reason.
    """
    flags = {"--operator", "--help", *taken}
    found: list[SettingOption] = []
    for operator in registry.operators.values():
        try:
            options = options_of(operator, flags)
        except Exception:  # noqa: S112 - one operator's fault must not affect the others
            continue
        flags |= {option.flag for option in options}
        found += options
    return found


def unreadable_settings(registry: InstalledOperators) -> list[tuple[str, str]]:
    """The operators whose settings cannot be read, each with the reason."""
    found = []
    for operator in registry.operators.values():
        try:
            options_of(operator)
        except Exception as error:  # One operator's fault must not affect the others.
            found.append((operator.name, f"{type(error).__name__}: {error}"))
    return found


def given_options(ctx: click.Context, chosen: Collection[str]) -> dict[str, dict[str, Any]]:
    """The given options by operator; an option of an operator that does not run is an error."""
    given: dict[str, dict[str, Any]] = {}
    for option in _options_in(ctx):
        source = ctx.get_parameter_source(option.parameter)
        if source is click.core.ParameterSource.DEFAULT or _says_nothing(ctx, option):
            # If all operators run, only the set-up of this one fails, and the others run.
            if option.required and option.operator in ctx.params["names"]:
                raise click.UsageError(f"{option.operator} needs {option.flag}")
            continue
        if option.operator not in chosen:
            if source is click.core.ParameterSource.ENVIRONMENT:
                continue
            name = option.operator
            raise click.UsageError(f"{option.flag} is for {name}: add --operator {name}")
        given.setdefault(option.operator, {})[option.field] = ctx.params[option.parameter]
    return given


def _options_in(ctx: click.Context) -> list[SettingOption]:
    own = [one for one in ctx.command.params if isinstance(one, click.Option)]
    return operator_options(installed(), own_flags(own))


def _says_nothing(ctx: click.Context, option: SettingOption) -> bool:
    """Whether a variable still has the placeholder of a release's version."""
    from quarterdeck.payload.model import PLACEHOLDER_VERSION

    source = ctx.get_parameter_source(option.parameter)
    by_environment = source is click.core.ParameterSource.ENVIRONMENT
    return by_environment and ctx.params[option.parameter] == PLACEHOLDER_VERSION


class _OfOperator(click.Option):
    """An option of one operator, whose environment variable counts only if that operator runs.

    Another program may use a variable of the same name, with an invalid value.
    """

    def __init__(self, operator: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._operator = operator

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The variable's value; None if it does not count."""
        # `names` is parsed by now: click reads environment variables last.
        chosen = ctx.params.get("names")
        return (
            None if chosen and self._operator not in chosen else super().resolve_envvar_value(ctx)
        )


def _as_click(option: SettingOption) -> click.Option:
    is_flag = option.type is bool
    # A setting that is on by default needs a flag that switches it off.
    off = f"/--no-{option.flag.removeprefix('--')}" if option.default is True else ""
    return _OfOperator(
        option.operator,
        [f"{option.flag}{off}", option.parameter],
        type=None if is_flag else _click_type(option),
        is_flag=is_flag,
        envvar=option.env or None,
        show_envvar=bool(option.env),
        help=option.help + _default_text(option),
    )


def _click_type(option: SettingOption) -> Any:
    return Duration(whole=True, zero=option.zero) if option.type is timedelta else option.type


def _default_text(option: SettingOption) -> str:
    """The setting's default in the format of help; empty if it is off or empty."""
    match option.default:
        case None | "" | False:
            return ""
        case True:
            return f"  [default: {option.flag.removeprefix('--')}]"
        case timedelta() as length:
            return f"  [default: {show_duration(length.total_seconds())}]"
        case other:
            return f"  [default: {other}]"
