"""Makes probes, counts their answers, and computes their result.

`lifecycle` decides what a result leads to: a restart, or a pod that is not ready.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import aiohttp
import msgspec

from quarterdeck.controller.tasks import is_cancelled

Exec = Callable[[list[str], float], Awaitable[tuple[int, str]]]
"""Runs a command in the container with a time limit; returns exit code and output."""


class ProbeAnswer(msgspec.Struct, frozen=True):
    """The answer to one probe; the message tells why it failed."""

    ok: bool
    message: str = ""


class ProbeStreak(msgspec.Struct, frozen=True):
    """The last answers of a probe, and the result that follows."""

    result: bool | None = None
    length: int = 0
    """The number of consecutive answers equal to the last one."""
    last: bool | None = None


def judge(probe: dict[str, Any], streak: ProbeStreak, ok: bool) -> ProbeStreak:
    """The streak with one more answer; the result changes when the threshold is reached."""
    length = streak.length + 1 if streak.last is ok else 1
    threshold = probe.get("successThreshold", 1) if ok else probe.get("failureThreshold", 3)
    return ProbeStreak(ok if length >= threshold else streak.result, length, ok)


async def make_probe(
    probe: dict[str, Any], container: dict[str, Any], pod_ip: str, execute: Exec
) -> ProbeAnswer:
    """Make one probe, and return its answer."""
    seconds = float(probe.get("timeoutSeconds", 1))
    try:
        async with asyncio.timeout(seconds):
            if action := probe.get("httpGet"):
                return await _http(action, container, pod_ip)
            if action := probe.get("tcpSocket"):
                return await _tcp(action, container, pod_ip)
            if action := probe.get("exec"):
                code, output = await execute(action["command"], seconds + 1)
                return ProbeAnswer(code == 0, "" if code == 0 else f"exit code {code}: {output}")
    except TimeoutError:
        return ProbeAnswer(False, f"no answer within {seconds:g}s")
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        return ProbeAnswer(False, "the probe was cancelled from inside")
    except Exception as error:  # whatever it was: a probe that is not made again never acts
        return ProbeAnswer(False, str(error) or repr(error))
    return ProbeAnswer(False, "this node makes only httpGet, tcpSocket and exec probes")


async def follow_probe(
    probe: dict[str, Any],
    ask: Callable[[], Awaitable[ProbeAnswer]],
    on_answer: Callable[[ProbeStreak, ProbeAnswer], bool],
) -> None:
    """Probe periodically, and pass each answer to `on_answer`, until that returns True."""
    streak = ProbeStreak()
    await asyncio.sleep(probe.get("initialDelaySeconds", 0))
    while True:
        outcome = await ask()
        streak = judge(probe, streak, outcome.ok)
        if on_answer(streak, outcome):
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


async def _http(action: dict[str, Any], container: dict[str, Any], pod_ip: str) -> ProbeAnswer:
    scheme = action.get("scheme", "HTTP").lower()
    host = action.get("host") or pod_ip
    path = action.get("path") or "/"
    url = f"{scheme}://{host}:{port_number(action['port'], container)}/{path.lstrip('/')}"
    headers = {entry["name"]: entry["value"] for entry in action.get("httpHeaders") or []}
    headers.setdefault("User-Agent", "kube-probe/1.36")
    # Like the kubelet: the certificate is not verified, and a redirect is an answer.
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.get(url, headers=headers, ssl=False, allow_redirects=False) as answer,
    ):
        if 200 <= answer.status < 400:
            return ProbeAnswer(True)
        text = (await answer.content.read(200)).decode(errors="replace").strip()
        return ProbeAnswer(False, f"HTTP {answer.status}: {text}")


async def _tcp(action: dict[str, Any], container: dict[str, Any], pod_ip: str) -> ProbeAnswer:
    port = port_number(action["port"], container)
    _, writer = await asyncio.open_connection(action.get("host") or pod_ip, port)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return ProbeAnswer(True)
