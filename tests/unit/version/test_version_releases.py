"""The releases directory: one payload per version, and what is wrong with the rest."""

from pathlib import Path

import pytest
from tests.unit.version.builders import offer, releases

from quarterdeck.operators.cluster_version.payload.model import PayloadError
from quarterdeck.operators.cluster_version.version.releases import (
    Offer,
    Releases,
    fingerprint,
    load_release,
    read_releases,
    version_hash,
)

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
    found = only(read_releases(tmp_path))
    payload = load_release(found, "self-managed-high-availability")
    assert payload.release.version == "1.0.0"
    assert payload.manifests[0].object["data"] == {"image": "quarterdeck:1.0.0"}
    write(tmp_path, {"a/0000_20_b_broken.yaml": MANIFEST.format(name="y") + "data: ["})
    assert versions(read_releases(tmp_path)) == ["1.0.0"]
    with pytest.raises(PayloadError, match=r"0000_20_b_broken.yaml:7 "):
        load_release(found, "self-managed-high-availability")


def test_the_fingerprint_and_the_hash_change_with_the_content(tmp_path: Path) -> None:
    files = {"a/release-metadata": "version: 1.0.0", "a/x.yaml": MANIFEST.format(name="x")}
    found = only(read_releases(write(tmp_path, files)))

    def marks() -> tuple[str, str]:
        return fingerprint(found), version_hash(load_release(found, "any"))

    before = marks()
    assert marks() == before
    write(tmp_path, {"a/x.yaml": MANIFEST.format(name="longer")})
    after = marks()
    assert after[0] != before[0]
    assert after[1] != before[1]
