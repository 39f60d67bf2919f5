"""Static pods: manifests in a directory, run without the API server and mirrored to it.

What a file means is decided in `manifest`, and what is to change when files do by a pure
function; `StaticPods` reads the directories again and again. A changed file is another pod: the
old one ends first, with its grace period, and then the new one begins.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.times import format_time
from quarterdeck.localcluster.node.static_pods.manifest import BadManifestError, parse_manifest
from quarterdeck.log import get_logger

log = get_logger("node.static")

LOOK_EVERY = 1.0
MIRROR = "kubernetes.io/config.mirror"
SUFFIXES = (".yaml", ".yml", ".json")


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
    """The static pods of this node, as their files say.

    `wake` is called when one changes, and `broken` once with each file that is not a pod.
    """

    def __init__(
        self,
        directories: Sequence[Path],
        node: str,
        *,
        wake: Callable[[Key], None],
        broken: Callable[[Path, str], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._directories = directories
        self._node = node
        self._wake = wake
        self._report_broken = broken
        self._clock = clock
        self._wanted: dict[Key, Object] = {}
        self._running: dict[Key, Object] = {}
        self._broken: dict[Path, str] = {}

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
        while self._directories:
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
        broken: dict[Path, str] = {}
        for path in self._files():
            try:
                pod = parse_manifest(path.read_bytes(), self._node)
            except (BadManifestError, OSError) as error:
                broken[path] = str(error)
                continue
            key = Key(pod["metadata"]["namespace"], pod["metadata"]["name"])
            if key in found:
                broken[path] = f"metadata.name: {key}: another file has a pod of this name"
                continue
            found[key] = pod
        for path, fault in broken.items():
            if self._broken.get(path) != fault:
                log.warning("static pod's file is broken", file=str(path), error=fault)
                self._report_broken(path, fault)
        self._broken = broken
        return found

    def _files(self) -> list[Path]:
        return [
            path
            for directory in self._directories
            if directory.is_dir()
            for path in sorted(directory.resolve().iterdir())
            if path.suffix in SUFFIXES and not path.name.startswith(".")
        ]
