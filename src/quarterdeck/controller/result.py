"""What a reconcile answers, and the one error that is not worth trying again."""

import msgspec


class Result(msgspec.Struct, frozen=True):
    """The object is as it should be, as far as can be done now."""

    requeue_after: float | None = None
    """Look again after so many seconds, even if nothing changes."""


DONE = Result()
"""Look again when something changes."""


class InvalidSpec(Exception):  # noqa: N818 - reads as what it is: an invalid spec
    """Only a change of the object can mend this, so it is not tried again until it changes."""

    def __init__(self, field: str, value: object, remedy: str) -> None:
        super().__init__(f"{field}: {value!r}: {remedy}")
        self.field = field
        self.value = value
        self.remedy = remedy
