"""Static pods that come with a cluster: their manifests, and the users that they are.

A mirror pod may not name a ServiceAccount, so a static pod that speaks to the API server has a
client certificate of its own, issued anew at each start. It lies in a directory of the state
directory, which the pod gets by hostPath; all else in there stays hidden from pods. Running
static pods is the node's business.
"""

import os
from pathlib import Path

import msgspec
import yaml

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.components import Setup
from quarterdeck.localcluster.credentials import issue_pod_credentials
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.node.sandbox.ways import Way, find_way
from quarterdeck.localcluster.node.volumes.files import owner_of
from quarterdeck.localcluster.state import Layout, write_private


class StaticPod(msgspec.Struct, frozen=True, kw_only=True):
    """A static pod of ours: what it is, and who it is to the API server."""

    manifest: Path
    """A Pod with a hostPath volume for its credentials, whatever path it has there."""
    user: str
    groups: tuple[str, ...] = ()
    volume: str = "credentials"
    """The name of that volume; the pod finds the file `kubeconfig` in it."""


def add_static_pod(setup: Setup, wanted: StaticPod) -> Path:
    """Issue the pod's certificate and have the node run it; the file that the node reads.

    Needs nothing that runs. To be called at each start: the certificate is renewed by it, and
    the pod's file changes only when the manifest has.
    """
    pod: Object = yaml.safe_load(wanted.manifest.read_bytes())
    name = pod["metadata"]["name"]
    owner = owner_of(pod, root=os.geteuid() == 0 and find_way() is Way.NAMESPACES).uid
    directory = issue_pod_credentials(setup, name, wanted.user, wanted.groups, owner=owner)
    path = _path(setup.layout, name)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    text = yaml.safe_dump(with_credentials(pod, wanted.volume, directory), sort_keys=False)
    write_private(path, text.encode())
    return path


def own_directory(layout: Layout) -> Path | None:
    """The user's own directory of static pods; None when none is named."""
    link = layout.own_manifests
    return link.readlink() if link.is_symlink() else None


def take_from(layout: Layout, directory: Path | None) -> None:
    """Have the node run the static pods of the user's own directory too, or of none."""
    aside = layout.own_manifests.with_suffix(".new")
    aside.unlink(missing_ok=True)
    if directory is None:
        layout.own_manifests.unlink(missing_ok=True)
    else:
        aside.symlink_to(directory)
        aside.rename(layout.own_manifests)


def remove_static_pod(layout: Layout, name: str) -> None:
    """Have the node end a pod that was added, and take its credentials away."""
    _path(layout, name).unlink(missing_ok=True)
    (layout.credentials_of(name) / "kubeconfig").unlink(missing_ok=True)


def with_credentials(pod: Object, volume: str, directory: Path) -> Object:
    """The pod with one of its hostPath volumes at this directory, which must be there."""
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
