"""Texts that no process can be given are refused, with the field that they are in."""

from typing import Any

import pytest

from quarterdeck.localcluster.node.pod.environment import UnresolvedError
from quarterdeck.localcluster.node.pod.text_checks import check_spec, check_variables

NUL = "a\0--bind\0/\0/"


@pytest.mark.parametrize(
    ("container", "spec", "field"),
    [
        ({"command": ["sh", "-c", NUL]}, {}, "command[2]"),
        ({"args": [NUL]}, {}, "args[0]"),
        ({"workingDir": NUL}, {}, "workingDir"),
        ({"volumeMounts": [{"name": "v", "mountPath": NUL}]}, {}, "volumeMounts[0].mountPath"),
        ({"volumeMounts": [{"name": "v", "subPath": NUL}]}, {}, "volumeMounts[0].subPath"),
        ({"env": [{"name": "A", "value": NUL}]}, {}, "env[0].value"),
        ({"livenessProbe": {"exec": {"command": [NUL]}}}, {}, "livenessProbe.exec.command[0]"),
        ({}, {"volumes": [{"hostPath": {"path": NUL}}]}, "spec.volumes[0].hostPath.path"),
        ({}, {"volumes": [{"secret": {"items": [{"path": NUL}]}}]}, "spec.volumes[0].secret.items"),
        ({}, {"hostname": NUL}, "spec.hostname"),
        ({"args": ["\ud800"]}, {}, "args[0]"),
    ],
)
def test_a_text_that_no_process_can_have_is_refused_by_its_field(
    container: dict[str, Any], spec: dict[str, Any], field: str
) -> None:
    with pytest.raises(UnresolvedError) as refused:
        check_spec(container, {"spec": {"containers": [container], **spec}})
    assert refused.value.field.startswith(field)


def test_another_container_of_the_pod_is_not_asked() -> None:
    check_spec({"command": ["true"]}, {"spec": {"containers": [{"command": [NUL]}]}})


def test_a_variable_from_a_config_map_is_refused_by_its_name() -> None:
    with pytest.raises(UnresolvedError, match=r"env OPTIONS: .*remove the NUL byte"):
        check_variables({"FINE": "é", "OPTIONS": NUL})
