"""What every subject shares: its arguments, its marks and its end."""

import argparse
import json
import os
import sys
import threading
import time

GROUP, VERSION, PLURAL, KIND = "bench.quarterdeck.dev", "v1", "widgets", "Widget"


def arguments() -> argparse.Namespace:
    """The arguments, after which the process ends with its standard input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--objects", type=int, default=0)
    parser.add_argument("--events", type=int, default=0)
    parser.add_argument("--last-round", type=int, default=0)
    parser.add_argument("--version", type=int, default=0)
    parser.add_argument("--workers", type=int, default=32)
    parsed = parser.parse_args()
    threading.Thread(target=_end_with_input, daemon=True).start()
    return parsed


def mark(name: str, seen: int = 0) -> None:
    """Say that something was reached: when, and what it cost so far."""
    line = {"mark": name, "at": time.time(), "cpu": time.process_time(), "seen": seen}
    print(json.dumps(line), flush=True)


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


class Following:
    """Which objects were seen at all, and which in their last round.

    For subjects in which an event is not handled as it comes, but leads to a run for its object.
    """

    def __init__(self, objects: int, last_round: int) -> None:
        self.objects, self.last_round = objects, last_round
        self.runs = 0
        self._known: set[str] = set()
        self._done: set[str] = set()
        self._synced = False

    def ran(self, name: str, round_: int) -> None:
        """A run for an object saw it in this round."""
        self.runs += 1
        if not self._synced:
            self._known.add(name)
            if len(self._known) == self.objects:
                self._synced = True
                mark("synced", self.runs)
                self.runs = 0
        if round_ == self.last_round:
            self._done.add(name)
            if len(self._done) == self.objects:
                mark("done", self.runs)
