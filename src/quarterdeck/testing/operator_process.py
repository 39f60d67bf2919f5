"""Runs an operator as users do, by `quarterdeck run` in its own process."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from quarterdeck.testing.waiting import LIMIT, eventually


class OperatorProcess:
    """A running `quarterdeck run`, its log and its probes."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self.log = log
        command = [sys.executable, "-m", "quarterdeck", "--verbosity=4", "run"]
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


@contextmanager
def operator_processes(directory: Path, *arguments: str) -> Iterator[StartOperator]:
    """A function that starts processes with these arguments; they are killed after the block."""
    numbers = count()
    with ExitStack() as started:

        def start(*options: str) -> OperatorProcess:
            log = directory / f"operator-{next(numbers)}.log"
            process = OperatorProcess([*arguments, *options], log)
            started.callback(process.kill)
            return process

        yield start
