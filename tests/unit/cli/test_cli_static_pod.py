"""What `quarterdeck staleness` prints for a checker that runs as a static pod."""

from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from quarterdeck.cli.main import cli
from quarterdeck.status.definitions import OWNER

IMAGE = "registry.example.test/quarterdeck@sha256:" + "0" * 64


def printed(*words: str) -> list[Any]:
    done = CliRunner().invoke(cli, ["staleness", *words])
    assert done.exit_code == 0, done.output
    return list(yaml.safe_load_all(done.stdout))


def test_the_static_pod_has_the_image_and_may_write_its_next_certificate() -> None:
    (pod,) = printed("static-pod", f"--image={IMAGE}")
    (container,) = pod["spec"]["containers"]
    assert (pod["kind"], container["image"]) == ("Pod", IMAGE)
    (mount,) = container["volumeMounts"]
    assert "readOnly" not in mount
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_the_rights_are_those_of_the_user_and_go_with_an_uninstall() -> None:
    objects = printed("rights")
    assert {one["metadata"]["name"] for one in objects} == {"quarterdeck-staleness-static-pod"}
    assert all(one["metadata"]["annotations"][OWNER] for one in objects)
    subjects = [subject for one in objects for subject in one.get("subjects", ())]
    assert {subject["name"] for subject in subjects} == {"system:quarterdeck:staleness"}


def test_the_approver_is_a_deployment_with_the_image() -> None:
    by_kind = {one["kind"]: one for one in printed("approver", f"--image={IMAGE}")}
    (container,) = by_kind["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == IMAGE
    assert by_kind.keys() >= {"Namespace", "ServiceAccount", "PodDisruptionBudget"}


@pytest.mark.parametrize("command", ["static-pod", "approver"])
@pytest.mark.parametrize("image", ["", "two words", "x\ny: z"])
def test_what_is_no_image_does_not_get_into_a_manifest(command: str, image: str) -> None:
    done = CliRunner().invoke(cli, ["staleness", command, f"--image={image}"])
    assert done.exit_code == 2
    assert done.stdout == ""
