"""How soon operators answer the staleness challenge: late and slowest answers. Pure.

A running operator has to restore its messages within 30 seconds. A *wait* begins when a running
operator's conditions carry a mark of the checker: a challenge or, with short intervals, a verdict.
It ends when they carry none, when the operator stops, or when its ClusterOperator is deleted. A
wait longer than the limit is a failure, however it ends.
"""

import msgspec

from quarterdeck.api.meta import LEASES, Key, Object
from quarterdeck.status.health import health_of

ANSWER_LIMIT = 30.0
"""The most seconds in which a running operator has to answer."""


class LateAnswer(msgspec.Struct, frozen=True):
    """A wait that was too long."""

    name: str
    seconds: float
    answered: bool

    def __str__(self) -> str:
        """The message of the test's failure."""
        how = "answered" if self.answered else "did not answer"
        return (
            f"ClusterOperator {self.name}: the staleness checker's text stood for "
            f"{self.seconds:.1f} s under a running operator, which {how}"
        )


class _Operator(msgspec.Struct):
    marked: bool = False
    running: bool = False
    since: float | None = None
    """The start of the present wait; None if there is none."""


class Answers:
    """The waits of all operators; the time is passed in."""

    def __init__(self, limit: float = ANSWER_LIMIT) -> None:
        self.limit = limit
        self.slowest: dict[str, float] = {}
        """Each operator's slowest answer in seconds."""
        self.late: list[LateAnswer] = []
        """The ended waits that were too long."""
        self._operators: dict[str, _Operator] = {}

    def saw(self, name: str, *, marked: bool, running: bool, now: float) -> None:
        """Record the present state of an operator."""
        one = self._operators.setdefault(name, _Operator())
        if one.since is not None and not (marked and running):
            # An operator that stops during a challenge has not answered.
            self._end(name, now - one.since, answered=running)
            one.since = None
        if one.since is None and marked and running:
            one.since = now
        one.marked, one.running = marked, running

    def gone(self, name: str, now: float) -> None:
        """Record that an operator's ClusterOperator is deleted."""
        one = self._operators.pop(name, None)
        if one is not None and one.since is not None:
            self._end(name, now - one.since, answered=False)

    def overdue(self, now: float) -> list[LateAnswer]:
        """The present waits that are too long already."""
        return [
            LateAnswer(name, now - one.since, answered=False)
            for name, one in self._operators.items()
            if one.since is not None and now - one.since > self.limit
        ]

    def _end(self, name: str, seconds: float, *, answered: bool) -> None:
        if answered:
            self.slowest[name] = max(seconds, self.slowest.get(name, 0.0))
        if seconds > self.limit:
            self.late.append(LateAnswer(name, seconds, answered))


def is_marked(cluster_operator: Object) -> bool:
    """Whether one of its conditions carries a mark of the staleness checker."""
    return any(one.mark is not None for one in health_of(cluster_operator).conditions)


def deployment_of(cluster_operator: Object) -> Key | None:
    """The key of the operator's own Deployment, that of its Lease; None without a Lease.

    All operators of this project are named so. Other Deployments in the related objects are
    operands.
    """
    for one in (cluster_operator.get("status") or {}).get("relatedObjects") or ():
        if (one.get("group"), one.get("resource")) == (LEASES.group, LEASES.plural):
            return Key(one.get("namespace") or "", one.get("name") or "")
    return None


def has_ready_replicas(deployment: Object | None) -> bool:
    """Whether a pod of the Deployment is ready; False if the Deployment is being deleted."""
    if deployment is None or deployment["metadata"].get("deletionTimestamp"):
        return False
    return bool((deployment.get("status") or {}).get("readyReplicas"))


def summary(slowest: dict[str, float]) -> list[str]:
    """A line for each operator, the slowest first."""
    ordered = sorted(slowest.items(), key=lambda item: (-item[1], item[0]))
    return [f"{seconds:6.2f} s  {name}" for name, seconds in ordered]
