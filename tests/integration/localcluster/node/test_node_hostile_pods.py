"""Pods that try to get more than they are given, on a real control plane."""

from collections.abc import Callable

import pytest
from tests.integration.pods import needs_bubblewrap
from tests.objects import config_map, container, pod

from quarterdeck.api.meta import Object
from quarterdeck.testing.this_machine import ThisMachine

pytestmark = needs_bubblewrap


def wait_event(node: ThisMachine, name: str, reason: str, text: str) -> None:
    """Return when there is an event about the pod, for this reason and with this text."""

    def notes() -> list[str]:
        events = node.list("events.events.k8s.io")
        about = [event for event in events if event["regarding"]["name"] == name]
        return [event["note"] for event in about if event["reason"] == reason]

    node.wait(notes, lambda found: any(text in note for note in found))


def waits_with(reason: str) -> Callable[[Object], bool]:
    """Whether the pod's container waits for this reason."""

    def check(seen: Object) -> bool:
        statuses = seen["status"].get("containerStatuses") or [{}]
        waiting = statuses[0].get("state", {}).get("waiting") or {}
        return bool(waiting.get("reason") == reason)

    return check


def test_a_config_map_cannot_write_options_of_bubblewrap(this_machine: ThisMachine) -> None:
    """A value with NUL bytes is refused by its variable; the pod can be deleted."""
    options = "x\0--bind\0/\0/"
    this_machine.apply(config_map(name="c", A=options))
    source = [{"configMapRef": {"name": "c"}}]
    this_machine.apply(pod("hostile", container("touch /x", envFrom=source)))
    waiting = this_machine.wait_pod("hostile", waits_with("CreateContainerConfigError"))
    message = waiting["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
    assert "env A: " in message
    wait_event(this_machine, "hostile", "Failed", "env A: ")
    this_machine.kubectl("delete", "pod", "hostile", "--timeout=60s")


@pytest.mark.parametrize("field", ["command", "args", "workingDir", "mountPath"])
def test_a_nul_byte_is_refused_by_its_field(this_machine: ThisMachine, field: str) -> None:
    bad = container("sleep 60")
    if field == "mountPath":
        bad["volumeMounts"] = [{"name": "v", "mountPath": "/v\0--bind\0/\0/"}]
    elif field == "workingDir":
        bad["workingDir"] = "/\0--bind\0/\0/"
    else:
        bad[field] = ["sh", "-c", "sleep 60 \0"]
    this_machine.apply(pod("hostile", bad, volumes=[{"name": "v", "emptyDir": {}}]))
    this_machine.wait_pod("hostile", waits_with("CreateContainerConfigError"))
    wait_event(this_machine, "hostile", "Failed", field)
    this_machine.kubectl("delete", "pod", "hostile", "--timeout=60s")


@pytest.mark.parametrize("inside", ["", "pki", "pods", "credentials", "above"])
def test_the_state_directory_cannot_be_mounted(this_machine: ThisMachine, inside: str) -> None:
    """Nor what is in it or above it; and nothing is made in there."""
    state = this_machine.plane.layout.root
    path = state.parent if inside == "above" else state / inside
    volume = {"name": "v", "hostPath": {"path": str(path)}}
    mounts = [{"name": "v", "mountPath": "/v"}]
    this_machine.apply(pod("hostile", container("ls /v", volumeMounts=mounts), volumes=[volume]))
    this_machine.wait_pod("hostile", waits_with("CreateContainerConfigError"))
    wait_event(this_machine, "hostile", "Failed", "name another directory")
