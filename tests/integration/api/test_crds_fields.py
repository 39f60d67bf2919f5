"""Every field of every kind, on a real API server: what it accepts, and what it refuses.

The cases are derived: from the schema, what to try; from a good object in `good_objects`, where
to try it. CEL rules are in `test_crds_rules`.
"""

import copy
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from tests.kubernetes_schemas import is_kubernetes_type

from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.definition import root_schema
from quarterdeck.api.kinds import KINDS
from quarterdeck.api.operators_v1alpha1 import SUBSCRIPTIONS
from quarterdeck.localcluster.api_request import ComponentResponse, Requests
from quarterdeck.localcluster.controlplane import ControlPlane

Object = dict[str, Any]
Schema = dict[str, Any]
Place = tuple[str | int, ...]

ABSENT = object()
DIRECTORY = Path(__file__).parent / "good_objects"
WRONG_TYPE = {
    "string": 7,
    "integer": "many",
    "number": "some",
    "boolean": "yes",
    "object": "flat",
    "array": "flat",
}
RULES = "x-kubernetes-validations"
EXCLUSIVE = {("Subscription", "spec.name"), ("Subscription", "spec.package")}
"""Exactly one of the two: the last test tries them."""


class Field(NamedTuple):
    """A field of a kind."""

    kind: CustomResource[Any]
    place: Place
    schema: Schema
    required: bool
    in_union: bool = False
    """Whether a rule ties it to the fields beside it: `test_crds_rules` tries those."""

    @property
    def nullable(self) -> bool:
        return bool(self.schema.get("nullable"))

    @property
    def path(self) -> str:
        """The field as the API server names it."""
        return "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.place
        ).lstrip(".")


class Trial(NamedTuple):
    """A value to put into a field; what is refused has these words in the error."""

    value: Any
    refused: str | None = None


@cache
def good_objects(kind: CustomResource[Any]) -> list[Object]:
    """Objects with a value in every field, not to be changed; several if fields exclude others."""
    path = DIRECTORY / f"{kind.plural}.yaml"
    # Through JSON, so that nothing is shared between the places of a YAML alias.
    good: list[Object] = json.loads(
        json.dumps(list(yaml.load_all(path.read_bytes(), yaml.CSafeLoader)))
    )
    return good


def good_object(kind: CustomResource[Any], place: Place = ()) -> Object:
    """The first good object that has a value at this place."""
    having = (one for one in good_objects(kind) if value_at(one, place) is not ABSENT)
    return next(having, good_objects(kind)[0])


def value_at(thing: Any, place: Place) -> Any:
    """What is at a place of an object, or ABSENT."""
    for step in place:
        try:
            thing = thing[step]
        except (KeyError, IndexError):
            return ABSENT
    return thing


def changed(thing: Object, place: Place, value: Any) -> Object:
    """A copy with another value at a place, or none there."""
    result = copy.deepcopy(thing)
    *above, last = place
    owner = value_at(result, tuple(above))
    if value is ABSENT:
        del owner[last]
    else:
        owner[last] = value
    return result


def fields(kind: CustomResource[Any]) -> Iterator[Field]:
    """Every field of a kind that a user or an operator can write."""
    root = root_schema(kind)
    for part in ("spec", "status"):
        required = part in root.get("required", [])
        for field in below(Field(kind, (part,), root["properties"][part], required)):
            if (kind.kind, field.path) not in EXCLUSIVE:
                yield field


def below(field: Field) -> Iterator[Field]:
    yield field
    schema = field.schema
    if is_kubernetes_type(schema):
        return  # Pods have the same fields.
    for name, inner in schema.get("properties", {}).items():
        required = name in schema.get("required", [])
        place = (*field.place, name)
        yield from below(Field(field.kind, place, inner, required, in_union=RULES in schema))
    if "items" in schema:
        yield from below(Field(field.kind, (*field.place, 0), schema["items"], False))


def trials(field: Field, good: Any) -> Iterator[Trial]:
    """What to put into a field whose good value is known."""
    schema = field.schema
    type_ = schema.get("format", "string") if schema["type"] == "string" else schema["type"]
    yield Trial(WRONG_TYPE[schema["type"]], f"must be of type {type_}")
    if field.in_union:
        return
    if isinstance(field.place[-1], int):
        yield Trial(None, f"must be of type {type_}")
    elif field.required and "default" not in schema:
        yield Trial(ABSENT, "Required value")
        yield Trial(None, None if field.nullable else "Required value")
    else:
        yield Trial(ABSENT)
        yield Trial(None)
    match schema["type"]:
        case "string":
            yield from text_trials(schema)
        case "integer" if "minimum" in schema:
            yield Trial(schema["minimum"])
            yield Trial(schema["minimum"] - 1, "should be greater than or equal to")
        case "array":
            yield from list_trials(schema, good)


def text_trials(schema: Schema) -> Iterator[Trial]:
    if "enum" in schema:
        yield from (Trial(value) for value in schema["enum"])
        yield Trial("no-such-value", "Unsupported value")
    if "format" in schema:
        yield Trial("not a\x7f format", f"must be of type {schema['format']}")
    if "pattern" in schema:
        yield Trial("-not@good-", "should match")
    if schema.get("minLength"):
        yield Trial("", "should be at least 1 chars long")
    if "maxLength" in schema:
        yield Trial("x" * (schema["maxLength"] + 1), "Too long")
        if RULES not in schema:
            yield Trial("x" * schema["maxLength"])


def list_trials(schema: Schema, good: list[Any]) -> Iterator[Trial]:
    if "minItems" in schema:
        yield Trial([], f"should have at least {schema['minItems']} items")
    else:
        yield Trial([])
    if schema["x-kubernetes-list-type"] in ("map", "set"):
        yield Trial([*good, good[0]], "Duplicate value")
    if "maxItems" in schema:
        keys = schema.get("x-kubernetes-list-map-keys", [])
        many = [
            good[0] | {key: f"{key}{number}" for key in keys} if keys else good[0]
            for number in range(schema["maxItems"] + 1)
        ]
        yield Trial(many, f"must have at most {schema['maxItems']} item")
        if RULES not in schema:
            yield Trial(many[1:])


class Api:
    """Tries objects out on the API server: everything but what `existing` makes is a dry run."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def create(
        self, kind: CustomResource[Any], thing: Object, options: str = ""
    ) -> ComponentResponse:
        return self._send("POST", kind.path(self._namespace(kind)), thing, options)

    def try_to_create(self, kind: CustomResource[Any], thing: Object) -> ComponentResponse:
        return self.create(kind, thing, "&dryRun=All")

    def try_status(self, kind: CustomResource[Any], thing: Object) -> ComponentResponse:
        path = kind.path(self._namespace(kind), thing["metadata"]["name"], "status")
        return self._send("PUT", path, thing, "&dryRun=All")

    def delete(self, kind: CustomResource[Any], name: str) -> ComponentResponse:
        return self._requests.send("DELETE", kind.path(self._namespace(kind), name))

    def _namespace(self, kind: CustomResource[Any]) -> str:
        return "default" if kind.namespaced else ""

    def _send(self, method: str, path: str, thing: Object, options: str) -> ComponentResponse:
        body = json.dumps(thing).encode()
        return self._requests.send(method, f"{path}?fieldValidation=Strict{options}", body)


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane, crds: list[str]) -> Api:
    """The API server with our CRDs."""
    return Api(control_plane.requests())


@contextmanager
def existing(api: Api, kind: CustomResource[Any]) -> Iterator[Object]:
    """The metadata of a good object that is there for a while, without its status."""
    created = api.create(kind, good_object(kind))
    assert created.ok, created.body
    try:
        yield created.json()["metadata"]
    finally:
        api.delete(kind, created.json()["metadata"]["name"])


def expected(field: Field, trial: Trial) -> Any:
    """What is stored where a value is accepted: null is nothing, and nothing is the default."""
    if trial.value is ABSENT or (trial.value is None and not field.nullable):
        return field.schema.get("default", ABSENT)
    return trial.value


def fault(field: Field, trial: Trial, answer: ComponentResponse) -> str | None:
    """How the answer is not what it should be; None if it is."""
    tried = "nothing" if trial.value is ABSENT else f"{trial.value!r:.60}"
    if trial.refused is not None:
        said = "accepted" if answer.ok else answer.json()["message"]
        # A duplicate is named by its index in the field.
        named = rf"{re.escape(field.path)}(\[\d+\])?: .*{re.escape(trial.refused)}"
        if re.search(named, said):
            return None
        return f"{tried} should be refused with {trial.refused!r}, but: {said}"
    if not answer.ok:
        return f"{tried} was refused: {answer.json()['message']}"
    found = value_at(answer.json(), field.place)
    return None if found == expected(field, trial) else f"{tried} was stored as {found!r}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.kind))
def test_the_good_object_has_every_field(kind: CustomResource[Any]) -> None:
    """Otherwise a field would go untried."""
    missing = [
        field.path
        for field in fields(kind)
        if value_at(good_object(kind, field.place), field.place) is ABSENT
    ]
    assert missing == []


@pytest.mark.parametrize(
    "field",
    [field for kind in KINDS for field in fields(kind)],
    ids=lambda field: f"{field.kind.kind} {field.path}",
)
def test_a_field_accepts_what_is_good_and_refuses_the_rest_by_name(api: Api, field: Field) -> None:
    """Types, enums, bounds, patterns, formats, required fields, nulls, defaults, duplicates."""
    kind, good = field.kind, good_object(field.kind, field.place)
    tried = [
        (trial, changed(good, field.place, trial.value))
        for trial in trials(field, value_at(good, field.place))
    ]
    if field.place[0] == "spec":
        found = [fault(field, trial, api.try_to_create(kind, thing)) for trial, thing in tried]
    else:
        with existing(api, kind) as metadata:
            found = [
                fault(field, trial, api.try_status(kind, thing | {"metadata": metadata}))
                for trial, thing in tried
            ]
    assert [line for line in found if line] == []


def keeps_unknown_fields(kind: CustomResource[Any]) -> bool:
    """Whether the kind's spec takes fields of which we do not know: it has more upstream."""
    spec = root_schema(kind)["properties"]["spec"]
    return bool(spec.get("x-kubernetes-preserve-unknown-fields"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.kind))
def test_an_unknown_field_is_refused_by_name(api: Api, kind: CustomResource[Any]) -> None:
    """Only where fields are validated strictly, as kubectl does; or it is kept."""
    answer = api.try_to_create(kind, changed(good_object(kind), ("spec", "nonsense"), 1))
    if keeps_unknown_fields(kind):
        assert answer.json()["spec"]["nonsense"] == 1
        return
    assert not answer.ok
    assert 'unknown field "spec.nonsense"' in answer.json()["message"]


@pytest.mark.parametrize(
    ("spec", "accepted"),
    [
        ({"name": "etcd"}, True),
        ({"package": "etcd"}, True),
        ({"name": "etcd", "package": "etcd"}, False),
        ({}, False),
    ],
)
def test_a_subscription_names_its_package_once(api: Api, spec: Object, accepted: bool) -> None:
    thing = {**good_object(SUBSCRIPTIONS), "spec": spec}
    answer = api.try_to_create(SUBSCRIPTIONS, thing)
    assert answer.ok is accepted
    assert accepted or "give either name or package" in answer.json()["message"]
