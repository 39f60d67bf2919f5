"""What can be set for the cluster version operator; `cli.run_options` has the options."""

import msgspec

import quarterdeck
from quarterdeck.operators.cluster_version.payload.observed import SELF_MANAGED


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the cluster version operator runs."""

    release_version: str = quarterdeck.__version__
    """The release that it belongs to: feature gates are read for this version, and a cluster
    that has had no release yet begins with it."""
    profile: str = SELF_MANAGED
    """The cluster profile: which of the payload's manifests count."""
    releases: str = ""
    """The directory with one payload per release; without it, nothing is applied."""
