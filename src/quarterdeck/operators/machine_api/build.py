"""The builds of the machine API operator on the way to the baremetal operator. Pure.

| build | with metal3 | the baremetal operator |
|---|---|---|
| A | manages it, whatever the other says | is not there |
| B | manages it, and respects a claim | is not there |
| C | as B | claims it |
| D | nothing | claims it |
"""

from enum import StrEnum


class Build(StrEnum):
    """A build; releases have them in this order."""

    A = "A"
    B = "B"
    C = "C"
    D = "D"

    @property
    def manages_metal3(self) -> bool:
        """Whether it knows metal3 at all."""
        return self is not Build.D

    @property
    def gated(self) -> bool:
        """Whether it respects a claim of the baremetal operator."""
        return self is not Build.A
