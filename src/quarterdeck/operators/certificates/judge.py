"""Decides which CertificateSigningRequest is approved. Pure.

Only the renewal of a certificate by its own user is approved: who asks is the user that the new
certificate names, and the API server has checked who asks. So an approval gives nobody a name that
he does not have. Each rule is about one field; the first that is not met is told.
"""

from collections.abc import Collection, Iterator
from datetime import timedelta
from typing import Literal

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.kube.client_certificate import SIGNER, USAGES, condition, read_request


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with a request."""

    action: Literal["approve", "leave", "ignore"]
    """`leave` is for a person, who is told; `ignore` is none of our business, or decided."""
    why: str = ""
    """Which rule is not met, for `leave`."""


IGNORE = Judgement(action="ignore")
APPROVE = Judgement(action="approve")


def judge(obj: Object, users: Collection[str], longest: timedelta) -> Judgement:
    """Whether a request is the renewal of the certificate of one of these users."""
    decided = any(condition(obj, kind) for kind in ("Approved", "Denied", "Failed"))
    spec = obj.get("spec") or {}
    if decided or (obj.get("status") or {}).get("certificate"):
        return IGNORE
    requester = spec.get("username")
    try:
        requested = read_request(obj)
        wanted, plain = requested.user, requested.only_user
    except ValueError:
        wanted, plain = "", False
    if requester not in users and wanted not in users:
        return IGNORE
    for why in _unmet(spec, users, longest, wanted, plain=plain):
        return Judgement(action="leave", why=why)
    return APPROVE


def _unmet(
    spec: Object, users: Collection[str], longest: timedelta, wanted: str, *, plain: bool
) -> Iterator[str]:
    requester = spec.get("username")
    if requester not in users:
        yield f"{requester!r} asks for a certificate of {wanted!r}, which only that user may renew"
    if wanted != requester:
        yield f"{requester!r} asks for a certificate of {wanted!r}, not for its own"
    if not plain:
        yield "spec.request asks for more than the user's name, or has another form or kind of key"
    if spec.get("signerName") != SIGNER:
        yield f"spec.signerName is {spec.get('signerName')!r}, not {SIGNER!r}"
    if sorted(spec.get("usages") or ()) != sorted(USAGES):
        yield f"spec.usages are {spec.get('usages')}, not {list(USAGES)}"
    seconds = spec.get("expirationSeconds")
    if not isinstance(seconds, int) or seconds > longest.total_seconds():
        limit = f"{longest.total_seconds():.0f}"
        yield f"spec.expirationSeconds is {seconds}; a renewal asks for at most {limit}"
