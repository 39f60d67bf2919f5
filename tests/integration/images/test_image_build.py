"""The images of the operators and of the router, built as root with mmdebstrap, and looked into."""

import os
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.documents import Shell, commands
from tests.places import DOCS, ROOT

from quarterdeck import __version__
from quarterdeck.haproxy.sidecar import rsyslog_conf
from quarterdeck.oci.archive import Archive
from quarterdeck.oci.layers import Entry, write_layer
from quarterdeck.oci.model import Descriptor, ImageManifest

TEXT = (DOCS / "releases.md").read_text()
COMMANDS = commands(TEXT[: TEXT.index("\n## ", TEXT.index("\n## Show and compare") + 1)])
"""Of the sections on building and showing; the first two build the images."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2000),
    pytest.mark.skipif(os.geteuid() != 0, reason="images are built by root"),
]

BUILD_LIMIT = 1500
"""Seconds."""
SHELLS = {"sh", "ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "rbash", "tcsh", "zsh"}
MANAGERS = {"apt", "apt-get", "dpkg", "dpkg-deb", "easy_install", "perl", "pip", "pip3", "rpm"}


Done = subprocess.CompletedProcess[str]


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """An image that was built, and its files in a directory."""

    said: str
    """What the command printed."""
    digest: str
    archive: Path
    root: Path
    manifest: ImageManifest
    config: dict[str, Any]
    layers: list[list[tarfile.TarInfo]]
    """The entries of each layer, as they stand in the archive."""

    @property
    def members(self) -> Iterator[tarfile.TarInfo]:
        """Every entry of every layer."""
        return (member for layer in self.layers for member in layer)

    def content(self, member: tarfile.TarInfo) -> bytes:
        """The content of a file; of anything else nothing."""
        return (self.root / member.name).read_bytes() if member.isreg() else b""

    def inside(self, *command: str, file: Path | None = None) -> Done:
        """What a command does in the image: no network, a read-only root, and the image's user.

        A file that is given is in /tmp, under its name.
        """
        given = ("--ro-bind", str(file), f"/tmp/{file.name}") if file else ()
        user = self.config["config"]["User"].split(":")
        variables = [
            word
            for variable in self.config["config"]["Env"]
            for word in ("--setenv", *variable.split("=", 1))
        ]
        return subprocess.run(
            [
                *("bwrap", "--unshare-all", "--clearenv", "--ro-bind", str(self.root), "/"),
                *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", *given, *variables),
                *("--uid", user[0], "--gid", user[1], "--", *command),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A shell in a directory that looks like a checkout, for the commands of the document."""
    directory = tmp_path_factory.mktemp("checkout")
    for name in ("deploy", "docs"):
        (directory / name).symlink_to(ROOT / name)
    return Shell(directory)


def build(shell: Shell, command: str, directory: Path) -> Built:
    """The image that a command builds, and its files in a new directory.

    A build takes half a minute of processor time, so it may go on for long on a busy machine.
    """
    log = directory / "log"
    process = shell.start(command, log)
    assert process.wait(BUILD_LIMIT) == 0, log.read_text()
    archive = Path(shell.succeed("pwd").stdout.strip(), command.rpartition(" ")[2])
    root = directory / "root"
    with Archive(archive) as opened:
        descriptor, manifest = opened.image()
        config = opened.config(manifest)
        layers = [_extract(opened, layer, root) for layer in manifest.layers]
    return Built(
        said="".join(log.read_text().splitlines(keepends=True)[-2:]),
        digest=descriptor.digest,
        archive=archive,
        root=root,
        manifest=manifest,
        config=config,
        layers=layers,
    )


def _extract(archive: Archive, layer: Descriptor, root: Path) -> list[tarfile.TarInfo]:
    """Extract a layer; its entries. It is unpacked once, which takes seconds."""
    with archive.open_blob(layer) as file, tarfile.open(fileobj=file, mode="r|gz") as tar:
        found = []
        for member in tar:
            tar.extract(member, root, filter="tar")
            found.append(member)
        return found


@pytest.fixture(scope="module")
def operators(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(shell, COMMANDS[0][0], tmp_path_factory.mktemp("operators"))


@pytest.fixture(scope="module")
def router(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(shell, COMMANDS[1][0], tmp_path_factory.mktemp("router"))


@pytest.fixture(params=["operators", "router"])
def built(request: pytest.FixtureRequest) -> Built:
    made = request.getfixturevalue(request.param)
    assert isinstance(made, Built)
    return made


def test_nothing_in_the_archive_can_be_written_or_gives_rights(built: Built) -> None:
    """No setuid file, no device, no other owner, and nobody may write but in /tmp."""
    for member in built.members:
        assert member.isreg() or member.isdir() or member.issym(), member.name
        assert (member.uid, member.gid) == (0, 0), member.name
        if member.issym():
            continue
        assert not member.mode & 0o6000, member.name
        assert not member.mode & 0o022 or member.name == "tmp", member.name
        assert not any("capability" in header for header in member.pax_headers), member.name


def test_there_is_no_shell_and_no_package_manager(built: Built) -> None:
    paths = [member.name for member in built.members if not member.isdir()]
    assert not {Path(path).name for path in paths} & (SHELLS | MANAGERS)
    programs = {path for path in paths if "bin/" in path}
    extra = {"usr/sbin/haproxy", "usr/sbin/rsyslogd"} if "router" in built.said else set()
    assert programs == {"usr/bin/python3.11", "usr/bin/quarterdeck", *extra}


def test_the_image_runs_as_its_user_on_a_read_only_root(
    built: Built, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    done = built.inside("quarterdeck", "--version")
    seconds = time.monotonic() - started
    assert done.stdout == f"quarterdeck, version {__version__}\n", done.stderr
    with capsys.disabled():
        sys.stdout.write(f"\n{built.said.splitlines()[0]}; --version in {seconds:.2f} s\n")
    look = (
        "import os, pathlib\n"
        "print(os.getuid(), os.getgid())\n"
        "for directory, names, files in os.walk('/', onerror=None):\n"
        "    names[:] = [n for n in names if os.path.join(directory, n) not in ('/proc', '/dev')]\n"
        "    for name in [directory, *(os.path.join(directory, f) for f in files)]:\n"
        "        if os.access(name, os.W_OK): print(name)\n"
    )
    assert built.inside("/usr/bin/python3.11", "-c", look).stdout == "65532 65532\n/tmp\n"


def test_every_module_can_be_imported_inside(built: Built) -> None:
    """What was left out of Python's library is not needed, and every package is there."""
    look = (
        "import importlib, pkgutil, quarterdeck\n"
        "for found in pkgutil.walk_packages(quarterdeck.__path__, 'quarterdeck.'):\n"
        "    if 'quarterdeck.testing' not in found.name and '__main__' not in found.name:\n"
        "        importlib.import_module(found.name)\n"
        "print('all')\n"
    )
    done = built.inside("/usr/bin/python3.11", "-c", look)
    assert done.stdout == "all\n", done.stderr


def test_byte_code_is_there_and_needs_no_time(built: Built) -> None:
    """Byte code that is checked by time would be stale in a layer, and made at each start."""
    sources, compiled = set(), set()
    for member in built.members:
        if member.name.endswith(".cpython-311.pyc"):
            assert built.content(member)[4:8] == b"\1\0\0\0", member.name  # by hash, unchecked
            path = Path(member.name)
            compiled.add(str(path.parents[1] / f"{path.name.removesuffix('.cpython-311.pyc')}.py"))
        elif member.name.endswith(".py") and member.name.startswith("usr/lib/"):
            sources.add(member.name)
    assert len(sources) > 1000
    assert sources == compiled


def test_labels_and_manifests(operators: Built, router: Built) -> None:
    labels = operators.config["config"]["Labels"]
    assert labels["io.openshift.release.operator"] == "true"
    assert labels["org.opencontainers.image.version"] == __version__
    assert router.config["config"]["Labels"]["org.opencontainers.image.title"] == (
        "quarterdeck-router"
    )
    payload = {path.name: path.read_bytes() for path in (ROOT / "deploy/payload").iterdir()}
    inside = {path.name: path.read_bytes() for path in (operators.root / "manifests").iterdir()}
    assert inside == payload
    assert not (router.root / "manifests").exists()
    done = operators.inside("quarterdeck", "payload", "lint", "/manifests")
    assert done.returncode == 0, done.stdout


def test_haproxy_and_rsyslog_accept_configurations_inside(router: Built, tmp_path: Path) -> None:
    haproxy = tmp_path / "haproxy.cfg"
    haproxy.write_text("defaults\n mode http\n timeout client 1s\nlisten l\n bind 127.0.0.1:1\n")
    done = router.inside("haproxy", "-c", "-f", "/tmp/haproxy.cfg", file=haproxy)
    assert done.returncode == 0, done.stderr
    rsyslog = tmp_path / "rsyslog.conf"
    rsyslog.write_text(rsyslog_conf(directory="/tmp"))
    done = router.inside("rsyslogd", "-N1", "-iNONE", "-f", "/tmp/rsyslog.conf", file=rsyslog)
    assert done.returncode == 0, done.stderr
    assert "could not load module" not in done.stderr


def test_certificates_are_trusted_inside(operators: Built) -> None:
    look = "import ssl; print(ssl.create_default_context().cert_store_stats()['x509_ca'] > 100)"
    assert operators.inside("/usr/bin/python3.11", "-c", look).stdout == "True\n"


def test_two_builds_have_the_same_files(operators: Built, router: Built) -> None:
    """Each image is built from nothing, and what both have is the same to the last bit."""
    assert operators.manifest.layers[1] == router.manifest.layers[1]
    one, other = (
        {
            member.name: (member.mode, member.mtime, member.linkname, built.content(member))
            for member in built.members
        }
        for built in (operators, router)
    )
    missing = {name for name in one.keys() - other.keys() if not name.startswith("manifests")}
    assert not missing
    assert [name for name in one.keys() & other.keys() if one[name] != other[name]] == []


def test_the_same_files_give_the_same_layers(operators: Built, tmp_path: Path) -> None:
    """Files of other times in another order: their layers are those of the build, bit by bit."""
    for layer, members in zip(operators.manifest.layers, operators.layers, strict=True):
        entries = [
            Entry(
                path=member.name,
                mode=member.mode,
                content=operators.root / member.name if member.isreg() else None,
                link=member.linkname if member.issym() else None,
            )
            for member in reversed(members)
        ]
        with (tmp_path / "layer").open("wb") as file:
            assert write_layer(entries, file, int(members[0].mtime)).descriptor == layer


@pytest.mark.soak
def test_the_same_inputs_give_the_same_digest(operators: Built, tmp_path: Path) -> None:
    again = build(Shell(tmp_path), "quarterdeck image build -o again.tar", tmp_path)
    assert again.digest == operators.digest
    assert again.archive.read_bytes() == operators.archive.read_bytes()


def shows(printed: str, document: str) -> bool:
    """Whether a command printed what the document shows, where `...` stands for any text.

    Columns may be wider than there.
    """
    wanted = re.escape(re.sub(r" +", " ", document)).replace(r"\.\.\.", ".*")
    return re.fullmatch(wanted, re.sub(r" +", " ", printed), re.DOTALL) is not None


def test_the_commands_of_the_document_show_what_it_shows(
    shell: Shell, operators: Built, router: Built
) -> None:
    """Those that build the images have run; skopeo takes these with the digest that we tell."""
    assert shows(operators.said, COMMANDS[0][1]), operators.said
    assert shows(router.said, COMMANDS[1][1]), router.said
    assert operators.said.splitlines()[1] == operators.digest
    for command, output in COMMANDS[2:]:
        done = shell(command)
        assert done.returncode == (" diff release" in command), f"{command}: {done.stderr}"
        assert shows(done.stdout, output), f"{command}: {done.stdout}"
    assert operators.digest in shell.succeed(COMMANDS[2][0]).stdout


@pytest.mark.parametrize(
    ("hidden", "told"),
    [
        pytest.param("mmdebstrap", "apt-get install mmdebstrap", id="without mmdebstrap"),
        pytest.param("root", "is built by root", id="without root"),
    ],
)
def test_what_is_missing_is_told_in_one_line(tmp_path: Path, hidden: str, told: str) -> None:
    command = [sys.executable, "-m", "quarterdeck", "image", "build", "-o", str(tmp_path / "x")]
    variables = dict(os.environ)
    if hidden == "root":
        command = ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--uid", "65532", *command]
    else:
        variables["PATH"] = str(tmp_path)
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_archive_that_cannot_be_reached_is_told_in_one_line(tmp_path: Path) -> None:
    mirror = f"deb [trusted=yes] file://{tmp_path}/none bookworm main"
    done = Shell(tmp_path)(f"quarterdeck image build -o x.tar --mirror '{mirror}' 2>&1 >/dev/null")
    assert done.returncode == 2
    assert "error: mmdebstrap failed: E: " in done.stdout
    assert "--mirror" in done.stdout
    assert "Traceback" not in done.stdout
    assert list(tmp_path.iterdir()) == []
