"""How soon operators answer the staleness challenge: who is late, and who was slowest. Pure.

An operator has to put its messages back within 30 seconds, if it runs. What is judged is a *wait*:
it begins when a mark of the checker stands on a running operator's conditions (its checking
message, or with short intervals the verdict that followed it), and ends when none does, when the
operator stops running, or when its ClusterOperator goes. A wait that was longer than the limit is
a failure, however it ended.
"""

import msgspec

from quarterdeck.api.meta import LEASES, Key, Object
from quarterdeck.status.health import health_of

LIMIT = 30.0
"""Seconds that a running operator has to answer."""


class Late(msgspec.Struct, frozen=True):
    """A wait that was too long."""

    name: str
    seconds: float
    answered: bool

    def __str__(self) -> str:
        """What happened, as a test's failure says it."""
        how = "answered" if self.answered else "did not answer"
        return (
            f"ClusterOperator {self.name}: the staleness checker's text stood for "
            f"{self.seconds:.1f} s under a running operator, which {how}"
        )


class _Operator(msgspec.Struct):
    marked: bool = False
    running: bool = False
    since: float | None = None
    """When the wait began that lasts; None when there is none."""


class Answers:
    """What was seen of all operators; the time is passed in."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self.slowest: dict[str, float] = {}
        """By operator: its slowest answer in seconds."""
        self.late: list[Late] = []
        """The waits that ended and were too long."""
        self._operators: dict[str, _Operator] = {}

    def saw(self, name: str, *, marked: bool, running: bool, now: float) -> None:
        """An operator is so now."""
        one = self._operators.setdefault(name, _Operator())
        if one.since is not None and not (marked and running):
            # Who stops running while it is asked has not answered.
            self._end(name, now - one.since, answered=running)
            one.since = None
        if one.since is None and marked and running:
            one.since = now
        one.marked, one.running = marked, running

    def gone(self, name: str, now: float) -> None:
        """An operator's ClusterOperator is no more."""
        one = self._operators.pop(name, None)
        if one is not None and one.since is not None:
            self._end(name, now - one.since, answered=False)

    def overdue(self, now: float) -> list[Late]:
        """The waits that last and are too long already."""
        return [
            Late(name, now - one.since, answered=False)
            for name, one in self._operators.items()
            if one.since is not None and now - one.since > self.limit
        ]

    def _end(self, name: str, seconds: float, *, answered: bool) -> None:
        if answered:
            self.slowest[name] = max(seconds, self.slowest.get(name, 0.0))
        if seconds > self.limit:
            self.late.append(Late(name, seconds, answered))


def is_marked(cluster_operator: Object) -> bool:
    """Whether a text of the staleness checker stands on one of its conditions."""
    return any(one.mark is not None for one in health_of(cluster_operator).conditions)


def deployment_of(cluster_operator: Object) -> Key | None:
    """The operator's own Deployment: named as the Lease among its related objects; None without.

    That is how all operators of this project are named. Other Deployments among the related
    objects are what an operator runs, and not itself.
    """
    for one in (cluster_operator.get("status") or {}).get("relatedObjects") or ():
        if (one.get("group"), one.get("resource")) == (LEASES.group, LEASES.plural):
            return Key(one.get("namespace") or "", one.get("name") or "")
    return None


def has_ready_replicas(deployment: Object | None) -> bool:
    """Whether one of the operator's pods is ready; a Deployment that is being deleted has none."""
    if deployment is None or deployment["metadata"].get("deletionTimestamp"):
        return False
    return bool((deployment.get("status") or {}).get("readyReplicas"))


def summary(slowest: dict[str, float]) -> list[str]:
    """A line for each operator, the slowest first."""
    ordered = sorted(slowest.items(), key=lambda item: (-item[1], item[0]))
    return [f"{seconds:6.2f} s  {name}" for name, seconds in ordered]
