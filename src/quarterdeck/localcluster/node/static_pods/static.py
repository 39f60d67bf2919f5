"""Static pods: manifests in directories, run without the API server and mirrored to it.

`manifest` parses a file, a pure function computes the changes, and `StaticPods` reads the
directories periodically. A changed file is another pod: the old one ends first, with its grace
period, and then the new one starts.
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

READ_PERIOD = 1.0
MIRROR = "kubernetes.io/config.mirror"
MOST_BYTES = 10_000_000
SUFFIXES = (".yaml", ".yml", ".json")


def mirror_of(pod: Object, node: Object) -> Object:
    """The mirror pod of a static pod."""
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
    """Whether the object is a mirror pod."""
    return MIRROR in (pod["metadata"].get("annotations") or {})


def mirrors(mirror: Object, pod: Object) -> bool:
    """Whether the object is the mirror pod of this pod, and not being deleted."""
    annotations = mirror["metadata"].get("annotations") or {}
    current: bool = annotations.get(MIRROR) == pod["metadata"]["uid"]
    return current and "deletionTimestamp" not in mirror["metadata"]


def changed(
    running: Mapping[Key, Object], wanted: Mapping[Key, Object], now: datetime
) -> dict[Key, Object]:
    """The changed pods: new ones, and those whose file was removed or changed, as deleted."""
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
    """The static pods of this node, by their files.

    `wake` is called when a pod changes, and `broken` once for each invalid file.
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
        """The static pod with this key; None if there is none."""
        return self._running.get(key)

    @property
    def uids(self) -> set[str]:
        """The uids of all static pods."""
        return {pod["metadata"]["uid"] for pod in self._running.values()}

    def set_status(self, key: Key, status: Object) -> None:
        """Store the status of a pod."""
        self._running[key] = {**self._running[key], "status": status}

    def removed(self, key: Key) -> None:
        """Drop a pod that has ended; another one with its name may start."""
        self._running.pop(key, None)
        self.look()

    async def run(self) -> None:
        """Read the files periodically."""
        while self._directories:
            self.look()
            await asyncio.sleep(READ_PERIOD)

    def look(self) -> None:
        """Read the files once, and wake the changed pods."""
        try:
            self._wanted = self._read()
        except OSError as error:  # An unreadable directory ends no pods.
            self._tell_broken({Path(error.filename or "."): str(error)})
            return
        for key, pod in changed(self._running, self._wanted, self._clock()).items():
            self._running[key] = pod
            self._wake(key)

    def _read(self) -> dict[Key, Object]:
        found: dict[Key, Object] = {}
        broken: dict[Path, str] = {}
        for path in self._files():
            try:
                if path.stat().st_size > MOST_BYTES:
                    raise BadManifestError(f"larger than {MOST_BYTES} bytes")
                pod = parse_manifest(path.read_bytes(), self._node)
            except (BadManifestError, OSError) as error:
                broken[path] = str(error)
                continue
            key = Key(pod["metadata"]["namespace"], pod["metadata"]["name"])
            if key in found:
                broken[path] = f"metadata.name: {key}: another file has a pod of this name"
                continue
            found[key] = pod
        self._tell_broken(broken)
        return found

    def _tell_broken(self, broken: dict[Path, str]) -> None:
        for path, fault in broken.items():
            if self._broken.get(path) != fault:
                log.warning("static pod's file is broken", file=str(path), error=fault)
                self._report_broken(path, fault)
        self._broken = broken

    def _files(self) -> list[Path]:
        return [
            path
            for directory in self._directories
            if directory.is_dir()
            for path in sorted(directory.resolve().iterdir())
            # Not a FIFO: whoever reads it waits.
            if path.suffix in SUFFIXES and not path.name.startswith(".") and not path.is_fifo()
        ]
