"""Finds the entry of a container by its pod's name, with a request to the API server."""

import json
import os
import re
import subprocess

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.components import THIS_MACHINE
from quarterdeck.localcluster.node.pod.containers import all_containers, main_containers
from quarterdeck.localcluster.node.sandbox.entry import (
    ContainerEntry,
    NotEnterable,
    entry_path,
    read_entry,
)
from quarterdeck.localcluster.node.static_pods.static import MIRROR
from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.status import kubectl_environment


def find_entry(
    layout: Layout, kubectl: str, namespace: str, pod: str, container: str
) -> ContainerEntry:
    """The entry of a container, by default the pod's first one."""
    asked = subprocess.run(
        [kubectl, "get", "pod", pod, f"--namespace={namespace}", "--output=json"],
        env=os.environ | kubectl_environment(layout),
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode != 0:
        raise NotEnterable(asked.stderr.strip())
    found: Object = json.loads(asked.stdout)
    node = found["spec"].get("nodeName", "")
    if node != THIS_MACHINE:
        where = f"on the node {node}" if node else "on no node yet"
        raise NotEnterable(f"pod {pod} is {where}; only pods on {THIS_MACHINE} are processes")
    names = [spec["name"] for spec in all_containers(found)]
    container = container or main_containers(found)[0]["name"]
    if container not in names:
        raise NotEnterable(f"pod {pod} has no container {container}, only {', '.join(names)}")
    return read_entry(entry_path(layout.pods / uid_of(found), container))


def uid_of(pod: Object) -> str:
    """The uid in the paths of its files; a static pod's uid is not that of its mirror pod.

    Anybody who may create a pod may write the annotation.
    """
    meta = pod["metadata"]
    uid = str((meta.get("annotations") or {}).get(MIRROR) or meta["uid"])
    if not re.fullmatch(r"[-0-9a-f]+", uid):
        raise NotEnterable(f"pod {meta['name']}: annotation {MIRROR}: {uid!r}: not of this node")
    return uid
