"""The console in a real browser: each page, each write, each way to look at it."""

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect
from tests.console_objects import (
    CONFIG,
    INGRESS_HOME,
    OLM,
    OPERATOR,
    SCRIPT,
    SUBSCRIBED,
    cluster_operators,
    conditions,
    operator,
    publish_settings,
)
from tests.console_server import READ_ALL, ConsoleServer, put_with_status, send, user_token
from tests.integration.console.http_user import HttpUser, events
from tests.objects import container, pod

from quarterdeck.api.meta import Object
from quarterdeck.api.times import format_time
from quarterdeck.console import log_tail, rights
from quarterdeck.console.pages.log_level import LOG_NAMESPACE
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.testing.this_machine import ThisMachine
from quarterdeck.testing.waiting import eventually

pytestmark = pytest.mark.slow

PAGES = {
    "overview": "/",
    "operator": "/operators/ingress",
    "log-level": "/log-level",
    "release": "/release",
    "ingress": "/ingress",
    "ingress-controller": f"/ingress/{INGRESS_HOME}/default",
    "subscriptions": "/subscriptions",
    "subscription": f"/subscriptions/{SUBSCRIBED}/prometheus",
    "baremetal": "/baremetal",
}
CONTROLLER = f"{OPERATOR}/v1/namespaces/{INGRESS_HOME}/ingresscontrollers/default"
PICTURES = os.environ.get("CONSOLE_PICTURES")
"""A directory: with it, the tests write the pictures of the documentation."""
LIMIT = 30_000
"""Milliseconds that a page may take on a busy machine."""
expect.set_options(timeout=LIMIT)

LINES = (
    "2026-11-18T00:06:24.079Z [info     ] first line at this log level   after=Debug v=4 "
    "why='operatorLogLevel says so: Debug until 2026-11-18T00:36:24Z, then Normal'",
    "2026-11-18T00:06:24.079Z [info     ] log level decided              gate=True v=4",
    "2026-11-18T00:06:25.020Z [info     ] manifest skipped               v=4 "
    "manifest=0000_30_machine-api_02_deployment.yaml:14 why='overrides: unmanaged'",
    "2026-11-18T00:06:25.311Z [warning  ] waiting                        "
    "object=ClusterOperator/machine-api why='stale since 00:01:12Z'",
    "a line of another program: <script>",
    "2026-11-18T00:06:25.312Z [info     ] payload stands                 done=34 total=48",
)

NewPage = Callable[..., Page]


@pytest.fixture(scope="module")
def administrator(browser: Browser, console: ConsoleServer) -> Any:
    """The cookies of an administrator who has logged in with a one-time link."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(console.link())
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    cookies = context.storage_state()
    context.close()
    return cookies


@pytest.fixture
def new_page(browser: Browser, console: ConsoleServer, administrator: Any) -> Iterator[NewPage]:
    """Opens a page of an administrator who is logged in; faults of scripts fail the test."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def note(line: ConsoleMessage) -> None:
        # A status that a test asks for, such as 422, is an error to the browser too.
        if line.type == "error" and not line.text.startswith("Failed to load resource"):
            faults.append(line.text)

    def make(path: str = "/", **options: Any) -> Page:
        options.setdefault("viewport", {"width": 1280, "height": 860})
        context = browser.new_context(storage_state=administrator, **options)
        contexts.append(context)
        context.set_default_timeout(LIMIT)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", note)
        page.goto(console.url + path)
        return page

    yield make
    for context in contexts:
        context.close()
    assert not faults


@pytest.fixture
def visitors(filled: ControlPlane) -> Iterator[None]:
    """Operators that a test adds are gone after it, also if it fails."""
    yield
    for name in ("console-visitor", "console-history"):
        filled.requests().send("DELETE", f"{CONFIG}/clusteroperators/{name}")


@pytest.fixture(scope="module")
def reader_token(filled: ControlPlane) -> str:
    return user_token(filled.requests(), "onlooker", READ_ALL)


@pytest.fixture(scope="module")
def operator_pod(filled: ControlPlane, node_agent: ControlPlane) -> str:
    """A pod that writes lines as the cluster version operator does."""
    machine = ThisMachine(filled, LOG_NAMESPACE)
    # Another test may have left it with a standard that refuses this pod.
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    metadata = {"name": LOG_NAMESPACE, "labels": labels}
    machine.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    # All of them again and again: a page begins with the last lines only.
    lines = "\n".join(f"echo {shlex.quote(line)}" for line in LINES)
    script = f"while :; do {lines}\nsleep 2; done"
    made = pod("cluster-version-operator", container(script, name="operator"))
    machine.apply(made | {"metadata": made["metadata"] | {"namespace": LOG_NAMESPACE}})
    machine.wait_logged("cluster-version-operator", "payload stands")
    return "cluster-version-operator"


def live(page: Page) -> Page:
    """The page, once it gets updates."""
    expect(page.locator("#live.on")).to_be_visible()
    return page


def found(filled: ControlPlane, path: str) -> Object:
    obj: Object = filled.requests().send("GET", path).json()
    return obj


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_fits_a_telephone_and_a_wide_screen(
    new_page: NewPage, console: ConsoleServer, operator_pod: str, scheme: str
) -> None:
    page = live(new_page(color_scheme=scheme))
    axe = Axe()
    # The pages are the same in both schemes but for their colours.
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if scheme == "dark":
        options["runOnly"] = {"type": "rule", "values": ["color-contrast"]}
    for name, path in PAGES.items():
        page.set_viewport_size({"width": 1280, "height": 860})
        page.goto(console.url + path)
        live(page)
        results = axe.run(page, options=options)
        assert results.violations_count == 0, (name, results.generate_report())
        if PICTURES and (scheme == "light" or name in ("overview", "release")):
            file = Path(PICTURES) / f"{name}{'-dark' if scheme == 'dark' else ''}.png"
            page.screenshot(path=file, full_page=True)
        for width in (360, 1600):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            if PICTURES and name == "overview" and scheme == "light" and width == 360:
                page.screenshot(path=Path(PICTURES) / "overview-narrow.png", full_page=True)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark = sum(int(part) for part in ground.removeprefix("rgb(").rstrip(")").split(",")) < 384
    assert dark is (scheme == "dark")


def test_pages_outside_of_the_navigation_are_accessible(
    new_page: NewPage, console: ConsoleServer
) -> None:
    page = new_page()
    for path in ("/operators/nowhere", console.link().removeprefix(console.url)):
        page.set_viewport_size({"width": 1280, "height": 860})
        page.goto(console.url + path)
        expect(page.locator("h1")).to_be_visible()
        assert Axe().run(page).violations_count == 0, path
        page.set_viewport_size({"width": 360, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


def test_a_change_arrives_without_a_reload(new_page: NewPage, filled: ControlPlane) -> None:
    page = live(new_page())
    page.evaluate("window.kept = true")
    row = page.locator("#row-sample")
    expect(row).to_contain_text("Available")
    position = row.evaluate("row => row.rowIndex")
    bad = operator("sample", conditions(degraded="True", message="the disk is full"))
    put_with_status(filled.requests(), f"{CONFIG}/clusteroperators", bad)
    expect(row).to_contain_text("Degraded")
    expect(row).to_contain_text("the disk is full")
    expect(page.locator("#headline")).to_contain_text("3 operators need attention")
    expect(page.locator("#nav-attention")).to_contain_text("3")
    expect(page.locator("[data-filter=bad] b")).to_have_text("2")
    assert row.evaluate("row => row.rowIndex") < position  # the worst come first
    assert page.evaluate("window.kept") is True
    good = operator("sample", conditions(message="4 notes are kept as ConfigMaps"))
    put_with_status(filled.requests(), f"{CONFIG}/clusteroperators", good)
    expect(row).to_contain_text("Available")


def test_an_operator_that_comes_and_goes(
    new_page: NewPage, filled: ControlPlane, visitors: None
) -> None:
    page = live(new_page())
    made = operator("console-visitor", conditions(message="just here"))
    put_with_status(filled.requests(), f"{CONFIG}/clusteroperators", made)
    expect(page.locator("#row-console-visitor")).to_be_visible()
    send(filled.requests(), "DELETE", f"{CONFIG}/clusteroperators/console-visitor")
    expect(page.locator("#row-console-visitor")).to_have_count(0)


def test_an_operator_that_went_while_nobody_told_the_browser(
    new_page: NewPage, filled: ControlPlane, visitors: None
) -> None:
    made = operator("console-visitor", conditions(message="just here"))
    put_with_status(filled.requests(), f"{CONFIG}/clusteroperators", made)
    page = live(new_page())
    row = page.locator("#row-console-visitor")
    expect(row).to_be_visible()
    page.evaluate("dispatchEvent(new Event('pagehide'))")  # ends the stream
    send(filled.requests(), "DELETE", f"{CONFIG}/clusteroperators/console-visitor")
    # The server knows it once another page has no such row.
    expect(live(new_page()).locator("#row-console-visitor")).to_have_count(0)
    expect(row).to_have_count(1)
    page.evaluate("dispatchEvent(new Event('pageshow'))")
    expect(row).to_have_count(0)
    expect(page.locator("#row-sample")).to_be_visible()


def test_a_disabled_operator_is_grey_and_no_problem(new_page: NewPage) -> None:
    page = new_page()
    colours = {
        name: page.locator(f"#row-{name} .name a").evaluate("a => getComputedStyle(a).color")
        for name in ("baremetal", "sample", "ingress")
    }
    assert colours["sample"] == colours["ingress"] != colours["baremetal"]
    expect(page.locator("#row-baremetal")).to_contain_text("Disabled")  # not by colour alone
    expect(page.locator("#headline")).to_contain_text("Two operators need attention")
    assert page.locator("#rows tr").last.get_attribute("data-name") == "baremetal"


def test_a_script_in_a_message_stays_text(new_page: NewPage, filled: ControlPlane) -> None:
    page = live(new_page())
    hostile = operator("dns", conditions(message=SCRIPT))
    put_with_status(filled.requests(), f"{CONFIG}/clusteroperators", hostile)
    expect(page.locator("#row-dns .msg")).to_have_text(SCRIPT)
    page.goto(page.url + "operators/dns")
    expect(page.locator("main")).to_contain_text(SCRIPT)
    assert page.title() == "dns · Quarterdeck"
    assert page.locator("main script, main img").count() == 0


def test_filter_sort_and_search(new_page: NewPage) -> None:
    page = live(new_page())
    rows = page.locator("#rows tr:visible")
    page.get_by_role("link", name="stale").click()
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="stale").click()
    page.keyboard.press("/")
    page.keyboard.type("router")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("ingress")
    page.keyboard.type("nothing like it")
    expect(page.locator("#empty")).to_be_visible()
    page.get_by_label("Filter by name or message").fill("")
    page.get_by_label("Sort").select_option("name")
    names = rows.evaluate_all("rows => rows.map(row => row.dataset.name)")
    assert names == sorted(names)


def test_the_log_level_is_changed_for_a_minute(new_page: NewPage, filled: ControlPlane) -> None:
    page = live(new_page("/log-level"))
    page.get_by_label("Debug").check()
    page.get_by_label("For").select_option("1m")
    page.get_by_role("button", name="Set level").click()
    expect(page.get_by_role("status").filter(has_text="The log level is")).to_have_text(
        "The log level is Debug for 1 minute."
    )
    config = found(filled, f"{OPERATOR}/v1alpha1/clusterversionoperators/cluster")
    assert config["spec"]["operatorLogLevel"] == "Debug"
    assert "Debug" in str(config["metadata"]["annotations"])
    # Until the operator says that it is in force; `test_console_operator` has a real one.
    expect(page.locator("#level-state")).to_contain_text("not applied yet")


def test_the_log_of_the_operator_is_followed(new_page: NewPage, operator_pod: str) -> None:
    page = new_page("/log-level")
    lines = page.locator(".log .e")
    expect(lines.first).to_be_visible()
    expect(page.locator(".log .debug", has_text="manifest skipped").first).to_be_visible()
    expect(page.locator(".log")).to_contain_text("<script>")
    seen = page.locator(".log").text_content() or ""
    page.wait_for_function(
        "seen => document.querySelector('.log').textContent.length > seen", arg=len(seen)
    )


def test_a_log_ends_with_the_right_to_read_it(
    console: ConsoleServer,
    filled: ControlPlane,
    operator_pod: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rights, "RIGHT_LIFETIME", 0.2)
    monkeypatch.setattr(log_tail, "LOOK_PERIOD", 0.2)
    user = HttpUser(console)
    user.log_in(user_token(filled.requests(), "log-reader", READ_ALL))
    with events(user, "/live/log-level/log") as stream:
        while b"event: lines" not in stream.readline():
            pass
        binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/console-log-reader"
        send(filled.requests(), "DELETE", binding)
        stream.read()  # it ends
    assert user.get("/live/log-level/log").status == 403


def test_an_update_is_started(new_page: NewPage, filled: ControlPlane) -> None:
    page = live(new_page("/release"))
    expect(page.locator("#graph svg")).to_be_visible()
    expect(page.locator("#graph svg")).to_contain_text("run level")
    page.get_by_text("skipped: which, and why").click()
    expect(page.locator("#skipped tbody")).to_contain_text("machine-api-operator")
    page.get_by_label("Update the whole cluster").check()
    page.get_by_role("button", name="Start the update").click()
    expect(page.locator(".notice")).to_contain_text("The update to 0.3.0 is requested")
    version = found(filled, f"{CONFIG}/clusterversions/version")
    assert version["spec"]["desiredUpdate"] == {"version": "0.3.0"}


def test_an_update_that_is_not_recommended_needs_its_risk_accepted(
    new_page: NewPage, filled: ControlPlane
) -> None:
    page = live(new_page("/release"))
    offer = page.locator(".offer", has_text="0.4.0")
    expect(offer).to_contain_text("not recommended")
    expect(offer).to_contain_text("Routers with more than 500 routes take minutes")
    page.get_by_label("0.4.0").check()
    page.get_by_label("Update the whole cluster").check()
    page.get_by_role("button", name="Start the update").click()
    expect(page.locator("main")).to_contain_text("accept its risks: SlowRouters")
    wanted = found(filled, f"{CONFIG}/clusterversions/version")["spec"].get("desiredUpdate") or {}
    assert wanted.get("version") != "0.4.0"
    page.go_back()
    page.get_by_label("0.4.0").check()
    page.get_by_label("Accept the risk SlowRouters").check()
    page.get_by_label("Update the whole cluster").check()
    page.get_by_role("button", name="Start the update").click()
    expect(page.locator(".notice")).to_contain_text(
        "The update to 0.4.0 is requested, with its risks: SlowRouters"
    )
    version = found(filled, f"{CONFIG}/clusterversions/version")
    assert version["spec"]["desiredUpdate"] == {"version": "0.4.0"}


def test_the_page_of_an_operator_has_its_clock_its_writers_and_its_history(
    new_page: NewPage, filled: ControlPlane, visitors: None
) -> None:
    publish_settings(filled.requests())  # they count for some minutes
    page = live(new_page("/operators/ingress"))
    life = page.locator("section", has_text="Sign of life")
    expect(life).to_contain_text("published by checker control-plane-0")
    left = life.locator("time[data-left]")
    expect(left).to_have_text(re.compile(r"in \d+m\d+s"))
    first = left.text_content()
    expect(left).not_to_have_text(first or "")  # it counts
    expect(page.locator("table").first).to_contain_text("quarterdeck-ingress")
    expect(page.locator("main")).to_contain_text("RouterUnavailable")
    history = page.locator("section", has_text="History of the conditions")
    expect(history).to_contain_text("became False")
    expect(history).to_contain_text("the condition")
    now = format_time(datetime.now(UTC))
    seen = operator("console-history", conditions(message="well"))
    put_with_status(filled.requests(), f"{CONFIG}/clusteroperators", seen)
    page.goto(page.url.replace("ingress", "console-history"))
    expect(live(page).locator("main")).to_contain_text("History of the conditions")
    bad = operator(
        "console-history", conditions(degraded="True", message="full", lastTransitionTime=now)
    )
    put_with_status(filled.requests(), f"{CONFIG}/clusteroperators", bad)
    expect(history.locator("tr", has_text="Degraded").first).to_contain_text("False → True")
    expect(history.locator("tr", has_text="Degraded").first).to_contain_text("seen")
    send(filled.requests(), "DELETE", f"{CONFIG}/clusteroperators/console-history")
    expect(page.locator("main")).to_contain_text("gone")


def test_access_logs_are_changed_after_a_preview(new_page: NewPage, filled: ControlPlane) -> None:
    page = new_page(PAGES["ingress-controller"])
    page.get_by_label("Destination").select_option("Syslog")
    page.get_by_label("Address").fill("192.0.2.9")
    page.locator("[name=port]").fill("not a port")
    page.get_by_role("button", name="Preview the change").click()
    expect(page.get_by_role("alert")).to_contain_text("port: 'not a port': write a number")
    page.locator("[name=port]").fill("514")
    page.get_by_label("Format of the line").fill("%ci %ST %{+Q}r")
    page.get_by_role("button", name="Preview the change").click()
    preview = page.locator("#preview")
    expect(preview.locator(".add", has_text="type: Syslog")).to_be_visible()
    expect(preview.locator(".add", has_text="httpLogFormat")).to_be_visible()
    expect(preview.locator("pre.sample")).to_contain_text("200")
    assert Axe().run(page).violations_count == 0
    before = found(filled, CONTROLLER)["spec"]["logging"]
    assert before["access"]["destination"]["type"] == "Container"  # nothing is written yet
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".notice")).to_contain_text("The access logs are changed")
    access = found(filled, CONTROLLER)["spec"]["logging"]["access"]
    assert access["destination"]["syslog"]["address"] == "192.0.2.9"
    assert "container" not in access["destination"]
    assert access["httpLogFormat"] == "%ci %ST %{+Q}r"


def test_a_change_that_cannot_work_is_not_applied(new_page: NewPage, filled: ControlPlane) -> None:
    page = new_page(PAGES["ingress-controller"])
    page.get_by_label("Destination").select_option("Container")
    page.get_by_label("Format of the line").fill("%nonsense")
    page.get_by_role("button", name="Preview the change").click()
    expect(page.locator("#preview")).to_contain_text("refused")
    expect(page.get_by_role("button", name="Apply")).to_be_disabled()
    page.get_by_label("Format of the line").fill("%ci")
    page.get_by_role("button", name="Preview the change").click()
    apply = page.get_by_role("button", name="Apply")
    expect(apply).to_be_enabled()
    # Somebody else is quicker.
    send(filled.requests(), "PATCH", CONTROLLER, {"metadata": {"labels": {"changed": "yes"}}})
    apply.click()
    expect(page.get_by_role("alert")).to_contain_text("It has changed since the preview")


def test_an_install_plan_is_approved(new_page: NewPage, filled: ControlPlane) -> None:
    page = new_page(PAGES["subscription"])
    expect(page.locator("main")).to_contain_text("config[0]")
    expect(page.locator("main")).to_contain_text("env[MODE]")
    # What the next version breaks, and what it changes, from the catalog.
    following = page.locator("#subscription-next")
    expect(following).to_contain_text("What prometheus.v0.65.1 would break")
    expect(following).to_contain_text("config[1]: No operator pods found matching selector")
    image = following.locator("tr", has_text="containers[manager].image")
    expect(image).to_contain_text("example.test/prometheus-operator:0.47.0")
    expect(image).to_contain_text("example.test/prometheus-operator:0.65.1")
    expect(following.locator("tr", has_text="env[CACHE]")).to_contain_text("64Mi")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".notice")).to_contain_text("is approved")
    path = f"{OLM}/v1alpha1/namespaces/{SUBSCRIBED}/installplans/install-prometheus-2"
    assert found(filled, path)["spec"]["approved"] is True


def test_the_problems_of_a_provisioning_are_shown(new_page: NewPage) -> None:
    page = new_page("/baremetal")
    expect(page.locator("main")).to_contain_text("172.30.20.300")
    expect(page.locator("main")).to_contain_text("2 problems")
    expect(page.locator("main")).to_contain_text("baremetal manages metal3.")
    owner = page.locator("section", has_text="Who manages metal3")
    expect(owner).to_contain_text(re.compile(r"Since, at the latest.*ago"))


def test_a_log_in_is_refused_and_then_succeeds(
    browser: Browser, console: ConsoleServer, reader_token: str
) -> None:
    context = browser.new_context()
    context.set_default_timeout(LIMIT)
    page = context.new_page()
    page.goto(f"{console.url}/operators/dns")
    page.get_by_label("Your token").fill("nonsense")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("does not accept this token")
    assert Axe().run(page).violations_count == 0
    page.goto(f"{console.url}/operators/dns")
    page.get_by_label("Your token").fill(reader_token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="dns", level=1)).to_be_visible()
    assert reader_token not in page.url + page.content()
    # What this person may not do is disabled, with the reason.
    for path, button, reason in (
        ("/log-level", "Set level", "patch clusterversionoperators.operator.openshift.io"),
        ("/release", "Start the update", "patch clusterversions.config.openshift.io"),
        (PAGES["ingress-controller"], "Preview the change", "patch ingresscontrollers"),
    ):
        page.goto(console.url + path)
        disabled = page.get_by_role("button", name=button)
        expect(disabled).to_be_disabled()
        expect(page.locator(".why").first).to_contain_text(f"onlooker may not {reason}")
    expect(page.locator("body")).not_to_contain_text("Traceback")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("alert")).to_have_text("You are logged out.")
    context.close()


def test_a_page_continues_at_the_log_in_after_a_restart_of_the_console(
    browser: Browser, console: ConsoleServer, reader_token: str
) -> None:
    context = browser.new_context()
    context.set_default_timeout(LIMIT)
    page = context.new_page()
    page.goto(f"{console.url}/login")
    page.get_by_label("Your token").fill(reader_token)
    page.get_by_role("button", name="Log in").click()
    live(page)
    page.clock.install()
    page.evaluate("dispatchEvent(new Event('pagehide'))")  # the stream ends with the console

    async def restart() -> None:
        sessions = console.console.sessions
        for session in [one for one in sessions if one.account.user.endswith(":onlooker")]:
            sessions.end(session)

    console.loop.call(restart())
    page.evaluate("dispatchEvent(new Event('pageshow'))")
    expect(page.locator("#live")).to_have_text("connecting")
    page.clock.run_for(10_000)
    expect(page.get_by_role("alert")).to_have_text("Your session has ended. Log in again.")
    context.close()


def refused_frame(page: Page, said: list[str]) -> bool:
    page.wait_for_timeout(10)  # the lines of the console come meanwhile
    return any("frame-ancestors 'none'" in one for one in said)


@pytest.fixture
def other_site(console: ConsoleServer) -> Iterator[str]:
    """A page of another site, which shows the console in a frame and sends its forms."""
    html = (
        f'<iframe src="{console.url}/"></iframe>'
        f'<form method="post" action="{console.url}/log-level">'
        '<input name="level" value="TraceAll"><input name="for"><button>Win a prize</button></form>'
    )

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_another_site_can_neither_frame_the_console_nor_use_its_forms(
    browser: Browser,
    console: ConsoleServer,
    administrator: Any,
    filled: ControlPlane,
    other_site: str,
) -> None:
    context = browser.new_context(storage_state=administrator)
    context.set_default_timeout(LIMIT)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda line: said.append(line.text))
    page.goto(other_site)
    eventually(lambda: refused_frame(page, said), "the frame is refused")
    framed = page.frames[1]
    assert "Quarterdeck" not in framed.content()
    page.get_by_role("button", name="Win a prize").click()
    expect(page.locator("h1")).to_have_text("This is not allowed")
    config = found(filled, f"{OPERATOR}/v1alpha1/clusterversionoperators/cluster")
    assert config["spec"]["operatorLogLevel"] != "TraceAll"
    # In a page of the console, no script runs that is not a file of it.
    page.goto(console.url)
    page.evaluate(
        "() => { const one = document.createElement('script');"
        " one.textContent = 'window.owned = true'; document.body.append(one); }"
    )
    assert page.evaluate("window.owned") is None
    context.close()


def test_without_javascript(
    new_page: NewPage, console: ConsoleServer, filled: ControlPlane
) -> None:
    page = new_page(java_script_enabled=False)
    for one in cluster_operators():
        expect(page.locator(f"#row-{one['metadata']['name']}")).to_be_visible()
    expect(page.locator("#live")).to_be_hidden()
    page.get_by_role("link", name="stale").click()
    expect(page.locator("#rows tr:visible")).to_have_count(1)
    page.goto(console.url)
    page.get_by_label("Filter by name or message").fill("router")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#rows tr:visible")).to_have_count(1)
    assert page.locator("#row-ingress time").text_content() != ""
    page.goto(f"{console.url}/log-level")
    page.locator("input[value=Trace]").check()
    page.get_by_label("For").select_option("")
    page.get_by_role("button", name="Set level").click()
    expect(page.locator(".notice")).to_have_text("The log level is Trace.")
    page.goto(f"{console.url}/release")
    page.get_by_label("0.3.0").check()
    page.get_by_label("Update the whole cluster").check()
    page.get_by_role("button", name="Start the update").click()
    expect(page.locator(".notice")).to_contain_text("The update to 0.3.0 is requested")
    page.goto(console.url + PAGES["ingress-controller"])
    page.get_by_label("Destination").select_option("Container")
    line = f"without a script {time.time_ns()}"  # another one, if the test is repeated
    page.get_by_label("Format of the line").fill(f"%ci {line}")
    page.get_by_role("button", name="Preview the change").click()
    expect(page.locator("#preview pre.sample")).to_contain_text(line)
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".notice")).to_contain_text("The access logs are changed")
    access = found(filled, CONTROLLER)["spec"]["logging"]["access"]
    assert access["httpLogFormat"] == f"%ci {line}"
    for path in PAGES.values():
        page.goto(console.url + path)
        expect(page.locator("h1")).to_be_visible()
        assert page.locator("button.copy:visible").count() == 0  # what needs a script is not there
        ages = page.locator("main time[data-ago], main time[data-left]").all_text_contents()
        assert all("UTC" not in age for age in ages), path


def test_with_the_keyboard_alone(new_page: NewPage) -> None:
    page = live(new_page())

    def focused() -> str:
        text: str = page.evaluate(
            "(document.activeElement.textContent || document.activeElement.id).trim()"
        )
        return text

    page.keyboard.press("Tab")
    assert focused() == "Skip to content"
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(focused())
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", seen[-1]
        if seen[-1] == "machine-api" and page.evaluate(
            "document.activeElement.closest('tr') != null"
        ):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="machine-api", level=1)).to_be_visible()
    assert "Log level" in seen
    assert "Log out" in seen
    # A write, too: from the radio buttons to the button, without a pointer.
    page.goto(page.url.partition("/operators")[0] + "/log-level")
    page.locator("input[name=level]:checked").focus()
    page.keyboard.press("ArrowRight")
    wanted = page.evaluate("document.querySelector('input[name=level]:checked').value")
    page.keyboard.press("Tab")
    page.keyboard.type("10")
    page.keyboard.press("Tab")
    assert focused() == "Set level"
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_have_text(f"The log level is {wanted} for 10 minutes.")
