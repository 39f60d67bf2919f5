"""`quarterdeck router` as a process under the routers' own account, on a real API server."""

import contextlib
import json
import os
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.router_process import LOOPBACK, RouterProcess, Shop, external, ingress
from tests.rsyslog_process import running_sidecar

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.localcluster.operators import apply
from quarterdeck.router.certificates import self_signed
from quarterdeck.testing.namespaces import create_namespace, delete_namespace, name_for
from quarterdeck.testing.waiting import eventually, until


@pytest.fixture(scope="module")
def router(account: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterProcess]:
    running = RouterProcess(account, tmp_path_factory.mktemp("router"))
    try:
        eventually(running.ready, f"the router is ready: {running.log}")
        yield running
    finally:
        running.stop()


def test_hosts_and_paths_are_routed(router: RouterProcess, shop: Shop) -> None:
    host = f"{shop.namespace}.example"
    shop.apply(
        ingress(
            "web",
            host,
            ("/", "Prefix", "one"),
            ("/two", "Prefix", "two"),
            ("/two/one", "Exact", "one"),
            ("/any", "ImplementationSpecific", "two"),
        ),
        ingress("wild", f"*.{host}", ("/", "Prefix", "two")),
    )
    router.until(host, "/", (200, "one /\n"))
    router.until(host, "/two", (200, "two /two\n"))
    router.until(f"sub.{host}", "/", (200, "two /\n"))
    for path, name in {
        "/two": "two",
        "/two/": "two",
        "/two/x?y=z": "two",
        "/twofold": "one",
        "/two/one": "one",
        "/two/one/": "two",
        "/any/x": "two",
    }.items():
        assert router.get(host, path) == (200, f"{name} {path}\n")
    assert router.get(f"sub.{host}", "/x") == (200, "two /x\n")
    assert router.get(f"{host}:{router.http}", "/x") == (200, "one /x\n")
    assert router.get(host.upper(), "/x") == (200, "one /x\n")
    assert router.get(f"a.sub.{host}")[0] == 503
    assert router.get("nobody.example")[0] == 503
    shop.kubectl("delete", "ingress", "web")
    router.until(host, "/", (503, ""))


def test_a_bad_object_has_an_event_and_the_others_work(router: RouterProcess, shop: Shop) -> None:
    host = f"{shop.namespace}.example"
    shop.apply(
        external("etcd", 2379, "169.254.169.254.nip.example"),
        ingress("good", host, ("/", "Prefix", "one")),
        ingress("gone", f"gone.{host}", ("/", "Prefix", "missing")),
        ingress(
            "hostile", f"hostile.{host}", ("/x y#'\"\\{${HOME}", "ImplementationSpecific", "one")
        ),
    )
    router.until(host, "/", (200, "one /\n"))
    eventually(lambda: shop.events("hostile"), "an event on the hostile Ingress")
    eventually(lambda: shop.events("gone"), "an event on the Ingress without a Service")
    assert "spec.rules[0].http.paths[0].path" in shop.events("hostile")[0]
    assert router.get(f"gone.{host}")[0] == 503


def test_the_oldest_ingress_keeps_its_host(
    router: RouterProcess, shop: Shop, control_plane: ControlPlane, ports: dict[str, int]
) -> None:
    host = f"{shop.namespace}.example"
    shop.apply(ingress("old", host, ("/", "Prefix", "one")))
    router.until(host, "/", (200, "one /\n"))
    # Times in objects are whole seconds: of two equally old ones, the first by name counts.
    name = name_for("zz-intruder")
    create_namespace(control_plane.requests(), name)
    try:
        other = Shop(control_plane, name, ports)
        other.apply(ingress("new", host, ("/login", "Prefix", "two")))
        eventually(lambda: other.events("new"), "an event on the newer Ingress")
        assert router.get(host, "/login") == (200, "one /login\n")
    finally:
        delete_namespace(control_plane, name)


@pytest.fixture
def own_router(account: Path, shop: Shop, tmp_path: Path) -> Iterator[RouterProcess]:
    """A router for this test's namespace only: others, which are being deleted, reload it not."""
    only = f"kubernetes.io/metadata.name={shop.namespace}"
    running = RouterProcess(account, tmp_path, NAMESPACE_LABELS=only)
    yield running
    running.stop()


def test_class_labels_and_default_backend_decide_who_gets_a_request(
    account: Path, shop: Shop, tmp_path: Path
) -> None:
    host = f"{shop.namespace}.example"
    only = f"kubernetes.io/metadata.name={shop.namespace}"
    router = RouterProcess(account, tmp_path, NAMESPACE_LABELS=only, ROUTE_LABELS="shown=yes")
    default = {"service": {"name": "two", "port": {"name": "http"}}}
    chosen = [
        ingress("web", host, ("/one", "Prefix", "one"), defaultBackend=default),
        ingress("all", "unused.example", defaultBackend=default),
        ingress("another", f"other.{host}", ("/", "Prefix", "one"), ingressClassName="another"),
    ]
    for one in chosen:
        one["metadata"]["labels"] = {"shown": "yes"}
    try:
        eventually(router.ready, f"the router is ready: {router.log}")
        shop.apply(*chosen, ingress("hidden", f"hidden.{host}", ("/", "Prefix", "one")))
        router.until(host, "/one", (200, "one /one\n"))
        # What no path has goes to the default backend of its Ingress.
        assert router.get(host, "/other") == (200, "two /other\n")
        # What no host has goes to the one of the Ingress without rules: not to another class, nor
        # to an Ingress without the labels.
        for unknown in ("nobody.example", f"other.{host}", f"hidden.{host}"):
            router.until(unknown, "/x", (200, "two /x\n"))
        shop.kubectl("label", "ingress", "hidden", "shown=yes")
        router.until(f"hidden.{host}", "/x", (200, "one /x\n"))
    finally:
        router.stop()


def test_certificates_are_chosen_by_server_name_and_change_without_a_reload(
    own_router: RouterProcess, shop: Shop
) -> None:
    router, host = own_router, f"{shop.namespace}.example"
    eventually(router.ready, f"the router is ready: {router.log}")
    first = certificate_secret("shop", host)
    tls = [{"hosts": [host], "secretName": "shop"}]
    shop.apply(first, ingress("web", host, ("/", "Prefix", "one"), tls=tls))
    until(
        lambda: served(router.https, host), lambda it: it in first["stringData"]["tls.crt"], "TLS"
    )
    assert served(router.https, "other.example") not in first["stringData"]["tls.crt"]
    assert router.get(host, "/x", tls=True) == (200, "one /x\n")
    # A reload for the Ingress itself may still be on its way at the first one.
    assert any(changes_without_reload(router, shop, host) for _ in range(4))


def changes_without_reload(router: RouterProcess, shop: Shop, host: str) -> bool:
    """Whether a new certificate is served while nothing is reloaded."""
    new = certificate_secret("shop", host)
    reloads = router.metric("quarterdeck_router_reloads_total")
    shop.apply(new)
    until(lambda: served(router.https, host), lambda it: it in new["stringData"]["tls.crt"], "TLS")
    return router.metric("quarterdeck_router_reloads_total") == reloads


def certificate_secret(name: str, host: str) -> Object:
    from datetime import UTC, datetime

    pem = self_signed(host, datetime(2026, 1, 1, tzinfo=UTC))
    certificate, begin, key = pem.partition("-----BEGIN PRIVATE KEY")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name},
        "stringData": {"tls.crt": certificate, "tls.key": begin + key},
    }


def served(port: int, server_name: str) -> str:
    """The PEM of the certificate for a server name."""
    import socket

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((LOOPBACK, port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname=server_name) as wrapped,
    ):
        found = wrapped.getpeercert(binary_form=True)
        assert found
        return ssl.DER_cert_to_PEM_cert(found)


def test_traffic_goes_on_while_the_router_is_killed_and_comes_back(
    account: Path, shop: Shop, tmp_path: Path
) -> None:
    host = f"{shop.namespace}.example"
    shop.apply(ingress("web", host, ("/", "Prefix", "one")))
    router = RouterProcess(account, tmp_path)
    try:
        router.until(host, "/", (200, "one /\n"))
        router.process.kill()
        router.process.wait()
        assert router.get(host) == (200, "one /\n")
        router.start()
        eventually(router.ready, "the next router is ready")
        assert router.get(host) == (200, "one /\n")
        shop.apply(ingress("more", f"more.{host}", ("/", "Prefix", "two")))
        router.until(f"more.{host}", "/", (200, "two /\n"))
    finally:
        router.stop()


class RouterPod:
    """The pod of a router: the variables that say so, and the conditions on it."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self._plane, self._name = plane, name
        self.variables = {"POD_NAME": name, "POD_NAMESPACE": "openshift-ingress"}

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Status and reason of each condition of ours."""
        return {type_: (one["status"], one["reason"]) for type_, one in self.full().items()}

    def full(self) -> dict[str, Object]:
        """The conditions of ours."""
        path = f"/api/v1/namespaces/openshift-ingress/pods/{self._name}"
        pod: Any = json.loads(self._plane.requests().send("GET", path).body)
        found = (pod.get("status") or {}).get("conditions") or ()
        prefix = "quarterdeck.dev/"
        return {
            one["type"].removeprefix(prefix): one for one in found if one["type"].startswith(prefix)
        }

    def until(self, type_: str, wanted: tuple[str, str]) -> None:
        """Wait until a condition has this status and reason."""
        until(self.conditions, lambda seen: seen.get(type_) == wanted, f"{type_} is {wanted}")


@contextlib.contextmanager
def router_pod(plane: ControlPlane, name: str) -> Iterator[RouterPod]:
    """The pod object of a router, which the test runs itself."""
    found = RouterPod(plane, name)
    apply(
        plane,
        [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "openshift-ingress"},
                "spec": {
                    # A pod of a node that does not exist is deleted after a while.
                    "schedulerName": "nobody",
                    "containers": [{"name": "a", "image": "example.test/a"}],
                },
            }
        ],
    )
    try:
        yield found
    finally:
        plane.kubectl("delete", "pod", name, "--namespace=openshift-ingress", "--force")


def test_access_lines_arrive_and_the_pod_says_so(
    account: Path, control_plane: ControlPlane, shop: Shop, tmp_path: Path
) -> None:
    host = f"{shop.namespace}.example"
    shop.apply(ingress("web", host, ("/", "Prefix", "one")))
    with contextlib.ExitStack() as stack:
        pod = stack.enter_context(router_pod(control_plane, f"router-{shop.namespace}"))
        sidecar = stack.enter_context(running_sidecar(tmp_path))
        router = RouterProcess(
            account,
            tmp_path,
            ROUTER_SYSLOG_ADDRESS=str(tmp_path / "rsyslog.sock"),
            ROUTER_LOG_SOCKET="stream",
            ROUTER_LOG_LEVEL="info",
            ROUTER_SYSLOG_FORMAT="%HM  %HU '$HOME'",
            **pod.variables,
        )
        stack.callback(router.stop)
        router.until(host, "/hello", (200, "one /hello\n"))
        wanted = "GET  /hello '$HOME'"
        eventually(lambda: [it for it in sidecar.lines() if it.endswith(wanted)], "the line")
        pod.until("AccessLoggingReady", ("True", "LinesArrive"))
        assert pod.conditions()["ConfigurationAccepted"] == ("True", "Accepted")
        sidecar.process.kill()
        sidecar.process.wait()
        (tmp_path / "stream.sock").unlink()
        pod.until("AccessLoggingReady", ("False", "SocketMissing"))
        lost = [router.get(host, f"/lost-{number}")[0] for number in range(30)]
        assert lost == [200] * 30
        # HAProxy's ring keeps lines while rsyslog is away, but not over a reload.
        shop.apply(ingress("more", f"more.{host}", ("/", "Prefix", "two")))
        router.until(f"more.{host}", "/", (200, "two /\n"))
        sidecar = stack.enter_context(running_sidecar(tmp_path))
        pod.until("AccessLoggingReady", ("True", "LinesArrive"))
        counted = until(
            lambda: router.metric("quarterdeck_router_access_lines_lost_total"), bool, "the metric"
        )
        assert counted >= 30
        said = until(
            lambda: pod.full()["AccessLoggingReady"]["message"],
            lambda text: "lines were lost" in text,
            "the loss in the condition",
        )
        assert f"; {int(counted)} lines were lost" in said
        assert router.get(host, "/again")[0] == 200
        wanted = "GET  /again '$HOME'"
        eventually(lambda: [it for it in sidecar.lines() if it.endswith(wanted)], "the line")
        assert not any("GET" in line for line in router.log.read_text().splitlines())


FUSSY_HAPROXY = """\
#!/bin/sh
# HAProxy as one of another version: it refuses what this one takes.
case " $* " in *" -c "*)
  for file; do :; done
  if line=$(grep -n "^backend {refused}" "$file"); then
    echo "[ALERT]    (1) : config : parsing [$file:${{line%%:*}}] : too fussy for it." >&2
    exit 1
  fi
esac
exec {haproxy} "$@"
"""


def test_what_haproxy_refuses_is_left_out_and_the_others_are_served(
    account: Path, control_plane: ControlPlane, shop: Shop, tmp_path: Path
) -> None:
    host = f"{shop.namespace}.example"
    shop.apply(ingress("good", host, ("/", "Prefix", "one")))
    fussy = tmp_path / "bin" / "haproxy"
    fussy.parent.mkdir()
    real = shutil.which("haproxy")
    refused = f"{shop.namespace}:two:http"
    fussy.write_text(FUSSY_HAPROXY.format(refused=refused, haproxy=real))
    fussy.chmod(0o755)
    with contextlib.ExitStack() as stack:
        pod = stack.enter_context(router_pod(control_plane, f"router-{shop.namespace}"))
        router = RouterProcess(
            account,
            tmp_path,
            NAMESPACE_LABELS=f"kubernetes.io/metadata.name={shop.namespace}",
            PATH=f"{fussy.parent}:{os.environ['PATH']}",
            **pod.variables,
        )
        stack.callback(router.stop)
        router.until(host, "/", (200, "one /\n"))
        pod.until("ConfigurationAccepted", ("True", "Accepted"))
        shop.apply(ingress("bad", f"bad.{host}", ("/", "Prefix", "two")))
        shop.apply(ingress("later", f"later.{host}", ("/", "Prefix", "one")))
        router.until(f"later.{host}", "/", (200, "one /\n"))
        left_out = f"without what it refuses: Ingress {shop.namespace}/bad"
        eventually(
            lambda: left_out in pod.full()["ConfigurationAccepted"]["message"], "who is left out"
        )
        assert pod.conditions()["ConfigurationAccepted"] == ("True", "Accepted")
        (event,) = eventually(lambda: shop.events("bad"), "an event on the Ingress")
        assert "HAProxy refuses the configuration: too fussy for it." in event
        assert shop.events("good") == []
        assert router.get(host) == (200, "one /\n")
        assert router.ready()
        shop.apply(ingress("bad", f"bad.{host}", ("/", "Prefix", "one")))
        router.until(f"bad.{host}", "/", (200, "one /\n"))
        eventually(
            lambda: left_out not in pod.full()["ConfigurationAccepted"]["message"],
            "nothing is left out",
        )
