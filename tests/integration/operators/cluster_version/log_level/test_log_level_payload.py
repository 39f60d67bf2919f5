"""What the operator writes at each level while it applies a release, and what at none.

The release has Secrets, one of which the server refuses in words that quote it, a token in a
ConfigMap, and a manifest for hosted clusters only.
"""

import base64
import json
from pathlib import Path

import pytest
from tests.integration.operators.cluster_version.version.releases import (
    Releases,
    config_map,
    counted,
)
from tests.places import DEPLOY

from quarterdeck.api.meta import Object
from quarterdeck.testing.log_level import VERSIONS, LogLevelObjects, wait_verbosity
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually

PLAIN = "xyzzy-plain-value"
ENCODED = base64.b64encode(PLAIN.encode()).decode()
SPELLED = (PLAIN, ENCODED)
DELIVERED = DEPLOY / "payload" / "0000_10_config_02_objects.yaml"
INCLUDE = "include.release.openshift.io/"


def secret(name: str, namespace: str, **content: object) -> Object:
    meta = {"name": name, "namespace": namespace}
    return counted({"apiVersion": "v1", "kind": "Secret", "metadata": meta, **content})


@pytest.fixture
def release(tmp_path: Path, namespace: str) -> Path:
    """A releases directory with one release in it."""
    releases = Releases(tmp_path / "releases")
    kubeconfig = f"users:\n- user:\n    token: {PLAIN}\n"
    hosted = config_map("hosted", namespace)
    hosted["metadata"]["annotations"] = {f"{INCLUDE}hypershift": "true"}
    manifests = {
        "0000_10_a_01_secret.json": secret("plain", namespace, stringData={"pw": PLAIN}),
        "0000_10_a_02_secret.json": secret("encoded", namespace, data={"pw": ENCODED}),
        "0000_10_b_01_secret.json": secret("refused", namespace, data={"pw": [PLAIN]}),
        "0000_10_c_01_kubeconfig.json": config_map("kubeconfig", namespace, config=kubeconfig),
        "0000_10_d_01_hosted.json": hosted,
    }
    releases.write("1.0.0", manifests)
    return releases.root


@pytest.mark.parametrize("level", ["Normal", "Debug", "Trace", "TraceAll"])
def test_each_level_has_its_lines_and_none_has_a_secret(
    namespace: str,  # before `objects`, whose end waits for everything that came after it
    objects: LogLevelObjects,
    run_cvo: StartOperator,
    release: Path,
    level: str,
) -> None:
    objects.make_gates()
    objects.make_config(level)
    gates = "/apis/config.openshift.io/v1/featuregates/cluster/status"
    entry = {"version": "1.0.0", "enabled": [{"name": "ClusterVersionOperatorConfiguration"}]}
    objects.send("PATCH", gates, {"status": {"featureGates": [entry]}}, merge=True)
    operator = run_cvo(f"--releases={release}", "--release-version=1.0.0")
    operator.logged("manifest failed")
    where = f"/api/v1/namespaces/{namespace}"
    for path in ("secrets/plain", "secrets/encoded", "configmaps/kubeconfig"):
        eventually(lambda path=path: objects.find(f"{where}/{path}"), path)  # type: ignore[misc]
    if level == "TraceAll":  # once: it takes a while until a fault counts as lasting
        eventually(lambda: "refused" in _told(objects), "ClusterVersion to name what is refused")

    text = operator.log.read_text()
    assert [one for one in SPELLED if one in text] == []
    assert [one for one in SPELLED if one in _told(objects)] == []
    lines = operator.lines()
    first = next(
        number for number, it in enumerate(lines) if it["event"] == "first line at this log level"
    )
    said = {line["event"] for line in lines[first:]}
    assert "created" in said, "every change, at every level"
    assert ("manifest skipped" in said) == (level != "Normal")
    assert ("request" in said) == (level in ("Trace", "TraceAll"))
    bodies = [it for it in lines[first:] if it["event"] == "request" and "received" in it]
    assert bool(bodies) == (level == "TraceAll")
    if bodies:
        assert any("secret>" in it["sent"] for it in bodies), "a Secret's request, without it"


def _told(objects: LogLevelObjects) -> str:
    """What ClusterVersion says."""
    return json.dumps((objects.find(f"{VERSIONS}/version") or {}).get("status", {}))


def test_deleted_it_is_brought_back_by_the_release(
    objects: LogLevelObjects, run_cvo: StartOperator, tmp_path: Path
) -> None:
    """The object and its FeatureGate come with the release; nobody else makes them here."""
    releases = Releases(tmp_path / "releases")
    releases.write("1.0.0", {"0000_10_config_02_objects.yaml": DELIVERED.read_text()})
    operator = run_cvo(f"--releases={releases.root}", "--release-version=1.0.0")
    eventually(lambda: objects.config() is not None and objects.observed(), "made and observed")
    objects.set_level("Trace")
    wait_verbosity(operator, 6)
    first = objects.config()["metadata"]["uid"]
    objects.delete_config()
    wait_verbosity(operator, 2)
    back = eventually(objects.config, "the object again")
    assert back["metadata"]["uid"] != first
    assert back["spec"]["operatorLogLevel"] == "Normal"
    eventually(objects.observed, "the new one observed")
