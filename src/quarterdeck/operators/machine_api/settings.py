"""The settings of the machine API operator."""

import msgspec

from quarterdeck.operators.machine_api.build import Build


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the operator `machine-api`."""

    metal3_build: str = Build.C.value
    """What it does with metal3: A ignores a claim of the baremetal operator, B and C respect it, D
    leaves metal3 alone."""
