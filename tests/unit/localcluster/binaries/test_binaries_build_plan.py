"""What `go` and `pip` are told, and how their failures are explained."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.localcluster.binaries.build import (
    BuildDirectory,
    build_command,
    failure,
    go_environment,
    modules_pinned,
)
from quarterdeck.localcluster.binaries.catalog import CATALOG
from quarterdeck.localcluster.binaries.toolchain import parse_version, pip_environment

SHOP = BuildDirectory(Path("/cache/v1/build"), "arm64")
ETCD = CATALOG.program("etcd")


def test_go_keeps_the_users_proxies() -> None:
    env = go_environment({"GOPROXY": "http://m", "GONOSUMDB": "*", "PATH": "/bin"}, SHOP)
    assert (env["GOPROXY"], env["GONOSUMDB"], env["PATH"]) == ("http://m", "*", "/bin")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("", [], id="none"),
        pytest.param("-mod=vendor -tags=x", [], id="those that change what is built are dropped"),
        pytest.param("-p=1 -v", ["-p=1"], id="the number of jobs stays"),
    ],
)
def test_go_flags_of_the_user(given: str, expected: list[str]) -> None:
    flags = go_environment({"GOFLAGS": given}, SHOP)["GOFLAGS"].split()
    assert flags == ["-mod=readonly", "-modcacherw", "-buildvcs=false", *expected]


@given(st.dictionaries(st.sampled_from(["GOROOT", "GOOS", "GOWORK", "GOCACHE"]), st.text()))
def test_go_builds_the_same_whatever_the_user_has_set(extra: dict[str, str]) -> None:
    assert go_environment(extra, SHOP) == go_environment({}, SHOP)


def test_go_writes_only_below_the_workshop() -> None:
    env = go_environment({}, SHOP)
    for name in ("GOPATH", "GOMODCACHE", "GOCACHE", "GOTMPDIR"):
        assert env[name].startswith("/cache/v1/build/")
    assert (env["GOARCH"], env["CGO_ENABLED"], env["GOTOOLCHAIN"]) == ("arm64", "0", "local")


def test_build_command_stamps_the_version() -> None:
    command = build_command(Path("/go"), CATALOG.program("kubectl"), Path("/out"))
    flags = command[command.index("-ldflags") + 1]
    assert flags.startswith("-s -w -X k8s.io/component-base/version.gitVersion=v1.36.4 ")
    assert "-X k8s.io/component-base/version.gitMinor=36" in flags
    assert command[-1] == "k8s.io/kubernetes/cmd/kubectl"
    assert "-trimpath" in command


def test_modules_pinned_does_not_count_bare_go_mod_files() -> None:
    assert modules_pinned("a v1 h1:x\na v1/go.mod h1:y\nb v2/go.mod h1:z\n\n") == 1


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            ["write /x: no space left on device", "exit status 1"],
            "disk full: no space left for /cache/v1/build; free some, or set QUARTERDECK_CACHE",
            id="a full disk",
        ),
        pytest.param(
            ['go: Get "https://m/x": dial tcp: lookup m: no such host'],
            "the Go module proxy cannot be reached (go: Get",
            id="no network",
        ),
        pytest.param(["compile: signal: killed"], "GOFLAGS=-p=1", id="out of memory"),
        pytest.param(
            ["go: downloading x v1", "fmt", "# example", "x.go:1: undefined: y", "too many errors"],
            "building etcd failed (x.go:1: undefined: y); the whole output is in "
            "/cache/v1/build.log",
            id="anything else gives the first complaint and where the rest is",
        ),
        pytest.param([], "(no output)", id="silence"),
    ],
)
def test_failure_is_explained_in_one_line(lines: list[str], expected: str) -> None:
    message = str(failure(ETCD, lines, SHOP))
    assert expected in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("go1.26.8\n", (1, 26)),
        ("go1.26-devel_abc", (1, 26)),
        ("go2.0", (2, 0)),
        ("devel", None),
        ("", None),
    ],
)
def test_parse_version(text: str, expected: tuple[int, int] | None) -> None:
    assert parse_version(text) == expected


def test_pip_loses_what_contradicts_a_target_and_keeps_mirrors() -> None:
    env = pip_environment({"PIP_USER": "1", "PIP_INDEX_URL": "http://m", "PIP_RETRIES": "9"})
    assert env == {"PIP_INDEX_URL": "http://m", "PIP_RETRIES": "9", "PIP_DEFAULT_TIMEOUT": "15"}
