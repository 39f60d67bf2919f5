"""The store of fetched releases: what counts as whole, and what is thrown away."""

import asyncio
import shutil
import threading
from pathlib import Path

import pytest

from quarterdeck.operators.cluster_version.payloads import Loaded, Payloads
from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.payload.model import PayloadError
from quarterdeck.payload.releases import (
    FETCHED,
    RELEASE_IMAGE,
    FetchedImage,
    Releases,
    read_fetched,
    with_own,
)
from quarterdeck.payload.seal import SUMS
from quarterdeck.registry.release_image import _to_its_end
from quarterdeck.registry.release_store import ReleaseStore

DIGEST = "sha256:" + "a" * 64
IMAGE = f"r.test/q@{DIGEST}"
MANIFEST = "0000_10_cargo_00.yaml"
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: cargo, namespace: default}
"""


def write(directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "release-metadata").write_text("version: 1.0.0")
    (directory / MANIFEST).write_text(CONFIG_MAP)
    return directory


@pytest.fixture
def store(tmp_path: Path) -> ReleaseStore:
    """A store with one release."""
    found = ReleaseStore(tmp_path / FETCHED)
    found.finish(write(found.begin()), DIGEST, FetchedImage(image=IMAGE, verified_by="key"))
    return found


def test_what_is_finished_is_whole(store: ReleaseStore) -> None:
    assert store.has(DIGEST)
    assert not store.has("sha256:" + "b" * 64)
    assert [one.verified_by for one in read_fetched(store.root)] == ["key"]


def test_a_second_fetch_leaves_the_release_that_is_there(store: ReleaseStore) -> None:
    """It may be read just now; what the second one learned of its signature counts."""
    was = store.directory(DIGEST).stat().st_ino
    store.finish(write(store.begin()), DIGEST, FetchedImage(image=IMAGE, verified_by="other"))
    assert store.directory(DIGEST).stat().st_ino == was
    assert [one.verified_by for one in read_fetched(store.root)] == ["other"]
    (store.directory(DIGEST) / MANIFEST).write_text("damaged")
    store.finish(write(store.begin()), DIGEST, FetchedImage(image=IMAGE))
    assert store.has(DIGEST)
    assert store.directory(DIGEST).stat().st_ino != was


@pytest.mark.parametrize("name", [SUMS, f".{SUMS}.new", RELEASE_IMAGE, f".{RELEASE_IMAGE}.new"])
def test_directories_in_place_of_its_own_files_are_no_release(
    store: ReleaseStore, name: str
) -> None:
    """The image is refused, and not the disk, which has no fault."""
    part = write(store.begin())
    (part / name).mkdir()
    with pytest.raises(PayloadError, match="a directory; make the release again"):
        store.finish(part, DIGEST, FetchedImage(image=IMAGE))
    assert store.has(DIGEST)


@pytest.mark.parametrize("file", ["release-metadata", MANIFEST, SUMS, RELEASE_IMAGE])
@pytest.mark.parametrize("damage", ["emptied", "changed", "removed"])
def test_a_damaged_release_is_not_there(store: ReleaseStore, file: str, damage: str) -> None:
    path = store.directory(DIGEST) / file
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(b"" if damage == "emptied" else b"x")
    assert not store.has(DIGEST)
    # Fetched again, it is whole.
    store.finish(write(store.begin()), DIGEST, FetchedImage(image=IMAGE))
    assert store.has(DIGEST)


async def test_a_release_that_is_found_damaged_is_discarded(
    store: ReleaseStore, tmp_path: Path
) -> None:
    """So that it is wanted, and fetched, again; one that is whole stays."""
    payloads = Payloads(Settings(releases=str(tmp_path), own_release=""))
    (offer,) = (await payloads.releases()).fetched
    assert isinstance(await payloads.load(offer), Loaded)
    (store.directory(DIGEST) / MANIFEST).write_text("")
    payloads = Payloads(Settings(releases=str(tmp_path), own_release=""))
    assert isinstance(await payloads.load(offer), PayloadError)
    assert (await payloads.releases()).fetched == ()
    assert not store.directory(DIGEST).exists()


async def test_a_release_that_is_whole_and_wrong_stays(tmp_path: Path) -> None:
    store = ReleaseStore(tmp_path / FETCHED)
    part = write(store.begin())
    (part / MANIFEST).write_text("kind: [")
    store.finish(part, DIGEST, FetchedImage(image=IMAGE))
    payloads = Payloads(Settings(releases=str(tmp_path), own_release=""))
    (offer,) = (await payloads.releases()).fetched
    assert isinstance(await payloads.load(offer), PayloadError)
    assert store.has(DIGEST)


def test_a_verified_copy_comes_before_the_operators_own(
    store: ReleaseStore, tmp_path: Path
) -> None:
    own = write(tmp_path / "own")
    known = Releases(fetched=read_fetched(store.root))
    both = with_own(known, own, IMAGE)
    assert [one.verified_by for one in both.fetched] == ["key", ""]
    assert both.by_digest(DIGEST) == both.by_version("1.0.0") == known.fetched[0]
    other = with_own(known, own, f"r.test/q@sha256:{'b' * 64}")
    assert [one.verified_by for one in other.fetched] == ["", "key"]


def left(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def test_what_is_cancelled_writes_nothing_later(tmp_path: Path) -> None:
    """The directory is removed only after the thread that writes into it has ended."""
    goes_on, begun = threading.Event(), threading.Event()

    def work(directory: Path) -> None:
        begun.set()
        goes_on.wait(30)
        directory.mkdir(exist_ok=True)

    async def fetch() -> None:
        try:
            await _to_its_end(work, tmp_path / "part")
        finally:
            shutil.rmtree(tmp_path / "part")

    task = asyncio.create_task(fetch())
    await asyncio.to_thread(begun.wait, 30)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left(tmp_path) == []
