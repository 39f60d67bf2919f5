"""What a reconcile returns, and the one error that is not retried."""

import msgspec


class Result(msgspec.Struct, frozen=True):
    """The reconcile succeeded; the failures of its key are forgotten."""

    requeue_after: float | None = None
    """Reconcile again after this many seconds, even if nothing changes."""


DONE = Result()
"""Reconcile again when something changes."""


VALUE_LIMIT = 500
"""The most characters of a wrong value in a message, so that the remedy stays readable."""


class InvalidSpec(Exception):  # noqa: N818 - reads as what it is: an invalid spec
    """The author must change the object; it is not reconciled again until then."""

    def __init__(self, field: str, value: object, remedy: str) -> None:
        shown = repr(value)
        if len(shown) > VALUE_LIMIT:
            shown = f"{shown[:VALUE_LIMIT]}…"
        super().__init__(f"{field}: {shown}: {remedy}")
        self.field = field
        self.value = value
        self.remedy = remedy
