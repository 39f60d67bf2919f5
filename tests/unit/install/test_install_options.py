"""Hostile and mistaken options of `quarterdeck install`: refused before anything is asked."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from quarterdeck.cli.install import install

GOOD = "registry.example.test/ship/quarterdeck:1.0.0"
DIGEST = "sha256:" + "a" * 64


def refused(*options: str) -> str:
    """What is said; the cluster is not asked, which would be another exit code or message."""
    done = CliRunner().invoke(install, ["--kubeconfig", "/nowhere/at/all", *options])
    assert done.exit_code == 2
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "/nowhere" not in done.output
    return done.output


@pytest.mark.parametrize(
    "image",
    [
        "q:1\nargs: [--evil]",
        "q:1\n",
        "q: {a: b}",
        "'q'",
        "q:1 --privileged",
        "q\x1b[2J:1",
        "--force",
        "q:1@sha256:abc",
        f"r.test/q@md5:{'a' * 32}",
        "../../etc/passwd",
        "https://r.test/q:1",
        "{{ .Values.image }}",
        "$(id)",
        "Q",
        "r.test/q\u202e:1",
        "a/" * 300 + "q",
    ],
)
def test_what_is_no_image_is_refused(image: str) -> None:
    said = refused(f"--image={image}")
    assert "not an image reference" in said
    assert "\x1b" not in said
    assert "\u202e" not in said


@pytest.mark.parametrize(
    "registry",
    [
        "r.test\nargs: x",
        "r.test,evil.test=other.test",
        "r.test=evil.test",
        "https://r.test",
        "r.test/q:1",
        f"r.test/q@{DIGEST}",
        "user:password@r.test",
        "r.test/../x",
        "noname",
        "r.test --evil",
        "/",
        "r.test/" + "a" * 600,
    ],
)
def test_what_is_no_registry_is_refused(registry: str) -> None:
    """It becomes a part of an argument, in which a comma and an equals sign have a meaning."""
    for image in ("", GOOD, "quarterdeck:1"):
        options = [f"--image={image}"] if image else []
        assert "not a registry" in refused(*options, f"--registry={registry}")


def test_an_image_that_is_too_long_with_its_registry_is_refused() -> None:
    image, registry = "q" * 300, "r.test/" + "a" * 300
    assert "it is too long" in refused(f"--image={image}", f"--registry={registry}")


@pytest.mark.parametrize("names", ["", ",", " , ", ",,,"])
def test_an_empty_list_of_operators_does_not_mean_all(names: str) -> None:
    assert "name at least one, or leave it out" in refused(
        f"--image={GOOD}", f"--operators={names}"
    )


@pytest.mark.parametrize("option", ["--pull-secret", "--registry-ca", "--verification-key"])
@pytest.mark.parametrize(
    "content", [b"", b"hunter2", b"\xff\xfe", b"{" * 100_000, b"x" * 2_000_000]
)
def test_a_file_that_is_something_else_is_refused(
    option: str, content: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    said = refused(f"--image={GOOD}", f"{option}={file}")
    assert "hunter2" not in said
    assert len(said.splitlines()) == 1


def test_good_ones_get_as_far_as_the_cluster(tmp_path: Path) -> None:
    for image in (GOOD, f"r.test:5000/q@{DIGEST}", "quarterdeck:0.1.0", "[::1]:5000/q:1"):
        done = CliRunner().invoke(install, ["--kubeconfig", "/nowhere/at/all", f"--image={image}"])
        assert "/nowhere/at/all" in done.output
