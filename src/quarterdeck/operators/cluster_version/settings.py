"""The cluster version operator's own options of `quarterdeck run`."""

from typing import Annotated

import msgspec

import quarterdeck
from quarterdeck.delivery.options import option
from quarterdeck.payload.observed import SELF_MANAGED


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the cluster version operator runs."""

    release_version: Annotated[str, option(env="RELEASE_VERSION")] = quarterdeck.__version__
    """The release that this operator belongs to: feature gates are read for this version, and a
    cluster that has had no release yet begins with it."""
    profile: Annotated[str, option(flag="--cluster-profile", env="CLUSTER_PROFILE")] = SELF_MANAGED
    """Which of the payload's manifests are for this cluster."""
    releases: Annotated[str, option(env="RELEASES")] = ""
    """A directory with one payload per release; without it, none is applied."""
