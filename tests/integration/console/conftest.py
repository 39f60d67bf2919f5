"""A console in front of the shared control plane, and a browser for all tests of a file."""

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.console_objects import fill, take_away
from tests.console_server import CHROMIUM, FLAGS, ConsoleServer, console_server

from quarterdeck import log as logs
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.localcluster.releases import write_releases


@pytest.fixture(scope="module")
def filled(control_plane: ControlPlane, crds: list[str]) -> Iterator[ControlPlane]:
    """The control plane with a cluster to look at; what was added is removed after the file."""
    from quarterdeck.testing.cluster_scope import remove_added, snapshot

    before = snapshot(control_plane)
    fill(control_plane.requests())
    yield control_plane
    take_away(control_plane.requests())
    remove_added(control_plane, before)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of releases."""
    directory = tmp_path_factory.mktemp("releases")
    write_releases(directory)
    return directory


@pytest.fixture(scope="module")
def console_log() -> Iterator[io.StringIO]:
    """What the console writes to its log."""
    written = io.StringIO()
    output, root = logs._Output, logging.getLogger()
    before = (output.stream, output.verbosity, output.processors, root.handlers[:], root.level)
    logs.configure(stream=written, verbosity=logs.TRACE_ALL)
    yield written
    output.stream, output.verbosity, output.processors, root.handlers[:], level = before
    root.setLevel(level)


@pytest.fixture(scope="module")
def console(
    filled: ControlPlane, releases: Path, console_log: io.StringIO
) -> Iterator[ConsoleServer]:
    """A running console."""
    with console_server(filled.kubeconfig, releases=releases) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()
