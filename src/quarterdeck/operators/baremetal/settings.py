"""The settings of the baremetal operator."""

from datetime import timedelta

import msgspec

from quarterdeck.metal3.deployment import DEPLOY_TIMEOUT


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the operator `baremetal`."""

    deploy_timeout: timedelta = DEPLOY_TIMEOUT
    """The time without progress after which a roll-out of metal3 counts as failed."""
