"""Which Ingress objects are this router's, and who may serve which host. Pure.

The oldest wins: a host belongs to the namespace of the oldest Ingress that names it, so that nobody
takes paths of a host in another namespace; of two equal paths in a namespace, the older one counts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.router.backends import BackendRef
from quarterdeck.router.observed import Problem
from quarterdeck.router.settings import DEFAULT_NAME, Settings

ANY_HOST = "*"
_LEGACY_CLASS = "kubernetes.io/ingress.class"
_HOST = re.compile(
    r"(?=.{1,253}$)(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
_PATH = re.compile(r"/[!-~]*")
_LONGEST_PATH = 4096
"""HAProxy reads a map by lines of 16 KiB: what is longer would go on as an entry of its own, for
any host. No request has such a path either."""
OBJECT_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
"""The name of a Service or Secret. The API refuses others; here one of them would spoil all."""
_PORT_NAME = re.compile(r"[a-z0-9-]{1,63}")


class Rule(msgspec.Struct, frozen=True):
    """A host and path that an Ingress sends to a backend."""

    ingress: Object
    host: str
    path: str
    exact: bool
    backend: BackendRef

    @property
    def slot(self) -> tuple[str, str, bool]:
        """What only one rule can have; `/foo` and `/foo/` are the same prefix."""
        return self.host, self.path if self.exact else self.path.rstrip("/"), self.exact


def selected(
    ingresses: Iterable[Object], namespaces: Mapping[str, Mapping[str, str]], settings: Settings
) -> list[Object]:
    """The Ingress objects that this router serves, the oldest first."""
    ours = [
        one
        for one in ingresses
        if not one["metadata"].get("deletionTimestamp")
        and _has_class(one, settings)
        and settings.ingresses.matches(one["metadata"].get("labels") or {})
        and settings.namespaces.matches(namespaces.get(one["metadata"]["namespace"]) or {})
    ]
    return sorted(ours, key=_age)


def owners_of(ingresses: Iterable[Object]) -> dict[str, str]:
    """The namespace that each host belongs to: that of the first Ingress which names it.

    It counts whether or not a rule or default backend of it is served.
    """
    owners: dict[str, str] = {}
    for ingress in ingresses:
        spec = ingress.get("spec") or {}
        rules = spec.get("rules") or ()
        hosts = [rule.get("host") or ANY_HOST for rule in rules]
        if not rules and spec.get("defaultBackend"):
            hosts.append(ANY_HOST)
        for host in hosts:
            if host == ANY_HOST or _HOST.fullmatch(host):
                owners.setdefault(host, ingress["metadata"]["namespace"])
    return owners


def accepted(
    ingresses: Iterable[Object], owners: Mapping[str, str]
) -> tuple[list[Rule], list[Problem]]:
    """The rules of these Ingress objects, the oldest first, without those that conflict."""
    problems: list[Problem] = []
    taken: dict[tuple[str, str, bool], Object] = {}
    rules: list[Rule] = []
    ordered = list(ingresses)
    # A default backend is only for what no rule serves, however old.
    for kind in ("rules", "default"):
        for ingress in ordered:
            for found in _rules(ingress, kind):
                if isinstance(found, Problem):
                    problems.append(found)
                    continue
                namespace = ingress["metadata"]["namespace"]
                if (owner := owners[found.host]) != namespace:
                    problems.append(_conflict(found, f"namespace {owner}"))
                    continue
                first = taken.get(found.slot)
                if first is None:
                    taken[found.slot] = ingress
                    rules.append(found)
                elif first is not ingress and kind == "rules":  # default backends overlap by nature
                    problems.append(_conflict(found, f"Ingress {first['metadata']['name']}"))
    return rules, problems


def _conflict(rule: Rule, older: str) -> Problem:
    host = "every host" if rule.host == ANY_HOST else f"host {rule.host}"
    message = f"path {rule.path} of {host} is served by {older}, which is older; choose another"
    return Problem(rule.ingress, "Conflict", message)


def _age(ingress: Object) -> tuple[str, str, str]:
    meta = ingress["metadata"]
    return meta.get("creationTimestamp") or "", meta["namespace"], meta["name"]


def _has_class(ingress: Object, settings: Settings) -> bool:
    meta, spec = ingress["metadata"], ingress.get("spec") or {}
    name = spec.get("ingressClassName") or (meta.get("annotations") or {}).get(_LEGACY_CLASS)
    if name:
        return bool(name == settings.ingress_class)
    return settings.name == DEFAULT_NAME


def _rules(ingress: Object, kind: str) -> Iterator[Rule | Problem]:
    spec = ingress.get("spec") or {}
    if kind == "rules":
        for index, rule in enumerate(spec.get("rules") or ()):
            yield from _rules_of_host(ingress, rule, f"spec.rules[{index}]")
        return
    if not (backend := spec.get("defaultBackend")):
        return
    rules = spec.get("rules") or ()
    hosts = {host for rule in rules if _HOST.fullmatch(host := rule.get("host") or "")}
    anywhere = not rules or any(not rule.get("host") for rule in rules)
    for host in (*sorted(hosts), *([ANY_HOST] if anywhere else [])):
        ref = _backend(ingress, backend, "spec.defaultBackend")
        if isinstance(ref, Problem):
            yield ref
            return
        yield Rule(ingress, host, "/", exact=False, backend=ref)


def _rules_of_host(ingress: Object, rule: Object, field: str) -> Iterator[Rule | Problem]:
    host = rule.get("host") or ANY_HOST
    if host != ANY_HOST and not _HOST.fullmatch(host):
        yield _invalid(ingress, f"{field}.host", host, "use a DNS name in lower case")
        return
    for index, path in enumerate((rule.get("http") or {}).get("paths") or ()):
        where = f"{field}.http.paths[{index}]"
        text = path.get("path") or "/"
        if not _PATH.fullmatch(text):
            remedy = "begin with / and use printable ASCII; write other characters as %XX"
            yield _invalid(ingress, f"{where}.path", text, remedy)
            continue
        if len(text) > _LONGEST_PATH:
            remedy = f"it has {len(text)} characters; use at most {_LONGEST_PATH}"
            yield _invalid(ingress, f"{where}.path", text[:40] + "...", remedy)
            continue
        ref = _backend(ingress, path.get("backend") or {}, f"{where}.backend")
        if isinstance(ref, Problem):
            yield ref
            continue
        # What ImplementationSpecific means is ours to say: a prefix.
        yield Rule(ingress, host, text, path.get("pathType") == "Exact", ref)


def _backend(ingress: Object, backend: Object, field: str) -> BackendRef | Problem:
    service = backend.get("service")
    if not service:
        remedy = "name a Service; other resources are not served"
        return _invalid(ingress, field, backend.get("resource"), remedy)
    port = service.get("port") or {}
    number, name = port.get("number"), port.get("name") or ""
    wanted = str(number) if number else name
    if not OBJECT_NAME.fullmatch(service.get("name") or "") or not _PORT_NAME.fullmatch(wanted):
        return _invalid(ingress, field, service, "name a Service and one of its ports")
    return BackendRef(ingress["metadata"]["namespace"], service["name"], wanted)


def _invalid(ingress: Object, field: str, value: object, remedy: str) -> Problem:
    return Problem(ingress, "Invalid", f"{field}: {value!r}: {remedy}")
