"""The platform that somebody has chosen stays, also if it cannot be read."""

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from quarterdeck.localcluster.api_request import ComponentResponse
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.infrastructure import ensure_infrastructure

if TYPE_CHECKING:
    from quarterdeck.localcluster.access import ClusterAccess

METAL = {"status": {"platformStatus": {"type": "BareMetal"}}}


class Answers:
    """Answers each read in the same way, and notes the writes."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.answer = ComponentResponse(status, json.dumps(body).encode())
        self.written: list[str] = []

    def send(self, method: str, path: str, *_: object) -> ComponentResponse:
        if method == "GET":
            return self.answer
        self.written.append(path.rpartition("/")[2])
        return ComponentResponse(200, b"{}")

    def apply(self, path: str, manifest: dict[str, Any]) -> None:
        self.written.append(manifest["metadata"]["name"])


def written(status: int, body: dict[str, Any]) -> list[str]:
    requests = Answers(status, body)
    ensure_infrastructure(cast("ClusterAccess", SimpleNamespace(requests=lambda: requests)))
    return requests.written


def test_a_platform_is_named_only_if_nobody_has() -> None:
    assert written(404, {}) == ["cluster", "status"]
    assert written(200, {"status": {}}) == ["status"]
    assert written(200, METAL) == []


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_nothing_is_written_if_it_cannot_be_read(status: int) -> None:
    with pytest.raises(LocalClusterError, match=f"HTTP {status}"):
        written(status, {})
