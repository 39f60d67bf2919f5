"""What tests do with the node `this-machine`: apply, wait, read logs, kill.

Synchronous: logs, roll-outs and deletions through the pinned kubectl, as an administrator would;
what a test waits for by requests of its own, as a start of kubectl takes much longer than those.
"""

import json
from collections.abc import Callable
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.waiting import until

LIMIT = 90.0
"""Seconds until what a test waits for counts as never coming; it takes one or two when idle."""


class ThisMachine:
    """The node, as one test sees it: in the test's own namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace
        self._objects = ApiObjects(plane.requests(), namespace)

    def kubectl(self, *args: str, check: bool = True, manifest: Object | None = None) -> str:
        """What kubectl printed, in this namespace; errors too when it is not checked."""
        given = json.dumps(manifest) if manifest is not None else None
        done = self.plane.kubectl("--namespace", self.namespace, *args, input=given, check=check)
        return done.stdout + ("" if check else done.stderr)

    def apply(self, manifest: Object) -> None:
        """Make an object be so."""
        self._objects.apply(manifest)

    def deploy(self, deployment: Object) -> None:
        """Apply a Deployment and return when it is available and up to date."""
        self.apply(deployment)
        self.wait_rolled_out(deployment["metadata"]["name"])

    def wait_rolled_out(self, deployment: str) -> None:
        """Return when a Deployment is available and up to date."""
        self.kubectl("rollout", "status", f"deployment/{deployment}", f"--timeout={LIMIT:.0f}s")

    def get(self, kind: str, name: str) -> Object:
        """An object as it is now."""
        return self._objects.get(kind, name)

    def find(self, kind: str, name: str) -> Any:
        """An object as it is now; None without one."""
        return self._objects.find(kind, name)

    def list(self, kind: str, selector: str = "") -> list[Object]:
        """The objects of a kind in this namespace, those that a label selector lets through."""
        return self._objects.list(kind, selector)

    def wait_pod(self, name: str, wanted: Callable[[Object], Any]) -> Object:
        """The pod, when it is as wanted."""
        pod: Object = self.wait(lambda: self.get("pod", name), wanted)
        return pod

    def wait(
        self, look: Callable[[], Any], wanted: Callable[[Any], Any] = bool, limit: float = LIMIT
    ) -> Any:
        """What is seen, when it is as wanted; fails with the last sight of it."""
        return until(look, wanted, "as wanted", limit)

    def logs(self, pod: str, *flags: str, check: bool = True) -> str:
        """What `kubectl logs` says with these flags."""
        return self.kubectl("logs", pod, *flags, check=check)

    def wait_logged(self, pod: str, text: str, *flags: str) -> str:
        """The pod's log, when the text is in it."""
        log: str = self.wait(lambda: self.logs(pod, *flags, check=False), lambda seen: text in seen)
        return log

    def kill(self, pod: str) -> None:
        """Delete a pod without a grace period, and do not wait."""
        self.kubectl("delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")
