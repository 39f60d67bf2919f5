"""Mirrors that an administrator brings as a file, which may come or change at any time."""

from pathlib import Path

import pytest

from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.registry.mirrors import parse_mirrors


def test_the_file_counts_as_it_is_now_unless_the_option_is_set(tmp_path: Path) -> None:
    settings = Settings(trust=str(tmp_path))
    assert parse_mirrors(settings.mirrors) == ()
    (tmp_path / "mirrors").write_text("registry.example.test=mirror.test/q\nquay.test=other.test\n")
    found = [(one.source, one.place) for one in parse_mirrors(settings.mirrors)]
    assert found == [("registry.example.test", "mirror.test/q"), ("quay.test", "other.test")]
    assert (
        Settings(trust=str(tmp_path), registry_mirrors="a.test=b.test").mirrors == "a.test=b.test"
    )


def test_a_spoilt_file_is_refused_with_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "mirrors").write_bytes(b"\xff\x00 no mirror" * 3_000)
    with pytest.raises(ValueError, match="is no mirror; write registry"):
        parse_mirrors(Settings(trust=str(tmp_path)).mirrors)


def test_a_file_that_is_too_long_or_no_file_is_refused(tmp_path: Path) -> None:
    """Its first part alone would name another mirror at its end."""
    settings, file = Settings(trust=str(tmp_path)), tmp_path / "mirrors"
    file.write_text("registry.example.test=mirror.test\n" * 10_000)
    with pytest.raises(ValueError, match="larger than 64 KiB; name fewer"):
        assert settings.mirrors
    file.unlink()
    file.mkdir()
    with pytest.raises(ValueError, match="cannot be read: Is a directory; write"):
        assert settings.mirrors
