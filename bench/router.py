"""`python -m bench.router`: the router's HAProxy under load, and with thousands of routes.

In turns, `wrk` sends requests to four HAProxies in front of the same backend: with a configuration
of the router without and with access logs (through the ring to a real rsyslog), and with one
written by hand for the same routes, without and with access logs to the same rsyslog. CPU is
HAProxy's own, by the kernel. Then the router gets thousands of Ingress objects: time to decide,
render, check and reload.
"""

import argparse
import asyncio
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from tests.haproxy_process import request
from tests.http_backend import free_ports

from bench.goals import at_least, at_most
from bench.node import cpu_seconds
from bench.report import report
from bench.results import Column, Measurement, Row
from quarterdeck.api.meta import Key, Object
from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.check import run_check
from quarterdeck.haproxy.model import Config
from quarterdeck.haproxy.render import render
from quarterdeck.haproxy.sidecar import rsyslog_conf
from quarterdeck.router.certificates import self_signed
from quarterdeck.router.generations import Generations
from quarterdeck.router.observed import Observed
from quarterdeck.router.planning import config_of, plan
from quarterdeck.router.proxy import Proxy
from quarterdeck.router.routing import routes
from quarterdeck.router.settings import Settings
from quarterdeck.testing.waiting import eventually_async

PLAIN, LOGGING = "router, no access logs", "router, access logs"
BY_HAND, BY_HAND_LOGGING = "by hand, no access logs", "by hand, access logs"
HOSTS = 20


class Figures(msgspec.Struct, frozen=True):
    """What one HAProxy did in one round."""

    rate: float
    cpu: float
    """Microseconds for each request."""


def main() -> None:
    """Measure, show and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.router", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--ingresses", type=int, default=2000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-router-") as name:
        found = [_traffic(Path(name), args)]
    with tempfile.TemporaryDirectory(prefix="bench-router-") as name:
        found.append(asyncio.run(_many(Path(name), args.ingresses)))
    report("router", found)


def _traffic(directory: Path, args: argparse.Namespace) -> Measurement:
    backend = free_ports(1)[0]
    rounds: dict[str, list[Figures]] = {}
    with ExitStack() as stack:
        stack.enter_context(_rsyslog(directory))
        stack.enter_context(_haproxy(directory / "backend", _backend_config(backend)))
        ports = dict(zip((PLAIN, LOGGING, BY_HAND, BY_HAND_LOGGING), free_ports(4), strict=True))
        pids = {}
        for number, (subject, port) in enumerate(ports.items()):
            place = directory / str(number)
            log = (
                AccessLog(address=f"{directory}/rsyslog.sock", socket="stream", level="info")
                if subject in (LOGGING, BY_HAND_LOGGING)
                else None
            )
            if subject in (PLAIN, LOGGING):
                files = render(_our_config(place, port, backend, log), 1)
            else:
                files = {"haproxy.cfg": _hand_written(port, backend, log)}
            pids[subject] = stack.enter_context(_haproxy(place, files))
        for _ in range(args.rounds):
            for subject, port in ports.items():
                found = _load(pids[subject], port, args.seconds)
                rounds.setdefault(subject, []).append(found)
    rows = [
        Row(subject=subject, figures={"rate": _rate(found), "cpu": _cpu(found)})
        for subject, found in rounds.items()
    ]
    return Measurement(
        name="traffic",
        title=f"{HOSTS} hosts, {args.seconds} s each, median of {args.rounds} alternating rounds",
        columns=[
            Column(figure="rate", title="requests/s"),
            Column(figure="cpu", title="CPU a request", format=".1f", unit=" µs"),
        ],
        rows=rows,
        verdicts=[
            at_most(
                "CPU with access logs, against without",
                1.25,
                _cpu(rounds[LOGGING]) / _cpu(rounds[PLAIN]),
            ),
            at_least(
                "requests/s, against by hand", 0.9, _rate(rounds[PLAIN]) / _rate(rounds[BY_HAND])
            ),
            at_most("CPU, against by hand", 1.05, _cpu(rounds[PLAIN]) / _cpu(rounds[BY_HAND])),
        ],
    )


def _rate(found: list[Figures]) -> float:
    return statistics.median(one.rate for one in found)


def _cpu(found: list[Figures]) -> float:
    return statistics.median(one.cpu for one in found)


def _load(pid: int, port: int, seconds: int) -> Figures:
    before = cpu_seconds(pid)
    command = ["wrk", "-t1", "-c16", f"-d{seconds}", "-H", "Host: host-7.example"]
    url = f"http://127.0.0.1:{port}/shop/x"
    said = subprocess.run([*command, url], check=True, capture_output=True, text=True).stdout
    found = re.search(r"(\d+) requests in ([\d.]+)s", said)
    if found is None or "Non-2xx" in said:
        raise SystemExit(f"wrk: {said}")
    count = int(found[1])
    return Figures(count / float(found[2]), (cpu_seconds(pid) - before) / count * 1e6)


@contextmanager
def _haproxy(place: Path, files: dict[str, str]) -> Iterator[int]:
    place.mkdir(exist_ok=True)
    path = Generations(place).write(1, files)
    process = subprocess.Popen(["haproxy", "-db", "-f", str(path)], stderr=subprocess.DEVNULL)
    time.sleep(1)
    if process.poll() is not None:
        raise SystemExit(f"HAProxy does not start: haproxy -c -f {path}")
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _rsyslog(directory: Path) -> Iterator[None]:
    path = directory / "rsyslog.conf"
    path.write_text(rsyslog_conf(directory=str(directory)))
    command = ["rsyslogd", "-n", "-iNONE", "-f", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not (directory / "stream.sock").exists():
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


_DEFAULTS = """\
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
"""


def _backend_config(port: int) -> dict[str, str]:
    answer = 'http-request return status 200 content-type text/plain string "hello"'
    text = f"{_DEFAULTS}frontend f\n    bind 127.0.0.1:{port}\n    {answer}\n"
    return {"haproxy.cfg": text}


def _hand_written(port: int, backend: int, log: AccessLog | None) -> str:
    """What an administrator would write for the same routes."""
    lines = []
    if log is not None:
        lines += ["global", "    log ring@access len 1024 local1 info", "ring access"]
        lines += ["    format rfc3164", "    maxlen 1536", "    size 16777216"]
        lines += ["    timeout connect 5s", "    timeout server 10s"]
        lines += [f"    server rsyslog {log.stream_address} log-proto octet-count"]
    lines.append(_DEFAULTS.rstrip())
    lines += ["    option forwardfor"]
    if log is not None:
        lines += ["    log global", "    option httplog"]
    lines += ["frontend public", f"    bind 127.0.0.1:{port}"]
    for number in range(HOSTS):
        lines.append(
            f"    use_backend b{number} if {{ hdr(host) -i host-{number}.example }} "
            "{ path_beg /shop/ }"
        )
    for number in range(HOSTS):
        lines += [f"backend b{number}", f"    server s0 127.0.0.1:{backend}"]
    return "\n".join(lines) + "\n"


def _our_config(place: Path, port: int, backend: int, log: AccessLog | None) -> Config:
    base = _base(place, port, log)
    found = routes(_observed(HOSTS, "127.0.0.1", backend), Settings(loopback_backends=True))
    return config_of(found, base, None)


def _base(place: Path, port: int, log: AccessLog | None = None) -> Config:
    return Config(
        http_bind=f"127.0.0.1:{port}",
        https_bind=f"127.0.0.1:{free_ports(1)[0]}",
        sockets=str(place),
        access_log=log,
        default_certificate=self_signed("bench", datetime.now(UTC)),
    )


def _observed(count: int, address: str, port: int) -> Observed:
    service = {"spec": {"ports": [{"name": "http", "port": 80}]}}
    ready = {
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": port}],
        "endpoints": [{"addresses": [address]}],
    }
    return Observed(
        ingresses=[_ingress(number) for number in range(count)],
        services={Key("shop", f"web-{number}"): service for number in range(count)},
        slices={Key("shop", f"web-{number}"): [ready] for number in range(count)},
    )


def _ingress(number: int) -> Object:
    backend = {"service": {"name": f"web-{number}", "port": {"number": 80}}}
    paths = [{"path": "/shop", "pathType": "Prefix", "backend": backend}]
    return {
        "metadata": {
            "name": f"shop-{number}",
            "namespace": "shop",
            "uid": str(number),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"rules": [{"host": f"host-{number}.example", "http": {"paths": paths}}]},
    }


async def _many(place: Path, count: int) -> Measurement:
    """Decide, load and change this many routes."""
    figures: dict[str, float] = {}
    seen = _observed(count, "192.0.2.1", 8080)
    began = time.monotonic()
    found = routes(seen, Settings())
    figures["decide"] = time.monotonic() - began
    base = _base(place, free_ports(1)[0])
    config = config_of(found, base, None)
    began = time.monotonic()
    render(config, 1)
    figures["render"] = time.monotonic() - began
    checked = Generations(place / "checked").write(1, render(config, 1))
    began = time.monotonic()
    if found_faults := await run_check(str(checked)):
        raise SystemExit(f"HAProxy refuses the configuration: {found_faults}")
    figures["check"] = time.monotonic() - began
    proxy = Proxy(place)
    task = asyncio.create_task(proxy.run())
    try:
        await proxy.load(config)
        await eventually_async(lambda: not proxy.trouble, "HAProxy serves")
        one_more = _observed(count + 1, "192.0.2.1", 8080)
        began = time.monotonic()
        planned = plan(config, routes(one_more, Settings()))
        if planned.reload is None:
            raise SystemExit("a new Ingress did not need a reload")
        loaded = time.monotonic()
        await proxy.load(planned.reload)
        figures["route"] = time.monotonic() - began
        figures["reload"] = time.monotonic() - loaded
        began = time.monotonic()
        moved = plan(planned.reload, routes(_moved(one_more), Settings()))
        await proxy.change(moved.commands, moved.adapted)
        figures["endpoint"] = time.monotonic() - began
        text = request(Path(proxy.admin_socket), "show info\n").decode()
        pid = next(int(it.split()[1]) for it in text.splitlines() if it.startswith("Pid:"))
        status = Path(f"/proc/{pid}/status").read_text()  # noqa: ASYNC240
        kilobytes = re.search(r"VmRSS:\s+(\d+)", status)
        figures["memory"] = int(kilobytes[1]) / 1024 if kilobytes else 0.0
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return Measurement(
        name="many",
        title=f"{count:,} Ingress objects",
        columns=[
            Column(figure="decide", title="decide", format=".2f", unit=" s"),
            Column(figure="render", title="render", format=".2f", unit=" s"),
            Column(figure="check", title="check", format=".2f", unit=" s"),
            Column(figure="reload", title="render, check, reload", format=".2f", unit=" s"),
            Column(figure="route", title="one more, to its effect", format=".2f", unit=" s"),
            Column(figure="endpoint", title="an endpoint, to its effect", format=".3f", unit=" s"),
            Column(figure="memory", title="HAProxy's memory", unit=" MB"),
        ],
        rows=[Row(subject="router", figures=figures)],
    )


def _moved(seen: Observed) -> Observed:
    """With another endpoint of one Service."""
    key = Key("shop", "web-3")
    (old,) = seen.slices[key]
    new = {**old, "endpoints": [{"addresses": ["192.0.2.99"]}]}
    return msgspec.structs.replace(seen, slices={**seen.slices, key: [new]})


if __name__ == "__main__":
    main()
