"""Fields that a schema does not have."""

from typing import Any

import pytest

from quarterdeck.api.definition import root_schema
from quarterdeck.api.operator_v1 import INGRESS_CONTROLLERS
from quarterdeck.api.unknown_fields import unknown_fields

SCHEMA = root_schema(INGRESS_CONTROLLERS)


def controller(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "shop", "labels": {"a": "b"}}
    return {"apiVersion": "x", "kind": "y", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param({"replicas": 1, "routeSelector": {"matchLabels": {"any": "x"}}}, [], id="all"),
        pytest.param(
            {"loging": {}}, ["spec.loging: there is no such field; use logging"], id="misspelt"
        ),
        pytest.param(
            {"logging": {"access": {"httpCaptureHeaders": {"request": [{"nme": "A"}]}}}},
            [
                "spec.logging.access.httpCaptureHeaders.request[0].nme: there is no such field; "
                "use name"
            ],
            id="in a list",
        ),
        pytest.param(
            {"replicas": {"of": 1}, "logging": "on", "domain": [{}]}, [], id="other types"
        ),
    ],
)
def test_each_is_named_with_the_one_that_is_written_alike(
    spec: dict[str, Any], told: list[str]
) -> None:
    assert list(unknown_fields(controller(**spec), SCHEMA)) == told
