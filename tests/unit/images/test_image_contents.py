"""What goes into an image, decided without building one."""

import re
from pathlib import Path

import pytest
from packaging.markers import Marker
from tests.places import ROOT

from quarterdeck.images.contents import (
    ENTRYPOINT,
    ENVIRONMENT,
    OPERATOR_LABEL,
    USER,
    ImageKind,
    application_files,
    base_files,
    config,
    labels,
    layer_of,
    split,
)
from quarterdeck.images.python_files import REQUIREMENTS, without_markers
from quarterdeck.oci.layers import Entry

PACKAGES = "usr/lib/python3/dist-packages"


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        ("usr/bin/python3.11", "base"),
        ("usr/lib/python3.11/json/__init__.py", "base"),
        ("usr/lib/x86_64-linux-gnu/libssl.so.3", "base"),
        ("lib/aarch64-linux-gnu/libc.so.6", "base"),
        ("lib64/ld-linux-x86-64.so.2", "base"),
        ("usr/share/zoneinfo/UTC", "base"),
        ("usr/share/doc/libc6/copyright", "base"),
        ("usr/sbin/haproxy", "base"),
        ("var/lib/dpkg/status.d/libc6", "base"),
        (f"{PACKAGES}/aiohttp/client.py", "dependencies"),
        (f"{PACKAGES}/click-8.5.1.dist-info/METADATA", "dependencies"),
        (f"{PACKAGES}/quarterdeck/cli/main.py", "application"),
        (f"{PACKAGES}/quarterdeck-0.1.0.dist-info/entry_points.txt", "application"),
        (f"{PACKAGES}/quarterdeck-0.1.0.dist-info/RECORD", None),
        (f"{PACKAGES}/click-8.5.1.dist-info/direct_url.json", None),
        (f"{PACKAGES}/bin/quarterdeck", None),
        ("bin/sh", None),
        ("bin/dash", None),
        ("usr/bin/bash", None),
        ("usr/bin/perl", None),
        ("usr/bin/dpkg", None),
        ("usr/bin/apt", None),
        ("bin/tar", None),
        ("sbin/unix_chkpwd", None),
        ("usr/sbin/update-ca-certificates", None),
        ("usr/lib/python3.11/ensurepip/__init__.py", None),
        ("usr/lib/python3.11/unittest/mock.py", None),
        ("usr/lib/x86_64-linux-gnu/perl-base/Carp.pm", None),
        ("usr/lib/ssl/misc/CA.pl", None),
        ("etc/apt/sources.list", None),
        ("etc/hostname", None),
        ("etc/shadow", None),
        ("var/lib/dpkg/status", None),
        ("var/lib/dpkg/status.d/dpkg", None),
        ("usr/share/doc/libc6/NEWS", None),
        ("usr/share/doc/dpkg/copyright", None),
    ],
)
def test_what_is_taken_and_where(path: str, layer: str | None) -> None:
    assert layer_of(path) == layer


def test_modes_allow_nobody_to_write_or_to_become_another() -> None:
    entries = [
        Entry(path="usr/bin/python3.11", mode=0o6777, content=b""),
        Entry(path="usr/share/zoneinfo/UTC", mode=0o666, content=b""),
        Entry(path="usr/share/zoneinfo", mode=0o777),
    ]
    made = split(entries)["base"]
    assert [(entry.path, entry.mode) for entry in made] == [
        ("usr/bin/python3.11", 0o755),
        ("usr/share/zoneinfo/UTC", 0o644),
    ]


def test_only_tmp_is_for_everybody() -> None:
    modes = {entry.path: entry.mode for entry in base_files({"b.crt": b"B", "a.crt": b"A\n"})}
    assert [path for path, mode in modes.items() if mode & 0o022] == ["tmp"]
    (bundle,) = [e for e in base_files({"b.crt": b"B", "a.crt": b"A\n"}) if "certs" in e.path]
    assert bundle.content == b"A\nB\n"


def test_only_the_operators_image_has_manifests(tmp_path: Path) -> None:
    payload = {"image-references": tmp_path / "image-references"}
    names = [e.path for e in application_files(ImageKind.OPERATORS, payload)]
    assert names == ["usr/bin/quarterdeck", "manifests/image-references"]
    assert [e.path for e in application_files(ImageKind.ROUTER, payload)] == ["usr/bin/quarterdeck"]
    assert labels(ImageKind.OPERATORS, "1.0.0")[OPERATOR_LABEL] == "true"
    assert OPERATOR_LABEL not in labels(ImageKind.ROUTER, "1.0.0")


def test_images_run_as_a_user_without_a_name() -> None:
    made = config(ImageKind.OPERATORS, "1.0.0", "amd64", "1970-01-01T00:00:00Z")
    assert made["config"]["User"] == "65532:65532"
    assert made["config"]["Entrypoint"] == ["/usr/bin/quarterdeck"]


def test_every_requirement_is_needed_by_the_images_python() -> None:
    """Markers are dropped, because pip would ask the Python that runs it."""
    environment = {
        "implementation_name": "cpython",
        "implementation_version": "3.11.2",
        "os_name": "posix",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": "3.11.2",
        "python_version": "3.11",
        "sys_platform": "linux",
    }
    text = (ROOT / REQUIREMENTS).read_text()
    markers = re.findall(r"^\S+==\S+ ; ([^\\\n]+?) *\\?$", text, re.MULTILINE)
    assert markers
    assert [marker for marker in markers if not Marker(marker).evaluate(environment)] == []
    plain = without_markers(text)
    assert not re.search(r"^[^#\n]*;", plain, re.MULTILINE)
    assert plain.count("==") == text.count("==")
    assert plain.count("--hash=") == text.count("--hash=")


@pytest.mark.parametrize("kind", list(ImageKind), ids=lambda kind: kind.value)
def test_the_containerfile_says_the_same(kind: ImageKind) -> None:
    """Its files come from the same command; user, variables, entrypoint and labels are written."""
    text = (ROOT / "Containerfile").read_text()
    _, _, target = text.partition(f"FROM scratch AS {kind.value}\n")
    target = target.partition("\nFROM ")[0]
    assert f"COPY --from=files /{kind.value}/ /\n" in target
    assert f"USER {USER}:{USER}\n" in target
    assert f'ENTRYPOINT ["{ENTRYPOINT[0]}"]' in target
    assert dict(re.findall(r"^ENV (\w+)=(\S+)$", target, re.MULTILINE)) == ENVIRONMENT
    written = dict(re.findall(r'^LABEL ([\w.]+)="?([^"\n]*)"?$', target, re.MULTILINE))
    assert written == labels(kind, "$VERSION")
