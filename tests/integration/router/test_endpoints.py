"""Endpoints that come and go through the API, and an API server that is away, under load.

The router and its backends have a network namespace of their own, because the API refuses loopback
addresses in EndpointSlices. Relays connect it with the API server and with the test.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.haproxy_process import request
from tests.network_namespace import NETWORK, NetworkNamespace, end, network_namespace
from tests.router_process import LOOPBACK, RouterProcess, Shop, external, ingress, servers

from quarterdeck.api.meta import Object
from quarterdeck.testing.waiting import eventually, until

PORT = 8080
READY = "2"
"""The operational state of a server that gets requests."""


class Remote:
    """A router, its backends and a load in a namespace."""

    def __init__(self, inside: NetworkNamespace, account: Path, shop: Shop, place: Path) -> None:
        self._inside, self._shop, self._place = inside, shop, place
        self._api_socket = place / "api.sock"
        self._api_port = int(
            yaml.safe_load(account.read_text())["clusters"][0]["cluster"]["server"].rpartition(":")[
                2
            ]
        )
        inside.relay(f"unix:{self._api_socket}", f"tcp:{self._api_port}", inside=False)
        self._api = self.connect_api()
        only = f"kubernetes.io/metadata.name={shop.namespace}"
        self.router = RouterProcess(account, place, before=inside.command(), NAMESPACE_LABELS=only)
        http = place / "http.sock"
        inside.relay(f"unix:{http}", f"tcp:{self.router.http}")
        # The test sends to the same port as inside.
        inside.relay(f"tcp:{self.router.http}", f"unix:{http}", inside=False)
        self._backends: dict[int, subprocess.Popen[bytes]] = {}
        self.host = f"{shop.namespace}.example"

    def connect_api(self) -> subprocess.Popen[bytes]:
        """Let the router reach the API server."""
        self._api = self._inside.relay(f"tcp:{self._api_port}", f"unix:{self._api_socket}")
        return self._api

    def cut_off_api(self) -> None:
        """Let the router reach no API server: its connections end, new ones are refused."""
        end(self._api)

    def route(self, *numbers: int) -> None:
        """Start these backends and route to them."""
        self._start(numbers)
        self._shop.apply(
            service(), slice_of(numbers), ingress("web", self.host, ("/", "Prefix", "web"))
        )
        eventually(lambda: self.router.get(self.host)[0] == 200, f"an answer: {self.router.log}")

    def endpoints(self, *numbers: int) -> None:
        """Let exactly these be the Service's endpoints; stop the others when nobody uses them."""
        self._start(numbers)
        self._shop.apply(slice_of(numbers))
        wanted = {f"{NETWORK}{number}" for number in numbers}
        until(self._ready, lambda seen: seen == wanted, f"{wanted}: {self.router.log}")
        for number in self._backends.keys() - set(numbers):
            address = f"{NETWORK}{number}"
            until(lambda: self._busy(address), lambda seen: not seen, "idle")  # noqa: B023
            end(self._backends.pop(number))

    def load(self) -> subprocess.Popen[bytes]:
        """Requests as fast as they go, until `answers`."""
        url = f"http://{LOOPBACK}:{self.router.http}/"
        words = ("wrk", "-t1", "-c8", "-d300", "-H", f"Host: {self.host}", url)
        return self._inside.start(*words, says_ready=False)

    def generation(self) -> Path:
        """The admin socket of the newest worker: a reload starts one with a socket of its own."""
        return max(self._place.glob("admin-*.sock"), key=lambda it: it.stat().st_mtime)

    def stop(self) -> None:
        """Stop the router."""
        self.router.stop()

    def _start(self, numbers: tuple[int, ...]) -> None:
        for number in set(numbers) - self._backends.keys():
            self._backends[number] = self._inside.start(
                *(sys.executable, "-m", "tests.http_backend"),
                *(f"b{number}", f"{NETWORK}{number}", str(PORT)),
            )

    def _ready(self) -> set[str]:
        return {address for address, state in servers(self._place).items() if state == READY}

    def _busy(self, address: str) -> bool:
        """Whether a request is at this address."""
        said = request(self.generation(), "show stat\n").decode()
        rows = [line.split(",") for line in said.splitlines()]
        columns = rows[0]
        scur, addr = columns.index("scur"), columns.index("addr")
        return any(row[scur] != "0" for row in rows[1:] if len(row) > addr and address in row[addr])


def answers(load: subprocess.Popen[bytes]) -> int:
    """Stop the load; how many requests it sent, of which none has failed."""
    said = end(load, signal.SIGINT)
    assert "Non-2xx" not in said, said
    assert "Socket errors" not in said, said
    return next(int(line.split()[0]) for line in said.splitlines() if "requests in" in line)


def service() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    }


def slice_of(numbers: tuple[int, ...]) -> Object:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "web", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": PORT}],
        "endpoints": [{"addresses": [f"{NETWORK}{number}"]} for number in numbers],
    }


@pytest.fixture
def remote(account: Path, shop: Shop, tmp_path: Path) -> Iterator[Remote]:
    with network_namespace() as inside:
        made = Remote(inside, account, shop, tmp_path)
        try:
            yield made
        finally:
            made.stop()


def test_endpoints_come_and_go_without_a_failed_request_and_without_a_reload(
    remote: Remote,
) -> None:
    remote.route(1)
    before = remote.generation()
    load = remote.load()
    for numbers in ((1, 2), (2,), (2, 3, 4), (4,), (1,), (2,), (1, 2, 3, 4), (1, 3), (3,)):
        remote.endpoints(*numbers)
    assert answers(load) > 100
    assert remote.router.get(remote.host) == (200, "b3 /\n")
    assert remote.generation() == before


@pytest.mark.parametrize(
    "seconds", [pytest.param(3), pytest.param(60, marks=pytest.mark.soak)], ids=["3 s", "a minute"]
)
def test_traffic_goes_on_while_the_api_server_is_away(remote: Remote, seconds: float) -> None:
    remote.route(1)
    load = remote.load()
    remote.cut_off_api()
    time.sleep(seconds)
    assert load.poll() is None
    assert answers(load) > 100
    # A router that starts meanwhile serves what the one before did.
    remote.router.process.kill()
    remote.router.process.wait()
    assert remote.router.get(remote.host) == (200, "b1 /\n")
    remote.router.start()
    starts = remote.router.log.read_text().count("haproxy runs")
    until(lambda: remote.router.log.read_text().count("haproxy runs"), lambda n: n > starts, "it")
    assert remote.router.get(remote.host) == (200, "b1 /\n")
    remote.connect_api()
    remote.endpoints(2)
    assert remote.router.get(remote.host) == (200, "b2 /\n")


def test_a_name_that_leads_elsewhere_later_is_cut_off(
    account: Path, shop: Shop, tmp_path: Path
) -> None:
    """The router reads the test's own table of hosts; nothing is sent to the first address."""
    hosts, name, host = tmp_path / "hosts", "moving.example", f"{shop.namespace}.example"
    hosts.write_text(f"{NETWORK}77 {name}\n")
    router = RouterProcess(
        account,
        tmp_path,
        # A PID namespace ends with bubblewrap, and all that the router started with it.
        before=(
            *("bwrap", "--dev-bind", "/", "/", "--ro-bind", str(hosts), "/etc/hosts"),
            *("--unshare-pid", "--proc", "/proc", "--die-with-parent"),
        ),
        flags=["--allow-external-names"],
        NAMESPACE_LABELS=f"kubernetes.io/metadata.name={shop.namespace}",
    )
    try:
        shop.apply(external("moving", 2379, name), ingress("web", host, ("/", "Prefix", "moving")))
        until(
            lambda: servers(tmp_path).get(f"{NETWORK}77"), lambda it: it == READY, str(router.log)
        )
        hosts.write_text(f"{LOOPBACK} {name}\n")  # in place: the same file
        (said,) = eventually(lambda: shop.events("web"), "an event on the Ingress")
        assert f"{name} is {LOOPBACK}, a loopback address, which is refused" in said
        until(lambda: servers(tmp_path), lambda seen: READY not in seen.values(), "cut off")
        assert LOOPBACK not in servers(tmp_path)
        assert router.get(host)[0] == 503
    finally:
        router.stop()
