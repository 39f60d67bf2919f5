"""The programs of the control planes that tests run."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from quarterdeck.localcluster.controlplane import Programs


def find_programs(environment: Mapping[str, str]) -> "Programs":
    """The programs of KUBEBUILDER_ASSETS, the cache, a download or a build, in that order."""
    names = (
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
        "kubectl",
    )
    assets = Path(environment["KUBEBUILDER_ASSETS"])
    found = SimpleNamespace(**{name.replace("-", "_"): assets / name for name in names})
    return cast("Programs", found)
