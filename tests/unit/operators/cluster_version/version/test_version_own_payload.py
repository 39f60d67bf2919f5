"""Quarterdeck's own payload and releases, as operators' declarations make them."""

from pathlib import Path

from tests.places import DEPLOY

from quarterdeck.localcluster.releases import FIRST, NEXT, bootstrap_manifests, write_releases
from quarterdeck.payload.lint import lint
from quarterdeck.payload.load import read_payload
from quarterdeck.payload.releases import load_release, read_releases


def test_nothing_is_wrong_with_it() -> None:
    reading = read_payload([DEPLOY / "payload"])
    assert lint(reading) == ()


def test_two_releases_are_made_of_it_and_each_can_be_reached_from_the_other(
    tmp_path: Path,
) -> None:
    write_releases(tmp_path)
    found = read_releases(tmp_path)
    assert not found.problems
    assert [(one.release.version, set(one.previous)) for one in found.offers] == [
        (NEXT, {FIRST}),
        (FIRST, {NEXT}),
    ]
    payload = load_release(found.offers[0], "single-node-developer")
    (operator,) = (
        one.object
        for one in payload.manifests
        if one.identity[1:] == ("Deployment", "openshift-cluster-version", one.identity.name)
    )
    (container,) = operator["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"quarterdeck:{NEXT}"
    assert "--cluster-profile=single-node-developer" in container["args"]
    assert {"name": "RELEASE_VERSION", "value": NEXT} in container["env"]
    mounted = operator["spec"]["template"]["spec"]["volumes"]
    assert [one["hostPath"]["path"] for one in mounted if "hostPath" in one] == [str(tmp_path)]


def test_the_operator_begins_with_the_first_and_only_its_own_manifests(tmp_path: Path) -> None:
    write_releases(tmp_path)
    text = bootstrap_manifests(tmp_path)
    assert "{{" not in text
    assert "snapshot" not in text
    assert f"quarterdeck:{FIRST}" in text
    assert "quarterdeck-sample" not in text


def test_the_directory_of_the_releases_may_have_any_name(tmp_path: Path) -> None:
    """A path is data: what means something in YAML means nothing in it."""
    root = tmp_path / "a: 'b' #c"
    write_releases(root)
    found = read_releases(root)
    assert not found.problems
    assert any(
        volume.get("hostPath", {}).get("path") == str(root)
        for one in load_release(found.offers[0], "single-node-developer").manifests
        for volume in one.object.get("spec", {})
        .get("template", {})
        .get("spec", {})
        .get("volumes", ())
    )
