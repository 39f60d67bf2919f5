"""`python -m bench.console`: the web console with many operators, events and viewers.

The console runs as a process of its own, before a cluster of its own. A real Chromium on the same
machine loads the overview, and sees changes: from the sending of a PATCH to the frame in which the
row has the new text. Viewers are open streams of events of one identity; the audit log of the API
server has the watches that they cost.
"""

import argparse
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from bench.arithmetic import median, percentile
from bench.goals import at_most
from bench.report import report
from bench.results import Column, Measurement, Row
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries
from quarterdeck.localcluster.definitions import install_own_definitions

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OPERATORS = "/apis/config.openshift.io/v1/clusteroperators"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RBAC = "rbac.authorization.k8s.io"
VIEWERS_OF_A_SESSION = 40
"""The console allows a few more live pages of one session."""
PAINT_GOAL = 0.2
FRAME_GOAL = 0.05
"""Seconds between two frames from which on a person sees that scrolling halts."""
TICKS = os.sysconf("SC_CLK_TCK")

_SEEN = """([name, text]) => new Promise(resolve => {
  const look = () => {
    const row = document.getElementById("row-" + name);
    if (row && row.textContent.includes(text)) requestAnimationFrame(() => resolve(Date.now()));
    else requestAnimationFrame(look);
  };
  look();
})"""


_SCROLLED = """() => new Promise(resolve => {
  const gaps = [];
  let last = performance.now();
  const step = (at) => {
    gaps.push(at - last);
    last = at;
    scrollBy(0, 80);
    const ended = scrollY + innerHeight >= document.documentElement.scrollHeight - 1;
    if (ended || gaps.length >= 600) resolve(gaps.slice(1)); else requestAnimationFrame(step);
  };
  scrollTo(0, 0);
  requestAnimationFrame(step);
})"""
"""Scrolls to the end of the page, some lines in each frame; the milliseconds between frames."""


def main() -> None:
    """Measure, show and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--operators", type=int, default=200)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--viewers", type=int, default=100)
    parser.add_argument("--loads", type=int, default=30)
    parser.add_argument("--changes", type=int, default=50)
    arguments = parser.parse_args()
    binaries = ensure_binaries(BinarySettings.from_environment(os.environ))
    with (
        tempfile.TemporaryDirectory(prefix="bench-console-") as directory,
        ControlPlane(Path(directory) / "state", binaries, durable=False, audit=True) as plane,
    ):
        install_own_definitions(plane.requests())
        _fill(plane.requests(), arguments.operators, arguments.events)
        with _console(plane.kubeconfig) as (process, url), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            found = _measured(plane, process, url, browser, arguments)
            browser.close()
    report("console", found)


def _fill(requests: Requests, operators: int, events: int) -> None:
    with requests.connected():
        for number in range(operators):
            name = f"operator-{number:03}"
            _send(requests, "POST", OPERATORS, _operator(name))
            _set_status(requests, name, "all is well")
        for number in range(events):
            about = f"operator-{number % operators:03}"
            _send(requests, "POST", EVENTS, _event(number, about))


def _operator(name: str) -> dict[str, Any]:
    kind = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator"}
    return {**kind, "metadata": {"name": name}, "spec": {}}


def _event(number: int, about: str) -> dict[str, Any]:
    regarding = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "name": about}
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"event-{number}", "namespace": "default"},
        "eventTime": "2026-11-17T00:00:00.000000Z",
        "reportingController": "bench",
        "reportingInstance": "bench",
        "action": "Reported",
        "reason": "Reported",
        "type": "Normal",
        "note": f"event {number} about {about}",
        "regarding": regarding,
    }


def _set_status(requests: Requests, name: str, message: str) -> None:
    statuses = {"Available": "True", "Progressing": "False", "Degraded": "False"}
    conditions = [
        {
            "type": type_,
            "status": status,
            "reason": "AsExpected",
            "message": message if type_ == "Available" else "",
            "lastTransitionTime": "2026-11-17T00:00:00Z",
        }
        for type_, status in {**statuses, "Upgradeable": "True"}.items()
    ]
    versions = [{"name": "operator", "version": "0.1.0"}]
    status = {"conditions": conditions, "versions": versions}
    _send(requests, "PATCH", f"{OPERATORS}/{name}/status", {"status": status})


def _send(requests: Requests, method: str, path: str, body: dict[str, Any]) -> None:
    content = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = requests.send(method, path, json.dumps(body).encode(), content)
    assert answer.ok, answer.body.decode(errors="replace")


@contextmanager
def _console(kubeconfig: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The console as a process, and its address."""
    command = [sys.executable, "-m", "quarterdeck", "--verbosity=0", "console"]
    options = [f"--kubeconfig={kubeconfig}", "--port=0"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().rpartition(" ")[2].strip().rstrip("/")
        finally:
            process.send_signal(signal.SIGTERM)


def _measured(
    plane: ControlPlane,
    process: "subprocess.Popen[str]",
    url: str,
    browser: Browser,
    arguments: argparse.Namespace,
) -> list[Measurement]:
    token = _token(plane.requests())
    page = _logged_in(browser, url, token)
    paints = [_paint(page, url) for _ in range(arguments.loads)]
    about = f"{url}/operators/operator-001"
    page.goto(about)  # the events are listed once
    details = [_paint(page, about) for _ in range(arguments.loads)]
    page.goto(url)
    page.wait_for_selector("#live.on")
    pixels = [_pixel(page, plane.requests(), number) for number in range(arguments.changes)]
    size = len(page.content())
    frames: list[float] = page.evaluate(_SCROLLED)
    sessions = -(-arguments.viewers // VIEWERS_OF_A_SESSION)
    cookies = [_cookie(_logged_in(browser, url, token)) for _ in range(sessions)]
    with ExitStack() as stack:
        streams = [
            stack.enter_context(_stream(url, cookies[number // VIEWERS_OF_A_SESSION]))
            for number in range(arguments.viewers)
        ]
        for stream in streams:
            _data(stream)  # the whole page, once
        memory, before, began = _memory(process.pid), _cpu(process.pid), time.monotonic()
        sizes = []
        for number in range(arguments.changes):
            _set_status(plane.requests(), "operator-000", f"for all viewers: {number}")
            sizes += [len(_data(stream)) for stream in streams]
        used, took = _cpu(process.pid) - before, time.monotonic() - began
    sent = len(sizes)
    return [
        _times(
            "first-paint", f"first paint of {arguments.operators} operators", paints, PAINT_GOAL
        ),
        _times(
            "operator-paint",
            f"first paint of an operator's page, with {arguments.events} events",
            details,
            PAINT_GOAL,
        ),
        _times("change-to-pixel", "from PATCH sent to the frame that shows it", pixels, 0.5),
        _times(
            "scrolling",
            f"between two frames while {arguments.operators} operators are scrolled through",
            [one / 1000 for one in frames],
            FRAME_GOAL,
            decisive="p99",
        ),
        Measurement(
            name="viewers",
            title=f"{arguments.viewers} viewers of one identity, {arguments.changes} changes, "
            f"{arguments.events} events in the cluster",
            columns=[
                Column(figure="watches", title="watches", format=".0f"),
                Column(figure="memory", title="memory", format=".0f", scale=1e-6, unit=" MB"),
                Column(
                    figure="cpu", title="CPU per update sent", format=".0f", scale=1e6, unit=" µs"
                ),
                Column(figure="update", title="bytes of an update", format=".0f"),
                Column(figure="page", title="bytes of the page", format=".0f"),
                Column(figure="share", title="CPU", format=".0f", scale=100, unit=" %"),
            ],
            rows=[
                Row(
                    subject="quarterdeck",
                    figures={
                        "watches": float(_watches(plane.audit_log)),
                        "memory": memory,
                        "cpu": used / sent if sent else 0.0,
                        "update": median([float(one) for one in sizes]),
                        "page": float(size),
                        "share": used / took,
                    },
                )
            ],
            verdicts=[
                at_most("watches of clusteroperators", 1, float(_watches(plane.audit_log)), "")
            ],
            notes=["the viewers are on the same machine, and read every update"],
        ),
    ]


def _token(requests: Requests) -> str:
    """A token of an administrator: all sessions have the same identity."""
    _send(requests, "POST", ACCOUNTS, {"metadata": {"name": "viewer"}})
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "name": "viewer", "namespace": "default"}
    binding = {"metadata": {"name": "viewer"}, "roleRef": role, "subjects": [subject]}
    _send(requests, "POST", f"/apis/{RBAC}/v1/clusterrolebindings", binding)
    answer = requests.send("POST", f"{ACCOUNTS}/viewer/token", b'{"spec": {}}', "application/json")
    token: str = answer.json()["status"]["token"]
    return token


def _logged_in(browser: Browser, url: str, token: str) -> Page:
    """The live overview of a new session."""
    page = browser.new_context().new_page()
    page.goto(f"{url}/login")
    page.fill("input[name=token]", token)
    page.keyboard.press("Enter")
    page.wait_for_selector("#live.on")
    return page


def _cookie(page: Page) -> str:
    """The cookies of a session, whose page is closed."""
    found = "; ".join(f"{one['name']}={one['value']}" for one in page.context.cookies())
    page.context.close()
    return found


def _paint(page: Page, url: str) -> float:
    """Seconds from the start of a navigation to the first content on the screen."""
    page.goto(url)
    milliseconds: float = page.evaluate(
        """() => new Promise(resolve => new PerformanceObserver(list => {
          const found = list.getEntriesByName("first-contentful-paint")[0];
          if (found) resolve(found.startTime);
        }).observe({type: "paint", buffered: true}))"""
    )
    return milliseconds / 1000


def _pixel(page: Page, requests: Requests, number: int) -> float:
    """Seconds from the sending of a change to the frame that shows it, by one clock."""
    name, text = f"operator-{number % 50:03}", f"change {number} of many"
    # The promise is started first, and awaited after the change is sent.
    page.evaluate(f"([name, text]) => {{ window.seen = ({_SEEN})([name, text]); }}", [name, text])
    sent = time.time()
    _set_status(requests, name, text)
    at: float = page.evaluate("() => window.seen")
    return at / 1000 - sent


@contextmanager
def _stream(url: str, cookie: str) -> Iterator[http.client.HTTPResponse]:
    """A viewer: an open stream of the overview's changes."""
    host = url.partition("//")[2]
    connection = http.client.HTTPConnection(host, timeout=120)
    connection.request("GET", "/live/overview", headers={"Cookie": cookie})
    try:
        yield connection.getresponse()
    finally:
        connection.close()


def _data(stream: http.client.HTTPResponse) -> bytes:
    """The data of the next update."""
    while line := stream.readline():
        if line.startswith(b"data: ["):
            return line
    raise RuntimeError("the stream ended")


def _watches(audit_log: Path) -> int:
    """How many watches of ClusterOperators the console had at the same time, by the audit log."""
    open_, most = set(), 0
    for line in audit_log.read_text().splitlines():
        entry = json.loads(line)
        about = entry.get("objectRef") or {}
        ours = str(entry.get("userAgent") or "").startswith("quarterdeck/")
        if not ours or entry["verb"] != "watch" or about.get("resource") != "clusteroperators":
            continue
        if entry["stage"] in ("RequestReceived", "ResponseStarted"):
            open_.add(entry["auditID"])
        else:
            open_.discard(entry["auditID"])
        most = max(most, len(open_))
    return most


def _memory(pid: int) -> float:
    """The resident memory of a process, in bytes."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return float(found[1]) * 1024 if found else 0.0


def _cpu(pid: int) -> float:
    """The seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _times(
    name: str, title: str, found: list[float], goal: float, decisive: str = "p50"
) -> Measurement:
    figures = {"p50": median(found), "p99": percentile(found, 99), "max": max(found)}
    return Measurement(
        name=name,
        title=f"{title}, {len(found)} times",
        columns=[
            Column(figure=figure, title=figure, format=".1f", scale=1000, unit=" ms")
            for figure in figures
        ],
        rows=[Row(subject="quarterdeck", figures=figures)],
        verdicts=[at_most(f"{name}, {decisive}", goal, figures[decisive], "s")],
    )


if __name__ == "__main__":
    main()
