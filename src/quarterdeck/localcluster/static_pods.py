"""The cluster's static pods: their manifests and their credentials.

A mirror pod must not name a ServiceAccount. So a static pod that uses the API server has its own
client certificate, which is issued again at each start. The pod mounts its directory by hostPath;
the rest of the state directory stays hidden from pods. The node runs the pods.
"""

import os
from pathlib import Path

import msgspec
import yaml

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.components import Setup
from quarterdeck.localcluster.credentials import issue_pod_credentials
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.node.sandbox.isolation import Isolation, find_isolation
from quarterdeck.localcluster.node.volumes.files import owner_of
from quarterdeck.localcluster.state import Layout
from quarterdeck.private_file import write_private


class StaticPodRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A static pod to add, and its user at the API server."""

    manifest: Path
    """A Pod with a hostPath volume for its credentials; the path is replaced."""
    user: str
    groups: tuple[str, ...] = ()
    volume: str = "credentials"
    """The name of that volume; the pod finds the file `kubeconfig` in it."""


def add_static_pod(setup: Setup, wanted: StaticPodRequest) -> Path:
    """Issue the pod's certificate, and return the manifest's path, from which the node runs it.

    The cluster need not run. Call this at each start: it renews the certificate, and changes the
    file of the pod only if the manifest has changed.
    """
    pod: Object = yaml.safe_load(wanted.manifest.read_bytes())
    name = pod["metadata"]["name"]
    owner = owner_of(pod, root=os.geteuid() == 0 and find_isolation() is Isolation.NAMESPACES).uid
    directory = issue_pod_credentials(setup, name, wanted.user, wanted.groups, owner=owner)
    path = _path(setup.layout, name)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    text = yaml.safe_dump(with_credentials(pod, wanted.volume, directory), sort_keys=False)
    write_private(path, text.encode())
    return path


def own_directory(layout: Layout) -> Path | None:
    """The user's own directory of static pods; None if there is none."""
    link = layout.own_manifests
    return link.readlink() if link.is_symlink() else None


def use_static_pods(layout: Layout, directory: Path | None) -> None:
    """Let the node also run the static pods of the user's directory; None stops that."""
    aside = layout.own_manifests.with_suffix(".new")
    aside.unlink(missing_ok=True)
    if directory is None:
        layout.own_manifests.unlink(missing_ok=True)
    else:
        aside.symlink_to(directory)
        aside.rename(layout.own_manifests)


def with_credentials(pod: Object, volume: str, directory: Path) -> Object:
    """The pod with this directory in one of its hostPath volumes."""
    volumes = pod["spec"].get("volumes") or []
    if not any(each.get("name") == volume and "hostPath" in each for each in volumes):
        raise LocalClusterError(
            f"spec.volumes of the static pod {pod['metadata']['name']}: add a hostPath volume "
            f"named {volume}, for its credentials"
        )
    host_path = {"path": str(directory), "type": "Directory"}
    moved = [
        {**each, "hostPath": host_path} if each["name"] == volume else each for each in volumes
    ]
    return {**pod, "spec": {**pod["spec"], "volumes": moved}}


def _path(layout: Layout, name: str) -> Path:
    return layout.manifests / f"{name}.yaml"
