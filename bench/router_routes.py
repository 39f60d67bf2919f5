"""The router with thousands of Ingress objects, each with a certificate of its own.

Time to decide, render, check and reload; one more Ingress, another endpoint and another
certificate, each to its effect; memory of HAProxy.
"""

import asyncio
import base64
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from tests.haproxy_process import request
from tests.http_backend import free_ports

from bench.results import Column, Measurement, Row
from quarterdeck.api.meta import Key, Object
from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.check import run_check
from quarterdeck.haproxy.model import Config
from quarterdeck.haproxy.render import render
from quarterdeck.router.certificates import self_signed
from quarterdeck.router.generations import Generations
from quarterdeck.router.observed import ObservedRoutes
from quarterdeck.router.planning import config_of, plan
from quarterdeck.router.proxy import HAProxy
from quarterdeck.router.routing import routes
from quarterdeck.router.settings import Settings
from quarterdeck.testing.waiting import eventually_async


def base_config(place: Path, port: int, log: AccessLog | None = None) -> Config:
    """A configuration without routes, on loopback."""
    return Config(
        http_bind=f"127.0.0.1:{port}",
        https_bind=f"127.0.0.1:{free_ports(1)[0]}",
        sockets=str(place),
        access_log=log,
        default_certificate=self_signed("bench", datetime.now(UTC)),
    )


def observed(count: int, address: str, port: int, *, tls: bool = False) -> ObservedRoutes:
    """So many Ingress objects, each with a Service and one endpoint."""
    service = {"spec": {"ports": [{"name": "http", "port": 80}]}}
    ready = {
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": port}],
        "endpoints": [{"addresses": [address]}],
    }
    return ObservedRoutes(
        ingresses=[_ingress(number, tls=tls) for number in range(count)],
        services={Key("shop", f"web-{number}"): service for number in range(count)},
        slices={Key("shop", f"web-{number}"): [ready] for number in range(count)},
        secrets=(
            {Key("shop", f"cert-{number}"): _secret(number) for number in range(count)}
            if tls
            else {}
        ),
    )


def _ingress(number: int, *, tls: bool) -> Object:
    backend = {"service": {"name": f"web-{number}", "port": {"number": 80}}}
    paths = [{"path": "/shop", "pathType": "Prefix", "backend": backend}]
    host = f"host-{number}.example"
    return {
        "metadata": {
            "name": f"shop-{number}",
            "namespace": "shop",
            "uid": str(number),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "rules": [{"host": host, "http": {"paths": paths}}],
            **({"tls": [{"hosts": [host], "secretName": f"cert-{number}"}]} if tls else {}),
        },
    }


def _secret(number: int) -> Object:
    """The Secret of a certificate and its key."""
    pem = self_signed(f"host-{number}.example", datetime.now(UTC))
    chain, mark, key = pem.partition("-----BEGIN PRIVATE KEY-----")
    data = {"tls.crt": chain, "tls.key": mark + key}
    return {"data": {name: base64.b64encode(it.encode()).decode() for name, it in data.items()}}


async def many(place: Path, count: int, *, tls: bool) -> Row:
    """Decide, load and change this many routes."""
    figures: dict[str, float] = {}
    one_more = observed(count + 1, "192.0.2.1", 8080, tls=tls)
    seen = msgspec.structs.replace(one_more, ingresses=one_more.ingresses[:-1])
    began = time.monotonic()
    found = routes(seen, Settings())
    figures["decide"] = time.monotonic() - began
    config = config_of(found, base_config(place, free_ports(1)[0]), None)
    began = time.monotonic()
    files = render(config, 1)
    figures["render"] = time.monotonic() - began
    checked = Generations(place / "checked").write(1, files)
    began = time.monotonic()
    if found_faults := await run_check(str(checked)):
        raise SystemExit(f"HAProxy refuses the configuration: {found_faults}")
    figures["check"] = time.monotonic() - began
    proxy = HAProxy(place)
    task = asyncio.create_task(proxy.run())
    try:
        await proxy.load(config)
        await eventually_async(lambda: not proxy.trouble, "HAProxy serves")
        await _changes(proxy, one_more, figures, tls=tls)
        figures["memory"] = _megabytes(proxy)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return Row(subject="with TLS" if tls else "without TLS", figures=figures)


async def _changes(
    proxy: HAProxy, one_more: ObservedRoutes, figures: dict[str, float], *, tls: bool
) -> None:
    """One more Ingress, another endpoint, another certificate, each until HAProxy has it."""
    assert proxy.config is not None
    began = time.monotonic()
    planned = plan(proxy.config, routes(one_more, Settings()))
    if planned.reload is None:
        raise SystemExit("a new Ingress did not need a reload")
    loaded = time.monotonic()
    await proxy.load(planned.reload)
    figures["route"] = time.monotonic() - began
    figures["reload"] = time.monotonic() - loaded
    key = Key("shop", "web-3")
    (old,) = one_more.slices[key]
    new = {**old, "endpoints": [{"addresses": ["192.0.2.99"]}]}
    moved = msgspec.structs.replace(one_more, slices={**one_more.slices, key: [new]})
    figures["endpoint"] = await _changed(proxy, moved)
    if tls:
        secrets = {**one_more.secrets, Key("shop", "cert-3"): _secret(3)}
        renewed = msgspec.structs.replace(moved, secrets=secrets)
        figures["certificate"] = await _changed(proxy, renewed)


async def _changed(proxy: HAProxy, seen: ObservedRoutes) -> float:
    """Seconds from what was seen to its effect, by commands."""
    assert proxy.config is not None
    began = time.monotonic()
    planned = plan(proxy.config, routes(seen, Settings()))
    if planned.reload is not None or not planned.commands:
        raise SystemExit("the change is not one for commands")
    await proxy.change(planned.commands, planned.adapted)
    return time.monotonic() - began


def _megabytes(proxy: HAProxy) -> float:
    """The memory of the newest worker."""
    text = request(Path(proxy.admin_socket), "show info\n").decode()
    pid = next(int(it.split()[1]) for it in text.splitlines() if it.startswith("Pid:"))
    kilobytes = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes[1]) / 1024 if kilobytes else 0.0


def measurement(count: int, rows: list[Row]) -> Measurement:
    """The table of all figures."""
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
            Column(
                figure="certificate", title="a certificate, to its effect", format=".3f", unit=" s"
            ),
            Column(figure="memory", title="HAProxy's memory", unit=" MB"),
        ],
        rows=rows,
    )
