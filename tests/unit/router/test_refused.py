import pytest

from quarterdeck.api.meta import Object
from quarterdeck.haproxy.check import Complaint
from quarterdeck.router.refused import problems

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
