"""Ingress objects, Services, endpoints and Secrets into HAProxy's routes. Pure."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec

from quarterdeck.api.meta import Key, Object
from quarterdeck.haproxy.model import NO_ROUTE, Certificate, Endpoint
from quarterdeck.router.backends import BackendRef, endpoints
from quarterdeck.router.certificates import UnusableSecretError, pem_of
from quarterdeck.router.ingresses import ANY_HOST, OBJECT_NAME, Rule, accepted, owners_of, selected
from quarterdeck.router.observed import ObservedRoutes, Problem
from quarterdeck.router.settings import Settings

_LONGEST_FILE_NAME = 200
"""File systems take 255 bytes; a namespace and the name of a Secret can have more together."""


class Routing(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes are, and what was skipped."""

    exact_paths: tuple[tuple[str, str], ...] = ()
    path_prefixes: tuple[tuple[str, str], ...] = ()
    backends: Mapping[str, Sequence[Endpoint]] = {}
    """The endpoints of each backend, by its name."""
    certificates: tuple[Certificate, ...] = ()
    default_names: tuple[str, ...] = ()
    """The hosts for which no wildcard certificate of another namespace may speak."""
    users: Mapping[str, Sequence[Object]] = {}
    """The Ingress objects that use a backend, or a certificate, by its name."""
    problems: tuple[Problem, ...] = ()
    external_names: frozenset[str] = frozenset()
    """The names that have to be resolved."""


def routes(observed: ObservedRoutes, settings: Settings) -> Routing:
    """The routes of everything that this router serves. A bad object is skipped, with a problem."""
    ours = selected(observed.ingresses, observed.namespaces, settings)
    owners = owners_of(ours)
    ours = [one for one in ours if one["metadata"].get("uid") not in observed.left_out]
    rules, problems = accepted(ours, owners)
    backends: dict[str, Sequence[Endpoint]] = {}
    wrong: dict[BackendRef, str] = {}
    for rule in rules:
        ref = rule.backend
        if ref.backend_name not in backends:
            backends[ref.backend_name], wrong[ref] = endpoints(ref, observed, settings)
        if wrong[ref]:
            problems.append(Problem(rule.ingress, "BackendNotServed", wrong[ref]))
    certificates, of_secrets = _certificates(ours, owners, observed)
    return Routing(
        exact_paths=tuple(sorted(_entry(rule) for rule in rules if rule.exact)),
        path_prefixes=tuple(
            sorted([*(_entry(rule) for rule in rules if not rule.exact), *_ends(rules, owners)])
        ),
        backends=dict(sorted(backends.items())),
        certificates=certificates,
        default_names=_default_names(certificates, owners),
        users=_users(ours, rules),
        problems=(*problems, *of_secrets),
        external_names=_external_names(rules, observed) if settings.external_names else frozenset(),
    )


def _entry(rule: Rule) -> tuple[str, str]:
    """The entry of a map: a prefix ends in `/`, as the path that is looked up does."""
    path = rule.path if rule.exact else rule.path.rstrip("/") + "/"
    return rule.host + path, rule.backend.backend_name


def _ends(rules: Sequence[Rule], owners: Mapping[str, str]) -> list[tuple[str, str]]:
    """An entry for each host whose other paths a wider host of another namespace would get.

    HAProxy looks for `a.example`, then `*.example`, then every host. Without the entry, who has
    `*` would have each path of a host that its owner does not serve.
    """
    whole = {rule.host for rule in rules if rule.slot == (rule.host, "", False)}
    found = []
    for host in sorted(owners.keys() - whole - {ANY_HOST}):
        wider = (f"*.{host.partition('.')[2]}", ANY_HOST)
        others = [owners[one] for one in wider if one in owners and one != host]
        if others and others[0] != owners[host]:
            found.append((f"{host}/", NO_ROUTE))
    return found


def _users(ingresses: Sequence[Object], rules: Sequence[Rule]) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for rule in rules:
        found.setdefault(rule.backend.backend_name, []).append(rule.ingress)
    for ingress in ingresses:
        for tls in (ingress.get("spec") or {}).get("tls") or ():
            if name := tls.get("secretName"):
                file = _file_name(Key(ingress["metadata"]["namespace"], name))
                found.setdefault(file, []).append(ingress)
    return found


def _external_names(rules: Sequence[Rule], observed: ObservedRoutes) -> frozenset[str]:
    specs = [
        service.get("spec") or {}
        for ref in {rule.backend for rule in rules}
        if (service := observed.services.get(ref.key)) is not None
    ]
    return frozenset(
        spec["externalName"]
        for spec in specs
        if spec.get("type") == "ExternalName" and spec.get("externalName")
    )


def _certificates(
    ingresses: Sequence[Object], owners: Mapping[str, str], observed: ObservedRoutes
) -> tuple[tuple[Certificate, ...], list[Problem]]:
    """The certificates, each for hosts that belong to its namespace; the oldest Ingress wins."""
    problems: list[Problem] = []
    pems: dict[Key, str] = {}
    names: dict[Key, list[str]] = {}
    taken: set[str] = set()
    for ingress in ingresses:
        namespace = ingress["metadata"]["namespace"]
        for index, tls in enumerate((ingress.get("spec") or {}).get("tls") or ()):
            if not (secret_name := tls.get("secretName")):
                continue
            key = Key(namespace, secret_name)
            if key not in pems:
                try:
                    pems[key] = _pem(key, observed)
                except UnusableSecretError as error:
                    where = f"spec.tls[{index}].secretName: {secret_name!r}"
                    problems.append(Problem(ingress, "CertificateNotUsed", f"{where}: {error}"))
                    continue
            wanted = tls.get("hosts") or _hosts_of_rules(ingress)
            # Only who serves a host speaks for it.
            unserved = [host for host in wanted if owners.get(host) != namespace]
            if unserved:
                where = f"spec.tls[{index}].hosts: {', '.join(unserved[:3])}"
                message = f"{where}: no rule of this namespace has this host; name those of rules"
                problems.append(Problem(ingress, "CertificateNotUsed", message))
            for host in wanted:
                if owners.get(host) == namespace and host not in taken and host != ANY_HOST:
                    taken.add(host)
                    names.setdefault(key, []).append(host)
    found = tuple(
        Certificate(_file_name(key), pems[key], tuple(sorted(hosts)))
        for key, hosts in sorted(names.items())
    )
    return found, problems


def _default_names(
    certificates: Sequence[Certificate], owners: Mapping[str, str]
) -> tuple[str, ...]:
    """The hosts without a certificate that a wildcard one of another namespace would match."""
    named = {name for one in certificates for name in one.server_names}
    wider = {host: f"*.{host.partition('.')[2]}" for host in owners.keys() - named - {ANY_HOST}}
    return tuple(
        sorted(
            host
            for host, wildcard in wider.items()
            if wildcard in named and owners[wildcard] != owners[host]
        )
    )


def _file_name(key: Key) -> str:
    """The certificate's file: by the Secret's name, or a hash of it if that is too long."""
    name = f"{key.namespace}:{key.name}"
    return f"{name if len(name) <= _LONGEST_FILE_NAME else sha256(name.encode()).hexdigest()}.pem"


def _hosts_of_rules(ingress: Object) -> list[str]:
    hosts = [rule.get("host") for rule in (ingress.get("spec") or {}).get("rules") or ()]
    return [host for host in hosts if host and host != ANY_HOST]


def _pem(key: Key, observed: ObservedRoutes) -> str:
    secret = observed.secrets.get(key)
    if secret is None or not OBJECT_NAME.fullmatch(key.name):
        raise UnusableSecretError("there is no Secret of type kubernetes.io/tls with this name")
    return pem_of(secret)
