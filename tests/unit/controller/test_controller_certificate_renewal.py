"""When a client certificate counts as late, and how long a refused request is not repeated."""

from datetime import UTC, datetime, timedelta

import pytest

from quarterdeck.controller.certificate_renewal import (
    CertificateState,
    certificate_file,
    is_late,
    not_ready,
    pause_after_refusal,
)
from quarterdeck.kube import Connection
from quarterdeck.kube.client_certificate import ClientCertificate
from quarterdeck.kube.errors import KubeconfigError

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def own(length: timedelta) -> ClientCertificate:
    return ClientCertificate(user="u", groups=(), starts=START, ends=START + length, public_key=b"")


def test_it_is_late_thirty_days_before_the_end_of_ninety() -> None:
    assert not is_late(own(90 * DAY), START + 59 * DAY)
    assert is_late(own(90 * DAY), START + 60 * DAY)


def test_it_is_ready_until_a_tenth_is_left() -> None:
    standing = CertificateState(own=own(90 * DAY), trouble="nobody approves")
    assert not_ready(standing, START + 80 * DAY) == ""
    assert not_ready(standing, START + 81 * DAY) == "nobody approves"
    assert not_ready(CertificateState(own=standing.own), START + 89 * DAY) == ""


def test_it_is_not_ready_without_a_certificate() -> None:
    assert not_ready(CertificateState(trouble="no file"), START) == "no file"


@pytest.mark.parametrize(
    ("length", "pause"),
    [
        (timedelta(minutes=10), timedelta(minutes=1)),
        (10 * DAY, DAY / 2),
        (365 * DAY, DAY),
    ],
)
def test_a_refused_request_is_repeated_seldom(length: timedelta, pause: timedelta) -> None:
    assert pause_after_refusal(own(length)) == pause


def test_a_kubeconfig_without_a_file_for_both_cannot_be_renewed() -> None:
    with pytest.raises(KubeconfigError, match="have to name one file"):
        certificate_file(Connection(server="https://localhost", tls=None))
