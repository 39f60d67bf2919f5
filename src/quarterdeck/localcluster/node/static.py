"""Static pods: manifests in a directory, run without the API server and mirrored to it.

What a file means, and what is to change when files do, is decided by pure functions;
`StaticPods` reads the directory again and again. A changed file is another pod: the old one
ends first, with its grace period, and then the new one begins.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

import yaml

from quarterdeck.api.meta import Key, Object
from quarterdeck.localcluster.node.times import format_time
from quarterdeck.log import get_logger

log = get_logger("node.static")

LOOK_EVERY = 1.0
SOURCE = "kubernetes.io/config.source"
HASH = "kubernetes.io/config.hash"
MIRROR = "kubernetes.io/config.mirror"
SUFFIXES = (".yaml", ".yml", ".json")


class BadManifestError(Exception):
    """A file that is not a pod: what is wrong with it."""


def parse_manifest(data: bytes, node: str) -> Object:
    """The pod that a file asks for, as it runs on this node; its uid comes from its content."""
    try:
        pod = yaml.load(data, Loader=yaml.CSafeLoader)  # it is the safe one
    except yaml.YAMLError as error:
        raise BadManifestError(f"not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(pod, dict) or pod.get("kind") != "Pod":
        raise BadManifestError("not a Pod: kind must be Pod")
    meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    if not meta.get("name"):
        raise BadManifestError("metadata.name is missing")
    if not spec.get("containers"):
        raise BadManifestError("spec.containers is empty")
    if spec.get("serviceAccountName"):
        raise BadManifestError("spec.serviceAccountName: a static pod has no ServiceAccount")
    digest = hashlib.sha256(data).hexdigest()[:32]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **meta,
            "name": f"{meta['name']}-{node}",
            "namespace": meta.get("namespace", "default"),
            "uid": digest,
            "resourceVersion": "",
            "annotations": {**(meta.get("annotations") or {}), SOURCE: "file", HASH: digest},
        },
        "spec": {"restartPolicy": "Always", **spec, "nodeName": node},
        "status": {},
    }


def mirror_of(pod: Object, node: Object) -> Object:
    """What the API server is told of a static pod."""
    meta = {
        field: value
        for field, value in pod["metadata"].items()
        if field not in ("uid", "resourceVersion", "deletionTimestamp")
    }
    digest = pod["metadata"]["uid"]
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": node["metadata"]["name"],
        "uid": node["metadata"]["uid"],
        "controller": True,
    }
    meta |= {
        "annotations": {**pod["metadata"]["annotations"], MIRROR: digest},
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod["spec"]}


def is_mirror(pod: Object) -> bool:
    """Whether the object only mirrors a static pod."""
    return MIRROR in (pod["metadata"].get("annotations") or {})


def mirrors(mirror: Object, pod: Object) -> bool:
    """Whether the object mirrors this very pod, and is to stay."""
    annotations = mirror["metadata"].get("annotations") or {}
    current: bool = annotations.get(MIRROR) == pod["metadata"]["uid"]
    return current and "deletionTimestamp" not in mirror["metadata"]


def changed(
    running: Mapping[Key, Object], wanted: Mapping[Key, Object], now: datetime
) -> dict[Key, Object]:
    """The pods that differ from now on: new ones, and those whose file is gone or another."""
    news = {key: pod for key, pod in wanted.items() if key not in running}
    for key, pod in running.items():
        meta = pod["metadata"]
        stays = key in wanted and wanted[key]["metadata"]["uid"] == meta["uid"]
        if not stays and "deletionTimestamp" not in meta:
            grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
            ending = {
                "deletionTimestamp": format_time(now),
                "deletionGracePeriodSeconds": grace,
            }
            news[key] = {**pod, "metadata": {**meta, **ending}}
    return news


class StaticPods:
    """The static pods of this node, as their files say; `wake` is called when one changes."""

    def __init__(
        self,
        directory: Path | None,
        node: str,
        *,
        wake: Callable[[Key], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._directory = directory
        self._node = node
        self._wake = wake
        self._clock = clock
        self._wanted: dict[Key, Object] = {}
        self._running: dict[Key, Object] = {}
        self._broken: dict[str, str] = {}

    def get(self, key: Key) -> Object | None:
        """The pod of this name, if it is a static one."""
        return self._running.get(key)

    @property
    def uids(self) -> set[str]:
        """The uids of all static pods."""
        return {pod["metadata"]["uid"] for pod in self._running.values()}

    def set_status(self, key: Key, status: Object) -> None:
        """Remember what is said about a pod."""
        self._running[key] = {**self._running[key], "status": status}

    def removed(self, key: Key) -> None:
        """A pod has ended for good; another one of its name may begin."""
        self._running.pop(key, None)
        self.look()

    async def run(self) -> None:
        """Look at the files again and again."""
        while self._directory is not None:
            self.look()
            await asyncio.sleep(LOOK_EVERY)

    def look(self) -> None:
        """Read the files once, and wake the pods that differ."""
        self._wanted = self._read()
        for key, pod in changed(self._running, self._wanted, self._clock()).items():
            self._running[key] = pod
            self._wake(key)

    def _read(self) -> dict[Key, Object]:
        found: dict[Key, Object] = {}
        broken: dict[str, str] = {}
        for path in self._files():
            try:
                pod = parse_manifest(path.read_bytes(), self._node)
            except (BadManifestError, OSError) as error:
                broken[path.name] = str(error)
                continue
            found[Key(pod["metadata"]["namespace"], pod["metadata"]["name"])] = pod
        for name, fault in broken.items():
            if self._broken.get(name) != fault:
                log.warning("static pod's file is broken", file=name, error=fault)
        self._broken = broken
        return found

    def _files(self) -> list[Path]:
        if self._directory is None or not self._directory.is_dir():
            return []
        return sorted(
            path
            for path in self._directory.iterdir()
            if path.suffix in SUFFIXES and not path.name.startswith(".")
        )
