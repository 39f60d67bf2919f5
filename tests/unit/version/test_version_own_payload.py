"""Quarterdeck's own payload and releases: what is committed is what `deploy` makes of it."""

import shutil
from pathlib import Path

from quarterdeck.localcluster import own_payload
from quarterdeck.localcluster.releases import FIRST, NEXT, bootstrap_manifests, write_releases
from quarterdeck.operators.cluster_version.payload.lint import lint
from quarterdeck.operators.cluster_version.payload.load import read_payload
from quarterdeck.operators.cluster_version.version.releases import load_release, read_releases

DEPLOY = Path(__file__).parents[3] / "deploy"


def test_the_payload_is_up_to_date() -> None:
    there = {path.name: path.read_text() for path in (DEPLOY / "payload").iterdir()}
    wanted = own_payload.files(DEPLOY)
    stale = sorted(
        name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name)
    )
    assert not stale, f"deploy/payload is out of date ({', '.join(stale)}): run `make generate`"


def test_every_definition_is_in_it() -> None:
    sources = {Path(source).name for source in own_payload.PARTS.values()}
    assert {path.name for path in (DEPLOY / "crds").iterdir()} <= sources


def test_writing_it_again_changes_nothing_and_what_went_is_removed(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    assert own_payload.write(tmp_path / "deploy") == []
    (tmp_path / "deploy" / "payload" / "old.yaml").write_text("")
    assert own_payload.write(tmp_path / "deploy") == ["old.yaml"]
    assert not (tmp_path / "deploy" / "payload" / "old.yaml").exists()


def test_nothing_is_wrong_with_it() -> None:
    reading = read_payload([DEPLOY / "payload"])
    assert lint(reading) == ()


def test_two_releases_are_made_of_it_and_each_can_be_reached_from_the_other(
    tmp_path: Path,
) -> None:
    write_releases(tmp_path, DEPLOY / "payload")
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
    (volume,) = operator["spec"]["template"]["spec"]["volumes"]
    assert volume["hostPath"]["path"] == str(tmp_path)


def test_the_operator_begins_with_the_first_and_only_its_own_manifests(tmp_path: Path) -> None:
    write_releases(tmp_path, DEPLOY / "payload")
    text = bootstrap_manifests(tmp_path)
    assert "{{" not in text
    assert "snapshot" not in text
    assert f"quarterdeck:{FIRST}" in text
    assert "quarterdeck-sample" not in text
