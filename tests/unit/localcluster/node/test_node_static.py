"""Static pods: what a file means, and what changes when files do."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.meta import Key, Object
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.node.static_pods.manifest import BadManifestError, parse_manifest
from quarterdeck.localcluster.node.static_pods.static import (
    MIRROR,
    StaticPods,
    changed,
    is_mirror,
    mirror_of,
    mirrors,
)
from quarterdeck.localcluster.node.times import parse_time
from quarterdeck.localcluster.static_pods import with_credentials

NOW = parse_time("2026-03-01T12:00:00Z")
NODE: Object = {"metadata": {"name": "this-machine", "uid": "node-uid"}}


def manifest(name: str = "web", image: str = "quarterdeck") -> bytes:
    containers = [{"name": "main", "image": image}]
    pod = {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}
    return json.dumps(pod).encode()


def test_a_file_becomes_a_pod_of_this_node() -> None:
    pod = parse_manifest(manifest(), "this-machine")
    assert pod["metadata"]["name"] == "web-this-machine"
    assert pod["metadata"]["namespace"] == "default"
    assert pod["spec"]["nodeName"] == "this-machine"
    assert pod["spec"]["restartPolicy"] == "Always"


def test_another_content_is_another_pod() -> None:
    first, second = (parse_manifest(manifest(image=tag), "n") for tag in ("a", "b"))
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert first == parse_manifest(manifest(image="a"), "n")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"{", "not YAML"),
        (b"[" * 100_000, "nested more than 100 times"),
        (b"- " * 100_000, "nested more than 100 times"),
        (b"hello", "kind must be Pod"),
        (b"kind: Deployment", "kind must be Pod"),
        (b"kind: Pod", "metadata.name is missing"),
        (b"{kind: Pod, metadata: {name: x}}", "spec.containers is empty"),
        (
            b"{kind: Pod, metadata: {name: x}, spec: {serviceAccountName: s, containers: [{}]}}",
            "a static pod has no ServiceAccount",
        ),
        (b"{kind: Pod, metadata: []}", "metadata.name is missing"),
        (b"{kind: Pod, metadata: hello}", "metadata: 'hello': use fields, not a str"),
        (b"{kind: Pod, metadata: {name: Web}}", "metadata.name: 'Web': use lower case letters"),
        (b"{kind: Pod, metadata: {name: x}, spec: {containers: [1]}}", "use a list of objects"),
        (b"{kind: Pod, metadata: {name: x}, spec: {containers: [{}]}}", "each needs a name"),
        (
            b"{kind: Pod, metadata: {name: x}, spec: {containers: [{name: a}, {name: a}]}}",
            "two containers have this name",
        ),
        (
            b"{kind: Pod, metadata: {name: x}, spec: {containers: [{name: a, command: ls}]}}",
            "spec.containers[a].command: 'ls': use a list of texts",
        ),
        (
            b"{kind: Pod, metadata: {name: x}, spec: {containers: "
            b"[{name: a, volumeMounts: [{name: v, mountPath: /v}]}]}}",
            "spec.containers[a].volumeMounts: 'v': spec.volumes has no such volume",
        ),
        (
            b"{kind: Pod, metadata: {name: x}, spec: {volumes: [{name: v, configMap: {name: c}}], "
            b"containers: [{name: a}]}}",
            "spec: c: a static pod cannot refer to ConfigMaps, Secrets or tokens",
        ),
    ],
)
def test_a_broken_file_says_what_is_wrong(data: bytes, fault: str) -> None:
    with pytest.raises(BadManifestError) as error:
        parse_manifest(data, "n")
    assert fault in str(error.value)


WORDS = st.sampled_from(
    ["kind", "Pod", "metadata", "name", "spec", "containers", "volumes", "volumeMounts", "x"]
)
SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(SHAPES, SHAPES, st.dictionaries(WORDS, SHAPES, max_size=3))
def test_whatever_is_in_a_file_it_is_a_pod_or_broken(
    meta: object, spec: object, container: dict[str, object]
) -> None:
    named = {"name": "x"} | (meta if isinstance(meta, dict) else {})
    deep = {
        "volumes": [{"name": "x", "projected": {"sources": [spec]}}, {"name": "y", "secret": meta}],
        "containers": [{"name": "x", "env": [{"valueFrom": spec}], "envFrom": [container]}],
    }
    for pod in (
        meta,
        {"kind": "Pod", "metadata": meta, "spec": spec},
        {"kind": "Pod", "metadata": named, "spec": {"containers": [container]}},
        {"kind": "Pod", "metadata": {"name": "x"}, "spec": deep},
    ):
        try:
            assert parse_manifest(json.dumps(pod).encode(), "n")["spec"]["containers"]
        except BadManifestError:
            continue


def test_a_pod_without_a_place_for_its_credentials_is_refused() -> None:
    pod = json.loads(manifest())
    with pytest.raises(LocalClusterError, match="add a hostPath volume named credentials"):
        with_credentials(pod, "credentials", Path("/state/credentials/web"))
    pod["spec"]["volumes"] = [{"name": "credentials", "hostPath": {"path": "/x"}}, {"name": "v"}]
    moved = with_credentials(pod, "credentials", Path("/state/credentials/web"))
    assert moved["spec"]["volumes"] == [
        {
            "name": "credentials",
            "hostPath": {"path": "/state/credentials/web", "type": "Directory"},
        },
        {"name": "v"},
    ]


def test_a_mirror_is_known_by_its_annotation_and_belongs_to_the_node() -> None:
    pod = parse_manifest(manifest(), "this-machine")
    mirror = mirror_of(pod, NODE)
    assert is_mirror(mirror)
    assert not is_mirror(pod)
    assert mirrors(mirror, pod)
    assert mirror["metadata"]["annotations"][MIRROR] == pod["metadata"]["uid"]
    assert mirror["metadata"]["ownerReferences"][0]["uid"] == "node-uid"
    assert "uid" not in mirror["metadata"]
    assert not mirrors(mirror, parse_manifest(manifest(image="other"), "this-machine"))
    mirror["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    assert not mirrors(mirror, pod)


def pods(**images: str) -> dict[Key, Object]:
    found = [parse_manifest(manifest(name, image), "n") for name, image in images.items()]
    return {Key("default", pod["metadata"]["name"]): pod for pod in found}


FILES = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(["1", "2"]))


@given(FILES, FILES)
def test_what_changes_is_what_differs(before: dict[str, str], after: dict[str, str]) -> None:
    """New pods begin; those whose file went or changed end, once; the others are left alone."""
    running, wanted = pods(**before), pods(**after)
    news = changed(running, wanted, NOW)
    for key in running.keys() | wanted.keys():
        if key not in running:
            assert news[key] == wanted[key]
        elif running[key] == wanted.get(key):
            assert key not in news
        else:
            assert news[key]["metadata"]["uid"] == running[key]["metadata"]["uid"]
            assert "deletionTimestamp" in news[key]["metadata"]
    again = changed({**running, **news}, wanted, NOW)
    assert again == {}


def test_a_directory_is_followed(tmp_path: Path) -> None:
    """A changed file's old pod ends before the new one begins; a broken file harms no other."""
    woken: list[Key] = []
    broken: list[str] = []
    static = StaticPods(
        [tmp_path, tmp_path / "more"],
        "n",
        wake=woken.append,
        broken=lambda path, fault: broken.append(f"{path.name}: {fault}"),
        clock=lambda: NOW,
    )
    (tmp_path / "web.yaml").write_bytes(manifest())
    (tmp_path / "broken.yaml").write_bytes(b"{")
    (tmp_path / "notes.txt").write_bytes(b"no manifest")
    static.look()
    key = Key("default", "web-n")
    assert woken == [key]
    static.look()
    (told,) = broken
    assert told.startswith("broken.yaml: not YAML"), "once, however often it is read"
    first = static.get(key)
    assert first is not None
    (tmp_path / "web.yaml").write_bytes(manifest(image="other"))
    static.look()
    ending = static.get(key)
    assert ending is not None
    assert ending["metadata"]["uid"] == first["metadata"]["uid"]
    assert "deletionTimestamp" in ending["metadata"]
    static.removed(key)
    second = static.get(key)
    assert second is not None
    assert second["spec"]["containers"][0]["image"] == "other"
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "web.yaml").write_bytes(manifest())
    static.look()
    assert "another file has a pod of this name" in broken[-1]
    assert static.get(key) == second
    (tmp_path / "more" / "web.yaml").unlink()
    (tmp_path / "web.yaml").unlink()
    static.look()
    static.removed(key)
    assert static.get(key) is None
    assert static.uids == set()


def test_a_directory_that_cannot_be_read_ends_no_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be gone in the midst of a look; nor does a FIFO hold the agent up."""
    woken: list[Key] = []
    faults: list[str] = []
    (tmp_path / "a.yaml").write_bytes(manifest())
    os.mkfifo(tmp_path / "b.yaml")
    static = StaticPods(
        [tmp_path],
        "node",
        wake=woken.append,
        broken=lambda path, fault: faults.append(fault),
        clock=lambda: NOW,
    )
    static.look()
    assert len(woken) == 1

    def fail(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", fail)
    static.look()
    static.look()
    assert len(woken) == 1
    assert len(faults) == 1
