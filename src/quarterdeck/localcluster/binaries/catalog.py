"""The programs of a local control plane: their versions, released files and source packages.

Pure; `download` fetches the files, and `build` compiles the sources.
"""

import re
from pathlib import Path

import msgspec

from quarterdeck.localcluster.binaries.errors import OWN_PROGRAMS, BinariesUnavailable
from quarterdeck.localcluster.binaries.settings import BinarySettings

KUBERNETES_VERSION = "1.36.4"
ETCD_VERSION = "3.6.8"  # what this Kubernetes pins
KWOK_VERSION = "0.8.0"
CONTAINERD_VERSION = "2.4.2"
COREDNS_VERSION = "1.15.0"
HELM_VERSION = "4.3.1"

CONVENTION = ("kube-apiserver", "etcd", "kubectl")
"""The programs that a KUBEBUILDER_ASSETS directory has by convention."""

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_GITHUB = re.compile(r"https://github\.com/([^/]+/[^/]+)/releases/download")


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One program: its version and its sources."""

    name: str
    version: str
    module: str
    """The directory below the catalog's `modules` whose go.mod and go.sum pin the sources."""
    package: str
    """The import path of its main package."""
    stamps: tuple[str, ...] = ()
    """`variable=value` pairs that the linker sets, so that the program knows its version."""
    tags: tuple[str, ...] = ()
    """Build tags, which leave out parts that nothing here uses."""
    on_request: bool = False
    """Whether it is obtained only when a caller names it."""


class BinaryCatalog(msgspec.Struct, frozen=True, kw_only=True):
    """The programs of one directory of the cache."""

    version: str
    programs: tuple[Program, ...]
    modules: Path
    """The directory with a Go module per program family."""
    module_bytes: dict[str, int]
    """The disk space that a build of each family takes, with downloads and compiler cache."""

    def program(self, name: str) -> Program:
        """The program of this name."""
        for program in self.programs:
            if program.name == name:
                return program
        known = ", ".join(program.name for program in self.programs)
        raise BinariesUnavailable(f"there is no program {name!r}; there are {known}")


class ProgramSource(msgspec.Struct, frozen=True):
    """The URLs of a released program and its checksum."""

    url: str
    checksum_url: str
    member: str | None = None
    """The path of the program inside the file, if that is an archive."""

    @property
    def filename(self) -> str:
        """The file's name in lists of checksums."""
        return self.url.rpartition("/")[2]

    @property
    def host(self) -> str:
        """The server, with its port if it names one."""
        return self.url.partition("://")[2].partition("/")[0]


def _kubernetes(name: str, *, on_request: bool = False) -> Program:
    major, minor, _ = KUBERNETES_VERSION.split(".")
    server = "k8s.io/component-base/version"
    return Program(
        name=name,
        version=KUBERNETES_VERSION,
        module="kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        stamps=(
            f"{server}.gitVersion=v{KUBERNETES_VERSION}",
            f"{server}.gitMajor={major}",
            f"{server}.gitMinor={minor}",
            f"k8s.io/client-go/pkg/version.gitVersion=v{KUBERNETES_VERSION}",
        ),
        on_request=on_request,
    )


def _containerd(name: str) -> Program:
    package = "github.com/containerd/containerd/v2"
    return Program(
        name=name,
        version=CONTAINERD_VERSION,
        module="containerd",
        package=f"{package}/cmd/{name}",
        stamps=(
            f"{package}/version.Version=v{CONTAINERD_VERSION}",
            f"{package}/version.Package={package}",
        ),
        tags=("no_btrfs", "no_devmapper", "no_zfs"),
        on_request=True,
    )


GIB = 2**30

CATALOG = BinaryCatalog(
    version=f"v{KUBERNETES_VERSION}",
    modules=Path(__file__).with_name("gomodules"),
    # Measured at the peak: 3.9 GB for Kubernetes, then 0.4 more with etcd, then 1.1 with kwok.
    module_bytes={
        "kubernetes": 4 * GIB,
        "etcd": 3 * GIB // 4,
        "kwok": 5 * GIB // 4,
        "containerd": GIB,
        "coredns": 5 * GIB // 2,
        "helm": 2 * GIB,
    },
    programs=(
        _kubernetes("kube-apiserver"),
        _kubernetes("kube-controller-manager"),
        _kubernetes("kube-scheduler"),
        _kubernetes("kubectl"),
        Program(
            name="etcd",
            version=ETCD_VERSION,
            module="etcd",
            package="go.etcd.io/etcd/server/v3",
        ),
        Program(
            name="kwok",
            version=KWOK_VERSION,
            module="kwok",
            package="sigs.k8s.io/kwok/cmd/kwok",
            stamps=(f"sigs.k8s.io/kwok/pkg/consts.Version=v{KWOK_VERSION}",),
        ),
        _kubernetes("kubelet", on_request=True),
        _kubernetes("kube-proxy", on_request=True),
        _containerd("containerd"),
        _containerd("containerd-shim-runc-v2"),
        Program(
            name="coredns",
            version=COREDNS_VERSION,
            module="coredns",
            package="github.com/coredns/coredns",
            on_request=True,
        ),
        Program(
            name="pause",
            version="1",
            module="pause",
            package="quarterdeck.dev/build/pause",
            on_request=True,
        ),
        Program(
            name="helm",
            version=HELM_VERSION,
            module="helm",
            package="helm.sh/helm/v4/cmd/helm",
            stamps=(f"helm.sh/helm/v4/internal/version.version=v{HELM_VERSION}",),
            on_request=True,
        ),
    ),
)

ALL = tuple(program.name for program in CATALOG.programs if not program.on_request)
"""The programs of every cluster."""

REAL_NODES = ("kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "coredns", "pause")
"""The programs that real nodes need beside those of every cluster."""


def architecture(machine: str) -> str:
    """Go's name for a machine's architecture."""
    if (arch := _ARCHITECTURES.get(machine)) is None:
        raise BinariesUnavailable(
            f"there are no programs for the architecture {machine or 'of this machine'}, "
            f"only for amd64 and arm64; {OWN_PROGRAMS}"
        )
    return arch


def program_source(program: Program, settings: BinarySettings, arch: str) -> ProgramSource | None:
    """The source of this program for this architecture; None if it is not released."""
    tag = f"v{program.version}"
    match program.module:
        case "kubernetes":
            url = f"{settings.kubernetes_url}/release/{tag}/bin/linux/{arch}/{program.name}"
            return ProgramSource(url, f"{url}.sha256")
        case "etcd":
            stem = f"etcd-{tag}-linux-{arch}"
            folder = f"{settings.etcd_url}/{tag}"
            return ProgramSource(f"{folder}/{stem}.tar.gz", f"{folder}/SHA256SUMS", f"{stem}/etcd")
        case "kwok":
            url = f"{settings.kwok_url}/{tag}/kwok-linux-{arch}"
            return ProgramSource(url, _kwok_checksum_url(settings.kwok_url, tag, url))
    return None


def _kwok_checksum_url(base: str, tag: str, url: str) -> str:
    # kwok releases no checksum files; GitHub's own description of the release has the digests.
    # A mirror puts a checksum file beside the program, as Kubernetes does.
    if on_github := _GITHUB.fullmatch(base):
        return f"https://api.github.com/repos/{on_github[1]}/releases/tags/{tag}"
    return f"{url}.sha256"


def published_checksum(text: str, filename: str) -> str | None:
    """The SHA-256 of a file in a checksum file; None if it is not there.

    The checksum file is one bare checksum, a list by `sha256sum`, or GitHub's JSON of a release.
    """
    if text.lstrip().startswith("{"):
        return _digest_in_release(text, filename)
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and len(lines[0]) == 1:
        return _hex(lines[0][0])
    for words in lines:
        if len(words) == 2 and words[1].removeprefix("*").rpartition("/")[2] == filename:
            return _hex(words[0])
    return None


class _Asset(msgspec.Struct):
    name: str
    digest: str | None = None


class _GitHubRelease(msgspec.Struct):
    assets: list[_Asset]


def _digest_in_release(text: str, filename: str) -> str | None:
    try:
        found = msgspec.json.decode(text, type=_GitHubRelease)
    except msgspec.DecodeError:
        return None
    for asset in found.assets:
        if asset.name == filename and (asset.digest or "").startswith("sha256:"):
            return _hex((asset.digest or "").removeprefix("sha256:"))
    return None


def _hex(word: str) -> str | None:
    return word.lower() if re.fullmatch(r"[0-9a-fA-F]{64}", word) else None


_ELF_MACHINES = {3: "386", 40: "arm", 62: "amd64", 183: "arm64", 243: "riscv64"}


def elf_architecture(header: bytes) -> str | None:
    """The architecture in the first 20 bytes of an ELF file; None for any other file."""
    if len(header) < 20 or header[:4] != b"\x7fELF":
        return None
    order = "little" if header[5] == 1 else "big"
    number = int.from_bytes(header[18:20], "little" if order == "little" else "big")
    return _ELF_MACHINES.get(number, f"ELF machine {number}")
