"""Which lines at Debug tell of manifests that are skipped."""

import io
import json
from collections.abc import Iterator

import msgspec
import pytest

from quarterdeck import log as logs
from quarterdeck.operators.cluster_version.skipped import SkippedManifests
from quarterdeck.payload.load import read_payload
from quarterdeck.payload.model import Payload
from quarterdeck.payload.observed import ObservedCluster


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    before = (logs._Output.verbosity, logs._Output.stream, logs._Output.processors)
    stream = io.StringIO()
    logs.configure(fmt="json", stream=stream, verbosity=logs.DEBUG)
    yield stream
    logs._Output.verbosity, logs._Output.stream, logs._Output.processors = before


@pytest.fixture
def payload(tmp_path_factory: pytest.TempPathFactory) -> Payload:
    """One manifest that counts, and one for hosted clusters only."""
    directory = tmp_path_factory.mktemp("payload")
    for name, profile in (("a", "self-managed-high-availability"), ("b", "hypershift")):
        manifest = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "annotations": {f"include.release.openshift.io/{profile}": "true"},
            },
        }
        (directory / f"0000_10_x_{name}.json").write_text(json.dumps(manifest))
    return read_payload([directory]).payload


def told(written: io.StringIO) -> list[str]:
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    return [line["manifest"] for line in lines if line["event"] == "manifest skipped"]


def test_each_manifest_that_is_skipped_is_told_with_its_reason_once(
    written: io.StringIO, payload: Payload
) -> None:
    skipped = SkippedManifests()
    for _ in range(3):
        skipped.log_new(payload, "hash", ObservedCluster())
    (place,) = told(written)
    assert "0000_10_x_b.json" in place
    line = json.loads(written.getvalue().splitlines()[0])
    assert line["filter"] == "profile"
    assert "self-managed-high-availability" in line["why"]


def test_it_is_told_again_when_it_is_news(written: io.StringIO, payload: Payload) -> None:
    """Another payload, another cluster, or a level that was turned up."""
    skipped = SkippedManifests()
    skipped.log_new(payload, "hash", ObservedCluster())
    skipped.log_new(payload, "other", ObservedCluster())
    skipped.log_new(
        payload, "other", msgspec.structs.replace(ObservedCluster(), profile="hypershift")
    )
    assert len(told(written)) == 3
    logs.set_verbosity(logs.NORMAL)
    skipped.log_new(payload, "other", ObservedCluster())
    assert len(told(written)) == 3
    logs.set_verbosity(logs.DEBUG)
    skipped.log_new(payload, "other", ObservedCluster())
    assert len(told(written)) == 4
