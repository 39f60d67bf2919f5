"""The part of an operator that manages metal3: it runs on bare metal, and sleeps elsewhere.

    Metal3Part(manager, group, "baremetal", BAREMETAL_ROLE, decide, report, [Watch(own)])

`switch` starts and stops the group that has everything but the platform. What cannot be read of it
is reported, while the operator cannot start without what it reads elsewhere. A stopped group
watches nothing, and leaves metal3 as it is: a platform that changes by mistake must not cost
Ironic's database.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from quarterdeck.api.config_v1 import INFRASTRUCTURES
from quarterdeck.api.meta import Key
from quarterdeck.controller import (
    DONE,
    Controller,
    Group,
    Manager,
    Result,
    Selection,
    Watch,
    to_singleton,
)
from quarterdeck.kube import ApiError, Conflict
from quarterdeck.metal3.deployment import DEPLOY_TIMEOUT
from quarterdeck.metal3.names import PROVISIONING_KEY
from quarterdeck.metal3.operand import CannotDecide, Decide, Operand, Role
from quarterdeck.metal3.platform import INFRASTRUCTURE_KEY, BareMetal, Platform, platform_of
from quarterdeck.metal3.progress import APPLYING
from quarterdeck.metal3.state import State, StateReason, with_remedy
from quarterdeck.status import Report, Reporter

RETRY_SECONDS = 5.0
"""How long to wait after a read that failed, at most."""
LOOK_PERIOD = timedelta(seconds=10)
"""How often to look whether everything can be read, and for how long that may not be so."""
SHORTEST_LOOK_PERIOD = timedelta(seconds=1)
NUMBER = re.compile("[0-9]+")
STARTING = State(StateReason.SYNCING, APPLYING)
"""The state on bare metal before the first reconcile."""


class Trouble(msgspec.Struct, frozen=True):
    """What cannot be read, and since when."""

    since: datetime
    text: str


class Metal3Part:
    """metal3, its switch, and the report of its operator."""

    def __init__(
        self,
        manager: Manager,
        group: Group,
        name: str,
        role: Role,
        decide: Decide,
        report: Callable[[Platform, State], Report],
        reads: Sequence[Watch] = (),
        deploy_timeout: timedelta = DEPLOY_TIMEOUT,
    ) -> None:
        """Report as the ClusterOperator `name`; `decide` reads the objects in `reads`.

        The group has nothing but metal3, and what `decide` needs.
        """
        self._infrastructures = manager.objects(
            INFRASTRUCTURES, Selection(name=INFRASTRUCTURE_KEY.name, optional=True)
        )
        self._group = group
        self._operand = Operand(self._group, manager, role, deploy_timeout)
        self._decide = decide
        self._report = report
        self._state = STARTING
        self._now = manager.now
        self._trouble: Trouble | None = None
        self._look_period = look_period(manager.watch_grace_period)
        to_only = to_singleton(PROVISIONING_KEY)
        watches = [*self._operand.watches, *(Watch(read.source, to_only) for read in reads)]
        self._group.add(
            Controller(f"{name}-metal3", self._reconcile, watches, at_start=[PROVISIONING_KEY])
        )
        platform = [Watch(self._infrastructures)]
        manager.add(
            Controller(f"{name}-platform", self._switch, platform, at_start=[INFRASTRUCTURE_KEY])
        )
        self._reporter = Reporter(manager, name, self._reported, platform)

    async def _switch(self, _: Key) -> Result:
        if isinstance(self._platform, BareMetal):
            self._group.start()
        else:
            self._group.stop()
            self._state = STARTING
        self._reporter.refresh_report()
        return DONE

    async def _reconcile(self, _: Key) -> Result:
        try:
            self._state = await self._operand.reconcile(self._decide)
        except CannotDecide as error:
            self._state = State(StateReason.CANNOT_READ, with_remedy(str(error)))
        except Conflict:
            raise  # somebody was faster: it runs again at once
        except ApiError as error:
            self._state = State(StateReason.REFUSED, with_remedy(str(error)))
            self._reporter.refresh_report()
            raise
        self._reporter.refresh_report()
        if self._state.reason is StateReason.CANNOT_READ:
            return Result(requeue_after=min(RETRY_SECONDS, self._look_period.total_seconds()))
        if self._state.valid_until is None:
            return DONE
        left = (self._state.valid_until - self._now()).total_seconds()
        return Result(requeue_after=max(1.0, left))

    def _reported(self, now: datetime) -> Report:
        """The report, which is made again soon on bare metal: no event tells of a lost watch."""
        if not isinstance(self._platform, BareMetal):
            return self._report(self._platform, self._state)
        self._trouble = later_trouble(self._trouble, self._group.trouble, now)
        state = reported_state(self._state, self._trouble, now, self._look_period)
        report = self._report(self._platform, state)
        return msgspec.structs.replace(report, valid_until=now + self._look_period)

    @property
    def _platform(self) -> Platform:
        return platform_of(self._infrastructures.get(INFRASTRUCTURE_KEY))


def look_period(watch_grace_period: float) -> timedelta:
    """How often to look, with so many seconds in which a watch may be lost. Pure."""
    seconds = min(LOOK_PERIOD.total_seconds(), watch_grace_period)
    return max(SHORTEST_LOOK_PERIOD, timedelta(seconds=seconds))


def later_trouble(before: Trouble | None, text: str, now: datetime) -> Trouble | None:
    """The trouble at a later look. Pure. A text that only counts seconds on stays as it was."""
    if not text:
        return None
    if before is None:
        return Trouble(now, text)
    is_same = NUMBER.sub("", before.text) == NUMBER.sub("", text)
    return before if is_same else Trouble(before.since, text)


def reported_state(
    state: State, trouble: Trouble | None, now: datetime, grace_period: timedelta = LOOK_PERIOD
) -> State:
    """The state, or that something cannot be read, if that lasts. Pure."""
    if trouble is None or now - trouble.since < grace_period:
        return state
    return State(StateReason.CANNOT_READ, with_remedy(trouble.text))
