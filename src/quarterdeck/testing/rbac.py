"""Which rights of an account a set of requests used, as RBAC decides it. Pure.

A right is the smallest part of a rule: one verb on one resource, of one name if the rule has names.
Only roles that are bound to the account itself count, not those of groups that it is in.

Three verbs are never that of a request. `impersonate` is checked for a request as somebody else,
`escalate` for a write of a role, `bind` for a write of a binding. Such a request counts as a use,
because an audit log without bodies does not tell whether it would have been allowed otherwise.
"""

from collections.abc import Collection, Iterable, Iterator

import msgspec

from quarterdeck.api.meta import Object

EVERYTHING = "*"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What RBAC is asked about a request."""

    verb: str
    group: str = ""
    resource: str = ""
    """With the subresource, as `notes/status`; empty for a path."""
    namespace: str = ""
    name: str = ""
    path: str = ""
    """The path of a request that is not about a resource, as `/healthz`."""


class GrantedRight(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One verb on one resource or path, that a role gives to an account."""

    role: str
    """The role by kind and name: `ClusterRole x`, `Role ns/x`."""
    namespace: str = ""
    """Only in this namespace; in all if empty."""
    group: str = ""
    resource: str = ""
    name: str = ""
    """Only the object of this name; all if empty."""
    path: str = ""
    verb: str

    def __str__(self) -> str:
        what = self.path or f"{self.resource}.{self.group}".rstrip(".")
        name = f" {self.name}" if self.name else ""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.role}: {self.verb} {what}{name}{where}"

    def allows(self, request: Request) -> bool:
        """Whether this right is enough for the request."""
        if self.verb not in (EVERYTHING, request.verb):
            return False
        if self.path:
            return bool(request.path) and _path_matches(self.path, request.path)
        return (
            bool(request.resource)
            and self.namespace in ("", request.namespace)
            and self.group in (EVERYTHING, request.group)
            and _resource_matches(self.resource, request.resource)
            # The role that a binding names is in its body, which no audit log of metadata has.
            and (request.verb == "bind" or self.name in ("", request.name))
        )


def unused(rights: Iterable[GrantedRight], requests: Collection[Request]) -> list[GrantedRight]:
    """The rights that no request used, in order."""
    return sorted(right for right in set(rights) if not any(right.allows(one) for one in requests))


class RoleMissing(LookupError):  # noqa: N818 - reads as what it is
    """A binding refers to a role that is not among the objects."""


def rights_of(user: str, objects: Iterable[Object]) -> Iterator[GrantedRight]:
    """The rights that the bindings among these objects give to a user or ServiceAccount."""
    objects = tuple(objects)
    roles = {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one
        for one in objects
        if one.get("kind") in ("Role", "ClusterRole")
    }
    for binding in objects:
        if binding.get("kind") not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        namespace = binding["metadata"].get("namespace", "")
        if user not in (user_of(one, namespace) for one in binding.get("subjects") or ()):
            continue
        kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
        home = namespace if kind == "Role" else ""
        role = roles.get((kind, home, name))
        if role is None:
            raise RoleMissing(f"{kind} {name}, to which {user} is bound, is not among the objects")
        title = f"{kind} {home}/{name}" if home else f"{kind} {name}"
        for rule in role.get("rules") or ():
            yield from _rights(rule, title, namespace)


def unbound_roles(objects: Iterable[Object]) -> list[Object]:
    """The ClusterRoles to which no binding among these objects refers."""
    objects = tuple(objects)
    bound = {
        (one["roleRef"]["kind"], one["roleRef"]["name"])
        for one in objects
        if one.get("kind") in ("RoleBinding", "ClusterRoleBinding")
    }
    roles = [one for one in objects if one.get("kind") == "ClusterRole"]
    return [one for one in roles if (one["kind"], one["metadata"]["name"]) not in bound]


def users(objects: Iterable[Object]) -> list[str]:
    """The users and ServiceAccounts to whom the bindings among these objects give rights."""
    return sorted(
        {
            user
            for one in objects
            if one.get("kind") in ("RoleBinding", "ClusterRoleBinding")
            for subject in one.get("subjects") or ()
            if (user := user_of(subject, one["metadata"].get("namespace", "")))
        }
    )


def user_of(subject: Object, namespace: str) -> str:
    """The user name of a binding's subject; empty for a group."""
    match subject.get("kind"):
        case "ServiceAccount":
            home = subject.get("namespace") or namespace
            return f"system:serviceaccount:{home}:{subject['name']}"
        case "User":
            return str(subject["name"])
    return ""


def _rights(rule: Object, role: str, namespace: str) -> Iterator[GrantedRight]:
    verbs = rule.get("verbs") or ()
    for path in rule.get("nonResourceURLs") or ():
        for verb in verbs:
            yield GrantedRight(role=role, path=path, verb=verb)
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for name in rule.get("resourceNames") or ("",):
                for verb in verbs:
                    yield GrantedRight(
                        role=role,
                        namespace=namespace,
                        group=group,
                        resource=resource,
                        name=name,
                        verb=verb,
                    )


def _resource_matches(allowed: str, asked: str) -> bool:
    if allowed in (EVERYTHING, asked):
        return True
    # `*/scale` is that subresource of every resource; `notes/*` is nothing to RBAC.
    _, slash, subresource = asked.partition("/")
    return bool(slash) and allowed == f"{EVERYTHING}/{subresource}"


def _path_matches(allowed: str, asked: str) -> bool:
    if allowed.endswith(EVERYTHING):
        return asked.startswith(allowed.removesuffix(EVERYTHING))
    return allowed == asked
