"""Probes: how one is made, what a row of answers means, and when the next is due.

What a verdict leads to (restart, not ready) is decided in `lifecycle`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import aiohttp
import msgspec

Exec = Callable[[list[str], float], Awaitable[tuple[int, str]]]
"""Runs a command in the container for at most so many seconds: exit code and output."""


class Outcome(msgspec.Struct, frozen=True):
    """One answer; the message says what was wrong."""

    ok: bool
    message: str = ""


class Row(msgspec.Struct, frozen=True):
    """How the last answers were, and the verdict that they make."""

    verdict: bool | None = None
    streak: int = 0
    """How many answers in a row were like the last one."""
    last: bool | None = None


def judge(probe: dict[str, Any], row: Row, ok: bool) -> Row:
    """The row with one more answer; the verdict turns when the threshold is reached."""
    streak = row.streak + 1 if row.last is ok else 1
    threshold = probe.get("successThreshold", 1) if ok else probe.get("failureThreshold", 3)
    return Row(ok if streak >= threshold else row.verdict, streak, ok)


async def make_probe(
    probe: dict[str, Any], container: dict[str, Any], pod_ip: str, execute: Exec
) -> Outcome:
    """The answer to one probe."""
    seconds = float(probe.get("timeoutSeconds", 1))
    try:
        async with asyncio.timeout(seconds):
            if action := probe.get("httpGet"):
                return await _http(action, container, pod_ip)
            if action := probe.get("tcpSocket"):
                return await _tcp(action, container, pod_ip)
            if action := probe.get("exec"):
                code, output = await execute(action["command"], seconds + 1)
                return Outcome(code == 0, "" if code == 0 else f"exit code {code}: {output}")
    except TimeoutError:
        return Outcome(False, f"no answer within {seconds:g}s")
    except (OSError, aiohttp.ClientError, ValueError) as error:
        return Outcome(False, str(error))
    return Outcome(False, "this node makes only httpGet, tcpSocket and exec probes")


async def follow_probe(
    probe: dict[str, Any],
    ask: Callable[[], Awaitable[Outcome]],
    heard: Callable[[Row, Outcome], bool],
) -> None:
    """Ask again and again, and tell what is heard, until that is enough."""
    row = Row()
    await asyncio.sleep(probe.get("initialDelaySeconds", 0))
    while True:
        outcome = await ask()
        row = judge(probe, row, outcome.ok)
        if heard(row, outcome):
            return
        await asyncio.sleep(probe.get("periodSeconds", 10))


def port_number(port: int | str, container: dict[str, Any]) -> int:
    """A port as a number; a name is looked up among the container's ports."""
    if isinstance(port, int):
        return port
    for entry in container.get("ports") or []:
        if entry.get("name") == port:
            return int(entry["containerPort"])
    if port.isdecimal():
        return int(port)
    raise ValueError(f"port {port!r}: the container has no port of this name")


async def _http(action: dict[str, Any], container: dict[str, Any], pod_ip: str) -> Outcome:
    scheme = action.get("scheme", "HTTP").lower()
    host = action.get("host") or pod_ip
    path = action.get("path") or "/"
    url = f"{scheme}://{host}:{port_number(action['port'], container)}/{path.lstrip('/')}"
    headers = {entry["name"]: entry["value"] for entry in action.get("httpHeaders") or []}
    headers.setdefault("User-Agent", "kube-probe/1.36")
    # As the kubelet: the certificate is not checked, a redirect is an answer.
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.get(url, headers=headers, ssl=False, allow_redirects=False) as answer,
    ):
        if 200 <= answer.status < 400:
            return Outcome(True)
        text = (await answer.content.read(200)).decode(errors="replace").strip()
        return Outcome(False, f"HTTP {answer.status}: {text}")


async def _tcp(action: dict[str, Any], container: dict[str, Any], pod_ip: str) -> Outcome:
    port = port_number(action["port"], container)
    _, writer = await asyncio.open_connection(action.get("host") or pod_ip, port)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return Outcome(True)
