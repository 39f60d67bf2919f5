"""The rights that the user needs for a plan. Pure.

An apply needs get, create and patch. Who creates a role needs either `escalate` or every right in
it, and who binds one needs `bind` or every right in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import msgspec

from quarterdeck.api.config_v1 import CLUSTER_VERSIONS
from quarterdeck.api.meta import CRDS, NAMESPACES, Object, Resource
from quarterdeck.install.facts import NeededRight
from quarterdeck.install.plan import InstallationPlan
from quarterdeck.install.preflight import rights_findings
from quarterdeck.kube.kinds import GroupVersionKind, Kinds, kinds_of_definition

RBAC = "rbac.authorization.k8s.io"
ROLES = {"ClusterRole": "clusterroles", "Role": "roles"}
BINDINGS = frozenset({"ClusterRoleBinding", "RoleBinding"})


class Needed(msgspec.Struct, frozen=True, kw_only=True):
    """A right that is needed, and those that do instead of it, all together."""

    right: NeededRight
    instead: tuple[NeededRight, ...] = ()

    def lacking(self, denied: Iterable[NeededRight]) -> tuple[NeededRight, ...]:
        """What of it is missing if the user has not got these rights."""
        denied = frozenset(denied)
        if self.right not in denied:
            return ()
        if not self.instead:
            return (self.right,)
        return tuple(right for right in self.instead if right in denied)


def known_kinds(plan: InstallationPlan, served: Kinds) -> Kinds:
    """The kinds that are served, and those that the plan adds."""
    found = dict(served)
    for obj in plan.objects:
        if obj["kind"] == CRDS.kind:
            found |= kinds_of_definition(obj)
    return found


def needed_rights(plan: InstallationPlan, kinds: Kinds) -> list[Needed]:
    """What the user has to be allowed to do, each once, in the order of the plan."""
    if not plan.steps and not plan.later:
        return []
    found: dict[Needed, None] = {}
    roles = _roles(plan.objects)
    for applied in (*plan.steps, *plan.later):
        for obj in applied.step.objects:
            resource = kinds.get(GroupVersionKind.of(obj))
            if resource is None:
                continue  # not served, which is told when it is applied
            verbs = ("get", "create") if applied.step.create_only else ("get", "create", "patch")
            found |= dict.fromkeys(_on(resource, obj, verbs))
            found |= dict.fromkeys(_for_roles(obj, roles))
            if obj["kind"] == CRDS.kind:
                # Its objects are listed once, to see that it is served.
                for one in kinds_of_definition(obj).values():
                    found[Needed(right=_right(one, "list"))] = None
    if plan.later:
        found[Needed(right=_right(NAMESPACES, "list"))] = None
    if plan.way == "release":
        version = {"metadata": {"name": "version"}}
        found |= dict.fromkeys(_on(CLUSTER_VERSIONS.plain, version, ("get", "create")))
    return list(found)


def _right(resource: Resource[Object], verb: str, namespace: str = "") -> NeededRight:
    return NeededRight(
        group=resource.group, resource=resource.plural, verb=verb, namespace=namespace
    )


def refused_without(plan: InstallationPlan, lacking: Sequence[NeededRight]) -> InstallationPlan:
    """The plan, refused because the user has not got these rights."""
    findings = (*plan.findings, *rights_findings(lacking))
    return msgspec.structs.replace(plan, findings=findings, steps=(), later=())


def removal_rights(objects: Iterable[tuple[Resource[Object], str]]) -> list[Needed]:
    """The rights to delete objects of these resources in these namespaces, and to see them go."""
    found = {
        _right(resource, verb, namespace): None
        for resource, namespace in objects
        for verb in ("get", "delete")
    }
    return [Needed(right=right) for right in found]


def _on(resource: Resource[Object], obj: Object, verbs: Iterable[str]) -> Iterator[Needed]:
    namespace = str(obj["metadata"].get("namespace") or "")
    for verb in verbs:
        yield Needed(right=_right(resource, verb, namespace))


def _for_roles(obj: Object, roles: Mapping[tuple[str, str, str], Object]) -> Iterator[Needed]:
    namespace = str(obj["metadata"].get("namespace") or "")
    if obj["kind"] in ROLES:
        right = NeededRight(
            group=RBAC, resource=ROLES[obj["kind"]], verb="escalate", namespace=namespace
        )
        yield Needed(right=right, instead=_in_role(obj, namespace))
    if obj["kind"] in BINDINGS:
        kind, name = obj["roleRef"]["kind"], obj["roleRef"]["name"]
        right = NeededRight(
            group=RBAC,
            resource=ROLES[kind],
            verb="bind",
            namespace=namespace if kind == "Role" else "",
            name=name,
        )
        role = roles.get((kind, namespace if kind == "Role" else "", name))
        yield Needed(right=right, instead=_in_role(role, namespace) if role else ())


def _roles(objects: Iterable[Object]) -> dict[tuple[str, str, str], Object]:
    return {
        (obj["kind"], str(obj["metadata"].get("namespace") or ""), obj["metadata"]["name"]): obj
        for obj in objects
        if obj["kind"] in ROLES
    }


def _in_role(role: Object, namespace: str) -> tuple[NeededRight, ...]:
    """The rights that a role gives; without those to paths, which ours do not have."""
    return tuple(
        NeededRight(group=group, resource=resource, verb=verb, namespace=namespace, name=name)
        for rule in role.get("rules") or ()
        for group, resource, verb, name in product(
            rule.get("apiGroups") or (),
            rule.get("resources") or (),
            rule.get("verbs") or (),
            rule.get("resourceNames") or ("",),
        )
    )
