"""Asks the real HAProxy whether it accepts a configuration. The only I/O of this package.

`haproxy -c` parses the configuration and opens no socket. It reads it from standard input, so that
nothing is written to a disk.
"""

import asyncio
import os
import re

import msgspec

from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.access_log_lines import AccessLogLines, access_log_lines
from quarterdeck.haproxy.errors import CheckError, RefusedTextError
from quarterdeck.haproxy.log_format import encoded, parts
from quarterdeck.haproxy.quoting import quoted

CHECK_TIMEOUT = 60.0
"""Seconds; a configuration of 2,000 routes takes well under one."""

_COMPLAINT = re.compile(
    r"\[ALERT\]\s+\(\d+\) : config : "
    r"(?:[Pp]arsing \[[^\]]*?(?::(?P<line>\d+))?\]\s*: )?(?P<words>.*)"
)
_SUMMARIES = ("Error(s) found in configuration file", "Fatal errors found in configuration")
_LOG_FORMAT = "failed to parse log-format : "


class Complaint(msgspec.Struct, frozen=True):
    """What HAProxy refuses: the line of the configuration, if it names one, and its own words."""

    line: int | None
    words: str


def bare_environment() -> dict[str, str]:
    """The environment for HAProxy: a format can show variables, so it gets none of ours."""
    return {"PATH": os.environ.get("PATH", os.defpath)}


async def check(config: str, program: str = "haproxy") -> list[Complaint]:
    """HAProxy's complaints about a configuration; none if it would start with it."""
    return await run_check("/dev/stdin", config.encode(), program)


async def run_check(path: str, given: bytes = b"", program: str = "haproxy") -> list[Complaint]:
    """HAProxy's complaints about the configuration in a file, which may be standard input."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(program, "-c", "-f", path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=bare_environment(),
        )
    except OSError as error:
        raise CheckError(f"cannot run {program}: {error}; install HAProxy") from error
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            _, said = await process.communicate(given)
    except TimeoutError:
        raise CheckError(f"{program} -c did not end within {CHECK_TIMEOUT:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return []
    return complaints(said.decode(errors="replace"))


def complaints(said: str) -> list[Complaint]:
    """The complaints in HAProxy's output; at least one, for it did refuse."""
    found = [
        Complaint(int(match["line"]) if match["line"] else None, match["words"].strip())
        for match in _COMPLAINT.finditer(said)
        if not match["words"].startswith(_SUMMARIES)
    ]
    return found or [Complaint(None, said.strip() or "no reason given")]


async def check_log_format(text: str, program: str = "haproxy") -> None:
    """Raise `RefusedTextError`, with position and HAProxy's own words, for a bad log format."""
    encoded(text)  # refuses control characters
    found = await check(_formats_config([text]), program)
    if not found:
        return
    # HAProxy names no position, so each directive is tried by itself.
    directives = [part for part in parts(text) if not part.plain]
    alone = await check(_formats_config([part.characters for part in directives]), program)
    for complaint in alone:
        if complaint.line is not None:
            part = directives[_format_number(complaint.line)]
            raise RefusedTextError(part.position, part.characters, _words(complaint))
    raise RefusedTextError(0, text, _words(found[0]))


async def check_access_log(log: AccessLog, program: str = "haproxy") -> None:
    """Raise `RefusedTextError` if HAProxy refuses the access log's format or another line of it."""
    lines = access_log_lines(log)
    if log.format is not None:
        await check_log_format(log.format, program)
    if found := await check(_access_log_config(lines), program):
        raise RefusedTextError(0, found[0].words, "HAProxy refuses this access log")


def _words(complaint: Complaint) -> str:
    return "HAProxy: " + complaint.words.removeprefix(_LOG_FORMAT)


_NEVER_BOUND = "bind 127.0.0.1:1"
"""HAProxy wants a listener, and opens none for a check."""
_LINES_BEFORE = 2
_LINES_PER_FORMAT = 6


def _formats_config(formats: list[str]) -> str:
    """A configuration that has each format in a defaults section, as the router has its own."""
    lines = ["global", "maxconn 10"]
    for number, text in enumerate(formats):
        lines += [
            f"defaults d{number}",
            "mode http",
            f"log-format {quoted(encoded(text))}",
            "timeout client 1s",
            f"frontend f{number} from d{number}",
            _NEVER_BOUND,
        ]
    return "\n".join(lines) + "\n"


def _format_number(line: int) -> int:
    return (line - 1 - _LINES_BEFORE) // _LINES_PER_FORMAT


def _access_log_config(lines: AccessLogLines) -> str:
    sections = [
        ("global", lines.global_section),
        *([(lines.ring_section[0], lines.ring_section[1:])] if lines.ring_section else []),
        ("defaults", ("mode http", "timeout client 1s", *lines.defaults)),
        ("frontend public", (_NEVER_BOUND, *lines.frontend)),
    ]
    return "".join(
        f"{head}\n" + "".join(f"    {line}\n" for line in body) for head, body in sections
    )
