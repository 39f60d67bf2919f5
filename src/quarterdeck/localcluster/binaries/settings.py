"""The settings for the programs, read once from the environment."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from quarterdeck.localcluster.binaries.errors import BinariesUnavailable

KUBERNETES_URL = "https://dl.k8s.io"
ETCD_URL = "https://github.com/etcd-io/etcd/releases/download"
KWOK_URL = "https://github.com/kubernetes-sigs/kwok/releases/download"

_SWITCH = {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False}


class BinarySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of the programs, and their cache."""

    cache: Path
    """The directory that holds one directory per version."""
    assets: Path | None = None
    """A directory with the user's own programs (KUBEBUILDER_ASSETS), the first source."""
    kubernetes_url: str = KUBERNETES_URL
    """The server or mirror of the Kubernetes programs, laid out as dl.k8s.io."""
    etcd_url: str = ETCD_URL
    """The server or mirror of etcd, laid out as its releases on GitHub."""
    kwok_url: str = KWOK_URL
    """The server or mirror of kwok, laid out as its releases on GitHub."""
    download: bool = True
    """Whether released programs may be downloaded."""
    build: bool = True
    """Whether programs may be built from source."""
    connect_timeout: float = 5.0
    """Seconds after which a server that does not answer counts as unreachable."""
    stall_timeout: float = 30.0
    """Seconds without a byte after which a download counts as broken."""
    machine: str = ""
    """The kernel's name for this machine's architecture."""
    environment: Mapping[str, str] = {}
    """The environment of `go` and `pip`: the user's proxies, mirrors and PATH."""

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> "BinarySettings":
        """The settings in these environment variables; an empty variable counts as unset."""
        given = {name: value for name, value in env.items() if value}
        assets = given.get("KUBEBUILDER_ASSETS")
        return cls(
            cache=_cache(given),
            assets=Path(assets).expanduser().absolute() if assets else None,
            kubernetes_url=_address(given, "QUARTERDECK_KUBERNETES_URL", KUBERNETES_URL),
            etcd_url=_address(given, "QUARTERDECK_ETCD_URL", ETCD_URL),
            kwok_url=_address(given, "QUARTERDECK_KWOK_URL", KWOK_URL),
            download=_switch(given, "QUARTERDECK_DOWNLOAD"),
            build=_switch(given, "QUARTERDECK_BUILD"),
            connect_timeout=_seconds(given, "QUARTERDECK_CONNECT_TIMEOUT", 5.0),
            stall_timeout=_seconds(given, "QUARTERDECK_STALL_TIMEOUT", 30.0),
            machine=os.uname().machine,
            environment=dict(env),
        )


def _cache(env: Mapping[str, str]) -> Path:
    if own := env.get("QUARTERDECK_CACHE"):
        return Path(own).expanduser().absolute() / "quarterdeck"
    if xdg := env.get("XDG_CACHE_HOME"):
        return Path(xdg).absolute() / "quarterdeck"
    home = Path(env["HOME"]) if "HOME" in env else Path.home()
    return home / ".cache" / "quarterdeck"


def _address(env: Mapping[str, str], name: str, default: str) -> str:
    value = env.get(name, default)
    if not re.match(r"https?://[^/\s]+(/\S*)?$", value):
        raise BinariesUnavailable(
            f"{name}={value} is no address of a server; write it as https://host/path"
        )
    return value.rstrip("/")


def _switch(env: Mapping[str, str], name: str) -> bool:
    value = env.get(name, "on")
    if (chosen := _SWITCH.get(value.lower())) is None:
        raise BinariesUnavailable(f"{name}={value} is neither on nor off; set it to one of them")
    return chosen


def _seconds(env: Mapping[str, str], name: str, default: float) -> float:
    value = env.get(name)
    if value is None:
        return default
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < 86400.0:
        raise BinariesUnavailable(f"{name}={value} is no number of seconds; set it to, say, 5")
    return seconds
