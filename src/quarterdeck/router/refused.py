"""Whose object it is when HAProxy refuses a configuration. Pure.

HAProxy names a line of its configuration or a file. A line is of the section of a backend, a file
that of a certificate, and both are there for Ingress objects. Those are left out until they, or
what they name, change: the others keep working.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from quarterdeck.api.meta import Key, Object
from quarterdeck.haproxy.check import Complaint
from quarterdeck.router.observed import ObservedRoutes, Problem

_WORD = re.compile(r"[A-Za-z0-9:._-]+")
REASON = "ConfigurationRefused"
_NAMED = 3


class RefusedIngress(msgspec.Struct, frozen=True):
    """An Ingress that HAProxy refused, and the versions of it and of what it names."""

    problem: Problem
    versions: tuple[str, ...]


def left_out(found: Iterable[Problem], observed: ObservedRoutes) -> dict[str, RefusedIngress]:
    """The Ingress objects of these problems by their uid, as they were observed."""
    return {
        str(one.about["metadata"]["uid"]): RefusedIngress(one, _versions(one.about, observed))
        for one in found
    }


def unchanged(
    before: Mapping[str, RefusedIngress], observed: ObservedRoutes
) -> dict[str, RefusedIngress]:
    """Those that are still as they were when HAProxy refused them."""
    if not before:
        return {}
    now = {str(one["metadata"].get("uid")): one for one in observed.ingresses}
    return {
        uid: one
        for uid, one in before.items()
        if uid in now and _versions(now[uid], observed) == one.versions
    }


def names(left: Iterable[RefusedIngress]) -> str:
    """The names of the Ingress objects, the first few of them."""
    metas = [one.problem.about["metadata"] for one in left]
    found = sorted(f"{meta['namespace']}/{meta['name']}" for meta in metas)
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more


def _versions(ingress: Object, observed: ObservedRoutes) -> tuple[str, ...]:
    namespace, spec = ingress["metadata"]["namespace"], ingress.get("spec") or {}
    secrets = [tls.get("secretName") or "" for tls in spec.get("tls") or ()]
    objects = [
        ingress,
        *(observed.secrets.get(Key(namespace, name)) for name in secrets),
        *(observed.services.get(Key(namespace, name)) for name in _services(spec)),
    ]
    return tuple(
        str((one.get("metadata") or {}).get("resourceVersion")) if one else "" for one in objects
    )


def _services(spec: Object) -> Iterator[str]:
    backends = [spec.get("defaultBackend") or {}]
    for rule in spec.get("rules") or ():
        paths = (rule.get("http") or {}).get("paths") or ()
        backends += [path.get("backend") or {} for path in paths]
    return (str((one.get("service") or {}).get("name") or "") for one in backends)


def problems(
    complaints: Iterable[Complaint], config: str, users: Mapping[str, Sequence[Object]]
) -> list[Problem]:
    """A problem for each Ingress that uses a backend or certificate that HAProxy complains about.

    `users` has the Ingress objects by the name of the backend, or of the certificate's file.
    """
    found: dict[str, Problem] = {}
    for one in complaints:
        for name in _WORD.findall(f"{_section(config, one.line)} {one.words}"):
            for ingress in users.get(name, users.get(name.rstrip(".:"), ())):
                message = f"HAProxy refuses the configuration: {one.words}"
                uid = str(ingress["metadata"]["uid"])
                found.setdefault(uid, Problem(ingress, REASON, message))
    return list(found.values())


def _section(config: str, line: int | None) -> str:
    """The head of the section that has this line; empty without one."""
    heads = [text for text in config.split("\n")[: line or 0] if text and not text[0].isspace()]
    return heads[-1] if heads else ""
