"""Builds the programs from sources of the Go module proxy, pinned by go.mod and go.sum.

A build that was killed continues where it was: each finished program is installed at once, and the
compiler's cache is kept in a directory of ours until all are done. Then the directory is removed,
because it takes gigabytes.
"""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from quarterdeck.localcluster.binaries import child
from quarterdeck.localcluster.binaries.cache import FINISHED, FoundProgram, ProgramCache
from quarterdeck.localcluster.binaries.catalog import BinaryCatalog, Program
from quarterdeck.localcluster.binaries.disk import require_space, used
from quarterdeck.localcluster.binaries.errors import (
    OWN_PROGRAMS,
    BinariesUnavailable,
    disk_full,
    explained,
)
from quarterdeck.localcluster.binaries.progress import Progress, step
from quarterdeck.localcluster.binaries.settings import BinarySettings
from quarterdeck.localcluster.binaries.toolchain import Go, find_go

# Linking the largest program needs this much more than the build has used so far.
SPARE_BYTES = 2**29

_OURS = frozenset(
    {"GOROOT", "GOFLAGS", "GOEXPERIMENT", "GODEBUG", "GOPATH", "GOBIN", "GOARM64", "GOTOOLDIR"}
)
_UNREACHABLE = re.compile(
    r"dial tcp|no such host|connection refused|i/o timeout|TLS handshake timeout"
    r"|network is unreachable|server misbehaving|module lookup disabled"
)
# A line without a space is the name of a package in compilation.
_COMPLAINT = re.compile(r"(?!#|go: downloading )\S.* ")


class BuildDirectory(msgspec.Struct, frozen=True):
    """The directory of a build, and its files."""

    directory: Path
    arch: str

    @property
    def log(self) -> Path:
        """The output of `go` and `pip`; it is kept after the build."""
        return self.directory.with_name("build.log")

    def module(self, program: Program) -> Path:
        """The directory of the module that pins the program's sources."""
        return self.directory / "modules" / program.module


def build(
    programs: Sequence[Program],
    catalog: BinaryCatalog,
    settings: BinarySettings,
    cache: ProgramCache,
    progress: Progress,
) -> dict[str, FoundProgram]:
    """Build these programs, install each when it is done, and return them."""
    place = BuildDirectory(cache.directory / "build", cache.platform.partition("/")[2])
    _prepare(place, programs, catalog)
    go = find_go(settings.environment, place.directory, place.log, progress)
    names = ", ".join(program.name for program in programs)
    progress.say(
        f"building {names} from source with {go.version}; "
        "this happens once, and takes about 8 minutes for all programs on 2 idle cores"
    )
    compiler = Compiler(place, go, go_environment(settings.environment, place), progress)
    built = {}
    for number, program in enumerate(programs, 1):
        title = f"{program.name} {program.version} ({number} of {len(programs)})"
        with step(progress, f"fetching the sources of {title}"):
            stale = compiler.fetch_sources(program)
        with step(progress, f"building {title}", f"built {title}"):
            staged = compiler.compile(program, stale)
            source = f"built from source with {go.version}"
            built[program.name] = cache.install(program, staged, source)
    _clear_away(place.directory)
    return built


def _clear_away(directory: Path) -> None:
    """Rename the build directory, then remove it; a later run removes what a crash leaves."""
    done = directory.with_name(FINISHED)
    shutil.rmtree(done, ignore_errors=True)
    directory.rename(done)
    shutil.rmtree(done, ignore_errors=True)


def go_environment(env: Mapping[str, str], place: BuildDirectory) -> dict[str, str]:
    """The environment for `go`: the user's proxies, and nothing that changes what is built."""
    kept = {name: value for name, value in env.items() if name not in _OURS}
    # Of the user's flags only the number of parallel jobs is kept. The variable is never empty:
    # with an empty one `go` would read the flags from its own configuration file.
    jobs = [flag for flag in env.get("GOFLAGS", "").split() if flag.startswith("-p=")]
    return {
        **kept,
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOOS": "linux",
        "GOARCH": place.arch,
        "GOAMD64": "v1",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
        # -modcacherw: read-only modules could not be removed afterwards.
        "GOFLAGS": " ".join(["-mod=readonly", "-modcacherw", "-buildvcs=false", *jobs]),
        "GOPATH": str(place.directory / "gopath"),
        "GOMODCACHE": str(place.directory / "mod"),
        "GOCACHE": str(place.directory / "cache"),
        # /tmp may be small and in memory.
        "GOTMPDIR": str(place.directory / "tmp"),
    }


def build_command(go: Path, program: Program, output: Path) -> list[str]:
    """The command that builds the program."""
    flags = " ".join(["-s -w", *(f"-X {stamp}" for stamp in program.stamps)])
    options = ["-v", "-trimpath", *_tags(program), "-ldflags", flags, "-o", str(output)]
    return [str(go), "build", *options, program.package]


def stale_command(go: Path, program: Program) -> list[str]:
    """The command that lists the packages that are not compiled yet, one per line."""
    form = "{{if .Stale}}{{.ImportPath}}{{end}}"
    return [str(go), "list", "-trimpath", *_tags(program), "-deps", "-f", form, program.package]


def _tags(program: Program) -> list[str]:
    return ["-tags", ",".join(program.tags)] if program.tags else []


def modules_pinned(go_sum: str) -> int:
    """The number of modules in a go.sum, without entries for go.mod files only."""
    return sum(1 for line in go_sum.splitlines() if line and "/go.mod " not in line)


def failure(program: Program, lines: Sequence[str], place: BuildDirectory) -> BinariesUnavailable:
    """The error for a failed build, with the first message of `go` and a remedy."""
    if any("no space left on device" in line or "disk quota" in line for line in lines):
        return disk_full(place.directory)
    if any("signal: killed" in line for line in lines):
        return BinariesUnavailable(
            f"building {program.name} failed: a compiler was killed, most likely for lack of "
            "memory; set GOFLAGS=-p=1 to compile one package at a time, and run this again"
        )
    if broken := next((line for line in lines if _UNREACHABLE.search(line)), None):
        return BinariesUnavailable(
            f"building {program.name} failed, because the Go module proxy cannot be reached "
            f"({broken.strip()[:200]}): set GOPROXY to one that can, or {OWN_PROGRAMS}"
        )
    first = next((line.strip()[:200] for line in lines if _COMPLAINT.match(line)), "no output")
    return BinariesUnavailable(
        f"building {program.name} failed ({first}); the whole output is in {place.log}"
    )


def _prepare(place: BuildDirectory, programs: Sequence[Program], catalog: BinaryCatalog) -> None:
    """Create the directories, and check that the disk has enough space."""
    with explained(place.directory):
        # Leftovers of a killed `go`; its caches are elsewhere and stay.
        for leftover in ("tmp", "out", "modules"):
            shutil.rmtree(place.directory / leftover, ignore_errors=True)
        for folder in ("tmp", "out"):
            (place.directory / folder).mkdir(parents=True)
        for program in programs:
            source = catalog.modules / program.module
            shutil.copytree(source, place.module(program), dirs_exist_ok=True)
        place.log.write_bytes(b"")
    families = {program.module for program in programs}
    whole = sum(catalog.module_bytes.get(family, 0) for family in families)
    needed = max(whole - used(place.directory), 0) + (SPARE_BYTES if whole else 0)
    require_space(place.directory, needed, "building from source")


class Compiler:
    """Fetches and compiles programs in a build directory."""

    def __init__(
        self, place: BuildDirectory, go: Go, env: Mapping[str, str], progress: Progress
    ) -> None:
        self._place = place
        self._go = go
        self._env = env
        self._progress = progress

    def fetch_sources(self, program: Program) -> frozenset[str]:
        """Fetch the program's sources, and return the packages that are not compiled yet."""
        pinned = modules_pinned((self._place.module(program) / "go.sum").read_text())
        fetched = 0
        stale: set[str] = set()

        def sort(line: str) -> None:
            nonlocal fetched
            if line.startswith("go: downloading "):
                fetched += 1
            elif line and " " not in line:
                stale.add(line)

        def show() -> None:
            part = min(fetched / max(pinned, 1), 1.0)
            self._progress.update(f"{fetched} of at most {pinned} modules fetched", part)

        self._run(stale_command(self._go.program, program), program, sort, show)
        return frozenset(stale)

    def compile(self, program: Program, stale: frozenset[str]) -> Path:
        """Compile the program, and return its path in the build directory."""
        compiled = 0

        def count(line: str) -> None:
            nonlocal compiled
            compiled += line in stale

        def show() -> None:
            # The main package is compiled last; then the linker runs.
            linking = compiled >= len(stale)
            text = "linking" if linking else f"{compiled} of {len(stale)} packages compiled"
            self._progress.update(text, compiled / max(len(stale), 1))

        output = self._place.directory / "out" / program.name
        self._run(build_command(self._go.program, program, output), program, count, show)
        return output

    def _run(
        self,
        command: Sequence[str],
        program: Program,
        on_line: Callable[[str], None],
        on_tick: Callable[[], None],
    ) -> None:
        lines: list[str] = []

        def keep(line: str) -> None:
            lines.append(line)
            on_line(line)

        with explained(self._place.directory):
            code = child.run(
                command,
                env=self._env,
                cwd=self._place.module(program),
                log=self._place.log,
                on_line=keep,
                on_tick=on_tick,
            )
        if code:
            raise failure(program, lines, self._place)
