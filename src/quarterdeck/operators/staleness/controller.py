"""The controller of the staleness checker: read, decide, read again, write.

`decide` makes the decision: a pure function of the object and the API server's clock. This module
does the rest. It chooses when to look at an object. It writes nothing in the grace period. It reads
the object again right before each write, and decides again. The server refuses the write if the
object has changed since. So any number of checkers may run, without leader election.
"""

import os
import random
import socket
from typing import Literal

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.times import format_time
from quarterdeck.controller import DONE, Controller, Manager, Result, Selection, Watch
from quarterdeck.kube import (
    ApiError,
    Change,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from quarterdeck.kube.cache import SHORT_OUTAGE
from quarterdeck.kube.errors import denied_by_policy
from quarterdeck.log import get_logger
from quarterdeck.operators.staleness.decide import (
    Case,
    Challenge,
    CheckState,
    Decision,
    LookAgain,
    Nothing,
    Restore,
    Verdict,
    Write,
    decide,
)
from quarterdeck.operators.staleness.explain import CANNOT_ANSWER
from quarterdeck.operators.staleness.gauges import Gauges
from quarterdeck.operators.staleness.grace import Grace
from quarterdeck.operators.staleness.leases import named_leases
from quarterdeck.operators.staleness.pauses import Pauses
from quarterdeck.operators.staleness.publish import Publisher
from quarterdeck.operators.staleness.published import key_for
from quarterdeck.operators.staleness.pulse import Pulse, StandingChallenge, refuses_all_writes
from quarterdeck.operators.staleness.renewals import Renewals
from quarterdeck.operators.staleness.settings import Settings
from quarterdeck.operators.staleness.sightings import Sightings, version_of
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS

log = get_logger("staleness")

RECHECK_PERIOD = 60.0
"""The most seconds between two reconciles of an object: clocks may jump. It costs no request."""

JITTER = 1.0
"""The most seconds of jitter, so that several checkers seldom write at the same moment."""

WORKERS = 8

LOG_MESSAGES: dict[type, str] = {
    Challenge: "operator challenged",
    Verdict: "verdict written",
    Restore: "marks taken off",
}
"""The log message for each kind of write."""


class Checker:
    """One running staleness checker."""

    def __init__(self, manager: Manager, settings: Settings) -> None:
        self._manager = manager
        self._settings = settings
        self._client = manager.replica_client
        self.operators = manager.objects(
            PLAIN_CLUSTER_OPERATORS,
            Selection(all_managed_fields=True),
            leader_only=False,
            writes=["status"],
        )
        # Each write first reads the object again from the server, not from the cache.
        manager.declare(PLAIN_CLUSTER_OPERATORS, "get")
        self._cache = self.operators.cache
        self._denied: dict[str, tuple[float, str]] = {}
        """Since when and why no operator can be written to, by the operator whose write failed."""
        self._gauges = Gauges(manager.registry, settings, self._last_look)
        self._gauges.blind = lambda: self._cache.lost_for > manager.watch_grace_period
        manager.ready_unless(self._trouble)
        me = key_for(socket.gethostname(), os.getpid())
        publisher = Publisher(manager, settings, self._cache, me, self._trouble)
        manager.add_task("publisher", publisher.run, always=True)
        self._grace = Grace(
            settings.grace.total_seconds(), manager.clock(), manager.wall().timestamp()
        )
        self._sightings = Sightings(keep_upgradeable_false=settings.keep_upgradeable_false)
        self._renewals = Renewals(manager)
        self._known: dict[str, Decision] = {}
        self._pauses = Pauses(settings.interval.total_seconds())
        self._pulse = Pulse(manager, self._grace, self._standing, self._reached, publisher.write)
        manager.add_task("pulse", self._pulse.run, always=True)
        self._cache.subscribe(self._remember)

    def _remember(self, change: Change[Object]) -> None:
        """Record each change: an answer may come and go before the next reconcile.

        An object may be deleted and created again before the next reconcile, too.
        """
        if change.new is None:
            self._forget(change.key.name)
            return
        if change.old is not None and version_of(change.new) < version_of(change.old):
            # The server was restored from a backup: no record is comparable any more.
            self._sightings.forget(change.key.name)
        self._sightings.record(change.new, self._manager.now(), self._manager.clock())

    def _last_look(self) -> float:
        """When this checker could last read and write, in seconds since 1970."""
        silent = self._grace.silent_for(self._manager.clock())
        lost = max(self._cache.lost_for, self._denied_for(), silent)
        return self._manager.wall().timestamp() - lost

    def _denied_for(self) -> float:
        clock = self._manager.clock()
        return clock - min(self._denied.values(), default=(clock, ""))[0]

    def _standing(self) -> StandingChallenge | None:
        """The challenge with the first verdict; None if no challenge stands."""
        found = [
            StandingChallenge(name, self._verdict_in(name, one))
            for name, one in self._known.items()
            if one.state is CheckState.CHALLENGED
        ]
        return min(found, key=lambda it: it.due, default=None)

    def _verdict_in(self, name: str, decision: Decision) -> float:
        """The seconds until the verdict on a challenged operator can be written."""
        if isinstance(decision, LookAgain):
            due = (decision.at - self._manager.now()).total_seconds()
            return max(due, self._pauses.left(name, self._manager.clock()))
        return self._budget(name)

    def _trouble(self) -> str:
        limit = self._manager.watch_grace_period
        if (silent := self._grace.silent_for(self._manager.clock())) > limit:
            why = self._pulse.trouble
            said = f"no answer of the API server for {silent:.0f} s while a verdict is due"
            return f"{said}: {why}" if why else said
        if self._denied_for() <= limit:
            return ""
        return f"{min(self._denied.values())[1]}, so nobody can be asked"

    async def reconcile(self, key: Key) -> Result:
        """Check one ClusterOperator."""
        obj = self.operators.get(key)
        if obj is None:
            self._forget(key.name)
            return DONE
        # Asked at each reconcile, so that it detects a sleep of the machine.
        self._wait_for_grace()
        decision = self._judge(obj)
        leases = named_leases(obj)
        if leases and decision.state is not CheckState.ALIVE:
            # Leases are not watched, and an operator with a live Lease need not write.
            await self._renewals.read(obj)
            decision = self._judge(obj)
        self._report(obj, decision)
        if isinstance(decision, Write):
            if wait := self._wait_to_write(key.name, decision):
                return Result(requeue_after=wait)
            return await self._carry_out(key.name)
        self._denied.pop(key.name, None)
        self._pauses.forget(key.name)
        if leases and isinstance(decision, Nothing):
            return Result(
                requeue_after=min(RECHECK_PERIOD, self._settings.interval.total_seconds())
            )
        return self._after(decision)

    def _reached(self) -> float:
        """Since when there was no outage; now in an outage."""
        # A request may succeed while the watch is still in back-off. One that is only reopened is
        # no outage: it may happen again and again.
        lost = self._cache.lost_for > SHORT_OUTAGE
        return self._manager.clock() if lost else self._cache.watched_since

    def _wait_for_grace(self, verdict_on: str | None = None) -> float:
        """The seconds until a write, or a verdict on this operator, is allowed; 0 if it is now."""
        clock, wall, reached = (
            self._manager.clock(),
            self._manager.wall().timestamp(),
            self._reached(),
        )
        if verdict_on is None:
            return self._grace.left(clock, wall, reached)
        challenged = self._sightings.marked_since(verdict_on, clock)
        return self._grace.left(clock, wall, reached, verdict=True, challenged=challenged)

    def _wait_to_write(self, name: str, decision: Write) -> float:
        """The seconds until this write to the object is allowed; 0 if it is now."""
        budget = self._budget(name)
        if self._server_decides():
            return budget
        return max(self._wait_for_grace(name if isinstance(decision, Verdict) else None), budget)

    def _budget(self, name: str) -> float:
        """The seconds until the next write to the object, whatever it is, is allowed."""
        clock = self._manager.clock()
        written = self._sightings.wait(name, clock, self._settings.interval)
        return max(written, self._pauses.left(name, clock))

    def _server_decides(self) -> bool:
        """Whether our own writes have been refused for so long that only a verdict can tell.

        The reason may be one that no operator has: a key store for ConfigMaps that is away.
        """
        refused = self._grace.refused_for(self._manager.clock())
        return refused > self._settings.interval.total_seconds()

    async def _carry_out(self, name: str) -> Result:
        """Read the object from the server, decide again, and write.

        The answer to a write goes into the cache, which wakes the controller. After a `Conflict`
        the runtime retries.
        """
        try:
            obj: Object = await self._client.get(PLAIN_CLUSTER_OPERATORS, name)
        except NotFound:
            return DONE
        await self._renewals.read(obj)
        decision = self._judge(obj)
        self._report(obj, decision)
        if not isinstance(decision, Write):
            return self._after(decision)
        # The machine may have slept, or the server been away, while we waited for the answers.
        if wait := self._wait_to_write(name, decision):
            return Result(requeue_after=wait)
        if self._server_decides() and not await self._pulse.refuses_writes(name):
            # Any more: operators have not answered yet.
            return Result(requeue_after=max(1.0, self._wait_for_grace(name)))
        # Noted before the request: the server may carry out a request whose answer is lost.
        began = self._manager.clock()
        self._sightings.note_write(name, began)
        try:
            status = {**obj.get("status", {}), "conditions": decision.conditions}
            await self.operators.set_status(obj, status)
        except NotFound:
            return DONE
        except Conflict:
            self._sightings.write_refused(name, began)
            raise
        except KubeError as error:
            if refuses_all_writes(error):
                self._grace.refused(self._manager.clock(), again=True)
            if not isinstance(error, ApiError):
                raise
            if (why := cannot_write(error)) is not None:
                self._denied.setdefault(name, (began, why))
                self._sightings.write_refused(name, began)
            if why or refuses_object(error):
                if why is None:
                    self._pauses.refused(name, began)
                later = self._refused(obj, decision, error)
                if later.state is CheckState.CHALLENGED:
                    self._known[name] = later
                return self._after(later)
            raise
        self._denied.clear()
        self._pauses.forget(name)
        alive = decision.evidence.alive
        log.v(2).info(
            LOG_MESSAGES[type(decision)],
            operator=name,
            last_alive=alive.time.isoformat(),
            by=alive.by,
        )
        return DONE

    def _refused(self, obj: Object, decision: Write, error: ApiError) -> LookAgain:
        """Report that the server refuses our conditions; look again after one interval."""
        name = obj["metadata"]["name"]
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
                seen=self._sightings.record(obj, now, self._manager.clock()),
            )
        )

    def _after(self, decision: Decision) -> Result:
        """When to reconcile again after this decision."""
        if not isinstance(decision, LookAgain):
            return DONE
        wait = max(0.0, (decision.at - self._manager.now()).total_seconds())
        spread = random.uniform(0, JITTER)  # noqa: S311 - no secret
        return Result(requeue_after=min(wait + spread, RECHECK_PERIOD))

    def _report(self, obj: Object, decision: Decision) -> None:
        """Update the metrics, and report an operator that became stale or recovered."""
        name = obj["metadata"]["name"]
        self._gauges.show(name, decision)
        before, self._known[name] = self._known.get(name), decision
        if decision.state is CheckState.UNCHECKABLE and (
            before is None or before.state is not CheckState.UNCHECKABLE
        ):
            self._event(obj, "Warning", "CannotCheck", CANNOT_ANSWER, "no message")
            log.warning("operator cannot be checked", operator=name, why=CANNOT_ANSWER)
        was_stale = before is not None and before.state is CheckState.STALE
        if decision.state is CheckState.STALE and not was_stale:
            self._report_stale(obj, decision)
        elif was_stale and decision.state in (CheckState.ALIVE, CheckState.CHALLENGED):
            by = decision.evidence.alive.by
            note = f"The operator updates its conditions again; the first sign of life was {by}."
            self._event(obj, "Normal", "OperatorRecovered", note, _verdict_of(before))
            log.info("operator recovered", operator=name, by=by)

    def _report_stale(self, obj: Object, decision: Decision) -> None:
        """Report a stale operator.

        The first checker that sees the verdict does it, because its writer may have been killed.
        """
        alive = decision.evidence.alive
        since = format_time(alive.time)
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
        """Create an event about one verdict; only one of all checkers creates it."""
        self._manager.events.event(obj, kind, reason, note, action="Check", once=verdict)

    def _forget(self, name: str) -> None:
        self._gauges.forget(name)
        self._sightings.forget(name)
        self._renewals.forget(name)
        self._pauses.forget(name)
        self._known.pop(name, None)
        self._denied.pop(name, None)


def cannot_write(error: ApiError) -> str | None:
    """The reason if the server refuses a write to any operator; None for any other error.

    A policy that refuses one object says nothing about the others.
    """
    if denied_by_policy(error.message):
        return None
    if isinstance(error, Forbidden):
        return "may not patch clusteroperators/status" if error.by_role else None
    if isinstance(error, TooManyRequests | Unauthorized) or "calling webhook" in error.message:
        return f"cannot patch clusteroperators/status ({error.message[:200]})"
    return None


def refuses_object(error: ApiError) -> bool:
    """Whether the server refuses this write to this object, and will refuse it again."""
    if isinstance(error, Invalid | Forbidden) or too_large(error):
        return True
    return denied_by_policy(error.message)


def too_large(error: ApiError) -> bool:
    """Whether the server refuses the object because of its size."""
    return error.code == 413 or "too large" in error.message


def _verdict_of(decision: Decision | None) -> str:
    """The server's time of the verdict, which identifies it among those on the same object.

    The time when a checker saw it would differ between checkers.
    """
    if decision is None:
        return ""
    evidence = decision.evidence
    times = [write.time for write in evidence.writes if write.by_checker and write.time]
    written = max(times, default=evidence.challenged)
    return written.isoformat() if written else ""


def setup(manager: Manager, settings: Settings) -> None:
    """Add the checker, which runs in every replica."""
    checker = Checker(manager, settings)
    watches = [Watch(checker.operators)]
    manager.add(
        Controller("staleness", checker.reconcile, watches, workers=WORKERS, needs_leader=False)
    )
