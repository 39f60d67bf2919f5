"""Runs an operator as users do: by `quarterdeck run` in its own process, under its own account."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from quarterdeck.delivery.declaration import StaticPodDelivery
from quarterdeck.delivery.manifests import account_objects
from quarterdeck.localcluster.access import ClusterAccess
from quarterdeck.localcluster.operators import find_operator
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.waiting import LIMIT, eventually


class OperatorProcess:
    """A running `quarterdeck run`, its log and its probes."""

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        verbosity: int = 4,
        program: Sequence[str] = ("-m", "quarterdeck"),
    ) -> None:
        """Start it; `program` is what Python runs, for another release than this one."""
        self.log = log
        command = [sys.executable, *program, f"--verbosity={verbosity}", "run"]
        options = ["--log-format=json", "--probe-address=127.0.0.1:0", *arguments]
        with log.open("wb") as stream:
            self._process = subprocess.Popen(
                [*command, *options],
                stdout=stream,
                stderr=subprocess.STDOUT,
                env={k: v for k, v in os.environ.items() if not k.startswith("POD_")},
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def lines(self, event: str = "") -> list[dict[str, Any]]:
        """The logged lines; with an event, only those of that event."""
        complete = self.log.read_text().rpartition("\n")[0].splitlines()
        lines = [json.loads(line) for line in complete if line.startswith("{")]
        return [line for line in lines if event in ("", line["event"])]

    def logged(self, event: str, limit: float = LIMIT) -> dict[str, Any]:
        """Wait for the first line of that event, and return it."""

        def look() -> dict[str, Any] | None:
            if found := self.lines(event):
                return found[0]
            if self._process.poll() is not None:
                raise AssertionError(f"ended without {event!r}:\n{self.log.read_text()}")
            return None

        return eventually(look, f"log line {event!r} in {self.log}", limit)

    def get(self, path: str) -> tuple[int, str]:
        """The status and text of a page of the probe server."""
        address = self.logged("serving probes and metrics")["address"]
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=LIMIT) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, sample: str) -> float:
        """The value of a sample, named as on the metrics page; 0 if there is none."""
        for line in self.get("/metrics")[1].splitlines():
            name, _, value = line.rpartition(" ")
            if name == sample:
                return float(value)
        return 0.0

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def wait(self, limit: float = LIMIT) -> int:
        """Wait for the end of the process, and return its exit code."""
        return self._process.wait(limit)

    def kill(self) -> None:
        """Kill the process, also if it is paused, and wait for its end."""
        self._process.kill()
        self._process.wait()


StartOperator = Callable[..., OperatorProcess]
"""Starts one more process, with additional options."""


def own_account(cluster: ClusterAccess, operator: str) -> Path:
    """The kubeconfig of an operator's account, which has the rights that are delivered from now on.

    The user of a static pod has a certificate, a ServiceAccount a token.
    """
    declared = find_operator(operator)
    requests = cluster.requests()
    with requests.connected():
        objects = ApiObjects(requests, declared.namespace)
        for obj in account_objects(declared):
            objects.apply(obj)
    match declared.delivery:
        case StaticPodDelivery() as delivery:
            return cluster.kubeconfig_for(delivery.user)
        case _:
            return cluster.kubeconfig_for_service_account(declared.namespace, declared.account)


class OwnOperators:
    """Operators in processes of their own, each with a log in the directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started: list[OperatorProcess] = []

    def __call__(
        self,
        cluster: ClusterAccess,
        operator: str,
        *arguments: str,
        account: Path | None = None,
    ) -> StartOperator:
        """Grant the operator its rights, and return what starts it with these arguments and others.

        With an `account`, the path of a kubeconfig, nothing is granted.
        """
        declared = find_operator(operator)
        kubeconfig = own_account(cluster, operator) if account is None else account
        always = [f"--operator={operator}", f"--kubeconfig={kubeconfig}", *arguments]
        if account is None:
            # As in its Deployment: it has rights in no other.
            always += [f"--namespace={name}" for name in declared.watched_namespaces]

        def start(*options: str) -> OperatorProcess:
            log = self._directory / f"operator-{len(self._started)}.log"
            self._started.append(OperatorProcess([*always, *options], log))
            return self._started[-1]

        return start

    def kill(self) -> None:
        """End all that were started."""
        for process in self._started:
            process.kill()
