"""The loop of the staleness checker: look, decide, look once more, write.

The decision is `decide`, a pure function of the object and the API server's clock. Here is what
happens around it: when an object is looked at, that nothing is written in the grace period, that
the decision is made again on a fresh answer right before each write, and that a write is
refused when the object has changed since. So any number of checkers may run; none is elected.
"""

import os
import random
import socket
from typing import Literal

from quarterdeck.api.meta import Key, Object
from quarterdeck.controller import DONE, Controller, Manager, Result, Selection, Watch
from quarterdeck.kube import ApiError, Change, Conflict, Forbidden, Invalid, NotFound
from quarterdeck.log import get_logger
from quarterdeck.operators.staleness.decide import (
    Case,
    Challenge,
    Decision,
    LookAgain,
    Nothing,
    Restore,
    State,
    Verdict,
    Write,
    decide,
)
from quarterdeck.operators.staleness.explain import MUTE
from quarterdeck.operators.staleness.gauges import Gauges
from quarterdeck.operators.staleness.grace import Grace
from quarterdeck.operators.staleness.leases import named_leases
from quarterdeck.operators.staleness.publish import Publisher
from quarterdeck.operators.staleness.published import key_for
from quarterdeck.operators.staleness.renewals import Renewals
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

WRITTEN: dict[type, str] = {
    Challenge: "operator challenged",
    Verdict: "verdict written",
    Restore: "marks taken off",
}
"""What the log says about each kind of write."""


class Checker:
    """One checker at work."""

    def __init__(self, manager: Manager, settings: Settings) -> None:
        self._manager = manager
        self._settings = settings
        self._client = manager.replica_client
        self.operators = manager.objects(
            PLAIN_CLUSTER_OPERATORS,
            Selection(all_managed_fields=True),
            fenced=False,
            writes=["status"],
        )
        # Read once more right before each write, past the cache.
        manager.declare(PLAIN_CLUSTER_OPERATORS, "get")
        self._cache = self.operators.cache
        self._denied: dict[str, float] = {}
        """The operators that wait for a write that we may not make, and since when."""
        self._gauges = Gauges(manager.registry, settings, self._last_look)
        self._gauges.blind = lambda: self._cache.lost_for > manager.watch_grace_period
        manager.ready_unless(self._trouble)
        me = key_for(socket.gethostname(), os.getpid())
        publisher = Publisher(manager, settings, self._cache, me, self._trouble)
        manager.add_task("publisher", publisher.run, always=True)
        self._grace = Grace(
            settings.grace.total_seconds(), manager.clock(), manager.wall().timestamp()
        )
        self._sightings = Sightings()
        self._renewals = Renewals(manager)
        self._known: dict[str, Decision] = {}
        self._cache.subscribe(self._saw)

    def _saw(self, change: Change[Object]) -> None:
        """Remember each change: an answer may come and go before the operator is looked at."""
        if change.new is not None:
            self._sightings.look(change.new, self._manager.now(), self._manager.clock())

    def _last_look(self) -> float:
        """When this checker last could see and write, as far as it has tried."""
        return self._manager.wall().timestamp() - max(self._cache.lost_for, self._denied_for())

    def _denied_for(self) -> float:
        clock = self._manager.clock()
        return clock - min(self._denied.values(), default=clock)

    def _trouble(self) -> str:
        if self._denied_for() <= self._manager.watch_grace_period:
            return ""
        return "may not patch clusteroperators/status, so nobody can be asked"

    async def reconcile(self, key: Key) -> Result:
        """Look at one ClusterOperator."""
        obj = self.operators.get(key)
        if obj is None:
            self._forget(key.name)
            return DONE
        # At each look, so that it notices a sleep of the machine.
        wait = self._wait_for_grace()
        decision = self._judge(obj)
        leases = named_leases(obj)
        if leases and decision.state is not State.ALIVE:
            # Nothing tells us of a renewal, and who lives by its Lease need not write.
            await self._renewals.read(obj)
            decision = self._judge(obj)
        self._tell(obj, decision)
        if isinstance(decision, Write):
            wait = max(wait, self._wait_for_budget(key.name))
            if wait:
                return Result(requeue_after=wait)
            return self._after(await self._carry_out(key.name))
        self._denied.pop(key.name, None)
        if leases and isinstance(decision, Nothing):
            return Result(requeue_after=min(POLL, self._settings.interval.total_seconds()))
        return self._after(decision)

    def _wait_for_grace(self) -> float:
        clock, wall = self._manager.clock(), self._manager.wall().timestamp()
        # A request may get through while the watch still waits to be opened again.
        reached = clock if self._cache.lost_for else self._cache.followed_since
        return self._grace.left(clock, wall, reached)

    def _wait_for_budget(self, name: str) -> float:
        return self._sightings.wait(name, self._manager.clock(), self._settings.interval)

    async def _carry_out(self, name: str) -> Decision | None:
        """Decide again on what the server says now, and write; None when that is all.

        The answer to a write goes into the cache and wakes the controller again, and so does
        the change of somebody who was faster: the `Conflict` is the runtime's to try again.
        """
        try:
            obj: Object = await self._client.get(PLAIN_CLUSTER_OPERATORS, name)
        except NotFound:
            return None
        await self._renewals.read(obj)
        decision = self._judge(obj)
        self._tell(obj, decision)
        if not isinstance(decision, Write):
            return decision
        # Before it is sent: a request without an answer may have been carried out.
        self._sightings.wrote(name, self._manager.clock())
        try:
            status = {**obj.get("status", {}), "conditions": decision.conditions}
            await self.operators.set_status(obj, status)
        except (Invalid, Forbidden) as error:
            return self._refused(obj, decision, error)
        except NotFound:
            return None
        except Conflict:
            self._sightings.did_not_write(name)
            raise
        except ApiError as error:
            if not too_large(error):
                raise
            return self._refused(obj, decision, error)
        self._denied.clear()
        alive = decision.evidence.alive
        log.v(2).info(
            WRITTEN[type(decision)],
            operator=name,
            last_alive=alive.time.isoformat(),
            by=alive.by,
        )
        return None

    def _refused(self, obj: Object, decision: Write, error: ApiError) -> LookAgain:
        """The server does not let our text in: told, and left alone for a while."""
        name = obj["metadata"]["name"]
        if isinstance(error, Forbidden):
            self._denied.setdefault(name, self._manager.clock())
            self._sightings.did_not_write(name)
        self._manager.events.event(obj, "Warning", "CannotCheck", error.message, action="Check")
        log.warning("conditions refused by the server", operator=name, error=str(error))
        return LookAgain(
            state=decision.state,
            evidence=decision.evidence,
            at=self._manager.now() + self._settings.interval,
            then="verdict" if isinstance(decision, Verdict) else "challenge",
            since=decision.evidence.alive.time,
        )

    def _judge(self, obj: Object) -> Decision:
        now, name = self._manager.now(), obj["metadata"]["name"]
        return decide(
            Case(
                object=obj,
                now=now,
                interval=self._settings.interval,
                keep_upgradeable_false=self._settings.keep_upgradeable_false,
                lease=self._renewals.last(name),
                seen=self._sightings.look(obj, now, self._manager.clock()),
            )
        )

    def _after(self, decision: Decision | None) -> Result:
        """When to look again."""
        if not isinstance(decision, LookAgain):
            return DONE
        wait = max(0.0, (decision.at - self._manager.now()).total_seconds())
        spread = random.uniform(0, SPREAD)  # noqa: S311 - no secret
        return Result(requeue_after=min(wait + spread, POLL))

    def _tell(self, obj: Object, decision: Decision) -> None:
        """What is known goes to the metrics; an operator that went or came back, to everybody."""
        name = obj["metadata"]["name"]
        self._gauges.show(name, decision)
        before, self._known[name] = self._known.get(name), decision
        if decision.state is State.UNCHECKABLE and (
            before is None or before.state is not State.UNCHECKABLE
        ):
            self._event(obj, "Warning", "CannotCheck", MUTE, "no message")
            log.warning("operator cannot be checked", operator=name, why=MUTE)
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
        self._renewals.forget(name)
        self._known.pop(name, None)
        self._denied.pop(name, None)


def too_large(error: ApiError) -> bool:
    """Whether the object has no room left for our text."""
    return error.code == 413 or "too large" in error.message


def _verdict_of(decision: Decision | None) -> str:
    """What tells a verdict from others on the same object: when the server says it was written.

    Not when this checker saw it, which is another time for each of them.
    """
    if decision is None:
        return ""
    evidence = decision.evidence
    times = [write.time for write in evidence.writes if write.asks and write.time]
    written = max(times, default=evidence.challenged)
    return written.isoformat() if written else ""


def setup(manager: Manager, settings: Settings) -> None:
    """Add the checker; it works in every replica."""
    checker = Checker(manager, settings)
    watches = [Watch(checker.operators)]
    manager.add(
        Controller("staleness", checker.reconcile, watches, workers=WORKERS, needs_leader=False)
    )
