"""Pytest fixtures on a real control plane. Nothing runs until a test asks for one of them.

    control_plane      the worker's own ControlPlane, started once, with the node `simulated`
    kubeconfig         the path of its administrator's kubeconfig
    kubectl            its pinned kubectl: kubectl("get", "pods").stdout
    namespace          the name of a fresh namespace, deleted after the test
    crds               Quarterdeck's resource types, in the control plane for all later tests
    clean_cluster      cluster-scoped objects that the test makes are removed after it
    this_machine       the node where pods of our images run as processes, in the test's namespace
    answer_monitor     fails the test when a running operator does not answer a staleness challenge
                       within 30 s; on wherever `this_machine` is
    fault_proxy        a proxy in front of the control plane that misbehaves on request, and counts
    new_control_plane  makes further control planes, for faults; gone after the test

Tests share the control plane of their worker. A test that stops, pauses or kills a part of it
makes one of its own with `new_control_plane`. A test that makes cluster-scoped objects asks for
`clean_cluster`, so that the next one finds none; the namespaces that it made are emptied and gone.
The controller manager takes at least five seconds for that, which is why `namespace` does not wait
for its own.
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
        """What it did; a failed one raises with its error text when checked."""


class NewControlPlane(Protocol):
    """Makes a control plane for one test."""

    def __call__(self, *, started: bool = True, **options: Any) -> "ControlPlane":
        """A control plane of its own; options are those of `ControlPlane`."""


SLOWEST = pytest.StashKey[dict[str, float]]()
"""Each operator's slowest answer to the staleness challenge, in seconds."""


def remember_slowest(config: pytest.Config, slowest: dict[str, float]) -> None:
    """Have these answers told at the end of the run, with those that are remembered already."""
    known = config.stash.setdefault(SLOWEST, {})
    for name, seconds in slowest.items():
        known[name] = max(seconds, known.get(name, 0.0))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands its answers to the run that started it."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["quarterdeck_slowest"] = session.config.stash.get(SLOWEST, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker has ended: take its answers."""
    theirs = getattr(node, "workeroutput", {}).get("quarterdeck_slowest", {})
    remember_slowest(node.config, theirs)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how soon the operators answered."""
    slowest = config.stash.get(SLOWEST, {})
    if slowest:
        from quarterdeck.testing.answers import summary

        terminalreporter.section("slowest answers to the staleness challenge")
        for line in summary(slowest):
            terminalreporter.write_line(line)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Get the programs before the first test: to build them takes longer than a test may."""
    wanted = any(
        "control_plane_binaries" in getattr(item, "fixturenames", ()) for item in session.items
    )
    if wanted and not session.config.getoption("collectonly"):
        from contextlib import suppress

        from quarterdeck.localcluster.binaries import BinariesUnavailable

        with suppress(BinariesUnavailable):  # the tests that need them say so, the others run
            _binaries()


def _binaries() -> "Binaries":
    import os

    from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries

    return ensure_binaries(BinarySettings.from_environment(os.environ))


@pytest.fixture(scope="session")
def control_plane_binaries() -> "Binaries":
    """The programs that control planes are made of; found, downloaded or built."""
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
    """A namespace for this test alone; its deletion goes on while the next test runs."""
    from quarterdeck.testing.namespaces import create_namespace, delete_namespace, name_for

    name = name_for(request.node.name)
    create_namespace(control_plane.requests(), name)
    yield name
    delete_namespace(control_plane.requests(), name)


@pytest.fixture(scope="session")
def crds(control_plane: "ControlPlane") -> list[str]:
    """The names of Quarterdeck's resource definitions, all of them served."""
    from quarterdeck.localcluster.definitions import install_own_definitions

    return install_own_definitions(control_plane.requests())


@pytest.fixture
def clean_cluster(control_plane: "ControlPlane") -> Iterator[None]:
    """Remove the cluster-scoped objects that the test has made, finalizers or not."""
    from quarterdeck.testing.cluster_scope import remove_added, snapshot

    before = snapshot(control_plane.requests())
    yield
    remove_added(control_plane.requests(), before)


@pytest.fixture(scope="session")
def node_agent(control_plane: "ControlPlane") -> "ControlPlane":
    """The shared control plane with the node `this-machine`, which it has from now on.

    Its agent starts crashed containers again, and renews tokens, sooner than it would elsewhere.
    """
    control_plane.add_this_machine(["--back-off-first=1", "--token-share=0.01"])
    control_plane.start("this-machine")
    return control_plane


@pytest.fixture(scope="session")
def cluster_answer_monitor(
    control_plane: "ControlPlane", pytestconfig: pytest.Config
) -> "Iterator[AnswerMonitor]":
    """Follows the shared control plane's operators to the end of the run.

    Tests with a control plane of their own put a fixture of this name in its place.
    """
    from quarterdeck.testing.answer_monitor import AnswerMonitor

    with AnswerMonitor(control_plane.kubeconfig) as monitor:
        yield monitor
        remember_slowest(pytestconfig, monitor.slowest)


@pytest.fixture
def answer_monitor(cluster_answer_monitor: "AnswerMonitor") -> "Iterator[AnswerMonitor]":
    """Fails the test when an operator that ran in it was late to answer; see `AnswerMonitor`."""
    cluster_answer_monitor.failures()  # what there was before is not this test's
    yield cluster_answer_monitor
    if late := cluster_answer_monitor.failures():
        pytest.fail("\n".join(map(str, late)), pytrace=False)


@pytest.fixture
def this_machine(
    node_agent: "ControlPlane", namespace: str, answer_monitor: "AnswerMonitor"
) -> "ThisMachine":
    """The node `this-machine`, as seen from this test's namespace."""
    from quarterdeck.testing.this_machine import ThisMachine

    return ThisMachine(node_agent, namespace)


@pytest.fixture
def fault_proxy(kubeconfig: Path) -> "Iterator[FaultProxy]":
    """A proxy in front of the shared control plane, for this test alone."""
    from quarterdeck.testing.fault_proxy import FaultProxy

    with FaultProxy(kubeconfig) as proxy:
        yield proxy


@pytest.fixture
def new_control_plane(
    control_plane_binaries: "Binaries", tmp_path: Path
) -> Iterator[NewControlPlane]:
    """Makes control planes that are killed after the test."""
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
