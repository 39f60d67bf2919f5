"""A static pod renews its client certificate on a real API server, and what may be in its way."""

import base64
import json
import stat
from datetime import UTC, datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from tests.integration.operators.certificates.conftest import REQUESTS, SPEC, USER, Node

from quarterdeck.delivery.registry import installed
from quarterdeck.kube.client_certificate import new_key, read_pair, request_object, signing_request
from quarterdeck.testing.operator_process import OperatorProcess, StartOperator
from quarterdeck.testing.unused_rights import unused_by_operator
from quarterdeck.testing.waiting import eventually

RENEWING, LATE, LAST_DAYS, OVER = (timedelta(days=days) for days in (200, 300, 350, 366))
"""Ages of a certificate that lives for 365 days."""
GROUPED = msgspec.structs.replace(SPEC, organizations=("crew",))


def fingerprint(node: Node) -> str:
    certificate = x509.load_pem_x509_certificate(node.file.read_bytes())
    return certificate.fingerprint(hashes.SHA256()).hex()


def told(node: Node, name: str) -> list[str]:
    """The events about a request."""
    found = [one for one in node.objects.list("events") if one["involvedObject"]["name"] == name]
    return [one["message"] for one in found]


def ready(process: OperatorProcess) -> bool:
    return process.get("/readyz")[0] == 200


def test_it_is_renewed_approved_and_used_without_a_restart(
    node: Node, checker: StartOperator, approver: StartOperator
) -> None:
    """The private key is made here, and nobody else can read it."""
    node.use(RENEWING)
    before = node.file.read_bytes()
    approver()
    process = checker()
    node.wait_renewed(before)
    new = read_pair(node.file.read_bytes())
    assert (new.user, new.groups) == (USER, ())
    assert new.public_key != read_pair(before).public_key
    # The signer dates certificates back by five minutes.
    assert timedelta(minutes=59) <= new.lifetime <= timedelta(minutes=66)
    assert stat.S_IMODE(node.file.stat().st_mode) == 0o600
    process.logged("client certificate renewed")
    assert not node.pending.exists()
    (made,) = node.requests()
    (condition,) = made["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Approved", "RenewalByItsUser")
    node.wait_event(made["metadata"]["name"], "Approved")
    node.wait_event(made["metadata"]["name"], "CertificateRenewed")
    # The API server logs by which certificate a request was signed in.
    wanted = f"X509SHA256={fingerprint(node)}"
    eventually(lambda: wanted in node.audited(), "requests with the new one")
    assert ready(process)
    ends = "client_certificate_expiration_timestamp_seconds"
    eventually(lambda: process.metric(ends) == new.ends.timestamp(), "its end is a metric")


def test_without_an_approver_a_person_is_told_and_a_restart_asks_for_nothing_new(
    node: Node, checker: StartOperator
) -> None:
    node.use(LATE)
    before = node.file.read_bytes()
    process = checker()
    name = node.request()
    event = node.wait_event(name, "CertificateNotRenewed")
    assert event["type"] == "Warning"
    assert f"kubectl certificate approve {name}" in event["message"]
    assert stat.S_IMODE(node.pending.stat().st_mode) == 0o600
    eventually(lambda: ready(process), "it works meanwhile")
    process.kill()
    again = checker()
    again.logged("client certificate is not renewed yet")
    assert node.request() == name
    node.plane.kubectl("certificate", "approve", name)
    node.wait_renewed(before)
    assert len(node.requests()) == 1


def test_a_denied_request_is_told_and_not_repeated(node: Node, checker: StartOperator) -> None:
    """Neither at once nor by a restart; with little time left, the checker is not ready."""
    node.use(LAST_DAYS)
    before = node.file.read_bytes()
    process = checker()
    name = node.request()
    node.plane.kubectl("certificate", "deny", name)
    eventually(lambda: "is denied" in process.get("/readyz")[1], "it is not ready")
    eventually(lambda: any("is denied" in one for one in told(node, name)), "an event says so")
    process.kill()
    again = checker()
    eventually(lambda: "is denied" in again.get("/readyz")[1], "it finds the same request")
    assert node.request() == name
    assert node.file.read_bytes() == before


def test_a_certificate_for_another_key_is_not_used(node: Node, checker: StartOperator) -> None:
    """Whoever may sign for this signer can put any certificate into a request."""
    node.use(RENEWING)
    before = node.file.read_bytes()
    process = checker()
    name = node.request()
    wrong = base64.b64encode(node.issued(datetime.now(UTC)).certificate).decode()
    patch = json.dumps({"status": {"certificate": wrong}})
    how = ("--subresource=status", "--type=merge", f"--patch={patch}")
    node.plane.kubectl("patch", REQUESTS, name, *how)
    event = node.wait_event(name, "CertificateNotRenewed")
    assert "is for another key" in event["message"]
    assert node.file.read_bytes() == before
    eventually(lambda: ready(process), "it works with the old one")


def test_after_the_end_it_says_so_makes_no_request_and_takes_a_new_file(
    node: Node, checker: StartOperator
) -> None:
    node.use(OVER)
    process = checker()
    eventually(lambda: "certificate ended at" in process.get("/readyz")[1], "it says so")
    assert "docs/install.md" in process.get("/readyz")[1]
    assert node.requests() == []
    node.use(timedelta())
    eventually(lambda: ready(process), "it works again")
    assert node.requests() == []


def test_a_certificate_with_a_group_works_to_its_end_and_is_not_renewed(
    node: Node, checker: StartOperator
) -> None:
    """No renewal may have a group: it says so at once, and is ready until the end nears."""
    node.use(RENEWING, GROUPED)
    process = checker()
    assert "has groups (crew)" in process.logged("client certificate is not renewed yet")["why"]
    eventually(lambda: ready(process), "it works meanwhile")
    assert node.requests() == []
    node.use(LAST_DAYS, GROUPED)
    eventually(lambda: "has groups (crew)" in process.get("/readyz")[1], "its end is near")
    assert "docs/install.md" in process.get("/readyz")[1]


def test_a_checker_that_may_not_ask_says_so(node: Node, checker: StartOperator) -> None:
    node.use(LAST_DAYS)
    node.plane.kubectl("delete", "clusterrolebinding", "quarterdeck-staleness-static-pod")
    process = checker()
    wanted = "cannot ask for the next client certificate"
    eventually(lambda: wanted in process.get("/readyz")[1], "it says so")
    assert node.requests() == []


def attempt(name: str, wanted: str, **spec: object) -> str:
    """A request for a certificate of this user."""
    made = request_object(name, signing_request(new_key(), wanted), timedelta(hours=1))
    made["spec"] |= spec
    return json.dumps(made)


def test_the_approver_approves_nothing_else(node: Node, approver: StartOperator) -> None:
    """A thief of the checker's key gets no other name, and nobody else gets the checker's."""
    encipherment = ["client auth", "key encipherment"]
    attempts = {
        "other-name": (USER, attempt("other-name", "system:kube-scheduler")),
        "usages": (USER, attempt("usages", USER, usages=encipherment)),
        "ten-years": (USER, attempt("ten-years", USER, expirationSeconds=315360000)),
        "by-admin": ("admin", attempt("by-admin", USER)),
        "unrelated": ("admin", attempt("unrelated", "somebody")),
        "renewal": (USER, attempt("renewal", USER)),
    }
    for user, body in attempts.values():
        as_user = (f"--as={user}", "--as-group=system:masters")
        node.plane.kubectl("create", "--filename=-", *as_user, input=body)
    approver()
    node.wait_event("renewal", "Approved")
    for name in ("other-name", "usages", "ten-years", "by-admin"):
        assert "Decide yourself" in node.wait_event(name, "NotApproved")["message"]
    for name in attempts.keys() - {"renewal"}:
        assert node.objects.get(REQUESTS, name)["status"] == {}
    assert told(node, "unrelated") == []


def test_the_approver_used_every_right_that_it_has(node: Node) -> None:
    """In the tests above, but for those of its Lease: it runs without an election there."""
    found = unused_by_operator([node.plane.audit_log], installed().operators["certificates"])
    assert [str(one) for one in found if one.resource != "leases"] == []
