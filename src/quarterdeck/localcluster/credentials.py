"""The files by which components and users prove who they are, written at each start."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from quarterdeck.localcluster import certificates, kubeconfig
from quarterdeck.localcluster.components import Setup
from quarterdeck.localcluster.state import write_private

_AUDIT_POLICY = b"""\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
"""


def write_credentials(setup: Setup) -> None:
    """Issue all certificates, and write the kubeconfigs and policies that components read."""
    layout = setup.layout
    certificates.make_certificates(layout.pki)
    for user in ("kube-controller-manager", "kube-scheduler", "kwok", "this-machine"):
        write_private(layout.kubeconfig_of(user), _kubeconfig(setup, user))
    write_private(layout.kubeconfig, _kubeconfig(setup, "admin"))
    if setup.audit:
        write_private(layout.audit_policy, _AUDIT_POLICY)


def issue_kubeconfig(setup: Setup, user: str, groups: Iterable[str]) -> Path:
    """A kubeconfig for a user in these groups, with a client certificate issued now."""
    plan = certificates.Plan(name=user, common_name=user, organizations=tuple(groups), client=True)
    authority = certificates.load(setup.layout.pki, "ca")
    pair = certificates.issue(plan, authority, datetime.now(UTC))
    text = kubeconfig.with_certificate(setup.api_url, authority.certificate, pair, user=user)
    return _write(setup, user, text)


def token_kubeconfig(setup: Setup, user: str, token: str) -> Path:
    """A kubeconfig for the user whose token this is."""
    authority = certificates.load(setup.layout.pki, "ca").certificate
    return _write(setup, user, kubeconfig.with_token(setup.api_url, authority, token, user=user))


def _kubeconfig(setup: Setup, name: str) -> bytes:
    pki = setup.layout.pki
    authority = certificates.load(pki, "ca").certificate
    pair = certificates.load(pki, name)
    return kubeconfig.with_certificate(setup.api_url, authority, pair, user=name)


def _write(setup: Setup, user: str, text: bytes) -> Path:
    path = setup.layout.kubeconfig_of(user)
    write_private(path, text)
    return path
