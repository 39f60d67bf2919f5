from quarterdeck.router.loss import Requests, Tally, requests_in, workers_in

START = Tally().asked({1: Requests(100)}).heard(1000, "monday")


def test_the_first_canary_is_the_baseline() -> None:
    assert (START.requests, START.arrived, START.lost) == (100, 100, 0)


def test_a_line_that_is_missing_is_lost() -> None:
    after = START.asked({1: Requests(150)}).heard(1047, "monday")
    assert (after.requests, after.arrived, after.lost) == (150, 147, 3)


def test_a_request_that_has_not_ended_is_not_lost() -> None:
    after = START.asked({1: Requests(150, open=3)}).heard(1047, "monday")
    assert after.lost == 0
    assert after.asked({1: Requests(150)}).heard(1047, "monday").lost == 3


def test_lines_of_rsyslog_count_on_after_its_restart() -> None:
    after = START.asked({1: Requests(150)}).heard(1040, "monday")
    assert after.lost == 10
    again = after.asked({1: Requests(1300)}).heard(1150, "tuesday")
    assert (again.arrived, again.lost) == (1290, 10)


def test_a_worker_that_ended_keeps_its_count() -> None:
    after = START.asked({1: Requests(120), 2: Requests(5)}).asked({2: Requests(9)})
    assert after.requests == 129


def test_lines_of_a_worker_that_nobody_asked_any_more_hide_no_loss() -> None:
    """A worker serves 4 more requests before it ends; later, 2 lines of the next one are lost."""
    after = START.asked({2: Requests(10)}).heard(1014, "monday").settled()
    assert (after.requests, after.arrived, after.lost) == (114, 114, 0)
    assert after.asked({2: Requests(20)}).heard(1022, "monday").lost == 2


def test_what_haproxy_says_is_read() -> None:
    statistics = (
        "# pxname,svname,scur,req_tot,\npublic,FRONTEND,2,30,\npublic_ssl,FRONTEND,1,12,\n"
        "canary,FRONTEND,0,99,\nns:web:80,BACKEND,0,,\n\n"
    )
    assert requests_in(statistics) == Requests(42, 3)
    processes = (
        "#<PID> <type> <reloads>\n8161 master 1 [failed: 0]\n# workers\n8193 worker 0 0d 2.6\n"
        "# old workers\n8170 worker 1 0d 2.6\n# programs\n\n"
    )
    assert workers_in(processes) == (8193, 8170)
