"""Releases: built from a payload, signed, shown and compared, by the commands."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.oci_bytes import entry, tar
from tests.places import ROOT

from quarterdeck.cli.main import cli
from quarterdeck.images.described import changed_fields
from quarterdeck.images.release import release_config
from quarterdeck.oci.archive import Archive, Named, write_archive
from quarterdeck.oci.extract import extract_release
from quarterdeck.oci.layers import Entry, image, layer_bytes
from quarterdeck.oci.model import LAYER, digest_of
from quarterdeck.oci.signature import (
    load_public_key,
    signature_in,
    signature_layers,
    signature_tag,
    verify,
)
from quarterdeck.payload.lint import lint
from quarterdeck.payload.load import read_payload
from quarterdeck.payload.releases import load_release, read_releases

HARBOUR = f"registry.test/harbour@{digest_of(b'harbour')}"
TOOLS = f"registry.test/tools@{digest_of(b'tools')}"
INCLUDE = "include.release.openshift.io/self-managed-high-availability"


def run(*arguments: object, exit_code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["release", *map(str, arguments)])
    assert result.exit_code == exit_code, result.output
    return result


def deployment(name: str, image: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": image,
        "env": [{"name": "RELEASE_VERSION", "value": "0.0.1-snapshot"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "harbour", "annotations": {INCLUDE: "true"}},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


def references(**images: str) -> str:
    tags = [{"name": name, "from": {"name": image}} for name, image in images.items()]
    return yaml.safe_dump({"kind": "ImageStream", "spec": {"tags": tags}})


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    """A component at the top, and one in a directory with its own image list."""
    directory = tmp_path / "payload"
    (directory / "tools").mkdir(parents=True)
    (directory / "0000_50_harbour_1.yaml").write_text(
        yaml.safe_dump(deployment("harbour", "harbour"))
    )
    (directory / "image-references").write_text(references(harbour="harbour"))
    (directory / "tools" / "0000_60_tools_1.yaml").write_text(
        yaml.safe_dump(deployment("tools", "quay.test/tools:dev"))
    )
    (directory / "tools" / "image-references").write_text(references(tools="quay.test/tools:dev"))
    return directory


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A small image in place of the operators'."""
    layer, data = layer_bytes([Entry(path="usr/bin/quarterdeck", content=b"program", mode=0o755)])
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": "65532:65532",
            "Labels": {"io.openshift.release.operator": "true", "other": "kept"},
        },
        "history": [{"created_by": "somebody"}],
        "variant": "unknown to us",
    }
    made = image(config, [layer], {layer.descriptor.digest: data})
    write_archive(tmp_path / "base.tar", Named(image=made))
    return tmp_path / "base.tar"


def built(payload: Path, archive: Path, *more: object, version: str = "1.0.0") -> Path:
    run(
        *("build", "--version", version, "--from", payload, "-o", archive),
        *("--image", f"harbour={HARBOUR}", "--image", f"tools={TOOLS}", *more),
    )
    return archive


def test_a_release_is_the_base_with_one_more_layer(
    payload: Path, base: Path, tmp_path: Path
) -> None:
    archive = built(payload, tmp_path / "release.tar", "--base", base, "--previous", "0.9.0")
    with Archive(base) as under, Archive(archive) as opened:
        base_descriptor, base_manifest = under.image()
        _, manifest = opened.image()
        config = opened.config(manifest)
        assert manifest.layers[:-1] == base_manifest.layers
        assert manifest.layers[-1].media_type == LAYER
        with opened.open_blob(manifest.layers[0]) as copied:
            assert digest_of(copied.read()) == base_manifest.layers[0].digest
        with opened.open_blob(manifest.layers[-1]) as layer:
            directory = tmp_path / "releases" / "unpacked"
            directory.mkdir(parents=True)
            files = extract_release(layer, directory).files
    assert files == (
        "0000_50_harbour_1.yaml",
        "SHA256SUMS",
        "image-references",
        "release-metadata",
        "tools/0000_60_tools_1.yaml",
    )
    assert config["config"]["User"] == "65532:65532"
    assert config["variant"] == "unknown to us"
    assert len(config["rootfs"]["diff_ids"]) == 2
    assert len(config["history"]) == 2
    labels = config["config"]["Labels"]
    assert labels["other"] == "kept"
    assert labels["io.openshift.release"] == "1.0.0"
    assert labels["io.openshift.release.base-image-digest"] == base_descriptor.digest
    assert "io.openshift.release.operator" not in labels
    (offer,) = read_releases(directory.parent).offers
    assert (offer.release.version, offer.previous) == ("1.0.0", frozenset({"0.9.0"}))
    loaded = load_release(offer, "self-managed-high-availability")
    images = [
        manifest.object["spec"]["template"]["spec"]["containers"][0]["image"]
        for manifest in loaded.manifests
    ]
    assert images == [HARBOUR, TOOLS]
    assert loaded.references == {"": {HARBOUR: "harbour", TOOLS: "tools"}}


def test_our_own_payload_is_resolved_and_valid(tmp_path: Path) -> None:
    """The names of its images are plain words, which are also labels and categories."""
    out = tmp_path / "r.tar"
    names = [
        tag["name"]
        for tag in yaml.safe_load((ROOT / "deploy/payload/image-references").read_text())["spec"][
            "tags"
        ]
    ]
    real = {name: f"registry.test/{name}@{digest_of(name.encode())}" for name in names}
    images = [word for name, image in real.items() for word in ("--image", f"{name}={image}")]
    run("build", "--version", "1.0.0", "--from", ROOT / "deploy/payload", "-o", out, *images)
    with Archive(out) as opened, opened.open_blob(opened.image()[1].layers[-1]) as layer:
        (tmp_path / "unpacked").mkdir()
        extract_release(layer, tmp_path / "unpacked")
    release = read_payload([tmp_path / "unpacked"])
    assert [str(finding) for finding in lint(release)] == []
    text = "".join(path.read_text() for path in (tmp_path / "unpacked").glob("*.yaml"))
    assert set(re.findall(r"registry\.test/[\w-]+@sha256:\w+", text)) == set(real.values())
    shown = json.loads(run("diff", ROOT / "deploy/payload", out, "-o", "json", exit_code=1).stdout)
    assert {each["change"] for each in shown["manifests"]} == {"changed"}
    fields = {field for each in shown["manifests"] for field in each["fields"]}
    assert not [
        field
        for field in fields
        if not field.endswith((".image", ".value", ".images.json", ".version"))
    ]


def test_the_same_payload_gives_the_same_digest(payload: Path, base: Path, tmp_path: Path) -> None:
    one = built(payload, tmp_path / "one.tar", "--base", base)
    for path in payload.rglob("*"):
        path.touch()
    two = built(payload, tmp_path / "two.tar", "--base", base)
    assert one.read_bytes() == two.read_bytes()


def test_the_operators_image_gets_the_digest_of_the_base(
    payload: Path, base: Path, tmp_path: Path
) -> None:
    (payload / "image-references").write_text(
        references(harbour="harbour", quarterdeck="quarterdeck")
    )
    name = "registry.test:5000/quarterdeck"
    archive = built(
        payload, tmp_path / "r.tar", "--base", base, "--image", f"quarterdeck={name}:1.0.0"
    )
    with Archive(base) as under:
        digest = under.image()[0].digest
    shown = json.loads(run("info", archive, "-o", "json").stdout)
    assert shown["images"]["quarterdeck"] == f"{name}@{digest}"
    assert shown["image"]["base"] == digest


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "no digest for: harbour, tools; add --image"),
        (("--image", f"other={HARBOUR}"), "there are: harbour, tools"),
        (("--image", "harbour=registry.test/harbour:1.0"), "not an image with a digest"),
        (("--image", "harbour"), "is not NAME=REF"),
        (("--image", "harbour=no image"), "is not NAME=REF"),
        (("--previous", "one"), "is no semantic version"),
    ],
)
def test_what_cannot_be_resolved_is_told(
    payload: Path, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    out = tmp_path / "r.tar"
    result = run(
        "build", "--version", "1.0.0", "--from", payload, "-o", out, *arguments, exit_code=2
    )
    assert told in result.stderr
    assert not out.exists()


def test_other_images_are_kept_where_that_is_said(payload: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.tar"
    result = run("build", "--version", "1.0.0", "--from", payload, "-o", out, "--keep-others")
    assert "cannot run from it" in result.stderr
    assert "by the names that they have: harbour, tools\n" in result.stderr
    shown = yaml.safe_load(run("info", out, "-o", "yaml").stdout)
    assert shown["images"] == {"harbour": "harbour", "tools": "quay.test/tools:dev"}


def test_a_payload_that_cannot_be_read_is_told(payload: Path, tmp_path: Path) -> None:
    (payload / "0000_70_bad_1.yaml").write_text("{")
    out = tmp_path / "r.tar"
    result = run("build", "--version", "1.0.0", "--from", payload, "-o", out, exit_code=2)
    assert "0000_70_bad_1.yaml" in result.stderr
    assert not out.exists()


def test_info_shows_a_release_of_an_archive_and_of_a_directory(
    payload: Path, base: Path, tmp_path: Path
) -> None:
    archive = built(payload, tmp_path / "r.tar", "--base", base, "--previous", "0.9.0")
    text = run("info", archive).stdout
    with Archive(archive) as opened:
        assert opened.image()[0].digest in text
    assert HARBOUR in text
    shown = json.loads(run("info", archive, "-o", "json").stdout)
    assert (shown["version"], shown["previous"], shown["sealed"]) == ("1.0.0", ["0.9.0"], True)
    assert shown["components"] == {"harbour": 1, "tools": 1}
    shown = json.loads(run("info", payload, "-o", "json").stdout)
    assert (shown["version"], shown["sealed"], shown["manifests"]) == ("", False, 2)
    assert "image" not in shown


def test_diff_shows_images_and_manifests_but_not_the_version(payload: Path, tmp_path: Path) -> None:
    old = built(payload, tmp_path / "old.tar")
    same = built(payload, tmp_path / "same.tar", version="1.1.0")
    assert "no image and no manifest differs" in run("diff", old, same).stdout
    changed = deployment("harbour", "harbour")
    changed["spec"]["replicas"] = 2
    (payload / "0000_50_harbour_1.yaml").write_text(yaml.safe_dump(changed))
    (payload / "0000_70_new_1.yaml").write_text(yaml.safe_dump(deployment("new", "harbour")))
    (payload / "tools" / "0000_60_tools_1.yaml").unlink()
    newer = f"registry.test/tools@{digest_of(b'newer')}"
    new = tmp_path / "new.tar"
    run(
        *("build", "--version", "2.0.0", "--from", payload, "-o", new),
        *("--image", f"harbour={HARBOUR}", "--image", f"tools={newer}"),
    )
    shown = json.loads(run("diff", old, new, "-o", "json", exit_code=1).stdout)
    assert shown == {
        "from": "1.0.0",
        "to": "2.0.0",
        "images": [{"name": "tools", "from": TOOLS, "to": newer}],
        "manifests": [
            {
                "object": "Deployment.apps/harbour/harbour",
                "change": "changed",
                "fields": ["spec.replicas"],
            },
            {"object": "Deployment.apps/harbour/new", "change": "added", "fields": []},
            {"object": "Deployment.apps/harbour/tools", "change": "removed", "fields": []},
        ],
    }
    text = run("diff", old, new, exit_code=1).stdout
    assert "1.0.0 -> 2.0.0" in text
    assert "spec.replicas" in text


def test_a_signed_release_is_verified_with_the_public_key(payload: Path, tmp_path: Path) -> None:
    archive = built(payload, tmp_path / "r.tar")
    openssl = ("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    subprocess.run([*openssl, "-out", "key"], cwd=tmp_path, capture_output=True, check=True)
    public = ("openssl", "pkey", "-in", "key", "-pubout")
    pem = subprocess.run(public, cwd=tmp_path, capture_output=True, check=True).stdout
    signature = tmp_path / "signature.tar"
    named = ("--reference", "registry.test/releases:1.0.0", "-o", signature)
    result = run("sign", archive, "--key", tmp_path / "key", *named)
    with Archive(archive) as opened:
        digest = opened.image()[0].digest
    assert f"registry.test/releases:{signature_tag(digest)}" in result.stdout
    with Archive(signature) as opened:
        descriptor, manifest = opened.image()
        (layer,) = signature_layers(manifest)
        found = signature_in(layer, opened.blob(layer))
    assert descriptor.annotations["org.opencontainers.image.ref.name"] == signature_tag(digest)
    assert verify(found, digest, [load_public_key(pem)]).reference == "registry.test/releases"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"text", "cut off"),
        (tar(entry("index.json", b"{}")), "not a manifest"),
    ],
)
def test_files_that_are_no_release_are_told(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert told in run("info", path, exit_code=2).stderr


def test_the_base_is_no_release(base: Path) -> None:
    assert "it is no release image" in run("info", base, exit_code=2).stderr


def test_a_directory_of_releases_asks_for_one(tmp_path: Path) -> None:
    (tmp_path / "1.0.0").mkdir()
    (tmp_path / "1.0.0" / "release-metadata").write_text("version: 1.0.0")
    assert "name one of them" in run("info", tmp_path, exit_code=2).stderr
    out = tmp_path / "r.tar"
    result = run("build", "--version", "1.0.0", "--from", tmp_path, "-o", out, exit_code=2)
    assert "directory of releases" in result.stderr


def test_a_changed_file_of_a_sealed_release_is_told(payload: Path, tmp_path: Path) -> None:
    archive = built(payload, tmp_path / "r.tar")
    directory = tmp_path / "unpacked"
    directory.mkdir()
    with Archive(archive) as opened, opened.open_blob(opened.image()[1].layers[-1]) as layer:
        extract_release(layer, directory)
    assert json.loads(run("info", directory, "-o", "json").stdout)["sealed"]
    (directory / "0000_50_harbour_1.yaml").write_text(yaml.safe_dump(deployment("a", "b")))
    assert "SHA256SUMS" in run("info", directory, exit_code=2).stderr


def test_a_config_without_labels_gets_those_of_the_release() -> None:
    layer, _ = layer_bytes([])
    made = release_config({"config": None}, layer, "1.0.0", "")
    assert made["config"]["Labels"]["io.openshift.release"] == "1.0.0"
    assert made["rootfs"]["diff_ids"] == [layer.diff_id]


def test_changed_fields_names_the_smallest_difference() -> None:
    old = {"a": {"b": [{"c": 1}, {"c": 2}]}, "d": 1, "e": [1]}
    new = {"a": {"b": [{"c": 1}, {"c": 3}]}, "f": None, "e": [1, 2], "d": True}
    assert [path for path, _, _ in changed_fields(old, new)] == ["a.b[1].c", "d", "e"]
