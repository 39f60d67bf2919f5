"""The settings of a connection to the API server: address, TLS, credentials, proxy.

`quarterdeck.kube.kubeconfig` reads a `Connection` from files, `in_cluster` from the files that the
kubelet puts into every pod. TLS is always verified: no setting turns that off.
"""

import re
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from quarterdeck import __version__
from quarterdeck.kube.auth import Anonymous, Credentials, TokenFile
from quarterdeck.kube.errors import KubeconfigError
from quarterdeck.proxies import is_exempt, is_loopback, unusable_proxy

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
USER_AGENT = f"quarterdeck/{__version__}"


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """The server's address, and how a client connects to it."""

    server: str
    """`https://host:port`, with a path in front of some proxies; plain HTTP only to loopback."""
    tls: ssl.SSLContext | None
    credentials: Credentials = msgspec.field(default_factory=Anonymous)
    tls_server_name: str | None = None
    """The name in the server's certificate, if it is not the host's."""
    authority: Path | None = None
    """The file with the certificate authorities of the server. A new connection reads it again if
    it has changed, and trusts new authorities too."""
    proxy: str | None = None
    namespace: str = "default"
    """The default namespace."""
    user_agent: str = USER_AGENT
    headers: Mapping[str, str | Sequence[str]] = {}
    """Sent with every request; impersonation is in here."""

    @property
    def host(self) -> str:
        """Host and port, as the metrics name the server."""
        return urlsplit(self.server).netloc.rpartition("@")[2]


def verified_tls(ca_file: str | None = None, ca_data: str | None = None) -> ssl.SSLContext:
    """A TLS context that trusts only these authorities, or the system's if none are given.

    Only the certificates in PEM text are read, so it may have comments. Text without a certificate
    is a ValueError.
    """
    tls = ssl.create_default_context(
        cafile=ca_file, cadata=None if ca_data is None else certificates_in(ca_data)
    )
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    # Without it OpenSSL trusts only self-signed roots, but a kubeconfig may name an intermediate.
    tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # Python 3.13 and newer require key identifiers, which the authorities of many clusters lack.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return tls


def without_identity(connection: Connection, credentials: Credentials | None = None) -> Connection:
    """A connection to the same server that trusts the same authorities, with other credentials.

    Nothing of the first one's identity is left: no client certificate, which would count before a
    token, and no impersonation.
    """
    tls = None
    if connection.tls is not None:
        if connection.authority is not None:
            tls = verified_tls(ca_file=str(connection.authority))
        else:
            trusted = connection.tls.get_ca_certs(binary_form=True)
            pem = "".join(map(ssl.DER_cert_to_PEM_cert, trusted))
            tls = verified_tls(ca_data=pem or None)
    return Connection(
        server=connection.server,
        tls=tls,
        credentials=credentials or Anonymous(),
        tls_server_name=connection.tls_server_name,
        authority=connection.authority,
        proxy=connection.proxy,
        namespace=connection.namespace,
        user_agent=connection.user_agent,
    )


_CERTIFICATE = re.compile(
    "-----BEGIN (X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END (X509 |TRUSTED )?CERTIFICATE-----"
)


def certificates_in(pem: str) -> str:
    """The certificates in a PEM text; ValueError if there is none."""
    found = [match[0] for match in _CERTIFICATE.finditer(pem)]
    if not found:
        raise ValueError("there is no certificate in PEM form")
    return "\n".join(found) + "\n"


def in_cluster(
    env: Mapping[str, str], directory: Path = SERVICE_ACCOUNT, *, identified: bool = True
) -> Connection:
    """The connection of a pod; its token file is read again when the kubelet rotates it.

    Without `identified` it has no credentials, and the pod needs no token.
    """
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise KubeconfigError(
            "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; "
            "give a kubeconfig"
        )
    authority, token, namespace = (directory / n for n in ("ca.crt", "token", "namespace"))
    if identified and not token.is_file():
        raise KubeconfigError(
            f"{token}: missing; is automountServiceAccountToken off for this pod?"
        )
    try:
        tls = verified_tls(ca_file=str(authority))
    except (OSError, ssl.SSLError) as error:
        raise KubeconfigError(f"{authority}: {error.strerror or error}") from error
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Connection(
        server=server,
        tls=tls,
        authority=authority,
        credentials=TokenFile(token) if identified else Anonymous(),
        proxy=proxy_from_env(server, env),
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
    )


def proxy_from_env(server: str, env: Mapping[str, str]) -> str | None:
    """The proxy that HTTPS_PROXY (or HTTP_PROXY) names, unless NO_PROXY covers the server."""
    parts = urlsplit(server)
    name = f"{parts.scheme}_proxy"
    proxy = env.get(name) or env.get(name.upper())
    host = parts.hostname or ""
    if not proxy or is_loopback(host):
        return None
    if is_exempt(server, env.get("no_proxy") or env.get("NO_PROXY") or ""):
        return None
    proxy = proxy if "//" in proxy else f"http://{proxy}"
    if why := unusable_proxy(proxy):
        raise KubeconfigError(f"{name.upper()}: {why}")
    return proxy
