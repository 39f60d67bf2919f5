"""How often HAProxy is asked about an access log; a script stands in for it and counts."""

import os
from pathlib import Path

import pytest

from quarterdeck.operators.ingress.admission import ADMITTED
from quarterdeck.operators.ingress.log_format import FormatChecks

SOCKET = {"ROUTER_SYSLOG_ADDRESS": "/var/lib/rsyslog/rsyslog.sock", "ROUTER_LOG_LEVEL": "info"}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that accepts every configuration, and notes each call."""
    script = tmp_path / "haproxy"
    script.write_text(f"#!/bin/sh\necho call >> {tmp_path}/calls\n")
    script.chmod(0o755)
    return script


def calls(program: Path) -> int:
    noted = program.with_name("calls")
    return len(noted.read_text().splitlines()) if noted.exists() else 0


async def test_an_access_log_is_checked_once(program: Path) -> None:
    checks = FormatChecks(str(program))
    variables = {**SOCKET, "ROUTER_SYSLOG_FORMAT": "%ci"}
    assert await checks.admission(variables) == ADMITTED
    first = calls(program)
    assert first > 0
    assert await checks.admission(dict(reversed(variables.items()))) == ADMITTED
    assert calls(program) == first
    await checks.admission({**variables, "ROUTER_SYSLOG_FORMAT": "%ST"})
    assert calls(program) > first


async def test_nothing_is_checked_without_something_that_a_user_typed(program: Path) -> None:
    checks = FormatChecks(str(program))
    assert await checks.admission({}) == ADMITTED
    assert await checks.admission(SOCKET) == ADMITTED
    assert calls(program) == 0


async def test_without_haproxy_nothing_is_admitted_unchecked_and_it_is_asked_again(
    program: Path, tmp_path: Path
) -> None:
    absent = tmp_path / "later"
    checks = FormatChecks(str(absent))
    variables = {**SOCKET, "ROUTER_SYSLOG_FORMAT": "%ci"}
    refused = await checks.admission(variables)
    assert (refused.admitted, refused.reason) == (False, "LogFormatNotChecked")
    assert "install HAProxy" in refused.message
    os.rename(program, absent)  # noqa: PTH104 - as quick as any
    assert await checks.admission(variables) == ADMITTED
