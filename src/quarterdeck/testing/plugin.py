"""Pytest fixtures on a real control plane, which starts when a test first uses one.

    control_plane      the worker's own ControlPlane, started once, with the node `simulated`
    kubeconfig         the path of its administrator's kubeconfig
    kubectl            its pinned kubectl: kubectl("get", "pods").stdout
    namespace          the name of a fresh namespace, deleted after the test
    crds               Quarterdeck's resource types, in the control plane for all later tests
    clean_cluster      removes the cluster-scoped objects that the test creates
    this_machine       the node that runs pods of our images as processes, in the test's namespace
    answer_monitor     fails the test if a running operator does not answer a staleness challenge
                       within 30 s; `this_machine` includes it
    fault_proxy        a proxy before the control plane that injects faults and counts requests
    own_operators      starts operators in their own processes, each under its own account
    new_control_plane  creates further control planes, for faults; removed after the test

Tests share the control plane of their worker. A test that stops, pauses or kills a part of it
creates its own with `new_control_plane`. A test that creates cluster-scoped objects uses
`clean_cluster`, so that the next test finds none; its namespaces are emptied and removed too.
`namespace` does not wait for pods: it leaves a namespace that has some to the controller manager.
"""

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from quarterdeck.localcluster.binaries import Binaries
    from quarterdeck.localcluster.controlplane import ControlPlane
    from quarterdeck.testing.answer_monitor import AnswerMonitor
    from quarterdeck.testing.fault_proxy import FaultProxy
    from quarterdeck.testing.operator_process import OwnOperators
    from quarterdeck.testing.this_machine import ThisMachine


class Kubectl(Protocol):
    """The pinned kubectl against one control plane."""

    def __call__(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002 - as in subprocess.run
        check: bool = True,
        kubeconfig: Path | None = None,
    ) -> CompletedProcess[str]:
        """Run kubectl; with `check`, a failure raises its error text."""


class NewControlPlane(Protocol):
    """Creates a control plane for one test."""

    def __call__(self, *, started: bool = True, **options: Any) -> "ControlPlane":
        """A new control plane; the options are those of `ControlPlane`."""


SLOWEST = pytest.StashKey[dict[str, float]]()
"""Each operator's slowest answer to the staleness challenge, in seconds."""


def remember_slowest(config: pytest.Config, slowest: dict[str, float]) -> None:
    """Add answers to those that the summary at the end of the run lists."""
    known = config.stash.setdefault(SLOWEST, {})
    for name, seconds in slowest.items():
        known[name] = max(seconds, known.get(name, 0.0))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pass a worker's answers to the main process."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["quarterdeck_slowest"] = session.config.stash.get(SLOWEST, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the answers of a worker that has ended."""
    theirs = getattr(node, "workeroutput", {}).get("quarterdeck_slowest", {})
    remember_slowest(node.config, theirs)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """List the operators' slowest answers."""
    slowest = config.stash.get(SLOWEST, {})
    if slowest:
        from quarterdeck.testing.answers import summary

        terminalreporter.section("slowest answers to the staleness challenge")
        for line in summary(slowest):
            terminalreporter.write_line(line)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Get the programs before the first test: a build takes longer than a test may."""
    wanted = any(
        "control_plane_binaries" in getattr(item, "fixturenames", ()) for item in session.items
    )
    if wanted and not session.config.getoption("collectonly"):
        from contextlib import suppress

        from quarterdeck.localcluster.binaries import BinariesUnavailable

        with suppress(BinariesUnavailable):  # Only the tests that need them fail.
            _binaries()


def _binaries() -> "Binaries":
    import os

    from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries

    return ensure_binaries(BinarySettings.from_environment(os.environ))


@pytest.fixture(scope="session")
def control_plane_binaries() -> "Binaries":
    """The programs of control planes; found, downloaded or built."""
    return _binaries()


@pytest.fixture(scope="session")
def control_plane(
    control_plane_binaries: "Binaries", tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[ControlPlane]":
    """The control plane that all tests of this worker share."""
    from quarterdeck.localcluster.controlplane import ControlPlane

    state = tmp_path_factory.mktemp("control-plane")
    with ControlPlane(state, control_plane_binaries, durable=False, audit=True) as running:
        yield running


@pytest.fixture(scope="session")
def kubeconfig(control_plane: "ControlPlane") -> Path:
    """The kubeconfig of the shared control plane's administrator."""
    return control_plane.kubeconfig


@pytest.fixture(scope="session")
def kubectl(control_plane: "ControlPlane") -> Kubectl:
    """The pinned kubectl, as administrator of the shared control plane."""
    return control_plane.kubectl


@pytest.fixture
def namespace(control_plane: "ControlPlane", request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for this test; with pods in it, it is deleted while the next test runs."""
    from quarterdeck.testing.namespaces import create_namespace, delete_namespace, name_for

    name = name_for(request.node.name)
    create_namespace(control_plane.requests(), name)
    yield name
    delete_namespace(control_plane, name)


@pytest.fixture(scope="session")
def crds(control_plane: "ControlPlane") -> list[str]:
    """The names of Quarterdeck's definitions, which the API server serves."""
    from quarterdeck.testing.kinds import install_own_kinds

    return install_own_kinds(control_plane)


@pytest.fixture
def clean_cluster(control_plane: "ControlPlane") -> Iterator[None]:
    """Remove the cluster-scoped objects that the test has created, also with finalizers."""
    from quarterdeck.testing.cluster_scope import remove_added, snapshot

    before = snapshot(control_plane)
    yield
    remove_added(control_plane, before)


@pytest.fixture(scope="session")
def node_agent(control_plane: "ControlPlane") -> "ControlPlane":
    """The shared control plane with the node `this-machine`, which it keeps.

    Its agent restarts crashed containers and renews tokens sooner than by default.
    """
    control_plane.add_this_machine(["--back-off-first=1", "--token-share=0.01"])
    control_plane.start("this-machine")
    return control_plane


@pytest.fixture(scope="session")
def cluster_answer_monitor(
    control_plane: "ControlPlane", pytestconfig: pytest.Config
) -> "Iterator[AnswerMonitor]":
    """A monitor of the shared control plane's operators, until the end of the run.

    Tests with their own control plane override this fixture.
    """
    from quarterdeck.testing.answer_monitor import AnswerMonitor

    with AnswerMonitor(control_plane.kubeconfig) as monitor:
        yield monitor
        remember_slowest(pytestconfig, monitor.slowest)


@pytest.fixture
def answer_monitor(cluster_answer_monitor: "AnswerMonitor") -> "Iterator[AnswerMonitor]":
    """Fail the test if a running operator answered late; see `AnswerMonitor`."""
    cluster_answer_monitor.take_failures()  # Drop the failures of earlier tests.
    yield cluster_answer_monitor
    if late := cluster_answer_monitor.take_failures():
        pytest.fail("\n".join(map(str, late)), pytrace=False)


@pytest.fixture
def this_machine(
    node_agent: "ControlPlane", namespace: str, answer_monitor: "AnswerMonitor"
) -> "ThisMachine":
    """The node `this-machine`, in this test's namespace."""
    from quarterdeck.testing.this_machine import ThisMachine

    return ThisMachine(node_agent, namespace)


@pytest.fixture
def fault_proxy(kubeconfig: Path) -> "Iterator[FaultProxy]":
    """A proxy in front of the shared control plane, for this test only."""
    from quarterdeck.testing.fault_proxy import FaultProxy

    with FaultProxy(kubeconfig) as proxy:
        yield proxy


@pytest.fixture
def own_operators(tmp_path: Path) -> "Iterator[OwnOperators]":
    """Starts operators in processes of their own; they are killed after the test."""
    from quarterdeck.testing.operator_process import OwnOperators

    operators = OwnOperators(tmp_path)
    yield operators
    operators.kill()


@pytest.fixture
def new_control_plane(
    control_plane_binaries: "Binaries", tmp_path: Path
) -> Iterator[NewControlPlane]:
    """A function that creates control planes, which are killed after the test."""
    from contextlib import ExitStack

    from quarterdeck.localcluster.controlplane import ControlPlane

    with ExitStack() as stack:

        def make(*, started: bool = True, **options: Any) -> ControlPlane:
            number = len(list(tmp_path.glob("control-plane-*")))
            state = options.pop("state", tmp_path / f"control-plane-{number}")
            options.setdefault("durable", False)
            made = ControlPlane(state, control_plane_binaries, **options)
            stack.callback(made.close)
            if started:
                made.start()
            return made

        yield make
