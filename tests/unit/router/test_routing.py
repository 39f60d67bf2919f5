from base64 import b64encode
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.meta import Key, Object
from quarterdeck.haproxy.model import Backend, Config, Endpoint
from quarterdeck.haproxy.runtime import runtime_commands
from quarterdeck.haproxy.slots import fresh_slots, reassigned
from quarterdeck.kube.selector import parse_selector
from quarterdeck.router.addresses import refusal
from quarterdeck.router.certificates import self_signed
from quarterdeck.router.observed import ObservedRoutes
from quarterdeck.router.routing import Routing, routes
from quarterdeck.router.settings import Settings


def path(text: str, kind: str = "Prefix", service: str = "web", port: int = 80) -> Object:
    backend = {"service": {"name": service, "port": {"number": port}}}
    return {"path": text, "pathType": kind, "backend": backend}


def rule(host: str, *paths: Object) -> Object:
    return {"host": host, "http": {"paths": list(paths)}}


def ingress(
    name: str, *rules: Object, namespace: str = "shop", age: int = 5, **spec: object
) -> Object:
    meta = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "creationTimestamp": f"2026-01-01T00:00:{60 - age:02d}Z",
    }
    return {"metadata": meta, "spec": {"rules": list(rules), **spec}}


def service(name: str = "web", **spec: object) -> Object:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    return {"metadata": {"name": name}, "spec": {"ports": ports, **spec}}


def slice_of(*addresses: str, conditions: Object | None = None, port: int = 8080) -> Object:
    return {
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": port}],
        "endpoints": [{"addresses": [it], "conditions": conditions or {}} for it in addresses],
    }


def tls_secret() -> Object:
    chain, begin, key = self_signed("a.example", datetime.now(UTC)).partition("-----BEGIN PRIV")
    data = {"tls.crt": chain, "tls.key": begin + key}
    return {"data": {name: b64encode(text.encode()).decode() for name, text in data.items()}}


TLS = tls_secret()
WEB = {Key("shop", "web"): service()}
ENDPOINTS = {Key("shop", "web"): [slice_of("10.0.0.1")]}


def route(*ingresses: Object, settings: Settings | None = None, **observed: object) -> Routing:
    seen = {"services": WEB, "slices": ENDPOINTS, "ingresses": ingresses, **observed}
    return routes(ObservedRoutes(**seen), settings or Settings())  # type: ignore[arg-type]


def messages(routing: Routing) -> list[str]:
    return [f"{one.about['metadata']['name']}: {one.message}" for one in routing.problems]


def test_paths_go_into_the_map_of_their_kind() -> None:
    found = route(
        ingress(
            "a",
            rule(
                "a.example", path("/x", "Exact"), path("/p"), path("/q/", "ImplementationSpecific")
            ),
        )
    )
    assert found.exact_paths == (("a.example/x", "shop:web:80"),)
    assert found.path_prefixes == (("a.example/p/", "shop:web:80"), ("a.example/q/", "shop:web:80"))
    assert found.backends == {"shop:web:80": [Endpoint("10.0.0.1", 8080)]}
    assert not found.problems


@pytest.mark.parametrize(
    ("meta", "spec", "settings", "served"),
    [
        pytest.param({}, {}, Settings(), True, id="no class goes to default"),
        pytest.param(
            {}, {}, Settings(name="x", ingress_class="quarterdeck-x"), False, id="and nowhere else"
        ),
        pytest.param({}, {"ingressClassName": "quarterdeck-default"}, Settings(), True, id="class"),
        pytest.param({}, {"ingressClassName": "nginx"}, Settings(), False, id="another class"),
        pytest.param(
            {"annotations": {"kubernetes.io/ingress.class": "nginx"}},
            {},
            Settings(),
            False,
            id="another class by annotation",
        ),
        pytest.param(
            {"labels": {"a": "b"}}, {}, Settings(ingresses=parse_selector("a=b")), True, id="label"
        ),
        pytest.param({}, {}, Settings(ingresses=parse_selector("a=b")), False, id="no label"),
        pytest.param({}, {}, Settings(namespaces=parse_selector("t=1")), True, id="namespace"),
        pytest.param({}, {}, Settings(namespaces=parse_selector("t=2")), False, id="not this one"),
        pytest.param({"deletionTimestamp": "x"}, {}, Settings(), False, id="being deleted"),
    ],
)
def test_which_ingresses_are_served(
    meta: Object, spec: Object, settings: Settings, served: bool
) -> None:
    one = ingress("a", rule("a.example", path("/")), **spec)
    one["metadata"] |= meta
    found = route(one, settings=settings, namespaces={"shop": {"t": "1"}})
    assert bool(found.path_prefixes) is served


def test_a_host_belongs_to_the_namespace_of_its_oldest_ingress() -> None:
    old = ingress("old", rule("a.example", path("/")), age=9)
    new = ingress(
        "new", rule("a.example", path("/admin")), rule("b.example", path("/")), namespace="evil"
    )
    found = route(new, old)
    assert found.path_prefixes == (("a.example/", "shop:web:80"), ("b.example/", "evil:web:80"))
    assert any(
        "new: path /admin of host a.example is served by namespace shop" in it
        for it in messages(found)
    )


DEFAULT = {"service": {"name": "web", "port": {"number": 80}}}


@pytest.mark.parametrize(
    "old",
    [
        pytest.param(ingress("old", defaultBackend=DEFAULT, age=9), id="default backend"),
        pytest.param(
            ingress("old", {"host": ""}, defaultBackend=DEFAULT, age=9), id="rule without a host"
        ),
    ],
)
def test_the_oldest_owns_every_host_by_a_default_backend_too(old: Object) -> None:
    new = ingress("new", rule("", path("/admin")), namespace="evil")
    found = route(new, old)
    assert found.path_prefixes == (("*/", "shop:web:80"),)
    assert [one.reason for one in found.problems] == ["Conflict"]


@pytest.mark.parametrize(
    "named",
    [
        pytest.param({"host": "a.example"}, id="only a default backend"),
        pytest.param(
            rule("a.example", {"path": "/", "backend": {"resource": {"kind": "X"}}}),
            id="only a resource backend",
        ),
    ],
)
def test_a_host_and_its_certificate_belong_to_the_oldest_that_names_it(named: Object) -> None:
    tls = [{"hosts": ["a.example"], "secretName": "tls"}]
    old = ingress("old", named, age=9, defaultBackend=DEFAULT, tls=tls)
    new = ingress("new", rule("a.example", path("/admin")), namespace="evil", tls=tls)
    found = route(new, old, secrets={Key("shop", "tls"): TLS, Key("evil", "tls"): TLS})
    assert found.path_prefixes == (("a.example/", "shop:web:80"),)
    assert [one.name for one in found.certificates] == ["shop:tls.pem"]


def test_a_wildcard_certificate_does_not_speak_for_a_host_of_another_namespace() -> None:
    tls = [{"hosts": ["*.example"], "secretName": "tls"}]
    wide = ingress("wide", rule("*.example", path("/")), namespace="wide", tls=tls)
    own_tls = [{"hosts": ["b.example"], "secretName": "tls"}]
    found = route(
        wide,
        ingress("a", rule("a.example", path("/")), rule("x.a.example", path("/"))),
        ingress("b", rule("b.example", path("/")), tls=own_tls),
        ingress("w", rule("w.example", path("/")), namespace="wide"),
        secrets={Key("shop", "tls"): TLS, Key("wide", "tls"): TLS},
    )
    assert found.default_names == ("a.example",)
    assert [one.server_names for one in found.certificates] == [("b.example",), ("*.example",)]


def test_a_wider_host_gets_no_path_of_a_host_in_another_namespace() -> None:
    """Otherwise `/.well-known/acme-challenge/` of each host would be anybody's."""
    shop = ingress("shop", rule("a.example", path("/app")), rule("b.example", path("/")))
    wide = ingress("wide", rule("*.example", path("/app")), namespace="wide", age=1)
    found = dict(route(shop, wide).path_prefixes)
    assert found["a.example/"] == "no_route"
    assert found["b.example/"] == "shop:web:80"
    everywhere = ingress("wide", rule("", path("/")), namespace="wide", age=1)
    assert dict(route(shop, everywhere).path_prefixes)["a.example/"] == "no_route"


def test_a_wider_host_of_the_same_namespace_serves_the_other_paths() -> None:
    found = route(ingress("shop", rule("a.example", path("/app")), rule("", path("/"))))
    assert [host for host, _ in found.path_prefixes] == ["*/", "a.example/app/"]


def test_a_certificate_for_a_host_that_no_rule_serves_is_said_to_be_unused() -> None:
    secrets = {Key("shop", "tls"): TLS}
    tls = [{"hosts": ["a.example", "*.example"], "secretName": "tls"}]
    found = route(ingress("a", rule("a.example", path("/")), tls=tls), secrets=secrets)
    assert [one.server_names for one in found.certificates] == [("a.example",)]
    assert [one.reason for one in found.problems] == ["CertificateNotUsed"]
    assert "spec.tls[0].hosts: *.example:" in found.problems[0].message


def test_of_two_equal_paths_the_older_one_counts() -> None:
    old = ingress("old", rule("a.example", path("/p")), age=9)
    new = ingress("new", rule("a.example", path("/p/", service="other"), path("/q")))
    found = route(new, old)
    assert found.path_prefixes == (("a.example/p/", "shop:web:80"), ("a.example/q/", "shop:web:80"))
    assert messages(found) == [
        "new: path /p/ of host a.example is served by Ingress old, which is older; choose another"
    ]


def test_default_backends_serve_what_no_rule_does() -> None:
    default = {"service": {"name": "web", "port": {"name": "http"}}}
    everything = ingress("everything", defaultBackend=default, age=9)
    own = ingress("own", rule("a.example", path("/p")), defaultBackend=default)
    found = route(everything, own)
    assert found.path_prefixes == (
        ("*/", "shop:web:http"),
        ("a.example/", "shop:web:http"),
        ("a.example/p/", "shop:web:80"),
    )


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (rule("Bad Host", path("/")), "spec.rules[0].host"),
        (rule("a.example\nbackend x", path("/")), "spec.rules[0].host"),
        (rule("a.example", path("/a b")), "spec.rules[0].http.paths[0].path"),
        (rule("a.example", path("/a\nb c")), "spec.rules[0].http.paths[0].path"),
        # HAProxy would read the end of the path as another entry of its map.
        (rule("a.example", path("/" + "p" * 16380 + "b.example/")), "use at most 4096"),
        (rule("a.example", path("no-slash")), "spec.rules[0].http.paths[0].path"),
        (rule("a.example", path("/", service="a b\nx")), "backend"),
        (
            rule("a.example", {"path": "/", "backend": {"resource": {"kind": "X"}}}),
            "name a Service",
        ),
    ],
)
def test_a_bad_rule_is_skipped_and_the_others_work(bad: Object, words: str) -> None:
    found = route(ingress("a", bad, rule("b.example", path("/"))))
    assert found.path_prefixes == (("b.example/", "shop:web:80"),)
    assert len(found.problems) == 1
    assert words in found.problems[0].message


@pytest.mark.parametrize(
    ("services", "slices", "expected", "problem"),
    [
        pytest.param({}, {}, [], "does not exist", id="no Service"),
        pytest.param(WEB, {}, [], "", id="no endpoints: 503, and nothing is wrong"),
        pytest.param(
            WEB,
            {
                Key("shop", "web"): [
                    slice_of("10.0.0.1"),
                    slice_of("10.0.0.2", conditions={"ready": False}),
                ]
            },
            [Endpoint("10.0.0.1", 8080)],
            "",
            id="only ready ones",
        ),
        pytest.param(
            WEB,
            {
                Key("shop", "web"): [
                    slice_of(
                        "10.0.0.2",
                        conditions={"ready": False, "serving": True, "terminating": True},
                    )
                ]
            },
            [Endpoint("10.0.0.2", 8080)],
            "",
            id="those that end, if there is no other",
        ),
        pytest.param(
            {Key("shop", "web"): service(ports=[{"port": 81}])},
            ENDPOINTS,
            [],
            "no port 80",
            id="port",
        ),
        pytest.param(
            {Key("shop", "web"): service(type="ExternalName", externalName="x.example")},
            {},
            [],
            "ExternalName",
            id="external names are off",
        ),
    ],
)
def test_endpoints_of_a_service(
    services: Object, slices: Object, expected: list[Endpoint], problem: str
) -> None:
    found = route(ingress("a", rule("a.example", path("/"))), services=services, slices=slices)
    assert found.backends == {"shop:web:80": expected}
    assert bool(found.problems) is bool(problem)
    assert problem in "".join(messages(found))


@pytest.mark.parametrize(
    ("addresses", "loopback", "refused"),
    [
        (["192.0.2.7"], False, False),
        (["127.0.0.1"], False, True),
        (["127.0.0.1"], True, False),
        (["192.0.2.7", "127.0.0.1"], False, True),
        (["169.254.169.254"], True, True),
        (["fd00:ec2::254"], True, True),
        (["::ffff:100.100.100.200"], True, True),
        (["fe80::1%eth0"], True, True),
        (["::ffff:127.0.0.1"], False, True),
        (["::ffff:169.254.169.254"], False, True),
        (["::127.0.0.1"], False, True),
        (["0.0.0.0"], True, True),  # noqa: S104
        (["0.1.2.3"], True, True),
        (["64:ff9b::a9fe:a9fe"], True, True),
        (["64:ff9b::10.9.9.9"], True, True),
        (["2002:7f00:1::"], False, True),
        (["10.9.9.9"], True, True),
        (["::ffff:10.9.9.9"], True, True),
        (["::1"], False, True),
    ],
)
def test_where_an_external_name_may_lead(
    addresses: list[str], loopback: bool, refused: bool
) -> None:
    external = {Key("shop", "web"): service(type="ExternalName", externalName="x.example")}
    found = route(
        ingress("a", rule("a.example", path("/"))),
        services=external,
        settings=Settings(external_names=True, loopback_backends=loopback),
        resolved={"x.example": addresses},
        node_addresses=frozenset({"10.9.9.9"}),
    )
    assert found.external_names == {"x.example"}
    assert bool(found.problems) is refused
    assert bool(found.backends["shop:web:80"]) is not refused


def test_addresses_that_are_none_are_refused() -> None:
    assert refusal("localhost", (), loopback=True)
    assert not refusal("10.0.0.1", (), loopback=False)


NUMBERED = st.integers(1, 30).map(lambda number: Endpoint(f"10.0.0.{number}", 80))


@given(st.lists(st.sets(NUMBERED), min_size=1, max_size=8))
def test_an_endpoint_keeps_its_slot_while_it_exists(history: list[set[Endpoint]]) -> None:
    slots = fresh_slots(history[0])
    for wanted in history:
        new = reassigned(slots, wanted)
        if new is None:
            assert len(wanted) > len(slots)
            new = fresh_slots(wanted)
        else:
            assert len(new) == len(slots)
            assert all(a == b for a, b in zip(slots, new, strict=True) if a in wanted)
        assert {slot for slot in new if slot} == wanted
        assert len([slot for slot in new if slot]) == len(wanted)
        slots = new


def test_a_new_endpoint_is_ready_before_the_one_that_it_replaces_leaves() -> None:
    old, new = Endpoint("10.0.0.1", 80), Endpoint("10.0.0.2", 80)
    assert reassigned((old, None), [new]) == (None, new)
    assert reassigned((old,), [new]) == (new,)
    assert reassigned((old,), [old, new]) is None
    before, after = (Backend("b", slots) for slots in ((old, None), (None, new)))
    base = Config(http_bind="", https_bind="", sockets="", default_certificate="")
    commands = runtime_commands(
        msgspec.structs.replace(base, backends=(before,)),
        msgspec.structs.replace(base, backends=(after,)),
    )
    assert commands == [
        "set server b/s1 addr 10.0.0.2 port 80",
        "set server b/s1 state ready",
        "set server b/s0 state maint",
    ]
