"""The cluster's certificates."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from quarterdeck.localcluster.certificates import (
    CERTIFICATES,
    CertificateSpec,
    KeyPair,
    certificate_path,
    issue,
    key_path,
    make_certificates,
    new_authority,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = new_authority("test", NOW)


def parsed(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


@pytest.mark.parametrize("plan", CERTIFICATES, ids=lambda plan: plan.name)
def test_a_certificate_is_what_was_planned(plan: CertificateSpec) -> None:
    """It names whom the plan names, serves where it says, is signed, and signs nothing."""
    certificate = parsed(issue(plan, AUTHORITY, NOW))
    certificate.verify_directly_issued_by(parsed(AUTHORITY))
    organizations = ",".join(f"O={name}" for name in plan.organizations)
    subject = certificate.subject.rfc4514_string()
    assert subject == ",".join(filter(None, [f"CN={plan.common_name}", organizations]))
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert constraints.ca is False
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert (ExtendedKeyUsageOID.CLIENT_AUTH in usage) is plan.client
    assert (ExtendedKeyUsageOID.SERVER_AUTH in usage) is plan.server


def test_no_certificate_outlives_a_year() -> None:
    plan = CertificateSpec(name="one", common_name="one", client=True)
    certificate = parsed(issue(plan, AUTHORITY, NOW))
    assert certificate.not_valid_before_utc < NOW
    assert certificate.not_valid_after_utc == NOW + timedelta(days=365)


def test_only_the_administrator_and_the_node_are_in_a_group() -> None:
    """Groups give rights that RBAC objects do not show, so the other components have none."""
    groups = {plan.name: plan.organizations for plan in CERTIFICATES if plan.organizations}
    assert groups == {"admin": ("system:masters",), "this-machine": ("system:nodes",)}


def test_servers_can_be_reached_by_loopback() -> None:
    assert all("127.0.0.1" in plan.hosts for plan in CERTIFICATES if plan.server)


def test_authorities_are_kept_and_the_rest_is_renewed(tmp_path: Path) -> None:
    """Kubeconfigs and tokens of an earlier start stay valid; nothing expires in use."""
    make_certificates(tmp_path, NOW)
    kept = ("ca", "etcd-ca", "service-account")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    make_certificates(tmp_path, NOW + timedelta(days=300))
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    unchanged = {name for name in before if before[name] == after[name]}
    assert before.keys() == after.keys()
    assert {name.rpartition(".")[0] for name in unchanged} == set(kept)


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    make_certificates(tmp_path, NOW)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert all(key_path(tmp_path, plan.name).exists() for plan in CERTIFICATES)
    assert all(certificate_path(tmp_path, plan.name).exists() for plan in CERTIFICATES)
