"""Makes the structural schema of a CRD from a Python type.

The markers of `schema` add bounds and rules, the docstrings add descriptions. It starts from
msgspec's description of a type and not from its JSON schema, which has references, `anyOf` with
null, and no link to the class with the docstrings.
"""

from typing import Any

import msgspec.inspect as mi

from quarterdeck.api.docstrings import class_description, field_description
from quarterdeck.api.kubernetes_types import kubernetes_schema
from quarterdeck.api.schema import KUBERNETES_TYPE

Schema = dict[str, Any]

LIST_TYPE = "x-kubernetes-list-type"


class UnsupportedTypeError(TypeError):
    """A type that has no structural schema."""

    def __init__(self, path: str, found: mi.Type, remedy: str) -> None:
        super().__init__(f"{path}: {found} has no structural schema; {remedy}")


def schema_of(type_: Any, path: str) -> Schema:
    """The structural schema of a type; `path` is only for error messages."""
    return _schema(mi.type_info(type_), path)


def _struct_schema(struct: mi.StructType, path: str) -> Schema:
    """The schema of a struct and of all its fields."""
    schema: Schema = {"type": "object"}
    if description := class_description(struct.cls):
        schema["description"] = description
    if struct.fields:
        schema["properties"] = {
            field.encode_name: _field_schema(struct.cls, field, f"{path}.{field.encode_name}")
            for field in struct.fields
        }
    if required := [field.encode_name for field in struct.fields if field.required]:
        schema["required"] = sorted(required)
    return schema


def _field_schema(cls: type, field: mi.Field, path: str) -> Schema:
    """The schema of a field, with its own description before that of its type."""
    schema = _schema(field.type, path)
    if description := field_description(cls, field.name):
        schema["description"] = description
    return schema


def _schema(type_: mi.Type, path: str) -> Schema:
    match type_:
        case mi.Metadata(type=inner, extra_json_schema=marked):
            schema = _schema(inner, path) | (marked or {})
            name = schema.pop(KUBERNETES_TYPE, "")
            return schema | kubernetes_schema(name) if name else schema
        case mi.UnionType(types=types):
            return _optional_schema(types, path)
        case mi.StrType():
            return {"type": "string"}
        case mi.BoolType():
            return {"type": "boolean"}
        case mi.IntType():
            return {"type": "integer", "format": "int64"}
        case mi.FloatType():
            return {"type": "number"}
        case mi.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case mi.ListType(item_type=item) | mi.VarTupleType(item_type=item):
            return {"type": "array", LIST_TYPE: "atomic", "items": _schema(item, f"{path}[]")}
        case mi.DictType(value_type=mi.AnyType()) | mi.RawType():
            return {"type": "object"}
        case mi.DictType(key_type=mi.StrType(), value_type=value):
            return {"type": "object", "additionalProperties": _schema(value, f"{path}.*")}
        case mi.StructType():
            return _struct_schema(type_, path)
    raise UnsupportedTypeError(
        path, type_, "use text, numbers, booleans, times, tuples, maps or Parts"
    )


def _optional_schema(types: tuple[mi.Type, ...], path: str) -> Schema:
    # `T | None` means that the field may be absent: in the schema it is not required.
    present = [member for member in types if not isinstance(member, mi.NoneType)]
    if len(present) != 1:
        raise UnsupportedTypeError(path, mi.UnionType(types), "a field has one type, or is None")
    return _schema(present[0], path)
