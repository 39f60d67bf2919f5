"""Releases for the tests on real nodes: built from the checkout's payload, pushed, in a channel."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import yaml
from tests.e2e.cluster import CHECKOUT, QUARTERDECK, RealCluster, tied
from tests.e2e.conftest import Images

from quarterdeck.localcluster.real_nodes.addresses import CONTROL_PLANE, REGISTRY
from quarterdeck.testing.waiting import eventually

FIRST, NEXT = "1.0.0", "1.1.0"
CHANNEL = "stable-1"
GRAPH = f"{CONTROL_PLANE}:8085"


class Releases(msgspec.Struct, frozen=True, kw_only=True):
    """Two releases by their digests; the second one updates the first."""

    first: str
    next: str
    channels: Path


def build(cluster: RealCluster, images: Images, folder: Path) -> Releases:
    """Build and push both; the second runs the same program under another name."""
    cluster.push(images.operators_archive, "quarterdeck-next:e2e")
    first = _built(cluster, images, folder, FIRST, "quarterdeck")
    following = _built(cluster, images, folder, NEXT, "quarterdeck-next", "--previous", FIRST)
    channels = folder / "channels"
    channels.mkdir()
    listed = [
        {"version": FIRST, "image": first},
        {"version": NEXT, "image": following, "previous": [FIRST]},
    ]
    (channels / f"{CHANNEL}.yaml").write_text(yaml.safe_dump({"releases": listed}))
    return Releases(first=first, next=following, channels=channels)


def _built(
    cluster: RealCluster, images: Images, folder: Path, version: str, name: str, *more: str
) -> str:
    archive = folder / f"release-{version}.tar"
    cluster.quarterdeck(
        *("release", "build", "--version", version, "--from", "deploy/payload", *more),
        *("--base", str(images.operators_archive), "--image", f"quarterdeck={REGISTRY}/{name}"),
        *("--image", f"quarterdeck-router={images.router}", "--keep-others"),
        *("-o", str(archive)),
    )
    return cluster.push(archive, f"quarterdeck-release:{version}")


@contextmanager
def served(cluster: RealCluster, releases: Releases) -> Iterator[str]:
    """The address of an update service beside the control plane, for the pods."""
    command = ("release", "graph", "serve", str(releases.channels), "--listen", GRAPH)
    process = subprocess.Popen(
        tied(*cluster.enter, *QUARTERDECK, *command),
        cwd=CHECKOUT,
        env=os.environ,
        stdout=subprocess.DEVNULL,
    )
    try:
        asked = ("curl", "--silent", "--fail", f"http://{GRAPH}/graph?channel={CHANNEL}")
        eventually(
            lambda: NEXT in cluster.run(*asked, inside=True, check=False), "the graph is served"
        )
        yield f"http://{GRAPH}/graph"
    finally:
        process.terminate()
        process.wait()
