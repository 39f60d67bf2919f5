"""`quarterdeck ingress logs` with real routers: several pods, and pods that come and go."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ingress_controllers import to_container, to_syslog
from tests.integration.operators.ingress.routers import (
    Routers,
    kill_in_pod,
    request_to,
    restarts,
)
from tests.integration.pods import needs_bubblewrap

from quarterdeck.api.meta import Object
from quarterdeck.testing.operator_process import OperatorProcess
from quarterdeck.testing.waiting import eventually, until

pytestmark = needs_bubblewrap


def command(routers: Routers, *arguments: str) -> list[str]:
    """The words of `quarterdeck ingress logs`."""
    program = [sys.executable, "-m", "quarterdeck", "ingress", "logs"]
    return [*program, f"--kubeconfig={routers.plane.kubeconfig}", *arguments]


def shown(routers: Routers, *arguments: str) -> list[str]:
    """The lines that the command prints."""
    done = subprocess.run(
        command(routers, *arguments), capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


class Follower:
    """`quarterdeck ingress logs --follow` in the background."""

    def __init__(self, routers: Routers, directory: Path, *arguments: str) -> None:
        self._out, self._err = directory / "follow.out", directory / "follow.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                command(routers, "--follow", *arguments), stdout=out, stderr=err
            )

    def count(self, words: str) -> int:
        """How many lines so far have these words."""
        return sum(words in line for line in self._out.read_text().splitlines())

    def notes(self) -> str:
        """What it says about pods."""
        return self._err.read_text()

    def interrupt(self) -> int:
        """The exit code after Ctrl-C."""
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(30)

    def kill(self) -> None:
        """End it in any case."""
        self._process.kill()
        self._process.wait()


@pytest.fixture
def two(routers: Routers, real_operator: OperatorProcess) -> list[Object]:
    """The two pods of an IngressController, whose lines arrive."""
    routers.apply("two", replicas=2, logging=to_container())
    routers.wait_condition("two", "AccessLoggingReady", "True")
    routers.wait_settled("two")
    return routers.pods("two")


def ask(pod: Object, path: str) -> None:
    """Send a request to a pod; nobody serves it, which has a line too."""
    assert request_to(pod["status"]["podIP"], 8080, path) == 503


def named(pod: Object) -> str:
    """The name of a pod."""
    return str(pod["metadata"]["name"])


def test_the_lines_of_all_pods(routers: Routers, two: list[Object]) -> None:
    quiet = subprocess.run(
        command(routers, "two"), capture_output=True, text=True, check=True, timeout=60
    )
    assert (quiet.stdout, quiet.stderr) == (
        "",
        "there is no access line yet; --follow waits for new ones\n",
    )
    lines: list[str] = []
    for number, pod in enumerate((*two, two[0])):
        ask(pod, f"/request-{number}")
        lines = until(
            lambda: shown(routers, "two"),
            lambda lines: any(f"/request-{number} " in line for line in lines),  # noqa: B023
            "its line",
        )
    assert lines[0].split() == ["TIME", "CLIENT", "CODE", "BYTES", "TOOK", "BACKEND", "REQUEST"]
    assert [line.split()[2] for line in lines[1:]] == ["503"] * 3
    assert [line.rpartition("GET ")[2] for line in lines[1:]] == [
        f"/request-{number} HTTP/1.1" for number in range(3)
    ]
    objects = [json.loads(line) for line in shown(routers, "two", "-o", "json")]
    assert [one["pod"] for one in objects] == [named(two[0]), named(two[1]), named(two[0])]
    assert {(one["status"], one["backend"]) for one in objects} == {(503, "no_route")}
    raw = shown(routers, "two", "-o", "raw")
    assert [f"{named(two[0])} haproxy[" in line for line in raw] == [True, False, True]


def test_following_pods_that_go_and_come_and_a_sidecar_that_is_killed(
    routers: Routers, two: list[Object], tmp_path: Path
) -> None:
    """Each line is shown once."""
    ask(two[0], "/before")
    eventually(lambda: any("/before " in it for it in shown(routers, "two")), "the first line")
    follower = Follower(routers, tmp_path, "two")
    try:
        eventually(lambda: follower.count("GET /before "), "the lines that there are")
        for number in range(20):
            ask(two[number % 2], f"/during-{number}-")
        eventually(lambda: follower.count("GET /during-19-"), "a new line")

        routers.objects.delete("pod", named(two[0]))
        (new,) = until(
            lambda: [one for one in routers.pods("two") if is_new_and_ready(one, two)],
            lambda found: len(found) == 1,
            "a new pod",
        )
        ask(new, "/after")
        eventually(lambda: follower.count("GET /after "), "a line of the new pod")
        eventually(
            lambda: f"pod {named(two[0])} is gone" in follower.notes(), "the old one is gone"
        )
        assert f"pod {named(new)} has come" in follower.notes()

        kill_in_pod(routers.plane, new, lambda words: words[0].endswith(b"rsyslogd"))
        until(
            lambda: routers.objects.get("pod", named(new)),
            lambda pod: restarts(pod) == 1 and is_new_and_ready(pod, two),
            "the sidecar runs again",
        )
        ask(new, "/resumed")
        eventually(lambda: follower.count("GET /resumed "), "a line after the restart")
        paths = ["/before ", "/after ", "/resumed ", *(f"/during-{one}-" for one in range(20))]
        assert [follower.count(f"GET {path}") for path in paths] == [1] * len(paths)
        assert follower.interrupt() == 130
    finally:
        follower.kill()


def is_new_and_ready(pod: Object, old: list[Object]) -> bool:
    """Whether it is none of the old pods, and serves."""
    conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions") or ()}
    return named(pod) not in map(named, old) and conditions.get("Ready") == "True"


def test_a_format_of_ones_own_is_shown_as_it_is(
    routers: Routers, real_operator: OperatorProcess
) -> None:
    log_format = "it's %HM|%HU  {  }"
    routers.apply("own", logging=to_container(httpLogFormat=log_format))
    routers.wait_condition("own", "AccessLoggingReady", "True")
    (pod,) = routers.pods("own")
    ask(pod, "/hello")
    (line,) = until(lambda: shown(routers, "own"), len, "the line")
    assert line.endswith("it's GET|/hello  {  }")
    (obj,) = shown(routers, "own", "-o", "json")
    assert json.loads(obj) == {"pod": named(pod), "line": line}


def test_without_lines_to_read_it_says_what_to_do(
    routers: Routers, real_operator: OperatorProcess
) -> None:
    routers.apply("sent", logging=to_syslog("127.0.0.1"))
    eventually(lambda: routers.pods("sent"), "its pod")
    for name, words in (
        ("sent", "set spec.logging.access.destination.type to Container"),
        ("absent", "all there are: kubectl get ingresscontrollers"),
    ):
        done = subprocess.run(
            command(routers, name), capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 2
        assert words in done.stderr
