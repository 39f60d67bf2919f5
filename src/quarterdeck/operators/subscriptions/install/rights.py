"""Applies the ServiceAccounts and roles of a ClusterServiceVersion."""

from collections.abc import Iterator, Sequence

from quarterdeck.api.meta import Object
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion
from quarterdeck.controller import Objects
from quarterdeck.controller.metadata import key_of
from quarterdeck.operators.subscriptions.groups import Target
from quarterdeck.operators.subscriptions.install.desired import desired_accounts, desired_roles
from quarterdeck.operators.subscriptions.install.ownership import Wanted
from quarterdeck.operators.subscriptions.install.writers import Writers
from quarterdeck.operators.subscriptions.names import owned_selector

Part = tuple[Objects[Object], Objects[Object], Sequence[Object]]
"""A kind as the account writes it, as the operator writes it, and the desired objects."""


async def apply_rights(
    csv: ClusterServiceVersion, target: Target, own: Writers, writers: Writers
) -> None:
    """Apply the accounts and roles as the account of `writers`, and delete those of before.

    Deletions are made by the operator: it deletes only what it has created for this version.
    """
    ours = owned_selector(csv)
    for objects, by_operator, wanted in _parts(csv, target, own, writers):
        for one in wanted:
            await objects.ensure(one)
        await by_operator.prune([key_of(one) for one in wanted], ours)


def wanted_rights(csv: ClusterServiceVersion, target: Target, own: Writers) -> Iterator[Wanted]:
    """The accounts and roles that the version needs."""
    for objects, _, wanted in _parts(csv, target, own, own):
        yield from ((objects, key_of(one)) for one in wanted)


async def delete_rights(csv: ClusterServiceVersion, own: Writers) -> None:
    """Delete what no owner reference covers: roles of the cluster and in other namespaces."""
    ours = owned_selector(csv)
    for objects in (own.cluster_bindings, own.cluster_roles, own.bindings, own.roles):
        await objects.prune([], ours)


def _parts(
    csv: ClusterServiceVersion, target: Target, own: Writers, writers: Writers
) -> tuple[Part, ...]:
    rights = desired_roles(csv, target)
    return (
        (writers.accounts, own.accounts, desired_accounts(csv)),
        (writers.roles, own.roles, rights.roles),
        (writers.bindings, own.bindings, rights.bindings),
        (writers.cluster_roles, own.cluster_roles, rights.cluster_roles),
        (writers.cluster_bindings, own.cluster_bindings, rights.cluster_bindings),
    )
