"""The cluster's certificates: their names, their users, and their usages.

There are two authorities, one for the cluster and one for etcd, so that etcd accepts no
certificate of a cluster user. Authorities and the service account key are created once. All other
certificates are issued again at every start, so that none expires in a cluster in use.
"""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from quarterdeck.localcluster.real_nodes.addresses import CONTROL_PLANE
from quarterdeck.private_file import write_private

AUTHORITY_LIFE = timedelta(days=3650)
CERTIFICATE_LIFE = timedelta(days=365)
CLOCK_SKEW = timedelta(minutes=5)

SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"


class CertificateSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One certificate: its subject, its hosts, and whether it is for clients or servers."""

    name: str
    common_name: str
    organizations: tuple[str, ...] = ()
    authority: str = "ca"
    client: bool = False
    server: bool = False
    hosts: tuple[str, ...] = ()


LOCAL_HOSTS = ("localhost", "127.0.0.1")

SIMULATED_KUBELET = "127.0.0.2"
"""Where the API server asks for the simulated node's pods; the agent of this-machine answers."""

LOG_READER = "system:quarterdeck:kubelet-client"
"""The user of the API server when it reads a pod's log from a node."""

CERTIFICATES = (
    CertificateSpec(
        name="kube-apiserver",
        common_name="kube-apiserver",
        server=True,
        hosts=(
            *LOCAL_HOSTS,
            API_SERVICE_ADDRESS,
            CONTROL_PLANE,
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ),
    ),
    CertificateSpec(name="kubelet-client", common_name=LOG_READER, client=True),
    CertificateSpec(
        name="etcd",
        common_name="etcd",
        authority="etcd-ca",
        server=True,
        client=True,  # the JSON gateway of etcd is a client of etcd, with this certificate
        hosts=LOCAL_HOSTS,
    ),
    CertificateSpec(
        name="etcd-peer",
        common_name="etcd",
        authority="etcd-ca",
        server=True,
        client=True,
        hosts=LOCAL_HOSTS,
    ),
    CertificateSpec(
        name="etcd-client", common_name="kube-apiserver", authority="etcd-ca", client=True
    ),
    CertificateSpec(
        name="kube-controller-manager",
        common_name="system:kube-controller-manager",
        client=True,
        server=True,
        hosts=LOCAL_HOSTS,
    ),
    CertificateSpec(
        name="kube-scheduler",
        common_name="system:kube-scheduler",
        client=True,
        server=True,
        hosts=LOCAL_HOSTS,
    ),
    CertificateSpec(name="kwok", common_name="system:quarterdeck:simulated-node", client=True),
    CertificateSpec(
        name="this-machine",
        common_name="system:node:this-machine",
        organizations=("system:nodes",),
        client=True,
        server=True,
        hosts=(*LOCAL_HOSTS, SIMULATED_KUBELET),
    ),
    CertificateSpec(
        name="admin",
        common_name="quarterdeck-admin",
        organizations=("system:masters",),
        client=True,
    ),
)
"""The certificates that every cluster has."""


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes


def certificate_path(pki: Path, name: str) -> Path:
    """The path of the certificate of that name."""
    return pki / f"{name}.crt"


def key_path(pki: Path, name: str) -> Path:
    """The path of the private key of that name."""
    return pki / f"{name}.key"


def public_key_path(pki: Path, name: str) -> Path:
    """The path of the public key of that name."""
    return pki / f"{name}.pub"


def make_certificates(pki: Path, now: datetime | None = None) -> None:
    """Write all certificates of a cluster to a directory; existing authorities stay."""
    now = now or datetime.now(UTC)
    for name in ("ca", "etcd-ca"):
        if not certificate_path(pki, name).exists():
            _write(pki, name, new_authority(f"quarterdeck {name}", now))
    if not key_path(pki, "service-account").exists():
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(public_key_path(pki, "service-account"), _public_pem(key))
        write_private(key_path(pki, "service-account"), _pem(key))
    for spec in CERTIFICATES:
        _write(pki, spec.name, issue(spec, load(pki, spec.authority), now))


def load(pki: Path, name: str) -> KeyPair:
    """The certificate and key of that name."""
    return KeyPair(certificate_path(pki, name).read_bytes(), key_path(pki, name).read_bytes())


def new_authority(name: str, now: datetime) -> KeyPair:
    """A new self-signed certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name, ())
    certificate = (
        _builder(subject, key.public_key(), now, AUTHORITY_LIFE)
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def issue(spec: CertificateSpec, authority: KeyPair, now: datetime) -> KeyPair:
    """A new certificate by this specification, signed by the authority."""
    signer = x509.load_pem_x509_certificate(authority.certificate)
    signing_key = serialization.load_pem_private_key(authority.key, password=None)
    assert isinstance(signing_key, ec.EllipticCurvePrivateKey)  # noqa: S101 - we wrote it so
    key = ec.generate_private_key(ec.SECP256R1())
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH] * spec.client
    usages += [ExtendedKeyUsageOID.SERVER_AUTH] * spec.server
    builder = (
        _builder(
            _subject(spec.common_name, spec.organizations), key.public_key(), now, CERTIFICATE_LIFE
        )
        .issuer_name(signer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    if spec.hosts:
        names = x509.SubjectAlternativeName([_host_name(host) for host in spec.hosts])
        builder = builder.add_extension(names, critical=False)
    certificate = builder.sign(signing_key, hashes.SHA256())
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + life)
    )


def _subject(common_name: str, organizations: Sequence[str]) -> x509.Name:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _write(pki: Path, name: str, pair: KeyPair) -> None:
    write_private(key_path(pki, name), pair.key)
    write_private(certificate_path(pki, name), pair.certificate)
