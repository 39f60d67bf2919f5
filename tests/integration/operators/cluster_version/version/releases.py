"""Releases for the tests, and a cluster that is moved between them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import objects

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.payload.seal import seal
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.waiting import eventually

INCLUDE = "include.release.openshift.io/self-managed-high-availability"
LIMIT = 120.0
"""Seconds for an update that takes a few on an idle machine."""


def counted(obj: Object, **annotations: str) -> Object:
    """The object with the annotation by which it counts, and others."""
    metadata = obj["metadata"]
    given = metadata.get("annotations", {}) | {INCLUDE: "true"} | annotations
    return obj | {"metadata": metadata | {"annotations": given}}


def config_map(name: str, namespace: str, **data: str) -> Object:
    return counted(objects.config_map(namespace, name, None, **data))


def deployment(name: str, namespace: str, *, simulate: str = "ready", **env: str) -> Object:
    """A Deployment of a foreign image: its pods go to the node `simulated`."""
    variables = [{"name": key, "value": value} for key, value in env.items()]
    variables.append({"name": "RELEASE_VERSION", "value": "0.0.1-snapshot"})
    main = objects.foreign_container("example.test/pilot:1", env=variables)
    template = objects.pod(name, main, terminationGracePeriodSeconds=1)
    template["metadata"]["annotations"] = {"quarterdeck.dev/simulate": simulate}
    made = objects.deployment(name, template, namespace=namespace)
    del made["spec"]["replicas"]  # an administrator may set them
    return counted(made)


def own_deployment(name: str, namespace: str, **env: str) -> Object:
    """A Deployment of Quarterdeck's own image: its pods go to the node `this-machine`."""
    made = deployment(name, namespace, **env)
    (main,) = made["spec"]["template"]["spec"]["containers"]
    main |= objects.container("exec sleep 3600")
    return made


def job(name: str, namespace: str) -> Object:
    """A Job of a foreign image, which the simulated node completes."""
    # One label for all releases: the hash of the spec is compared between them.
    worker = objects.pod("migrate", objects.foreign_container("example.test/migrate:1"))
    return counted(objects.job(name, worker, namespace=namespace, backoffLimit=0))


def definition(group: str, **fields: str) -> Object:
    """A CRD of kind Lookout with these fields in its spec."""
    spec = {"type": "object", "properties": {key: {"type": kind} for key, kind in fields.items()}}
    return counted(objects.definition(group, "Lookout", spec=spec))


class Releases:
    """A releases directory that a test fills."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)

    def write(
        self,
        version: str,
        files: Mapping[str, Object | str],
        previous: Sequence[str] = (),
        *,
        sealed: bool = True,
    ) -> None:
        """Make a release of these manifests, by file name; text is written as it is."""
        directory = self.root / version
        directory.mkdir(exist_ok=True)
        metadata = {"version": version, "previous": list(previous)}
        (directory / "release-metadata").write_text(json.dumps(metadata))
        for name, content in files.items():
            text = content if isinstance(content, str) else json.dumps(content, indent=1)
            (directory / name).write_text(text)
        if sealed:
            seal(directory)


class Cluster:
    """ClusterVersion and the objects of a release, as an administrator sees and changes them."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace
        self._objects = ApiObjects(plane.requests(), namespace)

    def kubectl(self, *args: str, given: Object | None = None, check: bool = True) -> str:
        text = None if given is None else json.dumps(given)
        done = self.plane.kubectl("-n", self.namespace, *args, input=text, check=check)
        return done.stdout

    def find(self, kind: str, name: str) -> Any:
        return self._objects.find(kind, name)

    def all(self, kind: str, selector: str = "", *, namespace: str = "") -> list[Object]:
        return self._objects.list(kind, selector, namespace=namespace)

    def apply(self, obj: Object) -> None:
        self._objects.apply(obj)

    def patch(self, kind: str, name: str, patch: Object, *, subresource: str = "") -> None:
        self._objects.patch(kind, name, patch, subresource=subresource)

    def delete(self, kind: str, name: str) -> bool:
        """Delete an object, and what it owns, in the background; whether there was one."""
        return self._objects.delete(kind, name)

    def status(self) -> Any:
        """ClusterVersion's status; empty while there is none."""
        return (self.find("clusterversion", "version") or {}).get("status") or {}

    def ask(self, **update: Any) -> None:
        """Set `spec.desiredUpdate`."""
        asked = {"version": None, "image": None, "force": None, **update}
        self.patch("clusterversion", "version", {"spec": {"desiredUpdate": asked}})

    def condition(self, type_: str) -> dict[str, str]:
        found = [c for c in self.status().get("conditions", []) if c["type"] == type_]
        return found[0] if found else {"status": "", "reason": "", "message": ""}

    def wait_condition(
        self, type_: str, status: str, text: str = "", limit: float = LIMIT
    ) -> dict[str, str]:
        """The condition, when it has this status and this in its message or reason."""

        def look() -> dict[str, str] | None:
            seen = self.condition(type_)
            there = text in seen["message"] or text in seen["reason"]
            return seen if seen["status"] == status and there else None

        try:
            return eventually(look, f"{type_}={status} with {text!r}", limit)
        except AssertionError as error:
            raise AssertionError(f"{error}; seen: {self.status()}") from error

    def wait_release(self, version: str, limit: float = LIMIT) -> None:
        """Return when this release is fully applied, and the status says so."""

        def look() -> bool:
            history = self.status().get("history") or [{"version": "", "state": ""}]
            return (history[0]["version"], history[0]["state"]) == (version, "Completed")

        try:
            eventually(look, f"release {version}", limit)
        except AssertionError as error:
            raise AssertionError(f"{error}; seen: {self.status()}") from error

    def wait_observed(self) -> None:
        """Return when the newest change of ClusterVersion has been looked at."""

        def look() -> bool:
            version = self.find("clusterversion", "version")
            seen = version.get("status", {}).get("observedGeneration")
            return bool(seen == version["metadata"]["generation"])

        eventually(look, "observedGeneration")

    def events(self, reason: str) -> list[str]:
        """The notes of the events about ClusterVersion with this reason."""
        return [
            one["note"]
            for one in self.all("events.events.k8s.io", namespace="default")
            if one["reason"] == reason and one["regarding"]["kind"] == "ClusterVersion"
        ]

    def report(self, name: str, **conditions: tuple[str, str]) -> None:
        """Have a cluster operator say this of itself: type to status and message."""
        self.apply(objects.cluster_operator(name))
        told = [
            objects.condition(type_, status, message, reason="Told")
            for type_, (status, message) in conditions.items()
        ]
        status = {"status": {"conditions": told}}
        self.patch("clusteroperator", name, status, subresource="status")
