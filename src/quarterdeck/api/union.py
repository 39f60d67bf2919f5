"""Unions: a discriminator `type`, and one field for the parameters of each type. Pure.

The names of the types and the CEL rules follow from the fields, so a new type is a new field:

    class Destinations(Part):
        syslog: Syslog | None = None
        file: File | None = None

    union_types(Destinations)   # Syslog, File
    union_rules(Destinations)   # syslog is required when type is Syslog, ...
"""

from functools import cache

import msgspec

from quarterdeck.api.meta import Part
from quarterdeck.api.schema import ValidationRule


def union_types(members: type[Part]) -> list[str]:
    """The values of the discriminator, sorted: the fields' names with a capital letter."""
    return sorted(_type_of(field.encode_name) for field in msgspec.structs.fields(members))


@cache
def union_member(members: type[Part], type_: str) -> str:
    """The name in Python of the field for a type; empty if there is none."""
    return next(
        (
            field.name
            for field in msgspec.structs.fields(members)
            if _type_of(field.encode_name) == type_
        ),
        "",
    )


@cache
def needs_parameters(members: type[Part], member: str) -> bool:
    """Whether a type cannot be chosen without its field, by the field's name in Python."""
    return any(
        field.name == member and _has_required_fields(field.type)
        for field in msgspec.structs.fields(members)
    )


def union_rules(members: type[Part]) -> list[ValidationRule]:
    """Rules for the field that has the union, each with the name of the member in its message.

    Only the member of the chosen type may be set, and it must be if its parameters are required.
    """
    made = []
    for field in msgspec.structs.fields(members):
        name, type_ = field.encode_name, _type_of(field.encode_name)
        if _has_required_fields(field.type):
            made.append(
                ValidationRule(
                    f"self.type != '{type_}' || has(self.{name})",
                    f"{name} is required when type is {type_}",
                    f".{name}",
                )
            )
        made.append(
            ValidationRule(
                f"self.type == '{type_}' || !has(self.{name})",
                f"{name} is forbidden unless type is {type_}; remove it, or change type",
                f".{name}",
            )
        )
    return made


def _type_of(field: str) -> str:
    return field[:1].upper() + field[1:]


def _has_required_fields(optional: object) -> bool:
    """Whether the parameters of a member, `Parameters | None`, have a required field."""
    structs = [
        one
        for one in getattr(optional, "__args__", (optional,))
        if isinstance(one, type) and issubclass(one, msgspec.Struct)
    ]
    return any(field.required for one in structs for field in msgspec.structs.fields(one))
