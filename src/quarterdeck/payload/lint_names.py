"""Lint: names and namespaces that the API server refuses."""

import re
from collections.abc import Iterator

from quarterdeck.payload.findings import Finding, error
from quarterdeck.payload.model import Manifest

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(rf"{_LABEL}\Z")
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\Z")
_SEGMENT_GROUPS = ("rbac.authorization.k8s.io", "certificates.k8s.io")
"""Groups whose objects may have any name that is a path segment."""
_LABEL_KINDS = {("", "Namespace"), ("", "Service")}
_LONGEST, _LONGEST_LABEL = 253, 63


def name_findings(manifest: Manifest) -> Iterator[Finding]:
    """The faults of a manifest's name and namespace."""
    identity = manifest.identity
    if identity.group in _SEGMENT_GROUPS:
        well = "/" not in identity.name and "%" not in identity.name
        if not well or identity.name in (".", ".."):
            yield _bad(manifest, "name", identity.name, "without / and %")
    elif (identity.group, identity.kind) in _LABEL_KINDS:
        if not _is_label(identity.name):
            yield _bad(manifest, "name", identity.name, _AS_LABEL)
    elif len(identity.name) > _LONGEST or not _DNS_SUBDOMAIN.match(identity.name):
        yield _bad(manifest, "name", identity.name, _AS_SUBDOMAIN)
    if identity.namespace and not _is_label(identity.namespace):
        yield _bad(manifest, "namespace", identity.namespace, _AS_LABEL)


_AS_LABEL = f"of small letters, digits and -, at most {_LONGEST_LABEL} characters"
_AS_SUBDOMAIN = f"of small letters, digits, - and ., at most {_LONGEST} characters"


def _is_label(name: str) -> bool:
    return len(name) <= _LONGEST_LABEL and _DNS_LABEL.match(name) is not None


def _bad(manifest: Manifest, field: str, value: str, rule: str) -> Finding:
    message = f"the API server refuses this {field}"
    return error("bad-name", manifest, ("metadata", field), value, message, f"write one {rule}")
