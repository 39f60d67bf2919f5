"""Reads a `Connection` from kubeconfig files, as kubectl does.

Several files in KUBECONFIG are merged: the first file with a cluster, user or context wins, and
paths inside a file are relative to it. Errors are `KubeconfigError` with one line that names the
file, the entry and the field. TLS verification cannot be switched off.
"""

import base64
import os
import ssl
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from quarterdeck.kube.auth import (
    Anonymous,
    CertificateFiles,
    Credentials,
    ExecPlugin,
    ExecSettings,
    StaticHeader,
    TokenFile,
    load_pem_pair,
)
from quarterdeck.kube.connection import (
    Connection,
    proxy_from_env,
    verified_tls,
)
from quarterdeck.kube.errors import KubeconfigError
from quarterdeck.kube.kubeconfig_files import (
    Exec,
    KubeconfigCluster,
    KubeconfigEntry,
    KubeconfigUser,
    kubeconfig_files,
    read_and_merge,
)
from quarterdeck.proxies import is_loopback, unusable_proxy

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


def load_kubeconfig(
    path: str | Path | None = None,
    context: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Connection:
    """The connection that a context describes.

    The file is `path` if given, else those in KUBECONFIG, else `~/.kube/config`. Without `context`
    it is the current context.
    """
    env = os.environ if env is None else env
    files = kubeconfig_files(path, env)
    merged = read_and_merge(files)
    where = ", ".join(map(str, files))
    name = context or merged.current
    if not name:
        raise KubeconfigError(
            f"{where}: current-context is not set; choose one of: {_names(merged.contexts)}"
        )
    chosen = merged.contexts.get(name)
    if chosen is None:
        raise KubeconfigError(
            f"{where}: context {name!r} is not defined; there are: {_names(merged.contexts)}"
        )
    cluster = merged.clusters.get(chosen.value.cluster)
    if cluster is None:
        raise chosen.error(
            f"cluster {chosen.value.cluster!r} is not defined; there are: {_names(merged.clusters)}"
        )
    user = KubeconfigEntry(chosen.file, chosen.what, KubeconfigUser())
    if chosen.value.user:
        found = merged.users.get(chosen.value.user)
        if found is None:
            raise chosen.error(
                f"user {chosen.value.user!r} is not defined; there are: {_names(merged.users)}"
            )
        user = found
    return _connection(cluster, user, chosen.value.namespace, env)


def _names(entries: Mapping[str, object]) -> str:
    return ", ".join(sorted(entries)) or "none"


def _connection(
    cluster: KubeconfigEntry[KubeconfigCluster],
    user: KubeconfigEntry[KubeconfigUser],
    namespace: str,
    env: Mapping[str, str],
) -> Connection:
    settings = cluster.value
    server = _server(cluster)
    tls = _tls(cluster) if server.startswith("https:") else None
    _client_certificate(user, tls)
    return Connection(
        server=server,
        tls=tls,
        credentials=_rotating(user, tls, _credentials(user, cluster, tls, env)),
        tls_server_name=settings.tls_server_name or None,
        authority=_authority_file(cluster),
        proxy=_proxy(cluster) or proxy_from_env(server, env),
        namespace=namespace or "default",
        headers=_impersonation(user),
    )


def _server(cluster: KubeconfigEntry[KubeconfigCluster]) -> str:
    server = cluster.value.server
    if not server:
        raise cluster.error("server is not set")
    if "//" not in server:
        server = f"https://{server}"
    try:
        parts = urlsplit(server)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host = None
    if host and parts.username is not None:
        raise cluster.error(
            f"server has a user before the host {host!r}; give username and password of the user"
        )
    if not host or parts.scheme not in ("http", "https"):
        raise cluster.error(f"server {cluster.value.server!r} is not an http(s) address")
    if parts.scheme == "http" and not is_loopback(host):
        raise cluster.error(f"server {server} is without TLS; use https")
    return server.rstrip("/")


def _tls(cluster: KubeconfigEntry[KubeconfigCluster]) -> ssl.SSLContext:
    settings = cluster.value
    if settings.insecure_skip_tls_verify:
        raise cluster.error(
            "insecure-skip-tls-verify is refused, TLS is always verified; "
            "set certificate-authority (and tls-server-name if the name differs)"
        )
    field, authority = "", None
    if settings.certificate_authority_data:
        field = "certificate-authority-data"
        authority = cluster.decoded(field, settings.certificate_authority_data)
    elif settings.certificate_authority:
        field = "certificate-authority"
        authority = cluster.text(field, settings.certificate_authority)
    try:
        return verified_tls(ca_data=authority)
    except (ssl.SSLError, ValueError) as error:
        raise cluster.error(f"{field} has no certificate in PEM form") from error


def _authority_file(cluster: KubeconfigEntry[KubeconfigCluster]) -> Path | None:
    """The file with the authorities; None if they are in the kubeconfig itself."""
    c = cluster.value
    if c.certificate_authority_data or not c.certificate_authority:
        return None
    return cluster.path(c.certificate_authority)


def _client_certificate(user: KubeconfigEntry[KubeconfigUser], tls: ssl.SSLContext | None) -> None:
    u = user.value
    certificate = key = ""
    if u.client_certificate_data:
        certificate = user.decoded("client-certificate-data", u.client_certificate_data)
    elif u.client_certificate:
        certificate = user.text("client-certificate", u.client_certificate)
    if u.client_key_data:
        key = user.decoded("client-key-data", u.client_key_data)
    elif u.client_key:
        key = user.text("client-key", u.client_key)
    if bool(certificate) != bool(key):
        have, lack = ("client-certificate", "client-key")[:: 1 if certificate else -1]
        raise user.error(f"has a {have} but no {lack}")
    if not certificate or tls is None:
        return
    try:
        # A file with both is loaded once: otherwise the certificate would be its own issuer.
        load_pem_pair(tls, certificate, "" if certificate == key else key)
    except ssl.SSLError as error:
        raise user.error(
            "client-certificate and client-key are not a pair in PEM form "
            f"({error.reason or error.strerror or 'unreadable'})"
        ) from error


def _rotating(
    user: KubeconfigEntry[KubeconfigUser], tls: ssl.SSLContext | None, others: Credentials
) -> Credentials:
    """The credentials; a client certificate in files is loaded again when the files change."""
    u = user.value
    inline = u.client_certificate_data or u.client_key_data
    if tls is None or inline or not u.client_certificate:
        return others
    return CertificateFiles(user.path(u.client_certificate), user.path(u.client_key), tls, others)


def _credentials(
    user: KubeconfigEntry[KubeconfigUser],
    cluster: KubeconfigEntry[KubeconfigCluster],
    tls: ssl.SSLContext | None,
    env: Mapping[str, str],
) -> Credentials:
    u = user.value
    if u.exec is not None:
        return ExecPlugin(_exec_settings(user, u.exec, cluster), tls, env)
    if u.auth_provider is not None:
        name = u.auth_provider.get("name", "")
        raise user.error(f"auth-provider {name!r} is not supported here; use exec or a token")
    # As in kubectl: the file wins over a token, which may be a copy of it.
    if u.token_file:
        path = user.path(u.token_file)
        if not path.is_file():
            raise user.error(f"tokenFile {path}: No such file or directory")
        return TokenFile(path)
    if u.token:
        try:
            return StaticHeader.bearer(u.token)
        except ValueError as error:
            raise user.error(str(error)) from error
    if u.username:
        return StaticHeader.basic(u.username, u.password)
    return Anonymous()


def _exec_settings(
    user: KubeconfigEntry[KubeconfigUser], plugin: Exec, cluster: KubeconfigEntry[KubeconfigCluster]
) -> ExecSettings:
    if plugin.api_version not in _EXEC_VERSIONS:
        raise user.error(
            f"exec.apiVersion {plugin.api_version!r} is not supported; "
            f"use {' or '.join(_EXEC_VERSIONS)}"
        )
    if plugin.interactive_mode == "Always":
        raise user.error("exec.interactiveMode is Always, and an operator has no terminal")
    # A bare name is looked up in PATH, anything else is relative to the file.
    command = plugin.command
    if os.sep in command:
        command = str(user.path(command))
    info = None
    if plugin.provide_cluster_info:
        info = _cluster_info(cluster)
    return ExecSettings(
        api_version=plugin.api_version,
        command=command,
        args=tuple(plugin.args or ()),
        env={variable.name: variable.value for variable in plugin.env or ()},
        install_hint=plugin.install_hint,
        cluster=info,
        where=f"{user.file}: {user.what}: ",
    )


def _cluster_info(cluster: KubeconfigEntry[KubeconfigCluster]) -> dict[str, Any]:
    """The cluster's settings, for a plugin that asks for them."""
    c = cluster.value
    info: dict[str, Any] = {"server": c.server}
    if c.tls_server_name:
        info["tls-server-name"] = c.tls_server_name
    if c.proxy_url:
        info["proxy-url"] = c.proxy_url
    if c.certificate_authority_data:
        info["certificate-authority-data"] = c.certificate_authority_data
    elif c.certificate_authority:
        text = cluster.text("certificate-authority", c.certificate_authority)
        info["certificate-authority-data"] = base64.b64encode(text.encode()).decode()
    for extension in c.extensions:
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info


def _proxy(cluster: KubeconfigEntry[KubeconfigCluster]) -> str | None:
    proxy = cluster.value.proxy_url
    if proxy and (why := unusable_proxy(proxy)):
        raise cluster.error(f"proxy-url {why}")
    return proxy or None


def _impersonation(user: KubeconfigEntry[KubeconfigUser]) -> dict[str, str | Sequence[str]]:
    u = user.value
    headers: dict[str, str | Sequence[str]] = {}
    if u.impersonate:
        headers["Impersonate-User"] = u.impersonate
    if u.as_uid:
        headers["Impersonate-Uid"] = u.as_uid
    if u.as_groups:
        headers["Impersonate-Group"] = tuple(u.as_groups)
    for extra, values in u.as_user_extra.items():
        headers[f"Impersonate-Extra-{_escaped(extra)}"] = tuple(values)
    for value in headers.values():
        texts = [value] if isinstance(value, str) else value
        if any(character in text for text in texts for character in "\r\n\0"):
            raise user.error("as: a line break in a user, group or extra value")
    return headers


_HEADER_NAME = frozenset("!#$&'*+-.^_`|~" + string.ascii_letters + string.digits)


def _escaped(extra: str) -> str:
    """A key as part of a header name; the server decodes `%2F` as the `/` after a domain."""
    return "".join(
        chr(byte) if chr(byte) in _HEADER_NAME else f"%{byte:02X}" for byte in extra.encode()
    )
