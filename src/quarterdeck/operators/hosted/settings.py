"""The hosted operator's own options of `quarterdeck run`."""

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the cluster version operators of hosted clusters run."""

    hosted_releases: str = "/var/lib/quarterdeck/releases"
    """The directory of the nodes that has one payload per release, for the cluster version
    operators of hosted clusters; if empty, they apply no payload."""
    hosted_replicas: int = 2
    """The number of replicas of each of them."""
