"""The options of `quarterdeck run` for an operator, from the type of its settings.

    class Settings(msgspec.Struct, frozen=True, kw_only=True):
        interval: timedelta = timedelta(minutes=10)
        \"\"\"How long an operator may be silent.\"\"\"
        profile: Annotated[str, option(flag="--cluster-profile", env="CLUSTER_PROFILE")] = "…"

The name, type, default and docstring of a field make the option; `option` adds a flag or a
variable.
"""

import typing
from collections.abc import Collection
from datetime import timedelta
from types import UnionType
from typing import Any

import msgspec

from quarterdeck.api.docstrings import field_description
from quarterdeck.delivery.checks import check_flag
from quarterdeck.delivery.declaration import Declaration, load

_EXTRA = "quarterdeck-option"


class OptionExtra(msgspec.Struct, frozen=True, kw_only=True):
    """What `option` adds to the option of a field."""

    flag: str = ""
    env: str = ""
    zero: bool = False


class SettingOption(msgspec.Struct, frozen=True, kw_only=True):
    """One option of one operator."""

    operator: str
    field: str
    flag: str
    type: type
    """str, int, float, bool or timedelta."""
    help: str
    default: Any
    required: bool
    env: str = ""
    """The environment variable that gives the value if the option is not set."""
    zero: bool = False
    """Whether a duration may be zero."""

    @property
    def parameter(self) -> str:
        """The name of the command's parameter."""
        return f"{self.operator}__{self.field}".replace("-", "_")


def option(*, flag: str = "", env: str = "", zero: bool = False) -> msgspec.Meta:
    """A marker for the option of a setting: another flag, a variable, or that zero is allowed."""
    return msgspec.Meta(extra={_EXTRA: OptionExtra(flag=flag, env=env, zero=zero)})


def options_of(operator: Declaration, taken: Collection[str] = ()) -> tuple[SettingOption, ...]:
    """The options of an operator; if a flag is taken, it gets the operator's name as a prefix.

    `--interval` becomes `--mine-interval` if another operator, or the command itself, has an
    `--interval`.
    """
    if not operator.settings:
        return ()
    settings = load(operator.settings)
    hints = typing.get_type_hints(settings, include_extras=True)
    found: list[SettingOption] = []
    for field in msgspec.structs.fields(settings):
        kind, extra = _kind_and_extra(field.name, hints[field.name])
        flag = extra.flag or f"--{field.name.strip('_').replace('_', '-').lower()}"
        if flag in taken:
            flag = f"--{operator.name}-{flag.removeprefix('--')}"
        check_flag(f"settings.{field.name}", flag)
        if flag in taken or any(flag == other.flag for other in found):
            raise ValueError(f"settings.{field.name}: {flag!r}: the flag is taken; name another")
        each = SettingOption(
            operator=operator.name,
            field=field.name,
            flag=flag,
            type=kind,
            help=_help(settings, field.name),
            default=None if field.required else _default(field),
            required=field.required,
            env=extra.env,
            zero=extra.zero,
        )
        found.append(each)
    return tuple(found)


def _kind_and_extra(field: str, hint: Any) -> tuple[type, OptionExtra]:
    """The type of a setting and its `option`; TypeError if no option can have this type."""
    extra = OptionExtra()
    if typing.get_origin(hint) is typing.Annotated:
        hint, *metadata = typing.get_args(hint)
        for meta in metadata:
            if isinstance(meta, msgspec.Meta) and meta.extra:
                extra = meta.extra.get(_EXTRA, extra)
    union = isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union
    some = typing.get_args(hint) if union else (hint,)  # `str | None`
    match [one for one in some if one is not type(None)]:
        case [kind] if kind in (str, int, float, bool, timedelta):
            return kind, extra
    raise TypeError(
        f"the setting {field} cannot be a {hint}: use str, int, float, bool or timedelta"
    )


def _default(field: Any) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _help(settings: type, field: str) -> str:
    try:
        return field_description(settings, field)
    except OSError:  # installed without its source
        return ""
