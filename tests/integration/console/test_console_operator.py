"""The console before the real cluster version operator, from its own Deployment.

One test for the level and the update: the level lasts a minute, and the update runs meanwhile.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from playwright.sync_api import Browser, Page, expect
from tests.console_server import READ_ALL, ConsoleServer, console_server, user_token
from tests.integration.console.http_user import HttpUser
from tests.integration.operators.cluster_version.version.releases import Cluster
from tests.integration.pods import needs_bubblewrap
from tests.own_release import NAMESPACE, own_release
from tests.places import DOCS

from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.localcluster.releases import FIRST, NEXT
from quarterdeck.testing.this_machine import ThisMachine
from quarterdeck.testing.waiting import eventually

pytestmark = [pytest.mark.slow, needs_bubblewrap]

UPDATE_LIMIT = 180_000
"""Milliseconds for an update that takes half a minute on an idle machine."""
expect.set_options(timeout=60_000)


@pytest.fixture
def own(
    node_agent: ControlPlane, crds: list[str], clean_cluster: None, tmp_path: Path
) -> Iterator[Cluster]:
    """The operator with releases of itself and of the sample operator."""
    with own_release(node_agent, tmp_path / "releases", ("cluster-version", "sample")) as own:
        own.wait_release(FIRST)
        yield own


@pytest.fixture
def own_console(own: Cluster, tmp_path: Path) -> Iterator[ConsoleServer]:
    """A console that knows the releases."""
    with console_server(own.plane.kubeconfig, releases=tmp_path / "releases") as running:
        yield running


def opened(browser: Browser, console: ConsoleServer, path: str) -> Page:
    """A live page of an administrator."""
    page = browser.new_context(viewport={"width": 1280, "height": 860}).new_page()
    page.goto(console.link())
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    page.goto(console.url + path)
    expect(page.locator("#live.on")).to_be_visible()
    return page


def operator_pods(own: Cluster) -> set[str]:
    return {pod["metadata"]["name"] for pod in own.all("pods", namespace=NAMESPACE)}


def test_a_level_for_a_minute_and_an_update_are_followed(
    browser: Browser, own: Cluster, own_console: ConsoleServer
) -> None:
    levels = opened(browser, own_console, "/log-level")
    state, log = levels.locator("#level-state"), levels.locator(".log")
    expect(state).to_contain_text("Normal is in force")
    expect(log.locator(".e").first).to_be_visible()
    expect(log.locator(".debug")).to_have_count(0)
    before = operator_pods(own)

    levels.get_by_label("Debug").check()
    levels.get_by_label("For").select_option("1m")
    levels.get_by_role("button", name="Set level").click()
    expect(levels.locator(".notice")).to_have_text("The log level is Debug for 1 minute.")
    # The operator itself says that it is in force, and the log has what it shows only then.
    expect(state).to_contain_text("Debug is in force")
    expect(state).to_contain_text("then Normal")
    expect(log.locator(".debug").first).to_be_visible()

    release = opened(browser, own_console, "/release")
    expect(release.locator("#release")).to_contain_text(FIRST)
    release.get_by_label(NEXT).check()
    release.get_by_label("Update the whole cluster").check()
    release.get_by_role("button", name="Start the update").click()
    expect(release.locator(".notice")).to_contain_text(f"The update to {NEXT} is requested")
    release.evaluate("window.kept = true")
    expect(release.locator("#release progress")).to_be_visible()
    expect(release.locator("#release")).to_contain_text(re.compile(r"\d+ of \d+"))
    expect(release.locator("#release-conditions")).to_contain_text("Partial")
    # The operator replaces itself on the way, and the page goes on following.
    history = release.locator("#release-conditions tbody").last.locator("tr")
    expect(history).to_have_count(2)
    expect(history.first).to_contain_text("Completed", timeout=UPDATE_LIMIT)
    expect(history.first).to_contain_text(NEXT)
    expect(release.locator("#release progress")).to_have_count(0)
    assert release.evaluate("window.kept") is True
    own.wait_release(NEXT)

    # The minute is over, and the log has lines of the pods that came with the update.
    expect(state).to_contain_text("Normal is in force", timeout=90_000)
    expect(log.locator(".e").first).to_be_visible()
    pods = set(log.locator("> span").evaluate_all("all => all.map(one => one.title)"))
    assert pods - before
    for page in (levels, release):
        page.context.close()


def test_the_deployment_serves_without_credentials_of_its_own(
    node_agent: ControlPlane, crds: list[str], clean_cluster: None
) -> None:
    machine = ThisMachine(node_agent, "quarterdeck-console")
    file = DOCS.parent / "deploy" / "console" / "deployment.yaml"
    for obj in yaml.safe_load_all(file.read_text()):
        if obj["kind"] == "Deployment":
            # As `install --console` scales it; on a free port, because this machine is shared.
            obj["spec"]["replicas"] = 1
            (container,) = obj["spec"]["template"]["spec"]["containers"]
            container["args"] = ["console", "--port=0"]
        machine.apply(obj)
    machine.wait_rolled_out("console")

    def port() -> int:
        told = re.search(r"console at http://localhost:(\d+)/", machine.kubectl(*LOGS, check=False))
        return int(told[1]) if told else 0

    server: Any = SimpleNamespace(port=eventually(port, "the console's address in its log"))
    user = HttpUser(server)
    assert user.log_in(user_token(node_agent.requests(), "deployed", READ_ALL)).status == 303
    assert "system:serviceaccount:default:deployed" in user.get("/").text
    assert HttpUser(server).log_in("nonsense").status == 401
    (pod,) = machine.list("pods")
    mounted = [one["name"] for one in pod["spec"]["volumes"]]
    assert mounted == ["trust"]  # certificates alone, no token


LOGS = ("logs", "deployment/console")
