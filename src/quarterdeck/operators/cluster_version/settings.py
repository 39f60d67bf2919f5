"""The cluster version operator's own options of `quarterdeck run`."""

from typing import Annotated

import msgspec

import quarterdeck
from quarterdeck.api.custom_resource import SELF_MANAGED as SELF_MANAGED_PROFILES
from quarterdeck.delivery.options import option
from quarterdeck.payload.observed import SELF_MANAGED


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the cluster version operator runs."""

    release_version: Annotated[str, option(env="RELEASE_VERSION")] = quarterdeck.__version__
    """The version of the operator's own release: the operator reads the feature gates of this
    version, and a new cluster installs it."""
    profile: Annotated[str, option(flag="--cluster-profile", env="CLUSTER_PROFILE")] = SELF_MANAGED
    """The cluster profile, which selects the manifests of a payload."""
    releases: Annotated[str, option(env="RELEASES")] = ""
    """A directory with one payload per release; without it, the operator applies none."""
    config: str = ""
    """A file with a ClusterVersionOperator manifest, which sets the log level instead of the object
    in the API server; for a hosted control plane."""

    @property
    def is_hosted(self) -> bool:
        """Whether the operator runs in a management cluster, which decides in the cluster's place.

        It then reads no configuration from the cluster that it works on.
        """
        return bool(self.config) or self.profile not in SELF_MANAGED_PROFILES
