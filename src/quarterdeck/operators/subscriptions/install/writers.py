"""The objects that are created for ClusterServiceVersions, written as the operator or as another.

With `spec.serviceAccountName` in an OperatorGroup, everything but definitions is written as that
ServiceAccount, by impersonation: the API server then grants no right that the account does not
have.
"""

from collections import OrderedDict
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TypeVar

import msgspec

from quarterdeck.api.meta import (
    DEPLOYMENTS,
    SERVICE_ACCOUNTS,
    Key,
    Object,
    Resource,
    TypedObject,
    foreign,
)
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion
from quarterdeck.controller import Manager, Objects, Selection
from quarterdeck.controller.metadata import key_of
from quarterdeck.controller.selection import ALL
from quarterdeck.controller.uses import Write
from quarterdeck.kube import Client, LabelSelector
from quarterdeck.operators.subscriptions.groups import Target
from quarterdeck.operators.subscriptions.names import (
    MANAGED,
    owned_selector,
    owner_index,
    owner_value,
)

RBAC_API = "rbac.authorization.k8s.io/v1"
ROLES = foreign(RBAC_API, "Role", "roles", namespaced=True)
ROLE_BINDINGS = foreign(RBAC_API, "RoleBinding", "rolebindings", namespaced=True)
CLUSTER_ROLES = foreign(RBAC_API, "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS = foreign(
    RBAC_API, "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
SERVICES = foreign("v1", "Service", "services", namespaced=True)

BY_CSV = "csv"
"""The index of what belongs to each ClusterServiceVersion."""
OURS = Selection(labels=LabelSelector(match_labels=MANAGED))
MAX_ACCOUNTS = 64
"""The most accounts whose connections are kept; whoever writes OperatorGroups can name any."""

T = TypeVar("T", bound=TypedObject | Object)


class Writers(msgspec.Struct, frozen=True, kw_only=True):
    """Access to each kind of object that a ClusterServiceVersion needs, and to those themselves."""

    accounts: Objects[Object]
    roles: Objects[Object]
    bindings: Objects[Object]
    cluster_roles: Objects[Object]
    cluster_bindings: Objects[Object]
    deployments: Objects[Object]
    services: Objects[Object]
    csvs: Objects[ClusterServiceVersion]

    @property
    def parts(self) -> tuple[Objects[Object], ...]:
        """Each kind that a ClusterServiceVersion needs, in the order in which they are created."""
        return (
            self.accounts,
            self.roles,
            self.bindings,
            self.cluster_roles,
            self.cluster_bindings,
            self.deployments,
            self.services,
        )


def writers_of(manager: Manager, csvs: Objects[ClusterServiceVersion]) -> Writers:
    """The objects that the operator writes itself."""
    both: tuple[Write, ...] = ("ensure", "prune", "delete")

    def objects(resource: Resource[Object], writes: tuple[Write, ...] = both) -> Objects[Object]:
        return manager.objects(resource, OURS, indexes={BY_CSV: owner_index}, writes=writes)

    return Writers(
        accounts=objects(SERVICE_ACCOUNTS),
        roles=objects(ROLES),
        bindings=objects(ROLE_BINDINGS),
        cluster_roles=objects(CLUSTER_ROLES),
        cluster_bindings=objects(CLUSTER_ROLE_BINDINGS),
        deployments=objects(DEPLOYMENTS),
        # The garbage collector deletes a Service with its ClusterServiceVersion.
        services=objects(SERVICES, ("ensure",)),
        csvs=csvs,
    )


async def prune(
    objects: Objects[Object], csv: ClusterServiceVersion, wanted: Iterable[Key] = ()
) -> None:
    """Delete what belongs to the version and is not wanted; `objects` are the operator's own."""
    kept = frozenset(wanted)
    unwanted = [
        one for one in objects.by_index(BY_CSV, owner_value(csv)) if key_of(one) not in kept
    ]
    if unwanted:
        await objects.prune(kept, owned_selector(csv), among=unwanted)


class _Account(msgspec.Struct, frozen=True):
    """The writers of an account, for as long as it is in use."""

    client: Client
    writers: Writers
    listening: ExitStack
    """While it is open, what the client writes is in the caches at once."""


class Impersonated:
    """The writers of other ServiceAccounts, each made when it is first needed."""

    def __init__(self, client: Client, field_manager: str, own: Writers) -> None:
        """Impersonate with the connection of this client, which writes only while it leads."""
        self._client = client
        self._field_manager = field_manager
        self._own = own
        self._made: OrderedDict[Key, _Account] = OrderedDict()

    async def writers(self, target: Target) -> Writers:
        """The writers of the target's account; the operator's own if it names none."""
        if not target.account:
            return self._own
        account = Key(target.namespace, target.account)
        if account not in self._made:
            self._made[account] = self._make(account)
        self._made.move_to_end(account)
        made = self._made[account]
        while len(self._made) > MAX_ACCOUNTS:
            await self._close_oldest()
        # A process that no longer leads writes as nobody.
        made.client.before_write = self._client.before_write
        return made.writers

    async def aclose(self) -> None:
        """Close the connections of all accounts."""
        while self._made:
            await self._close_oldest()

    async def _close_oldest(self) -> None:
        _, unused = self._made.popitem(last=False)
        unused.listening.close()
        for objects in unused.writers.parts:
            objects.stop_following()
        unused.writers.csvs.stop_following()
        await unused.client.close()

    def _make(self, account: Key) -> _Account:
        user = f"system:serviceaccount:{account.namespace}:{account.name}"
        connection = self._client.connection
        # The server adds the groups of a ServiceAccount by itself, unless it is told others.
        headers = {
            name: value
            for name, value in connection.headers.items()
            if not name.lower().startswith("impersonate-")
        }
        headers["Impersonate-User"] = user
        client = Client(msgspec.structs.replace(connection, headers=headers))
        listening = ExitStack()
        made = {
            name: self._as(client, getattr(self._own, name), listening)
            for name in Writers.__struct_fields__
        }
        return _Account(client, Writers(**made), listening)

    def _as(self, client: Client, own: Objects[T], listening: ExitStack) -> Objects[T]:
        listening.enter_context(client.listening(own.resource, own.cache))
        return Objects(
            own.resource,
            own.cache,
            client,
            self._field_manager,
            selection=ALL if own is self._own.csvs else OURS,
        )
