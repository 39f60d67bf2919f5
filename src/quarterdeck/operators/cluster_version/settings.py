"""The cluster version operator's own options of `quarterdeck run`."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import msgspec

import quarterdeck
from quarterdeck.api.custom_resource import SELF_MANAGED as SELF_MANAGED_PROFILES
from quarterdeck.delivery.options import option
from quarterdeck.payload.observed import SELF_MANAGED
from quarterdeck.payload.releases import FETCHED
from quarterdeck.registry.reference import has_registry

MAX_MIRRORS = 64 << 10
"""The most bytes of the file of mirrors that are read."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the cluster version operator runs."""

    release_version: Annotated[str, option(env="RELEASE_VERSION")] = quarterdeck.__version__
    """The version of the operator's own release: the operator reads the feature gates of this
    version, and a new cluster installs it."""
    profile: Annotated[str, option(flag="--cluster-profile", env="CLUSTER_PROFILE")] = SELF_MANAGED
    """The cluster profile, which selects the manifests of a payload."""
    releases: Annotated[str, option(env="RELEASES")] = ""
    """A directory with one payload per release; without it, the operator applies none."""
    releases_interval: timedelta = timedelta(seconds=30)
    """How often the directories of releases are looked at; a refused release is looked at every 5
    seconds at least."""
    fetched_releases: Annotated[str, option(env="FETCHED_RELEASES")] = ""
    """A directory for the releases that are fetched from registries; without it, they lie in the
    hidden directory .fetched of --releases."""
    own_release: Annotated[str, option(env="OWN_RELEASE")] = "/release-manifests"
    """The payload in the operator's own image, if it runs from a release image."""
    release_image: Annotated[str, option(env="RELEASE_IMAGE")] = ""
    """The image of the operator's own release. A new cluster installs this release; the operator
    fetches it if it does not run from this image."""
    config: str = ""
    """A file with a ClusterVersionOperator manifest, which sets the log level instead of the object
    in the API server; for a hosted control plane."""

    trust: Annotated[str, option(env="RELEASE_TRUST")] = ""
    """A directory of files for registries, each of which may be missing: pull-secret.json,
    ca-bundle.crt, release.pub and mirrors count where the next options are not set."""
    pull_secret: Annotated[str, option(env="PULL_SECRET")] = ""
    """A file with a pull secret (.dockerconfigjson), for registries of release images."""
    registry_ca: Annotated[str, option(env="REGISTRY_CA")] = ""
    """A file with certificates of authorities that are trusted beside the system's, for registries
    and the update service."""
    registry_mirrors: Annotated[str, option(env="REGISTRY_MIRRORS")] = ""
    """Mirrors of registries as SOURCE=MIRROR, separated by commas; content by digest is fetched
    from them first."""
    verification_key: Annotated[str, option(env="VERIFICATION_KEY")] = ""
    """A file with a public key in PEM; a release image without its signature is refused."""
    default_platform: Annotated[str, option(env="DEFAULT_PLATFORM")] = ""
    """The platform to name in the Infrastructure `cluster` if it names none; by default the
    operator leaves it as it is."""
    upstream_interval: timedelta = timedelta(minutes=3)
    """How often the update service in ClusterVersion's spec.upstream is asked."""
    retrieval_timeout: timedelta = timedelta(minutes=10)
    """How long the fetch of one release image may take; the update service has at most a minute of
    it."""

    @property
    def applies_payload(self) -> bool:
        """Whether there are releases: a directory, the operator's own, or one to fetch."""
        can_fetch = has_registry(self.release_image) and self.fetched_directory is not None
        return bool(self.releases) or self.own_directory is not None or can_fetch

    @property
    def pull_secret_file(self) -> str:
        """The pull secret that counts now; empty if there is none."""
        return self.pull_secret or self._trusted("pull-secret.json")

    @property
    def registry_ca_file(self) -> str:
        """The bundle of certificates that counts now; empty if there is none."""
        return self.registry_ca or self._trusted("ca-bundle.crt")

    @property
    def verification_key_file(self) -> str:
        """The public key that counts now; empty if there is none."""
        return self.verification_key or self._trusted("release.pub")

    @property
    def mirrors(self) -> str:
        """The mirrors that count now, separated by commas; ValueError if the file is of no use."""
        file = "" if self.registry_mirrors else self._trusted("mirrors")
        if not file:
            return self.registry_mirrors
        try:
            with Path(file).open("rb") as opened:
                found = opened.read(MAX_MIRRORS + 1)
        except OSError as error:
            raise ValueError(
                f"the mirrors in {file} cannot be read: {error.strerror}; write them anew"
            ) from error
        if len(found) > MAX_MIRRORS:
            # A list that is cut would end with another mirror than the file has.
            raise ValueError(f"{file} is larger than {MAX_MIRRORS >> 10} KiB; name fewer mirrors")
        return ",".join(found.decode(errors="replace").splitlines())

    @property
    def own_directory(self) -> Path | None:
        """The payload in the operator's own image; None if there is none."""
        own = Path(self.own_release) if self.own_release else None
        return own if own is not None and own.is_dir() else None

    @property
    def fetched_directory(self) -> Path | None:
        """Where fetched releases lie; None if there is no place for them."""
        if self.fetched_releases:
            return Path(self.fetched_releases)
        return Path(self.releases) / FETCHED if self.releases else None

    def _trusted(self, name: str) -> str:
        """The file in the directory of `trust`, if it is there now: the mount may come later."""
        file = Path(self.trust) / name
        return str(file) if self.trust and file.exists() else ""

    @property
    def is_hosted(self) -> bool:
        """Whether the operator runs in a management cluster, which decides in the cluster's place.

        It then reads no configuration from the cluster that it works on.
        """
        return bool(self.config) or self.profile not in SELF_MANAGED_PROFILES
