"""The roles of an operator, with only the rights that it needs. Pure.

Most rights follow from what its `setup` asks the manager for. Rights for its Lease and for events
are the same for each operator. The declaration can add more.
"""

from collections.abc import Iterable, Iterator

from quarterdeck.api.meta import Object
from quarterdeck.controller.uses import Use
from quarterdeck.delivery.declaration import Declaration, Deployed, PolicyRule, StaticPodDelivery

GROUP = "rbac.authorization.k8s.io"
API_VERSION = f"{GROUP}/v1"


VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
"""The verbs in the order of a role."""
EVENTS_WITHOUT_NAMESPACE = "default"
"""The namespace of events about cluster-scoped objects."""
_RENEWAL_RULES = (
    PolicyRule(
        group="certificates.k8s.io",
        resources=("certificatesigningrequests",),
        verbs=("get", "create"),
    ),
)
"""The rights by which a static pod asks for its next client certificate; its approval is not its
own."""


def rules(declared: Declaration, uses: Iterable[Use]) -> list[PolicyRule]:
    """All rights of an operator by its own role, except those for its Lease."""
    uses = tuple(use for use in uses if not use.role)
    static = isinstance(declared.delivery, StaticPodDelivery)
    events = _event_rules(uses, [EVENTS_WITHOUT_NAMESPACE] * static)
    return [*map(_rule_of_use, uses), *events, *_RENEWAL_RULES * static, *declared.rights]


def role_objects(declared: Declaration, uses: Iterable[Use]) -> list[Object]:
    """The operator's roles, and their bindings to its account."""
    if declared.cluster_admin:
        return [_binding(declared, declared.field_manager, role="cluster-admin")]
    uses = tuple(uses)
    objects = _unbound_roles(declared, uses)
    by_namespace: dict[str, list[PolicyRule]] = {}
    for rule in rules(declared, uses):
        by_namespace.setdefault(rule.namespace, []).append(rule)
    name = declared.field_manager
    if isinstance(declared.delivery, StaticPodDelivery):
        # Not those of the Deployment that may run in its place, or for a while beside it.
        name = f"{name}-static-pod"
    for namespace, some in sorted(by_namespace.items()):
        objects += _role_and_binding(declared, name, some, namespace)
    elects = isinstance(declared.delivery, Deployed) and declared.delivery.leader_election
    if declared.account and (elects or declared.delivery is None):
        lease = _lease_rules(declared.account)
        name = f"{declared.account}-lease"
        objects += _role_and_binding(declared, name, lease, declared.namespace)
    return objects


def _unbound_roles(declared: Declaration, uses: Iterable[Use]) -> list[Object]:
    """The ClusterRoles that the operator binds by itself."""
    by_role: dict[str, list[PolicyRule]] = {}
    for use in uses:
        if use.role:
            by_role.setdefault(use.role, []).append(_rule_of_use(use))
    return [_role(f"{declared.field_manager}-{role}", some, "") for role, some in by_role.items()]


def _rule_of_use(use: Use) -> PolicyRule:
    resource = use.resource.plural
    return PolicyRule(
        group=use.resource.group,
        resources=(f"{resource}/{use.subresource}" if use.subresource else resource,),
        verbs=tuple(sorted(use.verbs, key=VERBS.index)),
        names=(use.name,) if use.name else (),
        namespace=use.namespace,
    )


def _event_rules(uses: Iterable[Use], others: Iterable[str]) -> Iterator[PolicyRule]:
    """The rights for events about the objects that the operator watches, and in other places."""
    places = set(others) | {
        use.namespace if use.resource.namespaced else EVENTS_WITHOUT_NAMESPACE
        for use in uses
        if "watch" in use.verbs
    }
    for namespace in ("",) if "" in places else sorted(places):
        yield PolicyRule(
            group="events.k8s.io",
            resources=("events",),
            verbs=("create", "patch"),
            namespace=namespace,
        )


def _lease_rules(name: str) -> Iterator[PolicyRule]:
    """The rights for leader election."""
    group, resources = "coordination.k8s.io", ("leases",)
    yield PolicyRule(group=group, resources=resources, verbs=("create",))
    yield PolicyRule(group=group, resources=resources, names=(name,), verbs=("get", "update"))


def _role_and_binding(
    declared: Declaration, name: str, some: Iterable[PolicyRule], namespace: str
) -> list[Object]:
    return [_role(name, some, namespace), _binding(declared, name, namespace=namespace)]


def _role(name: str, some: Iterable[PolicyRule], namespace: str) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": _metadata(name, namespace),
        "rules": [_rule(rule) for rule in some],
    }


def _binding(declared: Declaration, name: str, *, role: str = "", namespace: str = "") -> Object:
    """A binding of a role to the operator's account; by default of the role with the same name."""
    kind = "Role" if namespace else "ClusterRole"
    return {
        "apiVersion": API_VERSION,
        "kind": f"{kind}Binding",
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role or name},
        "subjects": [_subject(declared)],
    }


def _subject(declared: Declaration) -> Object:
    if isinstance(declared.delivery, StaticPodDelivery):
        # It authenticates with a client certificate, so it needs no ServiceAccount.
        return {"apiGroup": GROUP, "kind": "User", "name": declared.delivery.user}
    return {
        "kind": "ServiceAccount",
        "name": declared.account,
        "namespace": declared.namespace,
    }


def _rule(rule: PolicyRule) -> Object:
    names = {"resourceNames": list(rule.names)} if rule.names else {}
    return {
        "apiGroups": [rule.group],
        "resources": list(rule.resources),
        **names,
        "verbs": list(rule.verbs),
    }


def _metadata(name: str, namespace: str) -> Object:
    return {"name": name, "namespace": namespace} if namespace else {"name": name}
