"""What the checker thinks of an operator, and how the operator answers, asked from outside.

For the command line and the console. Both only read; the one that asks the operator for a sign of
life is `probe`.
"""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from quarterdeck.api.meta import CONFIG_MAPS, LEASES, Object
from quarterdeck.kube import Client, Forbidden, NotFound
from quarterdeck.operators.staleness.decide import Case, decide
from quarterdeck.operators.staleness.evidence import Proof, conditions_of, has_managed_fields
from quarterdeck.operators.staleness.explain import Explanation, explanation
from quarterdeck.operators.staleness.leases import can_be, named_leases, newest, renewal
from quarterdeck.operators.staleness.published import (
    NAME,
    NAMESPACE,
    WHERE,
    Patience,
    checkers_in,
    patience_of,
)
from quarterdeck.operators.staleness.sightings import Sightings
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS

GIVEN = "as given"


async def explain(
    client: Client, name: str, interval: timedelta | None, keep_upgradeable_false: bool | None
) -> Explanation:
    """Everything about one operator; `NotFound` if there is none of that name.

    Settings that are not given are those that the checkers have published, else the defaults.
    """
    obj = await client.get(PLAIN_CLUSTER_OPERATORS, name)
    patience = await published(client)
    if interval is not None:
        patience = replace(patience, interval=interval)
    if keep_upgradeable_false is not None:
        patience = replace(patience, keep_upgradeable_false=keep_upgradeable_false)
    lease = await _lease(client, obj)
    now = client.server_time() or datetime.now(UTC)
    case = Case(
        object=obj,
        now=now,
        interval=patience.interval,
        keep_upgradeable_false=patience.keep_upgradeable_false,
        lease=lease,
        seen=Sightings().look(obj, now),
    )
    return explanation(
        name,
        decide(case),
        now,
        patience,
        lease,
        dated=has_managed_fields(obj),
        interval_from="" if interval is None else GIVEN,
        keep_from="" if keep_upgradeable_false is None else GIVEN,
        forbids_upgrades=any(
            (one.type, one.status) == ("Upgradeable", "False") for one in conditions_of(obj)
        ),
    )


async def published(client: Client) -> Patience:
    """The settings of the checkers that run, as they say themselves."""
    unread = ""
    found: Object = {"metadata": {}}
    try:
        found = await client.get(CONFIG_MAPS, NAME, NAMESPACE)
    except NotFound:
        pass
    except Forbidden:
        unread = f"the right to get {WHERE} is missing, where checkers publish their settings"
    now = client.server_time() or datetime.now(UTC)
    return patience_of(checkers_in(found, now), now, unread)


async def _lease(client: Client, obj: Object) -> Proof | None:
    proofs = []
    for key in filter(can_be, named_leases(obj)):
        try:
            proofs.append(renewal(await client.get(LEASES, key.name, key.namespace)))
        except (NotFound, Forbidden):
            continue
    return newest(proofs)
