from collections.abc import Mapping

from quarterdeck.router.loss import LATE_AFTER, RequestCounts, Tally, requests_in, workers_in

LATE = LATE_AFTER + 100


def asked(tally: Tally, answers: Mapping[int, RequestCounts]) -> Tally:
    """After exactly these workers ran and gave an answer."""
    return tally.asked(answers, answers.keys())


START = asked(Tally(), {1: RequestCounts(100)}).heard(1000, "monday", 0)


def test_the_first_canary_is_the_baseline() -> None:
    assert (START.requests, START.arrived, START.lost) == (100, 100, 0)
    assert START.complete


def test_a_line_that_stays_missing_is_lost() -> None:
    after = asked(START, {1: RequestCounts(150)}).heard(1047, "monday", 100)
    assert (after.requests, after.arrived, after.lost, after.complete) == (150, 147, 0, False)
    later = after.heard(1047, "monday", LATE)
    assert (later.requests, later.arrived, later.lost, later.complete) == (150, 147, 3, True)


def test_a_line_that_a_canary_has_overtaken_is_not_lost() -> None:
    after = asked(START, {1: RequestCounts(150)}).heard(1047, "monday", 100)
    assert after.heard(1050, "monday", LATE).lost == 0


def test_a_request_that_has_not_ended_is_not_lost() -> None:
    after = asked(START, {1: RequestCounts(150, open=3)}).heard(1047, "monday", 100)
    later = after.heard(1047, "monday", LATE)
    assert later.lost == 0
    ended = asked(later, {1: RequestCounts(150)}).heard(1047, "monday", LATE)
    assert ended.heard(1047, "monday", LATE + LATE_AFTER).lost == 3


def test_a_line_that_is_held_for_an_old_worker_is_not_lost() -> None:
    after = asked(START, {1: RequestCounts(150)}).heard(1147 - 100, "monday", 100, held=3)
    assert after.heard(1047, "monday", LATE, held=3).lost == 0
    assert after.complete


def test_lines_of_rsyslog_count_on_after_its_restart() -> None:
    after = asked(START, {1: RequestCounts(150)}).heard(1040, "monday", 100)
    after = after.heard(1040, "monday", LATE)
    assert after.lost == 10
    again = asked(after, {1: RequestCounts(1300)}).heard(1150, "tuesday", LATE)
    again = again.heard(1150, "tuesday", LATE + LATE_AFTER)
    assert (again.arrived, again.lost) == (1290, 10)


def test_a_worker_that_ended_keeps_its_count() -> None:
    after = asked(asked(START, {1: RequestCounts(120), 2: RequestCounts(5)}), {2: RequestCounts(9)})
    assert after.requests == 129


def test_a_worker_that_gives_no_answer_is_not_counted_twice_when_it_does() -> None:
    silent = START.asked({}, {1})
    assert silent.requests == 100
    assert asked(silent, {1: RequestCounts(110)}).requests == 110


def test_lines_of_a_worker_that_nobody_asked_any_more_hide_no_loss() -> None:
    """A worker serves 4 more requests before it ends; later, 2 lines of the next one are lost."""
    after = asked(START, {2: RequestCounts(10)}).heard(1014, "monday", 100).settled()
    assert (after.requests, after.arrived, after.lost) == (114, 114, 0)
    after = asked(after, {2: RequestCounts(20)}).heard(1022, "monday", 101)
    assert after.heard(1022, "monday", LATE + 1).lost == 2


STATISTICS = (
    "# pxname,svname,scur,ereq,req_tot,ssl_failed_handshake,h2_backend_open_streams,"
    "h1_open_streams,\n"
    "public,FRONTEND,12,1,30,,0,2,\npublic_ssl,FRONTEND,9,1,12,3,4,1,\n"
    "canary,FRONTEND,0,0,99,,0,1,\n\n"
)


def test_what_haproxy_says_is_read() -> None:
    """Idle connections are no open requests; a failed handshake has a line."""
    assert requests_in(STATISTICS) == RequestCounts(45, 7, 21)
    assert requests_in(STATISTICS, without_empty=True) == RequestCounts(40, 7, 21)
    assert requests_in("# pxname,svname,scur,req_tot,\n") is None
    processes = (
        "#<PID> <type> <reloads>\n8161 master 1 [failed: 0]\n# workers\n8193 worker 0 0d 2.6\n"
        "# old workers\n8170 worker 1 0d 2.6\n# programs\n\n"
    )
    assert workers_in(processes) == (8193, 8170)
