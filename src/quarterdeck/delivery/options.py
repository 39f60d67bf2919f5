"""What can be set for an operator, read from the type of its settings: for `quarterdeck run`.

    class Settings(msgspec.Struct, frozen=True, kw_only=True):
        interval: timedelta = timedelta(minutes=10)
        \"\"\"How long an operator may be silent.\"\"\"
        profile: Annotated[str, option(flag="--cluster-profile", env="CLUSTER_PROFILE")] = "…"

A field's name, type, default and docstring make the option; `option` says what else there is to
say. The default is the field's own and is said nowhere else.
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


class Extra(msgspec.Struct, frozen=True, kw_only=True):
    """What a field says of its option beside name, type and default."""

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
    """The environment variable that it is taken from where it is not given."""
    zero: bool = False
    """Whether a length of time may be none at all."""

    @property
    def parameter(self) -> str:
        """Its name among the parameters of the command."""
        return f"{self.operator}__{self.field}".replace("-", "_")


def option(*, flag: str = "", env: str = "", zero: bool = False) -> msgspec.Meta:
    """What to say of a setting's option: another flag, a variable, that zero is a length."""
    return msgspec.Meta(extra={_EXTRA: Extra(flag=flag, env=env, zero=zero)})


def options_of(operator: Declaration, taken: Collection[str] = ()) -> tuple[SettingOption, ...]:
    """The options of an operator; those whose flag is taken get its name in front.

    `--interval` becomes `--mine-interval` where another operator, or the command itself, has an
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


def _kind_and_extra(field: str, hint: Any) -> tuple[type, Extra]:
    """The type of a setting, and what `option` says of it; TypeError for a type of no option."""
    extra = Extra()
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
