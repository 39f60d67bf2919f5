"""`python -m bench.router`: the router's HAProxy under load, and with thousands of routes.

In turns, `wrk` sends requests to four HAProxies in front of the same backend: with a configuration
of the router without and with access logs (through the ring to a real rsyslog), and with one
written by hand for the same routes, without and with access logs to the same rsyslog. CPU is
HAProxy's own, by the kernel. Each ratio is the median of those of the rounds, since what else the
machine does changes from round to round, and less within one. Then the router gets thousands of
Ingress objects (`bench.router_routes`).
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
from pathlib import Path

import msgspec
from tests.http_backend import free_ports

from bench.goals import at_least, at_most
from bench.node import cpu_seconds
from bench.report import report
from bench.results import Column, Measurement, Row
from bench.router_routes import base_config, many, measurement, observed
from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.model import Config
from quarterdeck.haproxy.render import render
from quarterdeck.haproxy.sidecar import rsyslog_conf
from quarterdeck.router.generations import Generations
from quarterdeck.router.planning import config_of
from quarterdeck.router.routing import routes
from quarterdeck.router.settings import Settings

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
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--ingresses", type=int, default=2000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-router-") as name:
        found = [_traffic(Path(name), args)]
    rows = []
    for tls in (False, True) if args.ingresses else ():
        with tempfile.TemporaryDirectory(prefix="bench-router-") as name:
            rows.append(asyncio.run(many(Path(name), args.ingresses, tls=tls)))
    report("router", [*found, measurement(args.ingresses, rows)] if rows else found)


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
        for subject, port in ports.items():
            _load(pids[subject], port, 1)  # fills its pools
        for number in range(args.rounds):
            order = list(ports) if number % 2 else list(reversed(ports))
            for subject in order:
                found = _load(pids[subject], ports[subject], args.seconds)
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
                _ratio(rounds, LOGGING, PLAIN, "cpu"),
            ),
            at_least("requests/s, against by hand", 0.9, _ratio(rounds, PLAIN, BY_HAND, "rate")),
            at_most("CPU, against by hand", 1.05, _ratio(rounds, PLAIN, BY_HAND, "cpu")),
            at_least(
                "requests/s with access logs, against by hand",
                0.9,
                _ratio(rounds, LOGGING, BY_HAND_LOGGING, "rate"),
            ),
            at_most(
                "CPU with access logs, against by hand",
                1.05,
                _ratio(rounds, LOGGING, BY_HAND_LOGGING, "cpu"),
            ),
        ],
    )


def _ratio(rounds: dict[str, list[Figures]], one: str, other: str, figure: str) -> float:
    """The median of the ratios in each round."""
    pairs = zip(rounds[one], rounds[other], strict=True)
    found: list[float] = [getattr(a, figure) / getattr(b, figure) for a, b in pairs]
    return statistics.median(found)


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
    base = base_config(place, port, log)
    found = routes(observed(HOSTS, "127.0.0.1", backend), Settings(loopback_backends=True))
    return config_of(found, base, None)


if __name__ == "__main__":
    main()
