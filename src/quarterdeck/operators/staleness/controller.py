"""The loop of the staleness checker: look, decide, look once more, write.

The decision is `decide`, a pure function of the object and the API server's clock. Here is what
happens around it: when an object is looked at, that nothing is written in the grace period, that
the decision is made again on a fresh answer right before each write, and that a write is
refused when the object has changed since. So any number of checkers may run; none is elected.
"""

import random
from datetime import datetime
from typing import Literal

from quarterdeck.api.meta import LEASES, Key, Object
from quarterdeck.controller import DONE, Controller, Manager, Result, Watch
from quarterdeck.controller.metadata import fence
from quarterdeck.kube import Forbidden, Invalid, NotFound
from quarterdeck.log import get_logger
from quarterdeck.operators.staleness.decide import (
    Case,
    Challenge,
    Decision,
    LookAgain,
    State,
    Verdict,
    decide,
)
from quarterdeck.operators.staleness.evidence import Proof
from quarterdeck.operators.staleness.gauges import Gauges
from quarterdeck.operators.staleness.grace import Grace
from quarterdeck.operators.staleness.leases import named_leases, newest, renewal
from quarterdeck.operators.staleness.settings import Settings
from quarterdeck.operators.staleness.sightings import Sightings
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS

log = get_logger("staleness")

POLL = 60.0
"""Seconds after which an object is looked at again at the latest: clocks may jump. It costs no
request."""

SPREAD = 1.0
"""Seconds over which several checkers spread, so that they seldom write at the same moment."""

WORKERS = 8


class Checker:
    """One checker at work."""

    def __init__(self, manager: Manager, settings: Settings) -> None:
        self._manager = manager
        self._settings = settings
        self._client = manager.replica_client
        self._cache = manager.cache(PLAIN_CLUSTER_OPERATORS, all_managed_fields=True)
        self._gauges = Gauges(manager.registry)
        self._grace = Grace(
            settings.grace.total_seconds(), manager.clock(), manager.wall().timestamp()
        )
        self._sightings = Sightings()
        self._renewals: dict[str, Proof | None] = {}
        self._known: dict[str, Decision] = {}

    async def reconcile(self, key: Key) -> Result:
        """Look at one ClusterOperator."""
        obj = self._cache.get(key)
        if obj is None:
            self._forget(key.name)
            return DONE
        wait = self._grace.left(self._manager.clock(), self._manager.wall().timestamp())
        decision = self._judge(obj)
        self._tell(obj, decision)
        if isinstance(decision, Challenge | Verdict):
            if wait:
                return Result(requeue_after=wait)
            return self._after(await self._carry_out(key.name))
        return self._after(decision)

    async def _carry_out(self, name: str) -> Decision | None:
        """Decide again on what the server says now, and write; None when that is all.

        The answer to a write goes into the cache and wakes the controller again, and so does
        the change of somebody who was faster: the `Conflict` is the runtime's to try again.
        """
        try:
            obj: Object = await self._client.get(PLAIN_CLUSTER_OPERATORS, name)
        except NotFound:
            return None
        self._renewals[name] = await self._renewal(obj)
        decision = self._judge(obj)
        self._tell(obj, decision)
        if not isinstance(decision, Challenge | Verdict):
            return decision
        try:
            await self._client.patch(
                PLAIN_CLUSTER_OPERATORS,
                name,
                {"metadata": fence(obj), "status": {"conditions": decision.conditions}},
                subresource="status",
                field_manager=self._manager.field_manager,
            )
        except Invalid as error:
            return self._refused(obj, decision, error)
        except NotFound:
            return None
        alive = decision.evidence.alive
        log.v(2).info(
            "operator challenged" if isinstance(decision, Challenge) else "verdict written",
            operator=name,
            last_alive=alive.time.isoformat(),
            by=alive.by,
        )
        return None

    def _refused(self, obj: Object, decision: Challenge | Verdict, error: Invalid) -> LookAgain:
        """The definition does not let our text in: told, and left alone for a while."""
        self._manager.events.event(obj, "Warning", "CannotCheck", error.message, action="Check")
        name = obj["metadata"]["name"]
        log.warning("conditions refused by the server", operator=name, error=str(error))
        return LookAgain(
            state=decision.state,
            evidence=decision.evidence,
            at=self._now() + self._settings.interval,
            then="verdict" if isinstance(decision, Verdict) else "challenge",
            since=decision.evidence.alive.time,
        )

    async def _renewal(self, obj: Object) -> Proof | None:
        """When the operator last renewed a Lease that counts for it."""
        proofs = []
        for key in named_leases(obj):
            try:
                lease: Object = await self._client.get(LEASES, key.name, key.namespace)
            except (NotFound, Forbidden) as error:
                name = obj["metadata"]["name"]
                log.warning("lease does not count", operator=name, error=str(error))
                continue
            proofs.append(renewal(lease))
        return newest(proofs)

    def _judge(self, obj: Object) -> Decision:
        now, name = self._now(), obj["metadata"]["name"]
        return decide(
            Case(
                object=obj,
                now=now,
                interval=self._settings.interval,
                keep_upgradeable_false=self._settings.keep_upgradeable_false,
                lease=self._renewals.get(name),
                seen=self._sightings.look(obj, now),
            )
        )

    def _now(self) -> datetime:
        """The API server's time; ours only if it never says the time of day."""
        return self._client.server_time() or self._manager.wall()

    def _after(self, decision: Decision | None) -> Result:
        """When to look again."""
        if not isinstance(decision, LookAgain):
            return DONE
        wait = max(0.0, (decision.at - self._now()).total_seconds())
        spread = random.uniform(0, SPREAD)  # noqa: S311 - no secret
        return Result(requeue_after=min(wait + spread, POLL))

    def _tell(self, obj: Object, decision: Decision) -> None:
        """What is known goes to the metrics; an operator that went or came back, to everybody."""
        name = obj["metadata"]["name"]
        self._gauges.show(name, decision)
        before, self._known[name] = self._known.get(name), decision
        was_stale = before is not None and before.state is State.STALE
        if decision.state is State.STALE and not was_stale:
            self._tell_stale(obj, decision)
        elif was_stale and decision.state in (State.ALIVE, State.CHALLENGED):
            by = decision.evidence.alive.by
            note = f"The operator updates its conditions again; the first sign of life was {by}."
            self._event(obj, "Normal", "OperatorRecovered", note, _verdict_of(before))
            log.info("operator recovered", operator=name, by=by)

    def _tell_stale(self, obj: Object, decision: Decision) -> None:
        """Said by whoever sees it first, so that it is said even if its writer was killed."""
        alive = decision.evidence.alive
        since = alive.time.isoformat()
        note = (
            f"The operator has not updated its conditions since {since} ({alive.by}) and did not "
            "answer; they are Unknown now."
        )
        self._event(obj, "Warning", "OperatorStale", note, _verdict_of(decision))
        name = obj["metadata"]["name"]
        log.warning("operator is stale", operator=name, last_alive=since, by=alive.by)

    def _event(
        self, obj: Object, kind: Literal["Normal", "Warning"], reason: str, note: str, verdict: str
    ) -> None:
        """An event that belongs to one verdict: of all checkers one tells it."""
        self._manager.events.event(obj, kind, reason, note, action="Check", once=verdict)

    def _forget(self, name: str) -> None:
        self._gauges.forget(name)
        self._sightings.forget(name)
        self._renewals.pop(name, None)
        self._known.pop(name, None)


def _verdict_of(decision: Decision | None) -> str:
    """What tells a verdict from others on the same object: when it was written."""
    written = decision.evidence.challenged if decision is not None else None
    return written.isoformat() if written else ""


def setup(manager: Manager, settings: Settings) -> None:
    """Add the checker; it works in every replica."""
    checker = Checker(manager, settings)
    watch = Watch(PLAIN_CLUSTER_OPERATORS, all_managed_fields=True)
    controller = Controller(
        "staleness", checker.reconcile, [watch], workers=WORKERS, needs_leader=False
    )
    manager.add(controller)
