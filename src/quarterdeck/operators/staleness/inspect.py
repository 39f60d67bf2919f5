"""What a checker knows of an operator, and the checkers' published settings.

For the command line and the console. These functions only read; `probe` writes a challenge.
"""

from datetime import timedelta

from msgspec.structs import replace

from quarterdeck.api.meta import CONFIG_MAPS, LEASES, Object
from quarterdeck.kube import Client, Forbidden, NotFound
from quarterdeck.operators.staleness.decide import Case, decide
from quarterdeck.operators.staleness.evidence import Proof, conditions_of, has_managed_fields
from quarterdeck.operators.staleness.explain import StalenessExplanation, explanation
from quarterdeck.operators.staleness.leases import (
    is_valid_name,
    latest_proof,
    named_leases,
    renewal,
)
from quarterdeck.operators.staleness.published import (
    CONFIG_MAP,
    NAME,
    NAMESPACE,
    AssumedSettings,
    assumed_settings,
    checkers_in,
)
from quarterdeck.operators.staleness.sightings import Sightings, is_undated
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS

FROM_COMMAND_LINE = "as given"


async def explain(
    client: Client, name: str, interval: timedelta | None, keep_upgradeable_false: bool | None
) -> StalenessExplanation:
    """The explanation of one operator; `NotFound` if there is none of that name.

    A setting that is None is the one that the checkers have published, else the default.
    """
    obj = await client.get(PLAIN_CLUSTER_OPERATORS, name)
    assumed = await published_settings(client)
    if interval is not None:
        assumed = replace(assumed, interval=interval)
    if keep_upgradeable_false is not None:
        assumed = replace(assumed, keep_upgradeable_false=keep_upgradeable_false)
    lease = await _lease(client, obj)
    now = client.now()
    sightings = Sightings(keep_upgradeable_false=assumed.keep_upgradeable_false)
    case = Case(
        object=obj,
        now=now,
        interval=assumed.interval,
        keep_upgradeable_false=assumed.keep_upgradeable_false,
        lease=lease,
        seen=sightings.record(obj, now),
    )
    return explanation(
        name,
        decide(case),
        now,
        assumed,
        lease,
        dated=not is_undated(obj) and has_managed_fields(obj),
        interval_from="" if interval is None else FROM_COMMAND_LINE,
        keep_from="" if keep_upgradeable_false is None else FROM_COMMAND_LINE,
        forbids_upgrades=any(
            (one.type, one.status) == ("Upgradeable", "False") for one in conditions_of(obj)
        ),
    )


async def published_settings(client: Client) -> AssumedSettings:
    """The settings that the running checkers have published, else the defaults."""
    unread = ""
    found: Object = {"metadata": {}}
    try:
        found = await client.get(CONFIG_MAPS, NAME, NAMESPACE)
    except NotFound:
        pass
    except Forbidden:
        unread = f"the right to get {CONFIG_MAP} is missing, where checkers publish their settings"
    now = client.now()
    return assumed_settings(checkers_in(found, now), now, unread)


class UpgradeableRule:
    """Whether the checkers leave an Upgradeable=False unmarked, and where that is known from."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.source = ""
        """For people: the rule of the last `keep`, and its source."""

    async def keep(self) -> bool | None:
        """Read the checkers' setting, and set `source`; None if no running checker published it."""
        found = await published_settings(self._client)
        if not found.known:
            self.source = f"by the times of the conditions ({found.source})"
            return None
        kept = "keep" if found.keep_upgradeable_false else "do not keep"
        self.source = f"as the checkers {kept} an Upgradeable=False ({found.source})"
        return found.keep_upgradeable_false


async def _lease(client: Client, obj: Object) -> Proof | None:
    proofs = []
    for key in filter(is_valid_name, named_leases(obj)):
        try:
            proofs.append(renewal(await client.get(LEASES, key.name, key.namespace)))
        except (NotFound, Forbidden):
            continue
    return latest_proof(proofs)
