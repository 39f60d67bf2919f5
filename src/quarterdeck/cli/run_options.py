"""The options of `quarterdeck run` that say which operators run, and those that are their own.

They come from what the operators declare, so they are made when the command is used. An option
that is not given is the operator's own default; one that a container is given in its environment,
as the release's version is, names the variable.
"""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

import click

from quarterdeck.cli.durations import Duration, show_duration
from quarterdeck.delivery.options import SettingOption, options_of
from quarterdeck.delivery.registry import Registry, installed


class OperatorName(click.Choice[str]):
    """The name of an installed operator; one that is installed and broken says why."""

    def __init__(self, registry: Registry, names: Collection[str]) -> None:
        super().__init__(sorted(names))
        self._left_out = registry.left_out

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, or a usage error that names the others."""
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
            help="Run this operator; may be given several times. All of them without it.",
        )
        *own, help_option = super().get_params(ctx)
        theirs = [_as_click(option) for option in operator_options(registry, own_flags(own))]
        return [names, *own, *theirs, help_option]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does; an unknown option names the operators whose options are missing."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            missing = unreadable_settings(installed())
            whys = [f"\nThe operator {name} has no options here: {why}" for name, why in missing]
            if not whys:
                raise
            raise click.UsageError(error.format_message() + "".join(whys), ctx) from error


def own_flags(parameters: Collection[click.Parameter]) -> set[str]:
    """The flags that these parameters have."""
    return {flag for one in parameters for flag in (*one.opts, *one.secondary_opts)}


def operator_options(registry: Registry, taken: Collection[str] = ()) -> list[SettingOption]:
    """All options of all operators.

    One whose settings cannot be read has none here, and fails with the reason when it is set up.
    """
    flags = {"--operator", "--help", *taken}
    found: list[SettingOption] = []
    for operator in registry.operators.values():
        try:
            options = options_of(operator, flags)
        except Exception:  # noqa: S112 - what is wrong with one must not harm the others
            continue
        flags |= {option.flag for option in options}
        found += options
    return found


def unreadable_settings(registry: Registry) -> list[tuple[str, str]]:
    """The operators whose settings cannot be read, each with the reason."""
    found = []
    for operator in registry.operators.values():
        try:
            options_of(operator)
        except Exception as error:  # whatever it is, it is that operator's and nobody else's
            found.append((operator.name, f"{type(error).__name__}: {error}"))
    return found


def given_options(ctx: click.Context, chosen: Collection[str]) -> dict[str, dict[str, Any]]:
    """What was given on the command line, by operator; for one that does not run, an error."""
    given: dict[str, dict[str, Any]] = {}
    for option in _options_in(ctx):
        source = ctx.get_parameter_source(option.parameter)
        if source is click.core.ParameterSource.DEFAULT or _says_nothing(ctx, option):
            # Of one that runs because all do, its set-up says so, and the others run.
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
    """Whether a variable still has what a release would have put its version for."""
    from quarterdeck.payload.model import PLACEHOLDER_VERSION

    source = ctx.get_parameter_source(option.parameter)
    by_environment = source is click.core.ParameterSource.ENVIRONMENT
    return by_environment and ctx.params[option.parameter] == PLACEHOLDER_VERSION


class _OfOperator(click.Option):
    """An option of one operator, whose environment variable counts only where that one runs.

    What is in the environment may be meant for somebody else, and fit the option badly.
    """

    def __init__(self, operator: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._operator = operator

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The variable's value; None where it does not count."""
        # Those that are asked for are known by now: what is not given is looked at last.
        chosen = ctx.params.get("names")
        return (
            None if chosen and self._operator not in chosen else super().resolve_envvar_value(ctx)
        )


def _as_click(option: SettingOption) -> click.Option:
    is_flag = option.type is bool
    # What is on by itself can only be set by a flag that switches it off.
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
    """The setting's default as help shows one; what is off or empty has none to show."""
    match option.default:
        case None | "" | False:
            return ""
        case True:
            return f"  [default: {option.flag.removeprefix('--')}]"
        case timedelta() as length:
            return f"  [default: {show_duration(length.total_seconds())}]"
        case other:
            return f"  [default: {other}]"
