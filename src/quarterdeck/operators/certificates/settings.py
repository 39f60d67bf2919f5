"""The certificate approver's own options of `quarterdeck run`."""

from datetime import timedelta

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Whose certificates may be renewed, and for how long."""

    renewable_users: str = "system:quarterdeck:staleness"
    """The users whose requests for their own next certificate are approved, with commas between
    them."""
    longest_certificate: timedelta = timedelta(days=90)
    """The longest lifetime that a request may ask for."""

    @property
    def users(self) -> frozenset[str]:
        """The users."""
        return frozenset(filter(None, map(str.strip, self.renewable_users.split(","))))
