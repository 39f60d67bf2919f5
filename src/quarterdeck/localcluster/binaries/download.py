"""Downloads released programs, and installs only those with the published checksum.

If a server cannot be reached or does not have a program, the next source is tried. A program with
another checksum is an error, because somebody should look at it.
"""

import gzip
import hashlib
import http.client
import shutil
import tarfile
import threading
import urllib.error
import urllib.request
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quarterdeck.localcluster.binaries.cache import FoundProgram, ProgramCache
from quarterdeck.localcluster.binaries.catalog import (
    Program,
    ProgramSource,
    program_source,
    published_checksum,
)
from quarterdeck.localcluster.binaries.disk import require_space
from quarterdeck.localcluster.binaries.errors import BinariesUnavailable, explained
from quarterdeck.localcluster.binaries.progress import Progress, size, step
from quarterdeck.localcluster.binaries.settings import BinarySettings

ATTEMPTS = 3
CHUNK_BYTES = 2**18
CHECKSUM_FILE_BYTES = 2**22


class NotDownloaded(Exception):  # noqa: N818 - an outcome, not a fault
    """A program cannot be downloaded; the message gives the reason."""


class Unreachable(NotDownloaded):
    """The server does not answer."""


class TransferBroken(NotDownloaded):
    """A transfer ended early; another attempt may succeed."""


def download(
    programs: Sequence[Program], settings: BinarySettings, cache: ProgramCache, progress: Progress
) -> dict[str, FoundProgram]:
    """Download and install these programs, and return those that the servers had."""
    arch = cache.platform.partition("/")[2]
    folder = cache.directory / "download"
    found: dict[str, FoundProgram] = {}
    silent: set[str] = set()
    for program in programs:
        at = program_source(program, settings, arch)
        if at is None or at.host in silent:
            continue
        title = f"{program.name} {program.version}"
        try:
            _empty(folder)
            with step(progress, f"downloading {title} from {at.host}", f"downloaded {title}"):
                staged = _Fetch(settings, folder, progress).program(at)
                found[program.name] = cache.install(program, staged, f"downloaded from {at.host}")
        except NotDownloaded as reason:
            progress.say(f"not downloaded: {title}: {reason}")
            if isinstance(reason, Unreachable):
                silent.add(at.host)
    shutil.rmtree(folder, ignore_errors=True)
    return found


def _empty(folder: Path) -> None:
    with explained(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)


class _Fetch:
    """Downloads one released file into a folder."""

    def __init__(self, settings: BinarySettings, folder: Path, progress: Progress) -> None:
        self._settings = settings
        self._folder = folder
        self._progress = progress
        self._opener = _opener(settings.stall_timeout)

    def program(self, at: ProgramSource) -> Path:
        """Download and verify the program, and return its path."""
        expected = self._checksum(at)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                file = self._file(at, expected)
                break
            except TransferBroken as reason:
                if attempt == ATTEMPTS:
                    raise
                self._progress.say(f"{reason}; trying again")
        return file if at.member is None else self._unpacked(file, at.member)

    def _checksum(self, at: ProgramSource) -> str:
        """The published checksum; raises a reason if there is none in time.

        It runs in a thread, because the lookup of a host name has no time-out.
        """
        answer: list[str | NotDownloaded] = []
        thread = threading.Thread(
            target=lambda: answer.append(self._text(at.checksum_url)), daemon=True
        )
        thread.start()
        timeout = 2 * self._settings.connect_timeout
        thread.join(timeout)
        if not answer:
            raise Unreachable(f"{at.host} did not answer within {timeout:g} s")
        text = answer[0]
        if isinstance(text, NotDownloaded):
            raise text
        if (checksum := published_checksum(text, at.filename)) is None:
            raise NotDownloaded(f"{at.checksum_url} has no checksum of {at.filename}")
        return checksum

    def _text(self, url: str) -> str | NotDownloaded:
        try:
            with self._open(url) as response:
                content: bytes = response.read(CHECKSUM_FILE_BYTES)
                return content.decode(errors="replace")
        except NotDownloaded as reason:
            return reason
        except (OSError, http.client.HTTPException) as error:
            return NotDownloaded(f"reading {url} failed: {error}")

    def _open(self, url: str) -> Any:
        try:
            return self._opener.open(url, timeout=self._settings.connect_timeout)
        except urllib.error.HTTPError as error:
            with error:
                raise NotDownloaded(f"{url} answers {error.code} {error.reason}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            host = url.partition("://")[2].partition("/")[0]
            raise Unreachable(f"{host} is out of reach ({_in_words(error)})") from error

    def _file(self, at: ProgramSource, expected: str) -> Path:
        path = self._folder / at.filename
        digest = hashlib.sha256()
        with self._open(at.url) as response, explained(self._folder), path.open("wb") as file:
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else 0
            # An archive is unpacked into the same folder.
            require_space(self._folder, total * (3 if at.member else 1), f"{at.filename}")
            received = 0
            while chunk := self._chunk(response, at):
                file.write(chunk)
                digest.update(chunk)
                received += len(chunk)
                self._progress.update(*_share(received, total))
        if total and received < total:
            raise TransferBroken(f"{at.url} ended after {received} of {total} bytes")
        if digest.hexdigest() != expected:
            path.unlink()
            raise BinariesUnavailable(
                f"refused {at.url}: its sha256 is {digest.hexdigest()}, but {expected} is "
                "published; try again later, or set QUARTERDECK_DOWNLOAD=off to build from source"
            )
        return path

    def _chunk(self, response: Any, at: ProgramSource) -> bytes:
        try:
            chunk: bytes = response.read(CHUNK_BYTES)
        except TimeoutError as error:
            stalled = f"{at.url} sent nothing for {self._settings.stall_timeout:g} s"
            raise TransferBroken(stalled) from error
        except (OSError, http.client.HTTPException) as error:
            raise TransferBroken(f"{at.url} broke off ({error})") from error
        return chunk

    def _unpacked(self, archive: Path, member: str) -> Path:
        path = self._folder / f"{archive.name}.program"
        try:
            with explained(self._folder), tarfile.open(archive) as tar:
                source = tar.extractfile(member)
                if source is None:
                    raise KeyError(member)
                with path.open("wb") as file:
                    shutil.copyfileobj(source, file)
        except KeyError as error:
            raise NotDownloaded(f"{archive.name} has no file {member}") from error
        except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise NotDownloaded(f"{archive.name} cannot be unpacked ({error})") from error
        archive.unlink()
        return path


def _in_words(error: Exception) -> str:
    cause = getattr(error, "reason", error)
    return getattr(cause, "strerror", None) or str(cause)


def _share(received: int, total: int) -> tuple[str, float | None]:
    if not total:
        return size(received), None
    return f"{size(received)} of {size(total)}", received / total


def _opener(stall_timeout: float) -> urllib.request.OpenerDirector:
    """An opener whose time-out is for connecting only; `stall_timeout` is for reading."""

    class Http(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            self.sock.settimeout(stall_timeout)

    class Https(http.client.HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            self.sock.settimeout(stall_timeout)

    class HttpHandler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Http, req)

    class HttpsHandler(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Https, req)

    return urllib.request.build_opener(HttpHandler, HttpsHandler)
