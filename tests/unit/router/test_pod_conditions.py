from datetime import UTC, datetime

from quarterdeck.api.meta import Object
from quarterdeck.router.pod_conditions import ConditionReport, conditions

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
EARLIER = "2025-01-01T00:00:00Z"


def pod(*live: Object) -> Object:
    return {"status": {"conditions": list(live)}}


def live(type_: str, status: str, message: str) -> Object:
    said = {"type": type_, "status": status, "reason": "Because", "message": message}
    return {**said, "lastTransitionTime": EARLIER, "lastProbeTime": None}


REPORTS = {
    "example.test/A": ConditionReport(True, "Because", "a"),
    "example.test/B": ConditionReport(False, "No", "b"),
}


def test_each_write_has_all_conditions() -> None:
    found = conditions(pod(), REPORTS, NOW)
    assert [(one["type"], one["status"]) for one in found] == [
        ("example.test/A", "True"),
        ("example.test/B", "False"),
    ]
    assert {one["lastTransitionTime"] for one in found} == {"2026-01-02T03:04:05Z"}


def test_a_pod_that_says_it_already_is_not_written() -> None:
    seen = pod(live("Ready", "True", ""), live("example.test/A", "True", "a"))
    assert conditions(seen, {"example.test/A": REPORTS["example.test/A"]}, NOW) == []


def test_the_transition_time_moves_only_when_the_status_does() -> None:
    one = {"example.test/A": ConditionReport(True, "Because", "another text")}
    assert (
        conditions(pod(live("example.test/A", "True", "a")), one, NOW)[0]["lastTransitionTime"]
        == EARLIER
    )
    found = conditions(pod(live("example.test/A", "False", "a")), one, NOW)
    assert found[0]["lastTransitionTime"] == "2026-01-02T03:04:05Z"


def test_a_message_from_outside_has_a_limit() -> None:
    (found,) = conditions(
        pod(), {"example.test/A": ConditionReport(True, "Because", "x" * 9999)}, NOW
    )
    assert len(found["message"]) == 2000
