"""The arguments of `python -m quarterdeck.delivery`."""

from pathlib import Path

import pytest

from quarterdeck.delivery.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(["--help"], 0, id="help"),
        pytest.param(["deploy", "-h"], 0, id="help after a directory"),
        pytest.param([], 2, id="none"),
        pytest.param(["--check", "deploy"], 2, id="an option"),
    ],
)
def test_an_option_is_no_directory(
    arguments: list[str],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert "DIRECTORY [DISTRIBUTION...]" in (err if code else out)
    assert list(tmp_path.iterdir()) == []
