"""Client certificates by signing requests: which answers are taken, and which are refused."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.meta import Object
from quarterdeck.kube.client_certificate import (
    ClientCertificate,
    RequestState,
    answer_to,
    new_key,
    public_key,
    read_certificate,
    read_pair,
    read_request,
    request_name,
    request_object,
    signing_request,
)

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
USER = "system:quarterdeck:staleness"
KEY, OTHER_KEY = new_key(), new_key()
DAY = timedelta(days=1)
OWN = ClientCertificate(
    user=USER, groups=(), starts=NOW - 50 * DAY, ends=NOW + 40 * DAY, public_key=b"old"
)


def issued(
    key: bytes = KEY,
    user: str = USER,
    groups: tuple[str, ...] = (),
    starts: datetime = NOW - DAY,
    ends: datetime = NOW + 90 * DAY,
) -> bytes:
    """A certificate as some signer may issue it."""
    private = serialization.load_pem_private_key(key, password=None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in groups]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(starts)
        .not_valid_after(ends)
    )
    return builder.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def request(certificate: bytes | None = None, *kinds: str, key: bytes = KEY) -> Object:
    """Our request with these conditions, and perhaps a certificate."""
    made = request_object("mine", signing_request(key, USER), 90 * DAY)
    conditions = [{"type": kind, "status": "True", "reason": "R", "message": "m"} for kind in kinds]
    made["status"] = {"conditions": conditions}
    if certificate is not None:
        made["status"]["certificate"] = base64.b64encode(certificate).decode()
    return made


def answer(obj: Object) -> RequestState:
    return answer_to(obj, KEY, OWN, NOW)


def test_a_good_certificate_is_taken_as_it_is() -> None:
    pem = issued()
    assert answer(request(pem, "Approved")) == RequestState(state="issued", certificate=pem)


@pytest.mark.parametrize(
    ("pem", "why"),
    [
        pytest.param(issued(OTHER_KEY), "is for another key", id="another key"),
        pytest.param(issued(user="admin"), "is for the user 'admin', not", id="another user"),
        pytest.param(issued(groups=("g",)), "in g, not for the user", id="a group"),
        pytest.param(issued(ends=NOW - timedelta(hours=1)), "not now", id="over"),
        pytest.param(issued(starts=NOW + DAY), "not now", id="not yet"),
        pytest.param(issued(ends=OWN.ends), "no later than the one in use", id="no longer"),
        pytest.param(b"nothing", "cannot be read", id="no certificate"),
        pytest.param(
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "cannot be read",
            id="a broken certificate",
        ),
    ],
)
def test_a_certificate_that_is_not_ours_is_refused_with_the_reason(pem: bytes, why: str) -> None:
    found = answer(request(pem, "Approved"))
    assert (found.state, found.certificate) == ("refused", b"")
    assert why in found.why


def test_a_certificate_that_ends_before_the_one_in_use_is_taken_if_that_was_asked_for() -> None:
    pem = issued(ends=NOW + 30 * DAY)
    shorter = request(pem, "Approved")
    shorter["spec"]["expirationSeconds"] = 30 * 86400
    assert answer(shorter).state == "issued"
    assert answer(request(pem, "Approved")).state == "refused"


@pytest.mark.parametrize("kind", ["Denied", "Failed"])
def test_a_denied_request_is_refused_even_if_it_has_a_certificate(kind: str) -> None:
    found = answer(request(issued(), "Approved", kind))
    assert found.state == "refused"
    assert f"is {kind.lower()} (R: m)" in found.why


def test_a_request_of_our_name_for_another_key_is_somebody_elses() -> None:
    """Whoever reads our name may be quicker with a request of his own."""
    assert answer(request(key=OTHER_KEY)).state == "refused"
    unreadable = request()
    unreadable["spec"]["request"] = "!"
    assert answer(unreadable).state == "refused"


def test_while_it_waits_it_says_for_whom() -> None:
    assert "kubectl certificate approve mine" in answer(request()).why
    approved = answer(request(None, "Approved"))
    assert approved.state == "waiting"
    assert "kube-controller-manager" in approved.why


def test_the_request_says_what_it_should_and_no_more() -> None:
    made = request_object("mine", signing_request(KEY, USER), 90 * DAY)
    found = read_request(made)
    assert (found.user, found.only_user, found.public_key) == (USER, True, public_key(KEY))
    del made["spec"]["request"]
    assert made["spec"] == {
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth", "digital signature"],
        "expirationSeconds": 90 * 86400,
    }
    assert b"PRIVATE" not in signing_request(KEY, USER)


def test_the_server_is_never_asked_for_less_than_it_allows() -> None:
    made = request_object("mine", signing_request(KEY, USER), timedelta(seconds=1))
    assert made["spec"]["expirationSeconds"] == 600


def test_a_request_has_the_same_name_after_a_restart_and_another_one_for_another_key() -> None:
    assert request_name("mine", KEY) == request_name("mine", KEY)
    assert request_name("mine", KEY) != request_name("mine", OTHER_KEY)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (issued(), "no private key"),
        (issued() + OTHER_KEY, "not for the key beside it"),
        (KEY, "."),
        (b"", "."),
    ],
)
def test_a_file_without_a_pair_is_told(text: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_pair(text)


def test_a_pair_is_read_in_either_order_and_with_any_key() -> None:
    wanted = read_certificate(issued())
    assert read_pair(issued() + KEY) == read_pair(KEY + issued()) == wanted
    assert wanted.renewal == wanted.starts + wanted.lifetime / 2


@given(
    start=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
    length=st.integers(600, 400 * 86400),
)
def test_the_renewal_is_always_within_the_lifetime(start: datetime, length: int) -> None:
    begins = start.replace(tzinfo=UTC)
    ends = begins + timedelta(seconds=length)
    own = ClientCertificate(user=USER, groups=(), starts=begins, ends=ends, public_key=b"")
    assert own.starts < own.renewal < own.ends


@given(st.binary(max_size=300))
def test_no_bytes_of_others_raise_anything_but_a_value_error(noise: bytes) -> None:
    """Also as a certificate: a signer that answers nonsense is told, and ends nothing."""
    assert answer(request(noise, "Approved")).state in ("refused", "waiting")
    for read in (read_certificate, read_pair):
        with pytest.raises(ValueError):
            read(noise)


@given(st.binary(min_size=1, max_size=120))
def test_no_request_of_others_raises_anything_but_a_value_error(noise: bytes) -> None:
    body = base64.encodebytes(noise)
    pem = b"-----BEGIN CERTIFICATE REQUEST-----\n%s-----END CERTIFICATE REQUEST-----\n" % body
    with pytest.raises(ValueError):
        read_request(request_object("x", pem, DAY))


SIGNED = signing_request(KEY, USER)
DER = x509.load_pem_x509_csr(SIGNED).public_bytes(serialization.Encoding.DER)


@given(
    st.lists(st.tuples(st.integers(0, len(DER) - 1), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(0, 2),
)
def test_a_changed_byte_of_a_good_request_makes_it_another(
    changes: list[tuple[int, int]], longer: int
) -> None:
    """Whatever the library makes of it: what it says is signed, and nothing stands beside it."""
    changed = bytearray(DER)
    for place, byte in changes:
        changed[place] = byte
    changed += bytes(longer)
    body = base64.b64encode(changed)
    lines = b"".join(body[at : at + 64] + b"\n" for at in range(0, len(body), 64))
    name = b"CERTIFICATE REQUEST-----\n"
    pem = b"-----BEGIN " + name + lines + b"-----END " + name
    try:
        good = read_request(request_object("x", pem, DAY)).only_user
    except ValueError:
        good = False
    assert good == (bytes(changed) == DER)


def test_a_request_with_anything_else_in_it_is_not_only_for_the_user() -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.NameAttribute(NameOID.COMMON_NAME, USER)
    group = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "g")
    plain = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([name]))
    host = x509.SubjectAlternativeName([x509.DNSName("example.test")])
    big = ec.generate_private_key(ec.SECP384R1())
    old = rsa.generate_private_key(65537, 2048)
    builder = x509.CertificateSigningRequestBuilder
    odd = [
        builder().subject_name(x509.Name([group, name])).sign(private, hashes.SHA256()),
        builder().subject_name(x509.Name([name, name])).sign(private, hashes.SHA256()),
        builder().subject_name(x509.Name([])).sign(private, hashes.SHA256()),
        plain.add_extension(host, critical=False).sign(private, hashes.SHA256()),
        plain.add_attribute(x509.oid.AttributeOID.CHALLENGE_PASSWORD, b"x").sign(
            private, hashes.SHA256()
        ),
        plain.sign(big, hashes.SHA256()),
        plain.sign(old, hashes.SHA256()),
    ]
    for one in odd:
        pem = one.public_bytes(serialization.Encoding.PEM)
        assert not read_request(request_object("x", pem, DAY)).only_user
    good = plain.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    assert read_request(request_object("x", good, DAY)).only_user
    for text in (good + good, b"hello\n" + good, good.replace(b"\n", b"\r\n"), good + b"\n"):
        assert not read_request(request_object("x", text, DAY)).only_user
