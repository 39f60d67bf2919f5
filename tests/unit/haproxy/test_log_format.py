import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.haproxy.errors import RefusedTextError
from quarterdeck.haproxy.log_format import encoded, parts
from quarterdeck.haproxy.quoting import quoted

BLANK = '%{-Q,-X,-E}[str(" ")]'


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("a b", "a b", id="one blank stays"),
        pytest.param("a  b", f"a {BLANK}b", id="the second of a run is an expression"),
        pytest.param("a    b", f"a {BLANK} {BLANK}b", id="every other one of a run"),
        pytest.param(" a", f"{BLANK}a", id="HAProxy drops blanks at the beginning"),
        pytest.param("a  ", f"a {BLANK}", id="blanks at the end"),
        pytest.param("%[str(a  b)]  c", f"%[str(a  b)] {BLANK}c", id="not inside an expression"),
        pytest.param('%[str("]  )")]', '%[str("]  )")]', id="a quoted bracket ends nothing"),
        pytest.param("%[str(a\\)]  c", f"%[str(a\\)] {BLANK}c", id="a backslash before a bracket"),
        pytest.param("%%  x", f"%% {BLANK}x", id="a literal percent sign"),
    ],
)
def test_blanks_that_haproxy_would_drop_are_expressions(text: str, written: str) -> None:
    assert encoded(text) == written


@given(st.text())
def test_the_parts_of_a_format_are_the_whole_format(text: str) -> None:
    pieces = list(parts(text))
    assert "".join(piece.characters for piece in pieces) == text
    assert all(text.startswith(piece.characters, piece.position) for piece in pieces)
    assert all("%" not in piece.characters for piece in pieces if piece.plain)


@pytest.mark.parametrize(
    ("text", "position"),
    [("a\nb", 1), ("\r", 0), ("ab\t", 2), ("\x00", 0), ("é\x7f", 1), ("\ud800", 0)],
)
def test_a_control_character_is_refused_with_its_position(text: str, position: int) -> None:
    for refuse in (encoded, quoted):
        with pytest.raises(RefusedTextError) as refused:
            refuse(text)
        assert refused.value.position == position
        assert f"character {position + 1}" in str(refused.value)


def test_strong_quotes_leave_only_the_single_quote_to_escape() -> None:
    assert quoted("a'b $HOME \"#\\") == "'a'\\''b $HOME \"#\\'"
