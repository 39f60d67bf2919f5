"""Two replicas of the cluster version operator, each behind a fault proxy, whose leader is lost."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.operators.cluster_version.version.releases import Cluster

from quarterdeck.testing.audit import AuditedRequest, writes_by
from quarterdeck.testing.fault_proxy import Cut, FaultProxy, Hold
from quarterdeck.testing.operator_process import OperatorProcess, StartOperator
from quarterdeck.testing.waiting import eventually

ELECT = ("--leader-elect", "--lease-duration=4", "--renew-deadline=3", "--retry-period=0.4")
WAYS = ("killed", "paused", "cut off", "unheard")
"""How a leader is lost; what an unheard one writes arrives, but it gets no answer."""
_BESIDES = ("leases", "events")
_READS = ("get", "list", "watch")


class Replica:
    """One process, the proxy between it and the server, and the user that it is."""

    def __init__(self, process: OperatorProcess, proxy: FaultProxy, user: str) -> None:
        self.process = process
        self.proxy = proxy
        self.user = user

    def steps(self) -> int:
        """How often it has written, since the proxy forgot, what is no Lease and no Event."""
        return sum(
            seen.verb not in _READS and seen.resource not in _BESIDES for seen in self.proxy.seen
        )


class Replicas:
    """The replicas that run; whoever is lost is replaced, as by a Deployment."""

    def __init__(self, cluster: Cluster, run_cvo: StartOperator, release: str, files: Path) -> None:
        self._cluster = cluster
        self._run_cvo = run_cvo
        self._release = release
        self._files = files
        self._started = 0
        self.running: list[Replica] = []

    def start(self) -> Replica:
        """One more replica."""
        namespace = self._cluster.namespace
        user = f"replica-{self._started}-{namespace}"
        self._started += 1
        proxy = FaultProxy(self._cluster.plane.kubeconfig_for(user, ["system:masters"]))
        proxy.__enter__()
        path = proxy.write_kubeconfig(self._files / f"{user}.kubeconfig")
        options = (*ELECT, f"--lease-namespace={namespace}", f"--kubeconfig={path}")
        replica = Replica(self._run_cvo(self._release, *options), proxy, user)
        self.running.append(replica)
        return replica

    def leader(self) -> Replica:
        """The replica that leads, when one does."""

        def look() -> Replica | None:
            leading = [one for one in self.running if one.process.lines("leading")]
            return leading[0] if leading else None

        return eventually(look, "a leader")

    def lose(self, leader: Replica, way: str) -> None:
        """Lose the leader, start another replica, and return when there is a new leader."""
        match way:
            case "killed":
                leader.process.kill()
            case "paused":
                leader.process.send(signal.SIGSTOP)
            case "cut off":
                leader.proxy.inject(Hold(), times=None)
                leader.proxy.cut_now()
            case _:
                leader.proxy.inject(Cut(), times=None)
                leader.proxy.cut_now()
        self.running.remove(leader)
        self.start()
        self.leader()

    def end(self, lost: Replica, way: str) -> list[AuditedRequest]:
        """What a lost leader has still written after its pause, if it had one; it has ended."""
        if way == "paused":
            before = len(self._accepted(lost))
            lost.process.send(signal.SIGCONT)
            assert lost.process.wait() == 1, "another one leads"
            written = self._accepted(lost)[before:]
        else:
            if way != "killed":
                assert lost.process.wait() == 1, "its Lease was not renewed"
            written = []
        lost.proxy.__exit__(None, None, None)
        return written

    def _accepted(self, replica: Replica) -> list[AuditedRequest]:
        written = writes_by(self._cluster.plane.audit_log, replica.user)
        return [one for one in written if one.code < 300]


@contextmanager
def replicas(
    cluster: Cluster, run_cvo: StartOperator, release: str, files: Path
) -> Iterator[Replicas]:
    """Two replicas, the first of which leads; their proxies end with the block."""
    made = Replicas(cluster, run_cvo, release, files)
    try:
        made.start().process.logged("leading")
        made.start().process.logged("standing by")
        yield made
    finally:
        for replica in made.running:
            replica.process.kill()
            replica.proxy.__exit__(None, None, None)
