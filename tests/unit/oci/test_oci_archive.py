"""Layers and archives: the same input gives the same bytes, and damage is told."""

import contextlib
import io
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oci_bytes import entry, tar

from quarterdeck.oci.archive import Archive, Named, write_archive
from quarterdeck.oci.blobs import BlobCheck, check_blob
from quarterdeck.oci.errors import OciError
from quarterdeck.oci.layers import Entry, Image, image, layer_bytes, tree_entries, write_layer
from quarterdeck.oci.model import (
    INDEX,
    MAX_MANIFEST,
    ImageManifest,
    Index,
    Platform,
    decode_manifest,
    descriptor_of,
    digest_of,
    encode,
    manifest_for,
)

ENTRIES = (
    Entry(path="b/c", content=b"text", mode=0o755),
    Entry(path="a", link="b/c"),
    Entry(path="b-d", content=b""),
)


def small_image(text: bytes = b"text") -> Image:
    layer, data = layer_bytes([Entry(path="etc/text", content=text)])
    config = {"architecture": "amd64", "os": "linux", "config": {}}
    return image(config, [layer], {layer.descriptor.digest: data})


def test_a_layer_does_not_depend_on_the_order_of_its_entries() -> None:
    """Directories come before what is in them, and belong to root, as all does."""
    layer, data = layer_bytes(ENTRIES)
    assert layer_bytes(reversed(ENTRIES)) == (layer, data)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        found = archive.getmembers()
    assert [each.name for each in found] == ["a", "b", "b/c", "b-d"]
    assert {(each.uid, each.gid, each.mtime, each.uname) for each in found} == {(0, 0, 0, "")}
    assert layer.descriptor == descriptor_of(data, layer.descriptor.media_type)


def test_a_layer_does_not_depend_on_times_of_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "d").mkdir(parents=True)
        (tmp_path / name / "d" / "file").write_text("x")
        (tmp_path / name / "link").symlink_to("d/file")
    one, two = (layer_bytes(tree_entries(tmp_path / name, "usr")) for name in ("one", "two"))
    assert one == two


@given(st.dictionaries(st.text("abü.", min_size=1, max_size=150), st.binary(max_size=300)))
def test_a_layer_keeps_its_files(files: dict[str, bytes]) -> None:
    entries = {f"f/_{name}": content for name, content in files.items()}
    out = io.BytesIO()
    write_layer((Entry(path=name, content=data) for name, data in entries.items()), out)
    with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as archive:
        files_read = [(each.name, archive.extractfile(each)) for each in archive if each.isfile()]
        assert {name: file.read() for name, file in files_read if file} == entries


def test_an_archive_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = small_image()
    path = tmp_path / "a.tar"
    write_archive(path, Named(image=made, reference="registry.test/repo/name:1.0"))
    first = path.read_bytes()
    write_archive(path, Named(image=made, reference="registry.test/repo/name:1.0"))
    assert path.read_bytes() == first
    with Archive(path) as archive:
        descriptor, manifest = archive.image()
        assert (descriptor.digest, manifest) == (made.descriptor.digest, made.manifest)
        assert dict(descriptor.annotations) == {
            "io.containerd.image.name": "registry.test/repo/name:1.0",
            "org.opencontainers.image.ref.name": "1.0",
        }
        assert archive.config(manifest)["rootfs"]["diff_ids"]
        with archive.open_blob(manifest.layers[0]) as layer:
            assert layer.read() == made.blobs[manifest.layers[0].digest]


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("quarterdeck:1.0", "docker.io/library/quarterdeck:1.0"),
        ("ships/quarterdeck:1.0", "docker.io/ships/quarterdeck:1.0"),
        ("localhost/quarterdeck:1.0", "localhost/quarterdeck:1.0"),
        ("registry:5000/quarterdeck:1.0", "registry:5000/quarterdeck:1.0"),
    ],
)
def test_a_name_without_a_registry_is_as_nodes_understand_it(
    tmp_path: Path, name: str, whole: str
) -> None:
    write_archive(tmp_path / "a.tar", Named(image=small_image(), reference=name))
    with Archive(tmp_path / "a.tar") as archive:
        assert archive.image()[0].annotations["io.containerd.image.name"] == whole


def test_an_archive_of_several_platforms_gives_the_asked_one(tmp_path: Path) -> None:
    arm, amd = small_image(b"arm"), small_image(b"amd")
    path = tmp_path / "a.tar"
    write_archive(
        path,
        Named(image=arm, platform=Platform(architecture="arm64", os="linux")),
        Named(image=amd, platform=Platform(architecture="amd64", os="linux")),
    )
    with Archive(path) as archive:
        assert archive.image()[0].digest == amd.descriptor.digest
        assert archive.image("arm64")[0].digest == arm.descriptor.digest
        with pytest.raises(OciError, match=r"no image for linux/s390x, only for linux/amd64, "):
            archive.image("s390x")


def test_an_index_in_an_index_is_followed_once(tmp_path: Path) -> None:
    """As tools write the images of several platforms under one name."""
    made = small_image()
    inner = Index(schema_version=2, media_type=INDEX, manifests=(made.descriptor,))
    inner_bytes = encode(inner)
    outer = encode(Index(schema_version=2, manifests=(descriptor_of(inner_bytes, INDEX),)))
    blobs = {**made.blobs, digest_of(inner_bytes): inner_bytes}
    path = tmp_path / "a.tar"
    path.write_bytes(
        tar(
            entry("./index.json", outer),
            *(
                entry(f"blobs/{digest.replace(':', '/')}", data)
                for digest, data in blobs.items()
                if isinstance(data, bytes)
            ),
        )
    )
    with Archive(path) as archive:
        assert archive.image()[0].digest == made.descriptor.digest


def damaged(tmp_path: Path, change: bytes, by: bytes) -> Path:
    path = tmp_path / "a.tar"
    write_archive(path, Named(image=small_image()))
    path.write_bytes(path.read_bytes().replace(change, by))
    return path


@pytest.mark.parametrize(
    ("change", "by", "told"),
    [
        (b'"architecture":"amd64"', b'"architecture":"amd65"', "who changed it"),
        (b'"schemaVersion":2', b'"schemaVersion":1', "schema version 1"),
        (b'"size":', b'"tire":', "size"),
    ],
)
def test_a_damaged_archive_is_told(tmp_path: Path, change: bytes, by: bytes, told: str) -> None:
    path = damaged(tmp_path, change, by)
    with pytest.raises(OciError, match=told), Archive(path) as archive:
        archive.config(archive.image()[1])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"not a tar file" * 100, "header"),
        (tar(entry("other", b"x")), "no OCI archive"),
        (tar(entry("index.json", b"{")), "not a manifest"),
        (tar(entry("index.json", b"[" * 100_000)), "not a manifest"),
        (tar(entry("index.json", b'{"schemaVersion":2,"manifests":[]}')), "without images"),
        (tar(entry("index.json", bytes(MAX_MANIFEST + 1))), "no OCI archive"),
    ],
)
def test_what_is_no_archive_is_told(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(content)
    with pytest.raises(OciError, match=told):
        Archive(path)


def test_a_missing_blob_is_told(tmp_path: Path) -> None:
    made = small_image()
    path = tmp_path / "a.tar"
    blobs = dict(made.blobs)
    del blobs[made.manifest.config.digest]
    write_archive(
        path, Named(image=Image(descriptor=made.descriptor, manifest=made.manifest, blobs=blobs))
    )
    with Archive(path) as archive, pytest.raises(OciError, match="is missing"):
        archive.config(archive.image()[1])


LAYER = b'{"mediaType":"a","digest":"sha256:%s","size":1}' % (b"a" * 64)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"schemaVersion":2,"config":%s,"manifests":[]}' % LAYER, "both a manifest and an index"),
        (b'{"schemaVersion":2}', "without config"),
        (b'{"schemaVersion":2,"config":{"mediaType":"a","digest":"md5:aa","size":1}}', "SHA-256"),
        (
            b'{"schemaVersion":2,"config":{"mediaType":"a","digest":"sha256:../..","size":1}}',
            "SHA-256",
        ),
        (b'{"schemaVersion":2,"config":%s}' % LAYER.replace(b":1}", b":-1}"), "size -1"),
        (
            b'{"schemaVersion":2,"config":%s,"layers":[%s]}' % (LAYER, b",".join([LAYER] * 501)),
            "501 layers",
        ),
        (b'{"schemaVersion":2,"manifests":[%s]}' % b",".join([LAYER] * 501), "501 images"),
        (b" " * (MAX_MANIFEST + 1), "more than 4 MiB"),
        (b"\xff", "not a manifest"),
    ],
)
def test_hostile_manifests_are_refused(data: bytes, told: str) -> None:
    with pytest.raises(OciError, match=told):
        decode_manifest(data)


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["schemaVersion", "config", "layers", "manifests"]), inner
            )
        ),
        max_leaves=8,
    ).map(encode)
)
def test_any_bytes_are_a_manifest_or_an_error(data: bytes) -> None:
    with contextlib.suppress(OciError):
        assert isinstance(decode_manifest(data), ImageManifest | Index)


@pytest.mark.parametrize("field", ["config", "manifests"])
def test_what_is_no_manifest_takes_no_memory(field: str) -> None:
    """A megabyte of small values would be thirty of objects, and there may be four."""
    data = b'{"schemaVersion": 2, "%s": [%s[]]}' % (field.encode(), b"[]," * 300_000)
    tracemalloc.start()
    with pytest.raises(OciError, match="Expected `object`, got `array`"):
        decode_manifest(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20


def test_docker_manifests_are_read() -> None:
    data = encode(small_image().manifest).replace(
        b"application/vnd.oci.image.manifest.v1+json",
        b"application/vnd.docker.distribution.manifest.v2+json",
    )
    assert isinstance(decode_manifest(data), ImageManifest)


def test_an_index_without_platforms_gives_its_first_image() -> None:
    first = small_image().descriptor
    assert manifest_for(Index(schema_version=2, manifests=(first,)), "amd64") == first


def test_a_blob_is_checked_piece_by_piece() -> None:
    wanted = descriptor_of(b"content", "text")
    assert check_blob(b"content", wanted) == b"content"
    check = BlobCheck(wanted)
    check.feed(b"cont")
    with pytest.raises(OciError, match="ends after 4 of 7 bytes"):
        check.finish()
    with pytest.raises(OciError, match="larger than the 7 bytes"):
        check.feed(b"content")
    with pytest.raises(OciError, match="has the digest sha256:"):
        check_blob(b"Content", wanted)
