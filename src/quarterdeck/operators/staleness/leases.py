"""Leases as proof of life: which ones an operator names, and what one of them proves. Pure.

A renewed Lease proves that the process runs, not that it updates its conditions. So it counts only
if an annotation on the ClusterOperator asks for it.
"""

import re
from collections.abc import Iterable

from quarterdeck.api.meta import LEASES, Key, Object
from quarterdeck.api.times import parse_time
from quarterdeck.operators.staleness.evidence import Proof

ANNOTATION = "quarterdeck.dev/lease-proves-life"
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
MAX_NAME_LENGTH = 253
"""The most characters of a name; the API server refuses to read a long request path."""


def named_leases(obj: Object) -> list[Key]:
    """The Leases in `status.relatedObjects`, each once; none without the annotation."""
    annotations = obj["metadata"].get("annotations")
    if not isinstance(annotations, dict) or annotations.get(ANNOTATION) != "true":
        return []
    status = obj.get("status")
    related = status.get("relatedObjects") if isinstance(status, dict) else None
    named = [
        Key(entry["namespace"], entry["name"])
        for entry in (related if isinstance(related, list) else [])
        if isinstance(entry, dict)
        and (entry.get("group"), entry.get("resource")) == (LEASES.group, LEASES.plural)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get("namespace"), str)
        and entry["name"]
        and entry["namespace"]
    ]
    return list(dict.fromkeys(named))


def is_valid_name(key: Key) -> bool:
    """Whether a Lease may have that name; no other name may get into a request path."""
    parts = (key.namespace, key.name)
    return all(len(part) <= MAX_NAME_LENGTH and _NAME.fullmatch(part) for part in parts)


def renewal(lease: Object) -> Proof | None:
    """When the Lease was last renewed, by the server's clock, not by its holder's."""
    meta = lease["metadata"]
    times = [
        time
        for entry in meta.get("managedFields") or ()
        if "f:renewTime" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
        and (time := parse_time(entry.get("time"))) is not None
    ]
    if not times:
        return None
    return Proof(max(times), f"a renewal of Lease {meta['namespace']}/{meta['name']}")


def latest_proof(proofs: Iterable[Proof | None]) -> Proof | None:
    """The latest of several proofs; None if there is none."""
    found = [proof for proof in proofs if proof is not None]
    return max(found, key=lambda proof: proof.time, default=None)
