"""The objects that are created for ClusterServiceVersions, written as the operator or as another.

With `spec.serviceAccountName` in an OperatorGroup, everything is written as that ServiceAccount, by
impersonation: the API server then grants no right that the account does not have.
"""

from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec

from quarterdeck.api.meta import DEPLOYMENTS, SERVICE_ACCOUNTS, Object, foreign
from quarterdeck.controller import Manager, Objects, Selection
from quarterdeck.kube import Client, LabelSelector
from quarterdeck.operators.subscriptions.names import MANAGED

if TYPE_CHECKING:
    from quarterdeck.controller.uses import Write

RBAC_API = "rbac.authorization.k8s.io/v1"
ROLES = foreign(RBAC_API, "Role", "roles", namespaced=True)
ROLE_BINDINGS = foreign(RBAC_API, "RoleBinding", "rolebindings", namespaced=True)
CLUSTER_ROLES = foreign(RBAC_API, "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS = foreign(
    RBAC_API, "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
SERVICES = foreign("v1", "Service", "services", namespaced=True)

OURS = Selection(labels=LabelSelector(match_labels=MANAGED))


class Writers(msgspec.Struct, frozen=True, kw_only=True):
    """Access to each kind of object that a ClusterServiceVersion needs."""

    accounts: Objects[Object]
    roles: Objects[Object]
    bindings: Objects[Object]
    cluster_roles: Objects[Object]
    cluster_bindings: Objects[Object]
    deployments: Objects[Object]
    services: Objects[Object]

    @property
    def all(self) -> tuple[Objects[Object], ...]:
        """One after the other, in the order in which they are created."""
        return tuple(getattr(self, name) for name in self.__struct_fields__)


def writers_of(manager: Manager) -> Writers:
    """The objects that the operator writes itself."""
    writes: tuple[Write, ...] = ("ensure", "prune", "delete")
    return Writers(
        accounts=manager.objects(SERVICE_ACCOUNTS, OURS, writes=writes),
        roles=manager.objects(ROLES, OURS, writes=writes),
        bindings=manager.objects(ROLE_BINDINGS, OURS, writes=writes),
        cluster_roles=manager.objects(CLUSTER_ROLES, OURS, writes=writes),
        cluster_bindings=manager.objects(CLUSTER_ROLE_BINDINGS, OURS, writes=writes),
        deployments=manager.objects(DEPLOYMENTS, OURS, writes=writes),
        services=manager.objects(SERVICES, OURS, writes=writes),
    )


class Impersonated:
    """The writers of other ServiceAccounts, each made when it is first needed."""

    def __init__(self, manager: Manager, own: Writers) -> None:
        self._manager = manager
        self._own = own
        self._made: dict[tuple[str, str], Writers] = {}
        self._listening = ExitStack()

    def writers(self, namespace: str, account: str) -> Writers:
        """The writers of an account; the operator's own if no account is named."""
        if not account:
            return self._own
        if (namespace, account) not in self._made:
            self._made[namespace, account] = self._make(namespace, account)
        return self._made[namespace, account]

    def _make(self, namespace: str, account: str) -> Writers:
        user = f"system:serviceaccount:{namespace}:{account}"
        connection = self._manager.client.connection
        headers = {**connection.headers, "Impersonate-User": user}
        client = Client(msgspec.structs.replace(connection, headers=headers))
        # A process that no longer leads writes as nobody.
        client.before_write = self._manager.client.before_write
        made = {}
        for name in Writers.__struct_fields__:
            own: Objects[Object] = getattr(self._own, name)
            self._listening.enter_context(client.listening(own.resource, own.cache))
            made[name] = Objects(
                own.resource, own.cache, client, self._manager.field_manager, selection=OURS
            )
        return Writers(**made)
