"""Building the programs from the Go module proxy, from sources pinned by go.mod and go.sum.

A build that was killed goes on where it was: finished programs are installed one by one, and the
compiler's cache lies in a directory of ours until all are done. Then the directory is removed,
because it takes gigabytes.
"""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from quarterdeck.localcluster.binaries import child
from quarterdeck.localcluster.binaries.cache import FINISHED, Cache, Found
from quarterdeck.localcluster.binaries.catalog import Catalog, Program
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

# Linking the largest program needs this much beside what the build has taken already.
SPARE_BYTES = 2**29

_OURS = frozenset(
    {"GOROOT", "GOFLAGS", "GOEXPERIMENT", "GODEBUG", "GOPATH", "GOBIN", "GOARM64", "GOTOOLDIR"}
)
_UNREACHABLE = re.compile(
    r"dial tcp|no such host|connection refused|i/o timeout|TLS handshake timeout"
    r"|network is unreachable|server misbehaving|module lookup disabled"
)
# A line without a space is the name of a package that is being compiled.
_COMPLAINT = re.compile(r"(?!#|go: downloading )\S.* ")


class Workshop(msgspec.Struct, frozen=True):
    """Where a build takes place."""

    directory: Path
    arch: str

    @property
    def log(self) -> Path:
        """What `go` and `pip` said. It outlives the build, for the case that it fails."""
        return self.directory.with_name("build.log")

    def module(self, program: Program) -> Path:
        """The directory of the module that pins the program's sources."""
        return self.directory / "modules" / program.module


def build(
    programs: Sequence[Program],
    catalog: Catalog,
    settings: BinarySettings,
    cache: Cache,
    progress: Progress,
) -> dict[str, Found]:
    """Build these programs and install each as soon as it is done."""
    shop = Workshop(cache.directory / "build", cache.platform.partition("/")[2])
    _prepare(shop, programs, catalog)
    go = find_go(settings.environment, shop.directory, shop.log, progress)
    names = ", ".join(program.name for program in programs)
    progress.say(
        f"building {names} from source with {go.version}; "
        "this happens once, and takes about 8 minutes for all programs on 2 idle cores"
    )
    bench = Bench(shop, go, go_environment(settings.environment, shop), progress)
    built = {}
    for number, program in enumerate(programs, 1):
        title = f"{program.name} {program.version} ({number} of {len(programs)})"
        with step(progress, f"fetching the sources of {title}"):
            stale = bench.fetch_sources(program)
        with step(progress, f"building {title}", f"built {title}"):
            staged = bench.compile(program, stale)
            source = f"built from source with {go.version}"
            built[program.name] = cache.install(program, staged, source)
    _clear_away(shop.directory)
    return built


def _clear_away(directory: Path) -> None:
    """Remove the workshop. Whatever a crash leaves of it is recognised by its name."""
    done = directory.with_name(FINISHED)
    shutil.rmtree(done, ignore_errors=True)
    directory.rename(done)
    shutil.rmtree(done, ignore_errors=True)


def go_environment(env: Mapping[str, str], shop: Workshop) -> dict[str, str]:
    """The environment for `go`: the user's proxies, and nothing that changes what is built."""
    kept = {name: value for name, value in env.items() if name not in _OURS}
    # Of the user's flags only the number of parallel jobs is theirs to choose here. The variable
    # is never empty: then `go` would take the flags from its own configuration file.
    jobs = [flag for flag in env.get("GOFLAGS", "").split() if flag.startswith("-p=")]
    return {
        **kept,
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOOS": "linux",
        "GOARCH": shop.arch,
        "GOAMD64": "v1",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
        # Read-only modules could not be removed afterwards.
        "GOFLAGS": " ".join(["-mod=readonly", "-modcacherw", "-buildvcs=false", *jobs]),
        "GOPATH": str(shop.directory / "gopath"),
        "GOMODCACHE": str(shop.directory / "mod"),
        "GOCACHE": str(shop.directory / "cache"),
        # Not /tmp, which may be small and in memory.
        "GOTMPDIR": str(shop.directory / "tmp"),
    }


def build_command(go: Path, program: Program, output: Path) -> list[str]:
    """The command that makes the program."""
    flags = " ".join(["-s -w", *(f"-X {stamp}" for stamp in program.stamps)])
    options = ["-v", "-trimpath", "-ldflags", flags, "-o", str(output)]
    return [str(go), "build", *options, program.package]


def stale_command(go: Path, program: Program) -> list[str]:
    """The command that lists, a line each, the packages that are still to be compiled."""
    form = "{{if .Stale}}{{.ImportPath}}{{end}}"
    return [str(go), "list", "-trimpath", "-deps", "-f", form, program.package]


def modules_pinned(go_sum: str) -> int:
    """How many modules a go.sum allows to be fetched, not counting bare go.mod files."""
    return sum(1 for line in go_sum.splitlines() if line and "/go.mod " not in line)


def failure(program: Program, lines: Sequence[str], shop: Workshop) -> BinariesUnavailable:
    """The error that explains a failed build by the first complaint of `go`."""
    if any("no space left on device" in line or "disk quota" in line for line in lines):
        return disk_full(shop.directory)
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
        f"building {program.name} failed ({first}); the whole output is in {shop.log}"
    )


def _prepare(shop: Workshop, programs: Sequence[Program], catalog: Catalog) -> None:
    """Lay out the directories, and check that the build will fit."""
    with explained(shop.directory):
        # What `go` was at when it was killed; its caches are elsewhere and stay.
        for leftover in ("tmp", "out", "modules"):
            shutil.rmtree(shop.directory / leftover, ignore_errors=True)
        for folder in ("tmp", "out"):
            (shop.directory / folder).mkdir(parents=True)
        for program in programs:
            source = catalog.modules / program.module
            shutil.copytree(source, shop.module(program), dirs_exist_ok=True)
        shop.log.write_bytes(b"")
    families = {program.module for program in programs}
    whole = sum(catalog.module_bytes.get(family, 0) for family in families)
    needed = max(whole - used(shop.directory), 0) + (SPARE_BYTES if whole else 0)
    require_space(shop.directory, needed, "building from source")


class Bench:
    """A workshop with a Go in it."""

    def __init__(self, shop: Workshop, go: Go, env: Mapping[str, str], progress: Progress) -> None:
        self._shop = shop
        self._go = go
        self._env = env
        self._progress = progress

    def fetch_sources(self, program: Program) -> frozenset[str]:
        """Fetch what the program is made of; the packages that are not compiled yet."""
        pinned = modules_pinned((self._shop.module(program) / "go.sum").read_text())
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
        """Make the program in the workshop."""
        compiled = 0

        def count(line: str) -> None:
            nonlocal compiled
            compiled += line in stale

        def show() -> None:
            # The main package is compiled last; after it, there is only linking.
            linking = compiled >= len(stale)
            text = "linking" if linking else f"{compiled} of {len(stale)} packages compiled"
            self._progress.update(text, compiled / max(len(stale), 1))

        output = self._shop.directory / "out" / program.name
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

        with explained(self._shop.directory):
            code = child.run(
                command,
                env=self._env,
                cwd=self._shop.module(program),
                log=self._shop.log,
                on_line=keep,
                on_tick=on_tick,
            )
        if code:
            raise failure(program, lines, self._shop)
