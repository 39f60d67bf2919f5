"""Programs of others take our archives: podman, and containerd by the command that kind runs."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.release_images import release_image

from quarterdeck.oci.archive import Named, write_archive
from quarterdeck.oci.model import Platform
from quarterdeck.testing.waiting import eventually

IMAGE = release_image("1.0.0")
DIGEST = IMAGE.descriptor.digest
NAME = "docker.io/library/quarterdeck-release:1.0.0"
"""What Kubernetes and podman understand by the name without a registry."""

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(os.geteuid() != 0, reason="both unpack images as root"),
]


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not on the PATH: {', '.join(missing)}")


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def archive(tmp_path: Path) -> str:
    path = tmp_path / "release.tar"
    platform = Platform(architecture="amd64", os="linux")
    write_archive(
        path, Named(image=IMAGE, reference="quarterdeck-release:1.0.0", platform=platform)
    )
    return str(path)


@needs("podman")
def test_podman_loads_an_archive(archive: str, tmp_path: Path) -> None:
    # It refuses a path of more than 50 characters.
    with TemporaryDirectory(prefix="podman-") as short:
        places = (f"--root={tmp_path / 'storage'}", f"--runroot={short}")
        podman = ("podman", *places, "--storage-driver=vfs")
        run(*podman, "load", "--input", archive)
        (found,) = json.loads(run(*podman, "image", "inspect", "quarterdeck-release:1.0.0"))
    assert (found["RepoTags"], found["Digest"]) == ([NAME], DIGEST)


@needs("containerd", "ctr")
def test_containerd_imports_an_archive(archive: str, tmp_path: Path) -> None:
    """By the command of `kind load image-archive`, without overlays, which may not be there."""
    (tmp_path / "config.toml").write_text(
        f'version = 2\nroot = "{tmp_path / "root"}"\nstate = "{tmp_path / "state"}"\n'
        f'disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]\n'
        f'[grpc]\naddress = "{tmp_path / "socket"}"\n'
    )
    with (tmp_path / "log").open("w") as log:
        command = ["containerd", "--config", str(tmp_path / "config.toml")]
        daemon = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        eventually(lambda: (tmp_path / "socket").exists(), "containerd listens")
        ctr = ("ctr", f"--address={tmp_path / 'socket'}", "--namespace=k8s.io", "images")
        run(*ctr, "import", "--all-platforms", "--digests", "--snapshotter=native", archive)
        lines = [line.split() for line in run(*ctr, "list").splitlines()]
        assert [NAME, DIGEST] in [[name, digest] for name, _, digest, *_ in lines[1:]]
    finally:
        daemon.terminate()
        daemon.wait()
