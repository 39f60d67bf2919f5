"""The releases directory: one payload per version, and what is wrong with the rest."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.unit.operators.cluster_version.version.builders import offer, releases

from quarterdeck.payload.images import is_image
from quarterdeck.payload.model import PayloadError
from quarterdeck.payload.releases import (
    Offer,
    Releases,
    fingerprint,
    load_release,
    read_releases,
    version_hash,
)
from quarterdeck.payload.seal import SUMS, seal

MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  annotations: {{include.release.openshift.io/self-managed-high-availability: "true"}}
"""


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def versions(found: Releases) -> list[str]:
    return [one.release.version for one in found.offers]


def only(found: Releases) -> Offer:
    assert not found.problems
    (one,) = found.offers
    return one


def test_releases_are_known_by_their_metadata_and_come_newest_first(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a/release-metadata": "version: 1.9.0\nprevious: [1.8.0]",
            "b/release-metadata": '{"version": "1.10.0", "previous": ["1.9.0"], "url": "https://x"}',
            "c/release-metadata": "version: 1.10.0-rc.1\nimage: example.test/quarterdeck:x",
            ".hidden/release-metadata": "version: 9.9.9",
            "README": "not a release",
        },
    )
    found = read_releases(tmp_path)
    assert versions(found) == ["1.10.0", "1.10.0-rc.1", "1.9.0"]
    assert not found.problems
    newest, candidate, _ = found.offers
    assert newest.previous == {"1.9.0"}
    assert newest.release.url == "https://x"
    assert newest.release.image == "quarterdeck:1.10.0"
    assert candidate.release.image == "example.test/quarterdeck:x"
    assert found.by_version("1.9.0") == found.offers[2]
    assert found.by_image("example.test/quarterdeck:x") == candidate
    assert found.by_version("1.9.1") is None


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        pytest.param(None, "broken/release-metadata: not there", id="missing"),
        pytest.param("version: [", "release-metadata:2 (document 1): not YAML", id="no YAML"),
        pytest.param("previous: []", "`version`", id="no version"),
        pytest.param("version: 1.2", "got `float`", id="a number"),
        pytest.param("version: v1.2.3", "'v1.2.3', which is no semantic", id="no semver"),
        pytest.param(
            "version: 1.2.3\nprevious: [1.2.2, all]",
            "release-metadata:1 (document 1): previous has 'all'",
            id="no semver before",
        ),
        pytest.param("version: 1.0.0\n---\nversion: 1.1.0", "2 documents", id="two documents"),
        pytest.param("", "0 documents", id="empty"),
        pytest.param(f"version: 1.0.0 #{' ' * 70_000}", "larger than 64 KiB", id="large"),
    ],
)
def test_one_broken_release_is_told_and_does_not_hide_the_others(
    tmp_path: Path, metadata: str | None, told: str
) -> None:
    write(tmp_path, {"good/release-metadata": "version: 1.0.0", "broken/x.yaml": ""})
    if metadata is not None:
        write(tmp_path, {"broken/release-metadata": metadata})
    found = read_releases(tmp_path)
    assert versions(found) == ["1.0.0"]
    (problem,) = found.problems
    assert told in str(problem)


def test_metadata_that_is_a_link_out_of_the_release_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {"good/release-metadata": "version: 1.0.0", "secret": "version: 6.6.6"})
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "release-metadata").symlink_to("../secret")
    found = read_releases(tmp_path)
    assert versions(found) == ["1.0.0"]
    assert "evil/release-metadata" in str(found.problems[0])


def test_of_two_with_one_version_neither_counts(tmp_path: Path) -> None:
    same = {"a/release-metadata": "version: 1.0.0", "b/release-metadata": "version: 1.0.0"}
    found = read_releases(write(tmp_path, same))
    assert not found.offers
    assert [problem.file for problem in found.problems] == [
        "a/release-metadata",
        "b/release-metadata",
    ]


def test_a_directory_that_is_missing_or_empty_is_told(tmp_path: Path) -> None:
    assert "No such file" in str(read_releases(tmp_path / "none").problems[0])
    assert "no releases in it" in str(read_releases(tmp_path).problems[0])


def test_a_release_above_is_reachable_when_it_lists_all_that_may_run() -> None:
    known = releases(
        offer("1.2.0", "1.1.0"),
        offer("1.1.1", "1.1.0", "1.0.0"),
        offer("1.1.0", "1.0.0"),
        offer("1.0.0", "1.1.0"),
    )

    def reachable(*running: str) -> list[str]:
        return [one.release.version for one in known.reachable(running)]

    assert reachable("1.0.0") == ["1.1.1", "1.1.0"]
    assert reachable("1.1.0") == ["1.2.0", "1.1.1"]
    assert reachable("1.1.0", "1.0.0") == ["1.1.1"]
    assert reachable() == []
    assert reachable("odd") == []


def test_a_payload_is_loaded_with_its_release_and_broken_ones_say_file_and_line(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        {
            "a/release-metadata": "version: 1.0.0",
            "a/0000_10_cluster-version-operator_x.yaml": MANIFEST.format(name="x")
            + "data: {image: '{{.ReleaseImage}}'}\n",
        },
    )
    seal(tmp_path / "a")
    found = only(read_releases(tmp_path))
    payload = load_release(found, "self-managed-high-availability")
    assert payload.release.version == "1.0.0"
    assert payload.manifests[0].object["data"] == {"image": "quarterdeck:1.0.0"}
    write(tmp_path, {"a/0000_20_b_broken.yaml": MANIFEST.format(name="y") + "data: ["})
    seal(tmp_path / "a")
    assert versions(read_releases(tmp_path)) == ["1.0.0"]
    with pytest.raises(PayloadError, match=r"0000_20_b_broken.yaml:7 "):
        load_release(found, "self-managed-high-availability")


def test_the_fingerprint_and_the_hash_change_with_the_content(tmp_path: Path) -> None:
    files = {"a/release-metadata": "version: 1.0.0", "a/x.yaml": MANIFEST.format(name="x")}
    found = only(read_releases(write(tmp_path, files)))

    def marks() -> tuple[str, str]:
        seal(tmp_path / "a")
        return fingerprint(found), version_hash(load_release(found, "any"))

    before = marks()
    assert marks()[1] == before[1]
    write(tmp_path, {"a/x.yaml": MANIFEST.format(name="longer")})
    after = marks()
    assert after[0] != before[0]
    assert after[1] != before[1]


def sealed_release(root: Path) -> Offer:
    names = [f"0000_{level}_part_00.yaml" for level in (10, 20, 30)]
    files = {f"a/{name}": MANIFEST.format(name=f"n{at}") for at, name in enumerate(names)}
    write(root, files | {"a/release-metadata": "version: 1.0.0", "a/README": "not of the payload"})
    assert seal(root / "a") == 4
    return only(read_releases(root))


def refused(found: Offer) -> str:
    with pytest.raises(PayloadError) as error:
        load_release(found, "any")
    return str(error.value)


def test_a_release_that_is_sealed_is_loaded_and_its_list_is_read_by_others_too(
    tmp_path: Path,
) -> None:
    found = sealed_release(tmp_path)
    assert len(load_release(found, "any").manifests) == 3
    check = subprocess.run(["sha256sum", "--check", SUMS], cwd=tmp_path / "a", capture_output=True)
    assert check.returncode == 0


def test_a_release_without_a_seal_is_refused_and_says_how_to_seal_it(tmp_path: Path) -> None:
    found = sealed_release(tmp_path)
    (tmp_path / "a" / SUMS).unlink()
    assert "SHA256SUMS: missing" in refused(found)
    assert "quarterdeck payload seal DIR" in refused(found)


@pytest.mark.parametrize("copied", range(4))
def test_a_half_copied_release_says_what_is_missing(tmp_path: Path, copied: int) -> None:
    """Every manifest that is there parses; the Jobs and deletions that come later are not."""
    found = sealed_release(tmp_path)
    paths = sorted((tmp_path / "a").glob("0000_*"))
    for path in paths[copied:]:
        path.unlink()
    if copied == len(paths):
        assert load_release(found, "any")
    else:
        for path in paths[copied:]:
            assert f"{path.name}: not there, but listed in SHA256SUMS" in refused(found)


def test_a_file_that_was_cut_short_changed_or_added_is_told(tmp_path: Path) -> None:
    found = sealed_release(tmp_path)
    path = tmp_path / "a" / "0000_20_part_00.yaml"
    path.write_text(path.read_text()[:-1])
    assert "0000_20_part_00.yaml: not as SHA256SUMS says" in refused(found)
    write(tmp_path, {"a/0000_90_more_00.yaml": MANIFEST.format(name="more")})
    assert "0000_90_more_00.yaml: not listed in SHA256SUMS" in refused(found)
    (tmp_path / "a" / SUMS).write_text("nonsense\n")
    assert "SHA256SUMS:1: not a hash and a file" in refused(found)


@pytest.mark.parametrize("lines", range(4))
def test_a_list_that_was_cut_short_does_not_fit_what_is_there(tmp_path: Path, lines: int) -> None:
    """Not even where just the files that it still lists were copied."""
    found = sealed_release(tmp_path)
    sums = tmp_path / "a" / SUMS
    kept = sums.read_text().splitlines(keepends=True)[:lines]
    sums.write_text("".join(kept))
    for path in (tmp_path / "a").glob("0000_*"):
        if path.name not in "".join(kept):
            path.unlink()
    assert "release-metadata: not listed in SHA256SUMS" in refused(found)


@pytest.mark.timeout(20)
def test_a_list_that_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """The open of a pipe into which nobody writes did not return, and nothing was done any more."""
    found = sealed_release(tmp_path)
    (tmp_path / "a" / SUMS).unlink()
    os.mkfifo(tmp_path / "a" / SUMS)
    assert "SHA256SUMS: cannot be read: not a regular file" in refused(found)


def test_a_file_whose_time_was_set_back_has_changed(tmp_path: Path) -> None:
    found = sealed_release(tmp_path)
    path = tmp_path / "a" / "0000_20_part_00.yaml"
    before, was = fingerprint(found), path.stat()
    path.write_text(path.read_text().replace("n1", "n9"))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert path.stat().st_size == was.st_size
    assert fingerprint(found) != before


def test_a_directory_that_cannot_be_read_is_not_sealed(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").symlink_to("/nowhere")
    with pytest.raises(PayloadError, match=r"x\.yaml"):
        seal(tmp_path)
    assert not (tmp_path / SUMS).exists()


@pytest.mark.parametrize("image", ["a\nb", "a b", "a:1\n", "", "A/", "http://a/b", "a@sha256:1"])
def test_an_image_that_is_no_reference_is_refused(tmp_path: Path, image: str) -> None:
    if image:
        text = json.dumps({"version": "1.0.0", "image": image})
        found = read_releases(write(tmp_path, {"a/release-metadata": text}))
        assert not found.offers
        assert "which is no image reference" in str(found.problems[0])
    assert not is_image(image)


@pytest.mark.parametrize(
    "image",
    [
        "quarterdeck:1.0.0",
        "registry.example.test:5000/a/b-c/d_e:v1.0",
        f"localhost/x@sha256:{'0a' * 32}",
        f"r.example.test/x:1@sha256:{'0a' * 32}",
    ],
)
def test_image_references_are_known(image: str) -> None:
    assert is_image(image)


def test_a_line_break_in_an_image_list_does_not_reach_a_manifest(tmp_path: Path) -> None:
    tags = [{"name": "x", "from": {"kind": "DockerImage", "name": "a:1\nkind: Evil"}}]
    images = json.dumps({"kind": "ImageStream", "spec": {"tags": tags}})
    files = {"a/release-metadata": "version: 1.0.0", "a/image-references": images}
    write(tmp_path, files)
    seal(tmp_path / "a")
    assert "image-references:1" in refused(only(read_releases(tmp_path)))
