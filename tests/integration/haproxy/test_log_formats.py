"""Log formats through the real HAProxy: accepted text arrives as typed, the rest is refused."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.haproxy_process import datagram_socket, request, running_haproxy

from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.access_log_lines import access_log_lines
from quarterdeck.haproxy.check import check_access_log, check_log_format
from quarterdeck.haproxy.errors import CheckError, RefusedTextError

PLAIN = st.text(
    st.one_of(st.sampled_from(" $\"'\\#{}[]()%;,é  "), st.characters(codec="utf-8")),
    min_size=1,
    max_size=60,
).map(lambda text: "".join(c for c in text if ord(c) >= 0x20 and ord(c) != 0x7F))
EXPRESSIONS = st.sampled_from(
    [
        ("%[str(a  b)]", "a  b"),
        ('%[str("x]  ) y")]', "x]  ) y"),
        ("%[str('q  )\"')]", 'q  )"'),
        ("%[str(a\\)]", "a\\"),
        ('%[str("a\\"  b")]', 'a"  b'),
        ("%[str(a),concat(b)]", "ab"),
        ('%{+Q}[str("a  b")]', '"a  b"'),
        ("%ST|", "200|"),
    ]
)
"""An expression, and what HAProxy writes for it."""


def lines_of(formats: list[str]) -> list[str]:
    """What HAProxy logs for one request each, to a frontend with each of the formats."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        config = ""
        for number, text in enumerate(formats):
            lines = access_log_lines(
                AccessLog(
                    address=str(directory / "log"), level="info", format=text, max_length=8192
                )
            )
            if not number:
                config += "".join(f"    {line}\n" for line in lines.global_section)
            config += f"defaults d{number}\n    mode http\n    timeout client 30s\n"
            config += "".join(f"    {line}\n" for line in lines.defaults)
            config += f"frontend f{number} from d{number}\n    bind {directory}/{number}.sock\n"
            config += "    http-request return status 200\n"
        with (
            datagram_socket(directory / "log") as receiver,
            running_haproxy(config, directory),
        ):
            logged = []
            for number in range(len(formats)):
                assert b" 200 " in request(directory / f"{number}.sock")
                header, _, text = receiver.recv(65536).decode().partition("]: ")
                assert header.startswith("<142>")
                logged.append(text)
            return logged


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(PLAIN.filter(bool), min_size=15, max_size=30))
def test_any_accepted_text_comes_out_byte_for_byte(texts: list[str]) -> None:
    formats = [text.replace("%", "%%") for text in texts]
    assert lines_of(formats) == [f"{text}\n" for text in texts]


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(st.one_of(EXPRESSIONS, PLAIN), min_size=1), min_size=10, max_size=20))
def test_text_beside_expressions_comes_out_as_typed(
    formats: list[list[str | tuple[str, str]]],
) -> None:
    pairs = [
        [(piece.replace("%", "%%"), piece) if isinstance(piece, str) else piece for piece in pieces]
        for pieces in formats
    ]
    typed = ["".join(text for text, _ in pieces) + "." for pieces in pairs]
    expected = ["".join(value for _, value in pieces) + ".\n" for pieces in pairs]
    assert lines_of(typed) == expected


def test_a_switch_to_quotes_leaves_blanks_alone() -> None:
    assert lines_of(["%{+Q}o  a  %ci  b"]) == ['  a  "unix"  b\n']


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        pytest.param("%ci %zz", 4, "no such format variable 'zz'", id="unknown variable"),
        pytest.param("100%", 3, "truncated line after '%'", id="percent sign at the end"),
        pytest.param("a %ci %[nothing]", 6, "unknown fetch method 'nothing'", id="unknown fetch"),
        pytest.param("  %[path] %ci", 2, "HTTP request headers", id="fetch of the request"),
        pytest.param("%ci %[src", 4, "missing ']'", id="open expression"),
        pytest.param("%[src,nothing]", 0, "unknown converter 'nothing'", id="unknown converter"),
        pytest.param("%ci %[src,map_int(/etc/passwd)]", 10, "may not read files", id="a map"),
        pytest.param("%[src(),,map(/dev/zero)]", 9, "may not read files", id="an endless map"),
        pytest.param("%[str(a),jwt_verify(RS256,/k)]", 9, "may not read files", id="a key"),
        pytest.param("a\nlog 127.0.0.1:1 local0", 1, "control characters", id="line break"),
    ],
)
async def test_a_format_that_haproxy_refuses_is_refused_with_its_words(
    text: str, position: int, words: str
) -> None:
    with pytest.raises(RefusedTextError) as refused:
        await check_log_format(text)
    assert refused.value.position == position
    assert words in refused.value.reason


async def test_good_formats_are_accepted() -> None:
    await check_log_format("%ci:%cp [%t] %ft %b/%s %B %bq %HM %HU %HV")
    await check_log_format("'$HOME' \"#\"  \\ é")
    for socket in ("stream", "datagram"):
        await check_access_log(
            AccessLog(address="/run/x/rsyslog.sock", socket=socket, format="%{+Q}r")
        )
    await check_access_log(AccessLog(address="[::ffff:1.2.3.4]:514"))


async def test_without_haproxy_nothing_is_called_good() -> None:
    with pytest.raises(CheckError, match="install HAProxy"):
        await check_log_format("%ci", program="no-such-haproxy")
