"""Watches all ClusterOperators during a test run, and finds those that do not answer in time.

    with AnswerMonitor(kubeconfig) as monitor:
        monitor.runs("mine")             # an operator that the test runs by itself
        with monitor.excused("mine"):    # the test keeps it from answering on purpose
            ...
        assert not monitor.take_failures()

`answers` defines what is late. An operator *runs* while its own Deployment has a ready replica, or
while the test says so. Its Deployment has the name of the Lease in its ClusterOperator. An operator
without both is not judged.

The monitor runs in its own thread, so that any kind of test can use it.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from quarterdeck.api.meta import DEPLOYMENTS, Key, Object
from quarterdeck.controller.cache_tasks import running_caches
from quarterdeck.kube import Cache, Client, load_kubeconfig
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS
from quarterdeck.testing.answers import (
    ANSWER_LIMIT,
    Answers,
    LateAnswer,
    deployment_of,
    has_ready_replicas,
    is_marked,
)
from quarterdeck.testing.loop_thread import LoopThread

if TYPE_CHECKING:
    from concurrent.futures import Future


class AnswerMonitor:
    """A context in which ClusterOperators are watched; call its methods from the test's thread."""

    def __init__(
        self,
        kubeconfig: Path,
        *,
        limit: float = ANSWER_LIMIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch the cluster of a kubeconfig."""
        self._kubeconfig = kubeconfig
        self._clock = clock
        self._lock = threading.Lock()
        self._answers = Answers(limit)
        self._set_by_test: dict[str, bool] = {}
        self._excused: set[str] = set()
        self._operators: dict[str, Object] = {}
        self._deployments: dict[Key, Object] = {}
        self._synced = threading.Event()
        self._thread = LoopThread("answer-monitor")
        self._following: Future[None] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._following = self._thread.submit(self._follow())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._thread.stop()
        if self._following is not None and not self._following.cancelled():
            self._following.result()  # Raises if the watch failed, so that nothing is missed.

    # --- for the test

    def runs(self, name: str, running: bool = True) -> None:
        """Set whether this operator runs, instead of reading its Deployment."""
        with self._lock:
            self._set_by_test[name] = running
            self._look(name)

    @contextmanager
    def excused(self, name: str) -> Iterator[None]:
        """Let the operator not answer inside the block, because the test prevents it."""
        with self._lock:
            self._excused.add(name)
            self._look(name)
        try:
            yield
        finally:
            with self._lock:
                self._excused.discard(name)
                self._look(name)

    def take_failures(self) -> list[LateAnswer]:
        """Return the waits that are too long since the last call, and forget those that ended."""
        with self._lock:
            late, self._answers.late = self._answers.late, []
            return late + self._answers.overdue(self._clock())

    @property
    def slowest(self) -> dict[str, float]:
        """Each operator's slowest answer in seconds."""
        with self._lock:
            return dict(self._answers.slowest)

    def wait_synced(self, limit: float) -> bool:
        """Wait for the first lists; True if they come within so many seconds."""
        return self._synced.wait(limit)

    # --- in the thread

    async def _follow(self) -> None:
        async with Client(load_kubeconfig(self._kubeconfig)) as client:
            operators: Cache[Object] = Cache(client, PLAIN_CLUSTER_OPERATORS)
            deployments: Cache[Object] = Cache(client, DEPLOYMENTS)
            operators.subscribe(lambda it: self._operator_changed(it.key, it.new))
            deployments.subscribe(lambda it: self._deployment_changed(it.key, it.new))
            async with running_caches(deployments, operators):
                self._synced.set()
                await asyncio.Event().wait()

    def _operator_changed(self, key: Key, new: Object | None) -> None:
        with self._lock:
            if new is None:
                self._operators.pop(key.name, None)
                self._answers.gone(key.name, self._clock())
                return
            self._operators[key.name] = new
            self._look(key.name)

    def _deployment_changed(self, key: Key, new: Object | None) -> None:
        with self._lock:
            if new is None:
                self._deployments.pop(key, None)
            else:
                self._deployments[key] = new
            for name, operator in self._operators.items():
                if deployment_of(operator) == key:
                    self._look(name)

    def _look(self, name: str) -> None:
        """Record an operator's present state; the caller holds the lock."""
        operator = self._operators.get(name)
        if operator is not None:
            running = self._runs(name, operator) and name not in self._excused
            self._answers.saw(name, marked=is_marked(operator), running=running, now=self._clock())

    def _runs(self, name: str, operator: Object) -> bool:
        if name in self._set_by_test:
            return self._set_by_test[name]
        where = deployment_of(operator)
        return where is not None and has_ready_replicas(self._deployments.get(where))
