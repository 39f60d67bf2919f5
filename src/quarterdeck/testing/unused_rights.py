"""Lists the rights of accounts that no request in audit logs used.

    python -m quarterdeck.testing.unused_rights --operator ingress audit.log
    python -m quarterdeck.testing.unused_rights --objects deploy/ingress/rbac.yaml audit.log

With `--operator`, the rights are those of the installed operator's declaration, without the ones
that it or its runtime says are seldom used. The logs need the level Metadata, and every request.
The exit code is 1 if a right was not used, 2 for wrong arguments.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import yaml

from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration
from quarterdeck.delivery.manifests import account_objects
from quarterdeck.delivery.registry import installed
from quarterdeck.delivery.seldom import seldom_used
from quarterdeck.testing.audit import AuditEntry, decode_entry
from quarterdeck.testing.rbac import (
    GrantedRight,
    Request,
    RoleMissing,
    rights_of,
    unbound_roles,
    unused,
    users,
)

_DECISION = "authorization.k8s.io/decision"
_FORBIDDEN, _CREATED = 403, 201
_ROLES = ("roles", "clusterroles")
_BINDINGS = ("rolebindings", "clusterrolebindings")
_RBAC = "rbac.authorization.k8s.io"
_CHANGES = ("create", "update", "patch")


def unused_rights(
    audit_logs: Iterable[Path], objects: Iterable[Object], user: str
) -> list[GrantedRight]:
    """The rights that the roles among these objects give to a user, and that no request used."""
    return unused(list(rights_of(user, objects)), requests(audit_logs)[user])


def unused_by_operator(audit_logs: Iterable[Path], declared: Declaration) -> list[GrantedRight]:
    """The unused rights of an operator by its declaration, without those it seldom uses."""
    if declared.cluster_admin:
        return []  # It has all rights, and says why.
    objects = account_objects(declared)
    made = requests(audit_logs)
    rights = {user: list(rights_of(user, objects)) for user in users(objects)}
    for user, some in rights.items():
        # The operator binds these by itself, in namespaces that are not known here.
        bound = [_binding(role, user) for role in unbound_roles(objects)]
        some += rights_of(user, [*unbound_roles(objects), *bound])
    seldom = seldom_used(declared)
    return [
        right
        for user, some in rights.items()
        for right in unused(some, made[user])
        if not any(one.covers(right.group, right.resource, right.verb) for one in seldom)
    ]


def _binding(role: Object, user: str) -> Object:
    """A binding of the role to the user, in all namespaces."""
    return {
        "kind": "ClusterRoleBinding",
        "metadata": {},
        "roleRef": {"kind": role["kind"], "name": role["metadata"]["name"]},
        "subjects": [{"kind": "User", "name": user}],
    }


def requests(audit_logs: Iterable[Path]) -> defaultdict[str, set[Request]]:
    """By user: what RBAC allowed, each once."""
    found: defaultdict[str, set[Request]] = defaultdict(set)
    for log in audit_logs:
        with log.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # It is being written.
                for user, request in _asked(decode_entry(line)):
                    found[user].add(request)
    return found


def _asked(entry: AuditEntry) -> Iterator[tuple[str, Request]]:
    """What RBAC was asked about a request that it allowed: who, and what."""
    if entry.stage not in ("ResponseComplete", "ResponseStarted") or not _allowed(entry):
        return
    user, other = entry.user.username, entry.impersonated_user
    if other.username:
        yield user, _impersonation(other.username)
        user = other.username
    for request in _requests(entry):
        yield user, request


def _allowed(entry: AuditEntry) -> bool:
    decision = entry.annotations.get(_DECISION)
    # Admission refuses with the same code as RBAC does, so the code alone may tell too little.
    return decision == "allow" if decision else entry.response_status.code != _FORBIDDEN


def _impersonation(user: str) -> Request:
    prefix, _, account = user.rpartition("system:serviceaccount:")
    if not prefix and account != user:
        namespace, _, name = account.partition(":")
        return Request(
            verb="impersonate", resource="serviceaccounts", namespace=namespace, name=name
        )
    return Request(verb="impersonate", resource="users", name=user)


def _requests(entry: AuditEntry) -> Iterator[Request]:
    about = entry.object_ref
    if not about.resource:
        yield Request(verb=entry.verb, path=entry.request_uri.partition("?")[0])
        return
    resource = "/".join(filter(None, (about.resource, about.subresource)))
    # The name of a new object is in its body, which RBAC does not see; the log has it all the same.
    in_path = entry.verb != "create" or about.subresource
    made = Request(
        verb=entry.verb,
        group=about.api_group,
        resource=resource,
        namespace=about.namespace,
        name=about.name if in_path else "",
    )
    yield made
    if entry.verb in ("patch", "update") and entry.response_status.code == _CREATED:
        # An apply that creates the object needs the right to create it too, by its name.
        yield msgspec.structs.replace(made, verb="create")
    if about.api_group == _RBAC and entry.verb in _CHANGES:
        if about.resource in _ROLES:
            yield msgspec.structs.replace(made, verb="escalate", name=about.name)
        if about.resource in _BINDINGS:
            for role in _ROLES:
                yield msgspec.structs.replace(made, verb="bind", resource=role, name="")


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m quarterdeck.testing.unused_rights",
        description="List the rights that no request in audit logs used.",
    )
    known = installed().operators
    parser.add_argument("--operator", action="append", default=[], choices=sorted(known))
    parser.add_argument("--objects", action="append", default=[], type=Path, metavar="FILE")
    parser.add_argument("audit_logs", nargs="+", type=Path, metavar="AUDIT_LOG")
    given = parser.parse_args(arguments)
    if not given.operator and not given.objects:
        parser.error("name operators (--operator) or files with roles and bindings (--objects)")
    try:
        found = _found(given.audit_logs, given.objects, [known[name] for name in given.operator])
    except (OSError, ValueError, yaml.YAMLError, RoleMissing) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for whose, rights in found.items():
        sys.stdout.writelines(f"{whose}: {right}\n" for right in rights)
    return 1 if any(found.values()) else 0


def _found(
    audit_logs: Sequence[Path], files: Sequence[Path], operators: Iterable[Declaration]
) -> Mapping[str, list[GrantedRight]]:
    objects = [
        one
        for file in files
        for one in yaml.safe_load_all(file.read_text())
        if isinstance(one, dict)
    ]
    by_user = {user: unused_rights(audit_logs, objects, user) for user in users(objects)}
    return by_user | {one.name: unused_by_operator(audit_logs, one) for one in operators}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
