"""Reads the Leases that prove life, and says once which of them do not count.

What a Lease proves is decided in `leases`. Nothing is watched: a Lease is read when it matters.
"""

from quarterdeck.api.meta import LEASES, Key, Object
from quarterdeck.controller import Manager
from quarterdeck.kube import Forbidden, NotFound
from quarterdeck.log import get_logger
from quarterdeck.operators.staleness.evidence import Proof
from quarterdeck.operators.staleness.leases import can_be, named_leases, newest, renewal

log = get_logger("staleness")


class Renewals:
    """The last renewals of the operators' Leases, as far as they were read."""

    def __init__(self, manager: Manager) -> None:
        manager.declare(LEASES, "get")
        self._client = manager.replica_client
        self._events = manager.events
        self._found: dict[str, Proof | None] = {}
        self._told: set[tuple[str, str]] = set()

    def last(self, name: str) -> Proof | None:
        """When this operator renewed a Lease that counts for it, when last read."""
        return self._found.get(name)

    async def read(self, obj: Object) -> None:
        """Find out when the operator last renewed a Lease that counts for it."""
        name = obj["metadata"]["name"]
        proofs = []
        for key in named_leases(obj):
            if not can_be(key):
                self._tell(obj, key, "there is no such name", event=True)
                continue
            try:
                lease: Object = await self._client.get(LEASES, key.name, key.namespace)
            except (NotFound, Forbidden) as error:
                self._tell(obj, key, str(error))
                continue
            self._told.discard((name, str(key)))
            proofs.append(renewal(lease))
        self._found[name] = newest(proofs)

    def forget(self, name: str) -> None:
        """Drop what is known of an operator that is gone."""
        self._found.pop(name, None)
        self._told = {one for one in self._told if one[0] != name}

    def _tell(self, obj: Object, key: Key, why: str, *, event: bool = False) -> None:
        """Say once that a Lease does not count; then not again until it does."""
        name = obj["metadata"]["name"]
        if (name, str(key)) in self._told:
            return
        self._told.add((name, str(key)))
        log.warning("lease does not count", operator=name, lease=str(key), error=why)
        if event:
            note = f"status.relatedObjects names the Lease {key}, but {why}; correct the entry"
            self._events.event(obj, "Warning", "CannotCheck", note, action="Check", once=str(key))
