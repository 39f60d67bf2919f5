"""The pins, and where they lead."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.localcluster import binaries
from quarterdeck.localcluster.binaries.catalog import (
    CATALOG,
    KUBERNETES_VERSION,
    Program,
    ProgramSource,
    architecture,
    elf_architecture,
    program_source,
    published_checksum,
)
from quarterdeck.localcluster.binaries.errors import BinariesUnavailable
from quarterdeck.localcluster.binaries.settings import BinarySettings

SUM = "ab" * 32
DEFAULTS = BinarySettings(cache=Path("/cache"))
MIRROR = BinarySettings(
    cache=Path("/cache"),
    kubernetes_url="http://mirror:1/k8s",
    etcd_url="http://mirror:1/etcd",
    kwok_url="http://mirror:1/kwok",
)
GITHUB = "https://github.com/{}/releases/download"


def test_exports_are_sorted_and_there() -> None:
    def order(name: str) -> tuple[bool, bool, str]:
        return not name.isupper(), name.islower(), name

    assert sorted(binaries.__all__, key=order) == binaries.__all__
    assert all(hasattr(binaries, name) for name in binaries.__all__)


@pytest.mark.parametrize(
    ("name", "settings", "arch", "expected"),
    [
        pytest.param(
            "kubectl",
            DEFAULTS,
            "amd64",
            ProgramSource(
                "https://dl.k8s.io/release/v1.36.4/bin/linux/amd64/kubectl",
                "https://dl.k8s.io/release/v1.36.4/bin/linux/amd64/kubectl.sha256",
            ),
            id="Kubernetes programs have a checksum file each",
        ),
        pytest.param(
            "etcd",
            DEFAULTS,
            "arm64",
            ProgramSource(
                GITHUB.format("etcd-io/etcd") + "/v3.6.8/etcd-v3.6.8-linux-arm64.tar.gz",
                GITHUB.format("etcd-io/etcd") + "/v3.6.8/SHA256SUMS",
                "etcd-v3.6.8-linux-arm64/etcd",
            ),
            id="etcd is a file in an archive, with one list of checksums",
        ),
        pytest.param(
            "kwok",
            DEFAULTS,
            "amd64",
            ProgramSource(
                GITHUB.format("kubernetes-sigs/kwok") + "/v0.8.0/kwok-linux-amd64",
                "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v0.8.0",
            ),
            id="kwok has no checksum file, so GitHub's digest is asked for",
        ),
        pytest.param(
            "kwok",
            MIRROR,
            "amd64",
            ProgramSource(
                "http://mirror:1/kwok/v0.8.0/kwok-linux-amd64",
                "http://mirror:1/kwok/v0.8.0/kwok-linux-amd64.sha256",
            ),
            id="a mirror of kwok has a checksum file",
        ),
        pytest.param(
            "kube-apiserver",
            MIRROR,
            "arm64",
            ProgramSource(
                "http://mirror:1/k8s/release/v1.36.4/bin/linux/arm64/kube-apiserver",
                "http://mirror:1/k8s/release/v1.36.4/bin/linux/arm64/kube-apiserver.sha256",
            ),
            id="a mirror of Kubernetes is laid out as the original",
        ),
    ],
)
def test_program_source(
    name: str, settings: BinarySettings, arch: str, expected: ProgramSource
) -> None:
    assert program_source(CATALOG.program(name), settings, arch) == expected


def test_host_and_filename_of_a_release() -> None:
    at = ProgramSource("http://mirror:81/a/kwok-linux-amd64", "http://mirror:81/a/sums")
    assert (at.host, at.filename) == ("mirror:81", "kwok-linux-amd64")


def test_program_that_nobody_releases_has_no_release() -> None:
    own = Program(name="own", version="1", module="own", package="example.test/own")
    assert program_source(own, DEFAULTS, "amd64") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(SUM, SUM, id="a bare checksum"),
        pytest.param(f"{SUM.upper()}\n", SUM, id="upper case and a newline"),
        pytest.param(f"{'cd' * 32}  other\n{SUM}  file\n", SUM, id="a list as sha256sum writes it"),
        pytest.param(f"{SUM} *file\n", SUM, id="a list of binary mode"),
        pytest.param(f"{SUM}  ./dist/file\n", SUM, id="a list with directories"),
        pytest.param(
            f'{{"assets": [{{"name": "other"}}, {{"name": "file", "digest": "sha256:{SUM}"}}]}}',
            SUM,
            id="GitHub's description of a release",
        ),
        pytest.param(
            '{"assets": [{"name": "file", "digest": null}]}', None, id="a release without digests"
        ),
        pytest.param(
            f'{{"assets": [{{"name": "file", "digest": "sha512:{SUM}"}}]}}',
            None,
            id="a digest of another kind",
        ),
        pytest.param('{"message": "rate limit"}', None, id="a complaint of the server"),
        pytest.param(f"{SUM}  other\n", None, id="a list without the file"),
        pytest.param(SUM[:-1], None, id="a checksum that is too short"),
        pytest.param("<html>please log in</html>", None, id="a login page"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_published_checksum(text: str, expected: str | None) -> None:
    assert published_checksum(text, "file") == expected


@given(st.text())
def test_published_checksum_is_a_checksum_or_nothing_whatever_a_server_says(text: str) -> None:
    found = published_checksum(text, "file")
    assert found is None or re.fullmatch(r"[0-9a-f]{64}", found)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        pytest.param(b"\x7fELF\x02\x01" + bytes(12) + b"\x3e\x00", "amd64", id="amd64"),
        pytest.param(b"\x7fELF\x02\x01" + bytes(12) + b"\xb7\x00", "arm64", id="arm64"),
        pytest.param(b"\x7fELF\x02\x02" + bytes(12) + b"\x00\xb7", "arm64", id="big-endian"),
        pytest.param(
            b"\x7fELF\x02\x01" + bytes(12) + b"\x16\x00", "ELF machine 22", id="an unknown one"
        ),
        pytest.param(b"#!/bin/sh\nexec other\n", None, id="a script"),
        pytest.param(b"\x7fELF", None, id="too short"),
    ],
)
def test_elf_architecture(header: bytes, expected: str | None) -> None:
    assert elf_architecture(header) == expected


def test_architecture_that_nothing_is_released_for_is_refused_with_a_remedy() -> None:
    assert architecture("aarch64") == "arm64"
    with pytest.raises(BinariesUnavailable, match=r"riscv64, only for .*KUBEBUILDER_ASSETS"):
        architecture("riscv64")


def test_unknown_program_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BinariesUnavailable, match=r"no program 'minikube'; there are .*kwok"):
        CATALOG.program("minikube")


FETCHED = [program for program in CATALOG.programs if program.module != "pause"]
"""The programs whose sources are of other projects."""


@pytest.mark.parametrize("program", FETCHED, ids=lambda program: program.name)
def test_module_pins_the_version_and_the_package_of_the_catalog(program: Program) -> None:
    module = (CATALOG.modules / program.module / "go.mod").read_text()
    root = re.search(r"^require (\S+) v(\S+)$", module, re.MULTILINE)
    assert root is not None
    assert root[2] == program.version
    assert program.package.startswith(root[1])
    assert re.search(rf"^(tool )?\s*{re.escape(program.package)}$", module, re.MULTILINE)
    assert (CATALOG.modules / program.module / "go.sum").stat().st_size > 1000


def test_kubernetes_staging_modules_are_of_the_release() -> None:
    module = (CATALOG.modules / "kubernetes" / "go.mod").read_text()
    replaced = re.findall(r"^\s(\S+) => (\S+) v(\S+)$", module, re.MULTILINE)
    assert len(replaced) == 33
    assert {version for _, _, version in replaced} == {"0" + KUBERNETES_VERSION[1:]}
    assert all(old == new for old, new, _ in replaced)
