"""Whatever objects say, the configuration keeps its structure."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from quarterdeck.api.meta import Key, Object
from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.errors import RefusedTextError
from quarterdeck.haproxy.model import Config
from quarterdeck.haproxy.render import render
from quarterdeck.router.observed import ObservedRoutes
from quarterdeck.router.planning import config_of
from quarterdeck.router.routing import routes
from quarterdeck.router.settings import Settings

SECTIONS = ("global", "ring", "defaults", "frontend", "backend")
HOSTILE = st.one_of(
    st.sampled_from(
        [
            "a.example",
            "*.a.example",
            "/",
            "/p",
            "web",
            "/x\n backend evil\n  server s 127.0.0.1:2379",
            "a.example\nbackend evil",
            "x'\nlog 127.0.0.1:1 local0",
            "$HOME",
            "${HOME}",
            "'\"\\#",
            "a b",
        ]
    ),
    st.text(max_size=20),
)
BASE = Config(http_bind="*:1", https_bind="*:2", sockets="/run/x", default_certificate="PEM")
WITH_ALL_RULES = structs.replace(BASE, exact_paths=(("*.a/", "b"),), path_prefixes=(("*/", "b"),))
WITHOUT_BACKENDS = frozenset(
    line
    for config in (BASE, WITH_ALL_RULES)
    for line in render(config, 1)["haproxy.cfg"].split("\n")
)
"""The lines of configurations without backends, with each rule that can find one."""


def ingress(host: str, path: str, service: str, port: object, annotation: str) -> Object:
    meta = {
        "name": "a",
        "namespace": "ns",
        "uid": "u",
        "annotations": {"haproxy.router.openshift.io/rewrite-target": annotation},
    }
    backend = {"service": {"name": service, "port": {"name": port}}}
    paths = [{"path": path, "pathType": "Prefix", "backend": backend}]
    tls = [{"hosts": [host], "secretName": service}]
    return {
        "metadata": meta,
        "spec": {"rules": [{"host": host, "http": {"paths": paths}}], "tls": tls},
    }


def sections(text: str) -> list[str]:
    """The head of each section: a line that is not indented."""
    return [line for line in text.split("\n") if line and not line[0].isspace()]


@settings(max_examples=300)
@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
def test_no_object_adds_a_section_or_a_line(
    host: str, path: str, service: str, port: str, secret: str, annotation: str
) -> None:
    seen = ObservedRoutes(
        ingresses=[ingress(host, path, service, port, annotation)],
        services={Key("ns", service): {"spec": {"ports": [{"name": port, "port": 80}]}}},
        secrets={Key("ns", service): {"data": {"tls.crt": secret, "tls.key": secret}}},
    )
    found = routes(seen, Settings())
    config = config_of(found, BASE, None)
    files = render(config, 1)
    empty = render(BASE, 1)
    added = len(found.backends)
    assert sections(files["haproxy.cfg"]) == [
        *sections(empty["haproxy.cfg"]),
        *(f"backend {name}" for name in found.backends),
    ]
    # Each backend has a head, three lines, its slots and an empty line at most.
    own = [line for line in files["haproxy.cfg"].split("\n") if line not in WITHOUT_BACKENDS]
    assert len(own) <= added * 10
    assert files["prefix.map"].count("\n") == len(config.path_prefixes)
    assert files["crt-list.txt"].count("\n") == 1
    assert all(line.split(" ")[0] in SECTIONS for line in sections(files["haproxy.cfg"]))


@settings(max_examples=300)
@given(HOSTILE)
def test_no_log_format_adds_a_section_or_a_line(text: str) -> None:
    def lines(format_: str) -> int:
        log = AccessLog(address="127.0.0.1:514", format=format_)
        config = Config(
            http_bind="*:1",
            https_bind="*:2",
            sockets="/run/x",
            default_certificate="PEM",
            access_log=log,
        )
        return render(config, 1)["haproxy.cfg"].count("\n")

    try:
        assert lines(text) == lines("x")
    except RefusedTextError:
        assert any(ord(c) < 0x20 or ord(c) == 0x7F or 0xD800 <= ord(c) < 0xE000 for c in text)
