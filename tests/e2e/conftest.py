"""The cluster of all tests on real nodes, and the images that run in it."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.e2e.cluster import RealCluster
from tests.e2e.machine import Machine, differences, machine

NODES = 2
KEPT_CLUSTER, KEPT_IMAGES = "QUARTERDECK_E2E_CLUSTER", "QUARTERDECK_E2E_IMAGES"
"""Directories in which the running cluster and the images are kept, for work on these tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything here; give it the time that nodes, images and roll-outs take."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("e2e")
            item.add_marker(pytest.mark.timeout(1500))


@pytest.fixture(scope="session")
def homes(pytestconfig: pytest.Config) -> Iterator[Path]:
    """The directory for the clusters' states; what a killed run left in it is removed first."""
    if os.geteuid() != 0:
        pytest.fail("real nodes need root; run `make e2e` as root")
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir("real-nodes")
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pytest.fail("these tests run already in this checkout")
        for left in (path for path in folder.iterdir() if path.is_dir()):
            RealCluster(left).quarterdeck("local", "down")
            shutil.rmtree(left)
        yield folder


@pytest.fixture(scope="session")
def before(homes: Path) -> Machine:
    """The machine before any of this."""
    return machine()


@pytest.fixture(scope="session")
def cluster(before: Machine, homes: Path) -> Iterator[RealCluster]:
    """A cluster with two real nodes; at its end the machine is as it was."""
    kept = os.environ.get(KEPT_CLUSTER)
    made = RealCluster(Path(kept) if kept else homes / "main")
    try:
        made.up(str(NODES), "--audit-log")
        yield made
    finally:
        if not kept:
            made.quarterdeck("local", "down", "--purge")
    if kept:
        return
    left = differences(before, machine())
    assert not left, f"not as it was: {left}"


class Images(msgspec.Struct, frozen=True, kw_only=True):
    """The images of the checkout: archives, and what nodes pull, by digest."""

    operators_archive: Path
    router_archive: Path
    operators: str
    router: str


@pytest.fixture(scope="session")
def images(cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Images:
    """Both images, built from the checkout and pushed to the registry beside the nodes."""
    kept = os.environ.get(KEPT_IMAGES)
    folder = Path(kept) if kept else tmp_path_factory.mktemp("images")
    operators, router = folder / "quarterdeck.tar", folder / "router.tar"
    if not operators.exists():
        cluster.quarterdeck("image", "build", "-o", str(operators))
    if not router.exists():
        cluster.quarterdeck("image", "build", "--router", "-o", str(router))
    return Images(
        operators_archive=operators,
        router_archive=router,
        operators=cluster.push(operators, "quarterdeck:e2e"),
        router=cluster.push(router, "quarterdeck-router:e2e"),
    )
