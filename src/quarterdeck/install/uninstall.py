"""Removes an installation: clean-ups first, while the operators still run, then everything else.

1. The cluster version operator, which would restore the rest.
2. The objects of the operators' kinds; their operators clean up and remove their finalizers.
3. The operators.
4. What they and the installation made: rights, configuration.
5. The definitions, with their last objects, and the namespaces without objects of others.

Every step can be repeated, and a second call continues where a first one stopped.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec

from quarterdeck.api.meta import CRDS, DEPLOYMENTS, Object
from quarterdeck.delivery.declaration import Declaration
from quarterdeck.install.facts import described
from quarterdeck.install.look import Installed, UninstallError, dependents, look, objects_of
from quarterdeck.install.observe import lacking_rights
from quarterdeck.install.removal import Found, is_ours, operand_kinds, own, waits_for
from quarterdeck.kube import Client, Conflict, Forbidden, Invalid, NotFound

LOOK_PERIOD = 0.5
Show = Callable[[str], None]


async def check_rights(client: Client, installed: Installed) -> None:
    """UninstallError, with what is missing, if the user may not remove all of it."""
    lacking = await lacking_rights(client, installed.rights)
    if lacking:
        raise UninstallError(
            f"you may not: {described(lacking)}; uninstall as a user with the ClusterRole "
            "cluster-admin; nothing was changed"
        )


async def remove(
    client: Client, operators: Sequence[Declaration], timeout: float, show: Show
) -> None:
    """Remove everything; UninstallError if something does not go within the time."""
    (applier,) = (one for one in operators if one.applies_payload)
    known = own(operators)
    stopped = await client.find(DEPLOYMENTS, applier.account, applier.namespace)
    if stopped is not None and is_ours(stopped, known):
        show("stopping the cluster version operator")
        await _delete_all(client, [Found(resource=DEPLOYMENTS, object=stopped)], timeout)
    installed = await look(client, operators, known)
    for names in operand_kinds(operators):
        for name in names:
            if name in installed.served:
                await _delete_kind(client, installed.served[name], timeout, show)
    installed = await look(client, operators, known)
    workloads = [one for one in installed.objects if one.resource.kind == DEPLOYMENTS.kind]
    if workloads:
        show("stopping the operators")
        await _delete_all(client, workloads, timeout)
    installed = await look(client, operators, known)
    if installed.objects:
        show("removing rights and configuration")
        await _delete_all(client, installed.objects, timeout)
    if installed.definitions:
        show("removing the CRDs")
        found = [Found(resource=CRDS, object=one) for one in installed.definitions.values()]
        owners = [
            owner
            for one in installed.definitions.values()
            for owner in await objects_of(client, one)
        ]
        await _delete_all(client, found, timeout)
        await _delete_dependents(client, owners, timeout)
    if installed.namespaces:
        show("removing the namespaces")
        await _delete_all(client, installed.namespaces, timeout)


async def _delete_kind(client: Client, definition: Object, timeout: float, show: Show) -> None:
    found = await objects_of(client, definition)
    if found:
        show(f"cleaning up after {definition['spec']['names']['plural']}")
        await _delete_all(client, found, timeout)
        await _delete_dependents(client, found, timeout)


async def _delete_dependents(client: Client, owners: Sequence[Found], timeout: float) -> None:
    """Delete what these objects owned.

    The garbage collector does so too, but no longer when the definition of the owners is gone.
    """
    if owners:
        uids = {one.object["metadata"]["uid"] for one in owners}
        await _delete_all(client, await dependents(client, uids), timeout)


async def _delete_all(client: Client, some: Sequence[Found], timeout: float) -> None:
    """Delete objects, and return when they are gone."""
    for one in some:
        try:
            await _delete(client, one)
        except (NotFound, Conflict):
            continue  # It is gone already, or another one now.
        except (Forbidden, Invalid) as error:
            raise UninstallError(
                f"{one} is not removed: {error.message}; change that, then run this again"
            ) from error
    try:
        async with asyncio.timeout(timeout):
            left = list(some)
            while left := await _left(client, left):  # noqa: ASYNC110 - no event says so
                await asyncio.sleep(LOOK_PERIOD)
    except TimeoutError:
        left = await _left(client, some)
        if left:
            raise UninstallError(
                f"not removed after {timeout:.0f} s: {waits_for(left[0])}; then run this again"
            ) from None


async def _delete(client: Client, one: Found) -> None:
    metadata = one.object["metadata"]
    await client.delete(
        one.resource,
        metadata["name"],
        metadata.get("namespace", ""),
        uid=metadata["uid"],
        # The pods of a Deployment go before it does.
        propagation="Foreground" if one.resource.kind == DEPLOYMENTS.kind else "Background",
    )


async def _left(client: Client, some: Iterable[Found]) -> list[Found]:
    """Those that are still there, as they are now."""
    kept = []
    for one in some:
        metadata = one.object["metadata"]
        live = await client.find(one.resource, metadata["name"], metadata.get("namespace", ""))
        if live is not None and live["metadata"]["uid"] == metadata["uid"]:
            kept.append(msgspec.structs.replace(one, object=live))
    return kept
