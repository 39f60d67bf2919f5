"""What a checker knows of an operator, and the checkers' published settings.

For the command line and the console. These functions only read; `probe` writes a challenge.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from quarterdeck.api.meta import CONFIG_MAPS, LEASES, Key, Object
from quarterdeck.kube import Client, Forbidden, NotFound
from quarterdeck.operators.staleness.decide import Case, decide
from quarterdeck.operators.staleness.evidence import conditions_of, has_managed_fields
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
UNREAD = f"the right to get {CONFIG_MAP} is missing, where checkers publish their settings"


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """The objects from which an explanation follows."""

    cluster_operator: Object
    settings: Object | None
    """The ConfigMap in which checkers publish their settings; None if there is none to read."""
    unread: str = ""
    """Why the ConfigMap could not be read."""
    leases: Sequence[Object] = ()
    """The Leases that `lease_keys` names, as far as they can be read."""


def lease_keys(cluster_operator: Object) -> list[Key]:
    """The Leases that prove life for this operator."""
    return [key for key in named_leases(cluster_operator) if is_valid_name(key)]


def explained(
    inputs: Inputs,
    now: datetime,
    interval: timedelta | None = None,
    keep_upgradeable_false: bool | None = None,
) -> StalenessExplanation:
    """The explanation of one operator. Pure.

    A setting that is None is the one that the checkers have published, else the default.
    """
    obj = inputs.cluster_operator
    assumed = settings_in(inputs.settings, now, inputs.unread)
    if interval is not None:
        assumed = replace(assumed, interval=interval)
    if keep_upgradeable_false is not None:
        assumed = replace(assumed, keep_upgradeable_false=keep_upgradeable_false)
    lease = latest_proof(map(renewal, inputs.leases))
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
        obj["metadata"]["name"],
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


def settings_in(config_map: Object | None, now: datetime, unread: str = "") -> AssumedSettings:
    """The settings that the running checkers have published, else the defaults. Pure."""
    return assumed_settings(checkers_in(config_map or {"metadata": {}}, now), now, unread)


async def explain(
    client: Client, name: str, interval: timedelta | None, keep_upgradeable_false: bool | None
) -> StalenessExplanation:
    """The explanation of one operator; `NotFound` if there is none of that name."""
    obj = await client.get(PLAIN_CLUSTER_OPERATORS, name)
    settings, unread = await _published(client)
    inputs = Inputs(
        cluster_operator=obj,
        settings=settings,
        unread=unread,
        leases=[
            lease for key in lease_keys(obj) if (lease := await _lease(client, key)) is not None
        ],
    )
    return explained(inputs, client.now(), interval, keep_upgradeable_false)


async def published_settings(client: Client) -> AssumedSettings:
    """The settings that the running checkers have published, else the defaults."""
    found, unread = await _published(client)
    return settings_in(found, client.now(), unread)


async def _published(client: Client) -> tuple[Object | None, str]:
    """The ConfigMap of the checkers' settings, or why it cannot be read."""
    try:
        return await client.get(CONFIG_MAPS, NAME, NAMESPACE), ""
    except NotFound:
        return None, ""
    except Forbidden:
        return None, UNREAD


def keeps_upgradeable_false(config_map: Object | None, now: datetime) -> bool | None:
    """Whether the running checkers keep an Upgradeable=False; None if none published it. Pure."""
    found = settings_in(config_map, now)
    return found.keep_upgradeable_false if found.known else None


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


async def _lease(client: Client, key: Key) -> Object | None:
    try:
        return await client.get(LEASES, key.name, key.namespace)
    except (NotFound, Forbidden):
        return None
