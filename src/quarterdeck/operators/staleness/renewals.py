"""Reads the Leases that prove life, and reports once each one that does not count.

`leases` decides what a Lease proves. Leases are not watched: one is read when a decision needs it.
"""

from quarterdeck.api.meta import LEASES, Key, Object
from quarterdeck.controller import Manager
from quarterdeck.kube import Forbidden, NotFound
from quarterdeck.log import get_logger
from quarterdeck.operators.staleness.evidence import Proof
from quarterdeck.operators.staleness.leases import (
    MAX_NAME_LENGTH,
    is_valid_name,
    latest_proof,
    named_leases,
    renewal,
)

log = get_logger("staleness")


class Renewals:
    """The last known renewals of the operators' Leases."""

    def __init__(self, manager: Manager) -> None:
        manager.declare(LEASES, "get")
        self._client = manager.replica_client
        self._events = manager.events
        self._found: dict[str, Proof | None] = {}
        self._reported: dict[str, set[Key]] = {}

    def last(self, name: str) -> Proof | None:
        """The operator's last renewal of a Lease that counts, as of the last `read`."""
        return self._found.get(name)

    async def read(self, obj: Object) -> None:
        """Read the Leases that the operator names, and record its last renewal."""
        name = obj["metadata"]["name"]
        proofs = []
        named = named_leases(obj)
        for key in named:
            if not is_valid_name(key):
                self._report(obj, key, "there is no such name", event=True)
                continue
            try:
                lease: Object = await self._client.get(LEASES, key.name, key.namespace)
            except (NotFound, Forbidden) as error:
                self._report(obj, key, str(error))
                continue
            self._reported.get(name, set()).discard(key)
            proofs.append(renewal(lease))
        if name in self._reported:
            # The object may name other Leases each time; these would fill the memory.
            self._reported[name].intersection_update(named)
        self._found[name] = latest_proof(proofs)

    def forget(self, name: str) -> None:
        """Drop the renewals of an operator that is gone."""
        self._found.pop(name, None)
        self._reported.pop(name, None)

    def _report(self, obj: Object, key: Key, why: str, *, event: bool = False) -> None:
        """Report a Lease that does not count, once until it counts again."""
        name = obj["metadata"]["name"]
        reported = self._reported.setdefault(name, set())
        if key in reported:
            return
        reported.add(key)
        # Whoever writes the object chooses the name, of any length.
        shown = str(key)[: 2 * MAX_NAME_LENGTH]
        log.warning("lease does not count", operator=name, lease=shown, error=why)
        if event:
            note = f"status.relatedObjects names the Lease {shown}, but {why}; correct the entry"
            self._events.event(obj, "Warning", "CannotCheck", note, action="Check", once=str(key))
