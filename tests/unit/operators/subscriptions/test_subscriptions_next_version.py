"""What the next version of a Subscription changes, and what it breaks."""

import json

import pytest
from tests.console_objects import catalog

from quarterdeck.api.meta import Object
from quarterdeck.operators.subscriptions import next_version
from quarterdeck.operators.subscriptions.config.origins import FieldOrigin
from quarterdeck.operators.subscriptions.next_version import deployment_changes, version_in
from quarterdeck.operators.subscriptions.render import Rendered, Rendering


def rendering(**deployments: dict[str, object]) -> Rendering:
    return Rendering(
        csv="x",
        deployments=tuple(
            Rendered(
                deployment={"metadata": {"name": name}},
                origins=tuple(
                    FieldOrigin(field=field, source="CSV", value=value, removed=value is None)
                    for field, value in fields.items()
                ),
            )
            for name, fields in deployments.items()
        ),
        faults=(),
    )


def test_the_fields_that_differ_are_listed() -> None:
    before = rendering(a={"image": "1", "gone": "x", "same": 1}, b={"image": "1"}, c={"i": 1})
    after = rendering(a={"image": "2", "new": [1], "same": 1, "off": None}, c={"i": 1}, d={})
    found = [
        (one.deployment, one.kind, [(f.field, f.before, f.after) for f in one.fields])
        for one in deployment_changes(before, after)
    ]
    assert found == [
        ("a", "changed", [("image", "1", "2"), ("gone", "x", None), ("new", None, [1])]),
        ("b", "removed", []),
        ("d", "added", []),
    ]


def config_map(text: str) -> Object:
    return {"metadata": {"name": "community"}, "data": {"catalog.json": text}}


def test_a_version_is_found_in_its_catalog() -> None:
    found = version_in(config_map(catalog()), "prometheus", "prometheus.v0.65.1", None)
    assert not isinstance(found, str)
    assert found.metadata.name == "prometheus.v0.65.1"


@pytest.mark.parametrize(
    ("text", "package", "name", "digest", "why"),
    [
        (catalog(), "prometheus", "prometheus.v9", None, "has no version prometheus.v9 any more"),
        (catalog(), "other", "prometheus.v0.65.1", None, "has no version"),
        (catalog(), "prometheus", "prometheus.v0.65.1", "0" * 64, "has another"),
        ("{", "prometheus", "prometheus.v0.65.1", None, "cannot be used"),
        (json.dumps([1]), "prometheus", "prometheus.v0.65.1", None, "cannot be used"),
        ("a: &a [*a]", "prometheus", "prometheus.v0.65.1", None, "cannot be used"),
    ],
)
def test_why_a_version_is_not_found(
    text: str, package: str, name: str, digest: str | None, why: str
) -> None:
    found = version_in(config_map(text), package, name, digest)
    assert isinstance(found, str)
    assert why in found


def test_a_catalog_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_version, "MAX_CATALOG", 100)
    found = version_in(config_map(catalog()), "prometheus", "prometheus.v0.65.1", None)
    assert isinstance(found, str)
    assert "more than" in found
