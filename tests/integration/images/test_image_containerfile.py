"""The two ways to an image give the same files: the Containerfile, built by buildah, and ours.

The base image is made here, so that none has to be fetched. buildah and podman share their storage
and the code that reads archives, so what it takes, `podman load` takes.
"""

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.documents import Shell
from tests.places import ROOT

from quarterdeck import __version__
from quarterdeck.images.contents import SUITE

BASE = "localhost/base"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
BUNDLE = "/etc/ssl/of-this-machine.crt"
LIMIT = 3000
"""Seconds of one command."""

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(2 * LIMIT),
    pytest.mark.skipif(os.geteuid() != 0, reason="images are built by root"),
    pytest.mark.skipif(shutil.which("buildah") is None, reason="apt-get install buildah"),
]


class Buildah:
    """The program with a storage of its own, without a daemon and without another runtime."""

    def __init__(self, directory: Path) -> None:
        self._options = ["--storage-driver=vfs", f"--root={directory / 'storage'}"]
        self._options.append(f"--runroot={directory / 'run'}")

    def __call__(self, *arguments: str) -> str:
        command = ["buildah", *self._options, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout.strip()

    def files(self, image: str) -> dict[str, tuple[str, str]]:
        """The files of an image: type and mode, and content or target, by path."""
        container = self("from", "--pull-never", image)
        found = files_below(Path(self("mount", container)))
        self("umount", container)
        return found


def files_below(root: Path) -> dict[str, tuple[str, str]]:
    """The same of a directory."""
    found = {}
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            what = str(path.readlink())
        else:
            what = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else ""
        found[str(path.relative_to(root))] = (
            "link" if stat.S_ISLNK(mode) else stat.filemode(mode),
            what,
        )
    return found


def build(directory: Path, command: str) -> None:
    """Run a build, which may go on for long on a busy machine."""
    log = directory / "log"
    assert Shell(directory).start(command, log).wait(LIMIT) == 0, log.read_text()


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """buildah with a base image of Debian; pip in it trusts what this machine trusts."""
    directory = tmp_path_factory.mktemp("buildah")
    archive = directory / "base.tar"
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", SUITE, str(archive)]
    subprocess.run(command, check=True, timeout=LIMIT)
    made = Buildah(directory)
    container = made("from", "scratch")
    made("add", container, str(archive), "/")
    made("copy", container, CERTIFICATES, BUNDLE)
    made("config", f"--env=PIP_CERT={BUNDLE}", container)
    made("commit", container, BASE)
    yield made
    made("rm", "--all")
    shutil.rmtree(directory)


@pytest.mark.parametrize("target", ["operators", "router"])
def test_the_containerfile_gives_the_files_of_image_build(
    buildah: Buildah, tmp_path: Path, target: str
) -> None:
    name = f"localhost/{target}"
    values = (f"--build-arg=BASE={BASE}", f"--build-arg=VERSION={__version__}")
    how = ("--isolation=chroot", "--pull-never", "--layers", f"--target={target}")
    buildah("bud", *how, *values, f"--tag={name}", str(ROOT))
    option = " --router" if target == "router" else ""
    build(tmp_path, f"quarterdeck image build{option} --tree tree")
    theirs, ours = buildah.files(name), files_below(tmp_path / "tree")
    assert len(ours) > 3000
    assert {path for path in ours.keys() | theirs.keys() if ours.get(path) != theirs.get(path)} == (
        set()
    )


def test_buildah_takes_the_archive_and_runs_it(buildah: Buildah, tmp_path: Path) -> None:
    build(tmp_path, "quarterdeck image build -o quarterdeck.tar")
    container = buildah("from", f"oci-archive:{tmp_path}/quarterdeck.tar")
    said = buildah("run", "--isolation=chroot", container, "/usr/bin/quarterdeck", "--version")
    assert said == f"quarterdeck, version {__version__}"
    user = buildah("inspect", "--format={{.OCIv1.Config.User}}", container)
    assert user == "65532:65532"
