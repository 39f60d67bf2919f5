"""Helpers for tests with the node `this-machine`: apply, wait, read logs, kill.

They are synchronous. Logs, roll-outs and deletions use the pinned kubectl, as an administrator
would. Waits use requests, because a start of kubectl takes much longer.
"""

import json
from collections.abc import Callable
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.waiting import until

WAIT_TIMEOUT = 90.0
"""The most seconds of a wait, which takes one or two on an idle machine."""


class ThisMachine:
    """The node, used from one test's namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace
        self._objects = ApiObjects(plane.requests(), namespace)

    def kubectl(self, *args: str, check: bool = True, manifest: Object | None = None) -> str:
        """Run kubectl in this namespace, and return its output; without `check`, errors too."""
        given = json.dumps(manifest) if manifest is not None else None
        done = self.plane.kubectl("--namespace", self.namespace, *args, input=given, check=check)
        return done.stdout + ("" if check else done.stderr)

    def apply(self, manifest: Object) -> None:
        """Apply an object."""
        self._objects.apply(manifest)

    def deploy(self, deployment: Object) -> None:
        """Apply a Deployment, and wait until it is rolled out."""
        self.apply(deployment)
        self.wait_rolled_out(deployment["metadata"]["name"])

    def wait_rolled_out(self, deployment: str) -> None:
        """Wait until a Deployment is rolled out."""
        self.kubectl(
            "rollout", "status", f"deployment/{deployment}", f"--timeout={WAIT_TIMEOUT:.0f}s"
        )

    def get(self, kind: str, name: str) -> Object:
        """An object now; fails if there is none."""
        return self._objects.get(kind, name)

    def find(self, kind: str, name: str) -> Any:
        """An object now; None if there is none."""
        return self._objects.find(kind, name)

    def list(self, kind: str, selector: str = "") -> list[Object]:
        """The objects of a kind in this namespace that match a label selector."""
        return self._objects.list(kind, selector)

    def wait_pod(self, name: str, wanted: Callable[[Object], Any]) -> Object:
        """Wait until the pod is as wanted, and return it."""
        pod: Object = self.wait(lambda: self.get("pod", name), wanted)
        return pod

    def wait(
        self,
        look: Callable[[], Any],
        wanted: Callable[[Any], Any] = bool,
        limit: float = WAIT_TIMEOUT,
    ) -> Any:
        """Wait until `look` returns a wanted value, and return it; fails with the last value."""
        return until(look, wanted, "as wanted", limit)

    def logs(self, pod: str, *flags: str, check: bool = True) -> str:
        """The output of `kubectl logs` with these flags."""
        return self.kubectl("logs", pod, *flags, check=check)

    def wait_logged(self, pod: str, text: str, *flags: str) -> str:
        """Wait until the text is in the pod's log, and return the log."""
        log: str = self.wait(lambda: self.logs(pod, *flags, check=False), lambda seen: text in seen)
        return log

    def kill(self, pod: str) -> None:
        """Delete a pod without a grace period, and do not wait."""
        self.kubectl("delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")
