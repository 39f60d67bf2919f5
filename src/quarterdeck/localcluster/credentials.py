"""Writes the certificates and kubeconfigs of components and users, at each start."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from quarterdeck.localcluster import certificates, kubeconfig
from quarterdeck.localcluster.components import Setup
from quarterdeck.private_file import write_private

_AUDIT_POLICY = b"""\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
"""


def write_credentials(setup: Setup) -> None:
    """Issue all certificates, and write the components' kubeconfigs and the audit policy."""
    layout = setup.layout
    certificates.make_certificates(layout.pki)
    for user in ("kube-controller-manager", "kube-scheduler", "kwok", "this-machine"):
        write_private(layout.kubeconfig_of(user), _kubeconfig(setup, user))
    write_private(layout.kubeconfig, _kubeconfig(setup, "admin"))
    if setup.audit:
        write_private(layout.audit_policy, _AUDIT_POLICY)


def issue_kubeconfig(setup: Setup, user: str, groups: Iterable[str]) -> Path:
    """Write a kubeconfig with a new client certificate for a user in these groups."""
    return _write(setup, user, _issued(setup, user, groups))


def issue_pod_credentials(
    setup: Setup, pod: str, user: str, groups: Iterable[str] = (), *, owner: int = -1
) -> Path:
    """Write a `kubeconfig` for a static pod, and return its directory, which the pod mounts.

    Only the user id `owner` may read it; -1 is our own, and only root may give another. A second
    call replaces the file in one step, so that a running pod finds the new one.
    """
    directory = setup.layout.credentials_of(pod)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    uid = os.geteuid() if owner == -1 else owner
    os.chown(directory, uid, -1)
    write_private(directory / "kubeconfig", _issued(setup, user, groups), owner=uid)
    return directory


def token_kubeconfig(setup: Setup, user: str, token: str) -> Path:
    """Write a kubeconfig with this token."""
    authority = certificates.load(setup.layout.pki, "ca").certificate
    return _write(setup, user, kubeconfig.with_token(setup.api_url, authority, token, user=user))


def _kubeconfig(setup: Setup, name: str) -> bytes:
    pki = setup.layout.pki
    authority = certificates.load(pki, "ca").certificate
    pair = certificates.load(pki, name)
    return kubeconfig.with_certificate(setup.api_url, authority, pair, user=name)


def _issued(setup: Setup, user: str, groups: Iterable[str]) -> bytes:
    spec = certificates.CertificateSpec(
        name=user, common_name=user, organizations=tuple(groups), client=True
    )
    authority = certificates.load(setup.layout.pki, "ca")
    pair = certificates.issue(spec, authority, datetime.now(UTC))
    return kubeconfig.with_certificate(setup.api_url, authority.certificate, pair, user=user)


def _write(setup: Setup, user: str, text: bytes) -> Path:
    path = setup.layout.kubeconfig_of(user)
    write_private(path, text)
    return path
