"""The platform of the cluster, which switches both operators' metal3 part on and off. Pure."""

from typing import TypeAlias

import msgspec

from quarterdeck.api.config_v1 import Infrastructure
from quarterdeck.api.config_v1.platforms import PlatformType
from quarterdeck.api.meta import Key

INFRASTRUCTURE_KEY = Key("", "cluster")


class BareMetal(msgspec.Struct, frozen=True):
    """The platform on which metal3 runs."""


class OtherPlatform(msgspec.Struct, frozen=True):
    """Any other platform."""

    type: str


class UnknownPlatform(msgspec.Struct, frozen=True):
    """The platform is not known."""

    message: str


Platform: TypeAlias = BareMetal | OtherPlatform | UnknownPlatform

CREATE_IT = "create it, and set status.platformStatus.type"


def platform_of(infrastructure: Infrastructure | None) -> Platform:
    """The platform; unknown without an Infrastructure, or with one that names none."""
    if infrastructure is None:
        return UnknownPlatform(f"Infrastructure {INFRASTRUCTURE_KEY}: not found; {CREATE_IT}")
    match infrastructure.platform_type:
        case PlatformType.BARE_METAL:
            return BareMetal()
        case PlatformType.UNSET:
            field = "status.platformStatus.type"
            return UnknownPlatform(
                f"Infrastructure {INFRASTRUCTURE_KEY}: {field}: '': set it to the platform's type"
            )
        case other:
            return OtherPlatform(other)
