import pytest

from quarterdeck.api.meta import Key, Object
from quarterdeck.haproxy.check import Complaint
from quarterdeck.router.observed import ObservedRoutes, Problem
from quarterdeck.router.refused import left_out, names, problems, unchanged
from quarterdeck.router.routing import routes
from quarterdeck.router.settings import Settings

CONFIG = """
global
    log x
backend ns:web:80
    server s0 192.0.2.1:80
backend ns:web:8080
    server s0 192.0.2.1:80
"""


def ingress(name: str) -> Object:
    return {"metadata": {"name": name, "uid": name}}


USERS = {
    "ns:web:80": [ingress("a"), ingress("b")],
    "ns:web:8080": [ingress("c")],
    "ns:shop.pem": [ingress("d")],
}


@pytest.mark.parametrize(
    ("complaint", "blamed"),
    [
        pytest.param(Complaint(5, "bad server"), ["a", "b"], id="a line of a backend"),
        pytest.param(Complaint(7, "bad server"), ["c"], id="a name that begins like another"),
        pytest.param(
            Complaint(None, "unable to load 'certs/ns:shop.pem'."), ["d"], id="a certificate"
        ),
        pytest.param(Complaint(None, "backend 'ns:web:8080': bad"), ["c"], id="a name in words"),
        pytest.param(Complaint(3, "bad log"), [], id="a line of ours"),
        pytest.param(Complaint(None, "out of memory"), [], id="nobody"),
        pytest.param(Complaint(999, "beyond the end"), ["c"], id="the end of the file"),
    ],
)
def test_the_ingress_that_haproxy_complains_about_is_named(
    complaint: Complaint, blamed: list[str]
) -> None:
    found = problems([complaint, complaint], CONFIG, USERS)
    assert [one.about["metadata"]["name"] for one in found] == blamed
    assert all(complaint.words in one.message for one in found)


def whole(uid: str, version: int = 1) -> Object:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = {"paths": [{"path": "/", "backend": backend}]}
    return {
        "metadata": {"name": uid, "namespace": "ns", "uid": uid, "resourceVersion": str(version)},
        "spec": {"rules": [{"host": "a.example", "http": paths}], "tls": [{"secretName": "tls"}]},
    }


def seen(ingress: Object, secret: int = 1, service: int = 1) -> ObservedRoutes:
    versions = {"secrets": ("tls", secret), "services": ("web", service)}
    return ObservedRoutes(
        ingresses=[whole("other"), ingress],
        **{  # type: ignore[arg-type]
            kind: {Key("ns", name): {"metadata": {"resourceVersion": str(version)}}}
            for kind, (name, version) in versions.items()
        },
    )


@pytest.mark.parametrize(
    ("later", "stays"),
    [
        pytest.param(seen(whole("a")), True, id="unchanged"),
        pytest.param(seen(whole("a", 2)), False, id="another version of the Ingress"),
        pytest.param(seen(whole("b")), False, id="deleted"),
        pytest.param(seen(whole("a"), secret=2), False, id="another version of its Secret"),
        pytest.param(seen(whole("a"), service=2), False, id="another version of its Service"),
    ],
)
def test_what_haproxy_refused_is_left_out_until_it_changes(
    later: ObservedRoutes, stays: bool
) -> None:
    before = seen(whole("a"))
    found = left_out([Problem(whole("a"), "Refused", "bad")], before)
    assert bool(unchanged(found, later)) is stays
    assert names(found.values()) == "ns/a"


def test_a_few_names_stand_for_many() -> None:
    found = left_out([Problem(whole(uid), "Refused", "bad") for uid in "edcba"], ObservedRoutes())
    assert names(found.values()) == "ns/a, ns/b, ns/c and 2 more"


def test_an_ingress_that_is_left_out_keeps_its_hosts() -> None:
    evil = whole("evil")
    evil["metadata"] |= {"namespace": "evil", "creationTimestamp": "2026-01-01T00:00:00Z"}
    found = routes(
        ObservedRoutes(ingresses=[whole("a"), evil], left_out=frozenset({"a"})), Settings()
    )
    assert found.path_prefixes == ()
    assert "Conflict" in {one.reason for one in found.problems}
