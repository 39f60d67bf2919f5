import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.cli.ingress_logs import shown
from quarterdeck.haproxy.access_line import parse_access_line

LINE = (
    "2026-11-17T20:21:54+00:00 vm haproxy[6203]: 127.0.0.1:57162 [17/Nov/2026:20:21:54.028] "
    'public shop:web:80/s0 0/0/1/2/3 200 73 - - ---- 1/1/0/0/0 0/0 {a|b} "GET /a1 HTTP/1.1"'
)


def test_a_line_in_the_default_format_is_read() -> None:
    found = parse_access_line(LINE)
    assert found is not None
    assert (found.client, found.status, found.bytes) == ("127.0.0.1:57162", 200, 73)
    assert (found.backend, found.server, found.milliseconds) == ("shop:web:80", "s0", 3)
    assert (found.request, found.captures) == ("GET /a1 HTTP/1.1", "{a|b}")


def test_lines_without_a_server_or_over_tls_are_read() -> None:
    bad = LINE.replace(
        "public shop:web:80/s0 0/0/1/2/3 200", "public_ssl~ no_route/<NOSRV> -1/-1/-1/-1/0 503"
    )
    found = parse_access_line(bad)
    assert found is not None
    assert (found.frontend, found.server, found.status) == ("public_ssl", "<NOSRV>", 503)


FORGED = 'x=1 - ---- 1/1/0/0/0 0/0 "GET /forged HTTP/1.1'


@pytest.mark.parametrize(
    "cookie",
    [
        FORGED,
        f'{FORGED}"',
        "x=1 - ---- 1/1/0/0/0 0/0 {forged}",
        "x=1 - ---- 1/1/0/0/0 0/0 {forged",
        "x=a b",
    ],
)
@pytest.mark.parametrize("cut", [False, True])
def test_a_cookie_cannot_pass_for_other_fields(cookie: str, cut: bool) -> None:
    line = LINE.replace("73 - -", f"73 {cookie} -")
    if cut:
        line = line[: line.index(cookie) + len(cookie.rstrip('"'))]
    assert parse_access_line(line) is None


def test_a_cookie_of_one_word_and_a_long_request_that_is_cut_are_read() -> None:
    found = parse_access_line(LINE.replace("73 - -", "73 x=1 y=2"))
    assert found is not None
    assert found.request == "GET /a1 HTTP/1.1"
    cut = parse_access_line(LINE.removesuffix(' HTTP/1.1"').replace("{a|b}", "{a|b} {c}"))
    assert cut is not None
    assert (cut.request, cut.captures) == ("GET /a1", "{a|b} {c}")


def test_columns_json_and_raw() -> None:
    assert shown(LINE, "columns").startswith("17/Nov/2026:20:21:54.028  127.0.0.1:57162")
    assert '"status":200' in shown(LINE, "json")
    assert shown(LINE, "raw") == LINE
    assert shown("a line of its own", "columns") == "a line of its own"
    assert shown("a\x1b[31mline", "columns") != "a\x1b[31mline"


@given(st.text())
def test_any_text_is_shown(text: str) -> None:
    shown(text, "columns")
    shown(f"2026 vm haproxy[1]: {text}", "json")
