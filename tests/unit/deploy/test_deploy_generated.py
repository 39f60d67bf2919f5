"""What is committed in `deploy` is what the operators' declarations make."""

import shutil
from pathlib import Path

import yaml
from tests.places import DEPLOY

from quarterdeck.api.kinds import KINDS
from quarterdeck.delivery.files import files, kinds, write
from quarterdeck.delivery.registry import installed

OURS = installed().of("quarterdeck")
BY_HAND = {"monitoring/files/prometheus.yaml"}
"""The files in `deploy` that nothing is generated from."""


def test_deploy_is_up_to_date() -> None:
    there = {
        str(path.relative_to(DEPLOY)): path.read_text()
        for path in DEPLOY.rglob("*")
        if path.is_file()
    }
    for name in BY_HAND:
        assert there.pop(name)
    wanted = files(OURS)
    stale = sorted(
        name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name)
    )
    assert not stale, f"deploy is out of date ({', '.join(stale)}): run `make generate`"


def test_every_kind_comes_with_an_operator() -> None:
    assert {kind.crd_name for kind in kinds(OURS)} == {kind.crd_name for kind in KINDS}


def test_writing_it_again_changes_nothing_and_what_went_is_removed(tmp_path: Path) -> None:
    deploy = tmp_path / "deploy"
    shutil.copytree(DEPLOY, deploy)
    assert write(deploy, files(OURS)) == []
    (deploy / "payload" / "old.yaml").write_text("")
    (deploy / "gone").mkdir()
    shutil.copy(deploy / "sample" / "rbac.yaml", deploy / "gone" / "rbac.yaml")
    (deploy / "sample" / "mine.yaml").write_text("# written by hand\n")
    assert write(deploy, files(OURS)) == ["gone/rbac.yaml", "payload/old.yaml"]
    assert not (deploy / "payload" / "old.yaml").exists()
    assert (deploy / "sample" / "mine.yaml").exists()


def test_no_file_has_references_which_not_every_reader_follows() -> None:
    for name, text in files(OURS).items():
        if name.startswith("chart/templates/"):
            continue  # templates, which become the objects of the other files
        events = yaml.parse(text, Loader=yaml.CSafeLoader)
        assert not [one for one in events if isinstance(one, yaml.AliasEvent)], name
