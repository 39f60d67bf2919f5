"""Applies the ServiceAccounts and roles of a ClusterServiceVersion."""

from collections.abc import Iterator, Sequence

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion
from quarterdeck.controller import Objects
from quarterdeck.controller.metadata import key_of
from quarterdeck.operators.subscriptions.groups import Target
from quarterdeck.operators.subscriptions.install.desired import (
    Roles,
    desired_accounts,
    desired_roles,
)
from quarterdeck.operators.subscriptions.install.ownership import Wanted
from quarterdeck.operators.subscriptions.install.writers import Writers, prune

Part = tuple[Objects[Object], Objects[Object], Sequence[Object]]
"""A kind as the account writes it, as the operator writes it, and the desired objects."""


class VersionRights(msgspec.Struct, frozen=True):
    """The accounts and roles that a version needs."""

    accounts: Sequence[Object]
    roles: Roles

    def wanted(self, own: Writers) -> Iterator[Wanted]:
        """Each of them: its kind, and its key."""
        for objects, _, wanted in _parts(self, own, own):
            yield from ((objects, key_of(one)) for one in wanted)


def desired_rights(csv: ClusterServiceVersion, target: Target) -> VersionRights:
    """The accounts and roles of the version, with that target."""
    return VersionRights(desired_accounts(csv), desired_roles(csv, target))


async def apply_rights(
    csv: ClusterServiceVersion, rights: VersionRights, own: Writers, writers: Writers
) -> None:
    """Apply the accounts and roles as the account of `writers`, and delete those of before.

    Deletions are made by the operator: it deletes only what it has created for this version.
    """
    for objects, by_operator, wanted in _parts(rights, own, writers):
        for one in wanted:
            await objects.ensure(one)
        await prune(by_operator, csv, map(key_of, wanted))


async def delete_rights(csv: ClusterServiceVersion, own: Writers) -> None:
    """Delete what no owner reference covers: roles of the cluster and in other namespaces."""
    for objects in (own.cluster_bindings, own.cluster_roles, own.bindings, own.roles):
        await prune(objects, csv)


def _parts(rights: VersionRights, own: Writers, writers: Writers) -> tuple[Part, ...]:
    roles = rights.roles
    return (
        (writers.accounts, own.accounts, rights.accounts),
        (writers.roles, own.roles, roles.roles),
        (writers.bindings, own.bindings, roles.bindings),
        (writers.cluster_roles, own.cluster_roles, roles.cluster_roles),
        (writers.cluster_bindings, own.cluster_bindings, roles.cluster_bindings),
    )
