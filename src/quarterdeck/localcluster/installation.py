"""What a cluster has in it: put there when it starts, or brought to one that runs.

What is there stays, so that all of this can be asked for again.
"""

from collections.abc import Callable

from quarterdeck.localcluster.access import ClusterAccess
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.operators import deploy_operator, find_operator
from quarterdeck.localcluster.order import Contents
from quarterdeck.localcluster.releases import (
    delivered,
    deploy_releases,
    has_releases,
    wait_for_operators,
    wait_for_release,
)
from quarterdeck.localcluster.static_pods import own_directory, take_from

Show = Callable[[str], None]


def install(cluster: ClusterAccess, contents: Contents, show: Show) -> None:
    """Put into a cluster that just started what was asked for, one part after another."""
    if contents.payload:
        deploy_releases(cluster, show, contents.changes)
    else:
        show("installing Quarterdeck's resource types")
        install_own_definitions(cluster.requests())
    _deploy_operators(cluster, contents, show)


def bring_missing(cluster: ClusterAccess, contents: Contents, show: Show) -> None:
    """Put into a cluster that runs what it does not have, and return when that is ready."""
    check_static_pods(cluster, contents)
    if contents.static_pods is not None:
        take_from(cluster.layout, contents.static_pods)
    if contents.payload and has_releases(cluster):
        wait_for_release(cluster, show)
    elif contents.payload:
        deploy_releases(cluster, show, contents.changes)
    _deploy_operators(cluster, contents, show)


def check_static_pods(cluster: ClusterAccess, contents: Contents) -> None:
    """Refuse another directory of static pods than the one in use, whose pods would end."""
    used, wanted = own_directory(cluster.layout), contents.static_pods
    if used is not None and wanted is not None and used != wanted:
        raise LocalClusterError(
            f"the cluster takes static pods from {used}; to take them from {wanted}, stop it "
            "first, with `quarterdeck local down`"
        )


def _deploy_operators(cluster: ClusterAccess, contents: Contents, show: Show) -> None:
    """Bring the operators that no release has brought."""
    of_release = {one.name for one in delivered()} if has_releases(cluster) else set()
    for name in contents.operators:
        declared = find_operator(name)
        if name not in of_release:
            show(f"starting {declared.title[:1].lower()}{declared.title[1:]}")
            deploy_operator(cluster, name, changes=contents.changes)
        elif not contents.payload:
            wait_for_operators(cluster, [declared])
