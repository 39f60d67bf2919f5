"""What an operator may do, as RBAC objects: only what it does. Pure.

Most rights follow from what it asks its manager for. Those on its Lease and on events are the same
for each. What a declaration lists comes on top.
"""

from collections.abc import Iterable, Iterator

from quarterdeck.api.meta import Object
from quarterdeck.controller.uses import Use
from quarterdeck.delivery.declaration import Declaration, Rule, StaticPod

GROUP = "rbac.authorization.k8s.io"
API_VERSION = f"{GROUP}/v1"


VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
"""In the order in which a role lists them."""
EVENTS_WITHOUT_NAMESPACE = "default"
"""Where events about objects without a namespace are."""


def rules(declared: Declaration, uses: Iterable[Use]) -> list[Rule]:
    """All rights of an operator but those on its Lease."""
    uses = tuple(uses)
    return [*map(_of_use, uses), *_telling(uses), *declared.rights]


def role_objects(declared: Declaration, uses: Iterable[Use]) -> list[Object]:
    """The operator's roles, and their bindings to its account."""
    if declared.cluster_admin:
        return [_binding(declared, declared.field_manager, role="cluster-admin")]
    objects: list[Object] = []
    by_namespace: dict[str, list[Rule]] = {}
    for rule in rules(declared, uses):
        by_namespace.setdefault(rule.namespace, []).append(rule)
    for namespace, some in sorted(by_namespace.items()):
        objects += _role_and_binding(declared, declared.field_manager, some, namespace)
    if declared.account:
        lease = _election(declared.account)
        name = f"{declared.account}-lease"
        objects += _role_and_binding(declared, name, lease, declared.namespace)
    return objects


def _of_use(use: Use) -> Rule:
    resource = use.resource.plural
    return Rule(
        group=use.resource.group,
        resources=(f"{resource}/{use.subresource}" if use.subresource else resource,),
        verbs=tuple(sorted(use.verbs, key=VERBS.index)),
        names=(use.name,) if use.name else (),
        namespace=use.namespace,
    )


def _telling(uses: Iterable[Use]) -> Iterator[Rule]:
    """What events about the objects that the operator watches need, and where."""
    places = {
        use.namespace if use.resource.namespaced else EVENTS_WITHOUT_NAMESPACE
        for use in uses
        if "watch" in use.verbs
    }
    for namespace in ("",) if "" in places else sorted(places):
        yield Rule(
            group="events.k8s.io",
            resources=("events",),
            verbs=("create", "patch"),
            namespace=namespace,
        )


def _election(name: str) -> Iterator[Rule]:
    """What electing a leader needs."""
    group, resources = "coordination.k8s.io", ("leases",)
    yield Rule(group=group, resources=resources, verbs=("create",))
    yield Rule(group=group, resources=resources, names=(name,), verbs=("get", "update"))


def _role_and_binding(
    declared: Declaration, name: str, some: Iterable[Rule], namespace: str
) -> list[Object]:
    role: Object = {
        "apiVersion": API_VERSION,
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": _metadata(name, namespace),
        "rules": [_rule(rule) for rule in some],
    }
    return [role, _binding(declared, name, namespace=namespace)]


def _binding(declared: Declaration, name: str, *, role: str = "", namespace: str = "") -> Object:
    """A binding to the operator's account, of the role that is named like it or of another."""
    kind = "Role" if namespace else "ClusterRole"
    return {
        "apiVersion": API_VERSION,
        "kind": f"{kind}Binding",
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role or name},
        "subjects": [_subject(declared)],
    }


def _subject(declared: Declaration) -> Object:
    if isinstance(declared.delivery, StaticPod):
        # It signs in with a client certificate, so that it needs no service accounts.
        return {"apiGroup": GROUP, "kind": "User", "name": declared.delivery.user}
    return {
        "kind": "ServiceAccount",
        "name": declared.account,
        "namespace": declared.namespace,
    }


def _rule(rule: Rule) -> Object:
    names = {"resourceNames": list(rule.names)} if rule.names else {}
    return {
        "apiGroups": [rule.group],
        "resources": list(rule.resources),
        **names,
        "verbs": list(rule.verbs),
    }


def _metadata(name: str, namespace: str) -> Object:
    return {"name": name, "namespace": namespace} if namespace else {"name": name}
