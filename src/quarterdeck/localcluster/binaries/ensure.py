"""Provides all programs: tries each source in order until none is missing."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from quarterdeck.localcluster.binaries.cache import Corrupt, FoundProgram, ProgramCache
from quarterdeck.localcluster.binaries.catalog import (
    ALL,
    CATALOG,
    CONVENTION,
    BinaryCatalog,
    Program,
    architecture,
    elf_architecture,
)
from quarterdeck.localcluster.binaries.errors import OWN_PROGRAMS, BinariesUnavailable
from quarterdeck.localcluster.binaries.lock import directory_lock
from quarterdeck.localcluster.binaries.progress import Progress, progress_on
from quarterdeck.localcluster.binaries.settings import BinarySettings

ASSETS = "KUBEBUILDER_ASSETS"


class Binaries(msgspec.Struct, frozen=True):
    """The paths of the programs; a program that was not requested raises a KeyError."""

    paths: Mapping[str, Path]
    sources: Mapping[str, str]
    """The origin of each program, for people."""

    @property
    def kube_apiserver(self) -> Path:
        """The API server."""
        return self.paths["kube-apiserver"]

    @property
    def kube_controller_manager(self) -> Path:
        """The controller manager."""
        return self.paths["kube-controller-manager"]

    @property
    def kube_scheduler(self) -> Path:
        """The scheduler."""
        return self.paths["kube-scheduler"]

    @property
    def kubectl(self) -> Path:
        """The command-line client."""
        return self.paths["kubectl"]

    @property
    def etcd(self) -> Path:
        """The store of the API server."""
        return self.paths["etcd"]

    @property
    def kwok(self) -> Path:
        """The simulator of nodes and pods."""
        return self.paths["kwok"]

    @property
    def source(self) -> str:
        """The origins of the programs, each once."""
        return ", ".join(dict.fromkeys(self.sources.values()))


def ensure_binaries(
    settings: BinarySettings,
    names: Sequence[str] = ALL,
    progress: Progress | None = None,
    catalog: BinaryCatalog = CATALOG,
) -> Binaries:
    """The named programs, downloaded or built if they are missing.

    The sources, in order: KUBEBUILDER_ASSETS, the cache, the release servers, a build. Raises
    BinariesUnavailable, whose message is one line with a remedy.
    """
    progress = progress or progress_on()
    wanted = [catalog.program(name) for name in dict.fromkeys(names)]
    found = _own_programs(settings, wanted)
    if len(found) < len(wanted):
        platform = f"linux/{architecture(settings.machine)}"
        cache = ProgramCache(settings.cache / catalog.version, platform)
        cache.tidy()
        found |= _cached(cache, _without(wanted, found))
        if len(found) < len(wanted):
            with directory_lock(cache.directory, progress):
                found |= _obtain(cache, _without(wanted, found), settings, catalog, progress)
    return Binaries(
        {program.name: found[program.name].path for program in wanted},
        {program.name: found[program.name].source for program in wanted},
    )


def _without(programs: Sequence[Program], found: Mapping[str, FoundProgram]) -> list[Program]:
    return [program for program in programs if program.name not in found]


def _own_programs(settings: BinarySettings, wanted: Sequence[Program]) -> dict[str, FoundProgram]:
    """The programs in the user's own directory, which must have the conventional ones."""
    folder = settings.assets
    if folder is None:
        return {}
    if missing := [name for name in CONVENTION if not (folder / name).is_file()]:
        raise BinariesUnavailable(
            f"{ASSETS}={folder} lacks {', '.join(missing)}; add what is missing, "
            f"or unset {ASSETS} to let the programs be found elsewhere"
        )
    found = {}
    for program in wanted:
        path = folder / program.name
        if path.is_file():
            _check_runs_here(path, settings.machine)
            found[program.name] = FoundProgram(path, ASSETS)
    return found


def _check_runs_here(path: Path, machine: str) -> None:
    if not os.access(path, os.X_OK):
        raise BinariesUnavailable(f"{path} may not be executed; run chmod +x {path}")
    with path.open("rb") as file:
        built_for = elf_architecture(file.read(20))
    if built_for is not None and built_for != architecture(machine):
        raise BinariesUnavailable(
            f"{path} is for {built_for}, and this machine is {architecture(machine)}; "
            f"put programs for {architecture(machine)} into {ASSETS}, or unset it"
        )


def _cached(cache: ProgramCache, programs: Sequence[Program]) -> dict[str, FoundProgram]:
    seen = {program.name: cache.look(program) for program in programs}
    return {name: state for name, state in seen.items() if isinstance(state, FoundProgram)}


def _obtain(
    cache: ProgramCache,
    programs: Sequence[Program],
    settings: BinarySettings,
    catalog: BinaryCatalog,
    progress: Progress,
) -> dict[str, FoundProgram]:
    """Fill the cache, and return its programs; the caller holds its lock."""
    # Look again: another process may have filled it while this one waited for the lock.
    found: dict[str, FoundProgram] = {}
    for program in programs:
        state = cache.look(program)
        if isinstance(state, FoundProgram):
            found[program.name] = state
        elif isinstance(state, Corrupt):
            progress.say(f"{state.path} does not match its recorded checksum; getting it anew")
    # Imported here because most runs need neither, and HTTP is slow to import.
    if settings.download and _without(programs, found):
        from quarterdeck.localcluster.binaries.download import download

        found |= download(_without(programs, found), settings, cache, progress)
    if settings.build and _without(programs, found):
        from quarterdeck.localcluster.binaries.build import build

        found |= build(_without(programs, found), catalog, settings, cache, progress)
    if missing := _without(programs, found):
        raise _nothing_left(missing, settings)
    return found


def _nothing_left(missing: Sequence[Program], settings: BinarySettings) -> BinariesUnavailable:
    off = [
        name
        for name, allowed in (
            ("QUARTERDECK_DOWNLOAD", settings.download),
            ("QUARTERDECK_BUILD", settings.build),
        )
        if not allowed
    ]
    names = ", ".join(program.name for program in missing)
    return BinariesUnavailable(
        f"no source is left for {names}, because {' and '.join(off)} is off; "
        f"turn it on, or {OWN_PROGRAMS}"
    )
