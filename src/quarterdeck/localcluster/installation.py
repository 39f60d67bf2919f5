"""Installs operators and releases into a local cluster, when it starts or later.

What is installed stays, so every call can be repeated.
"""

from collections.abc import Callable

from quarterdeck.delivery.declaration import Declaration
from quarterdeck.localcluster.access import ClusterAccess
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.infrastructure import ensure_infrastructure
from quarterdeck.localcluster.local_objects import bring_local_objects
from quarterdeck.localcluster.operators import deploy_operator, find_operator
from quarterdeck.localcluster.order import Contents
from quarterdeck.localcluster.releases import (
    deploy_releases,
    has_releases,
    payload_operators,
    wait_for_operators,
    wait_for_release,
)
from quarterdeck.localcluster.static_pods import own_directory, use_static_pods

Show = Callable[[str], None]


def install(cluster: ClusterAccess, contents: Contents, show: Show) -> None:
    """Install the contents into a cluster that has just started."""
    if contents.payload:
        deploy_releases(cluster, show, contents.changes)
    else:
        show("installing Quarterdeck's resource types")
        install_own_definitions(cluster.requests())
        ensure_infrastructure(cluster)
    _deploy_operators(cluster, contents, show)
    bring_local_objects(cluster, operators_of(contents), show)


def install_missing(cluster: ClusterAccess, contents: Contents, show: Show) -> None:
    """Install what a running cluster lacks of the contents, and return when it is ready."""
    check_static_pods(cluster, contents)
    if contents.static_pods is not None:
        use_static_pods(cluster.layout, contents.static_pods)
    if contents.payload and has_releases(cluster):
        wait_for_release(cluster, show)
    elif contents.payload:
        deploy_releases(cluster, show, contents.changes)
    _deploy_operators(cluster, contents, show)
    bring_local_objects(cluster, operators_of(contents), show)


def operators_of(contents: Contents) -> list[Declaration]:
    """The operators that the contents ask for, by a payload or by name, in their order."""
    brought = payload_operators() if contents.payload else []
    asked = [find_operator(name) for name in contents.operators]
    every = {one.name: one for one in (*brought, *asked)}.values()
    return sorted(every, key=lambda one: (one.run_level, one.name))


def check_static_pods(cluster: ClusterAccess, contents: Contents) -> None:
    """Refuse a change of the directory of static pods, which would end the running pods."""
    used, wanted = own_directory(cluster.layout), contents.static_pods
    if used is not None and wanted is not None and used != wanted:
        raise LocalClusterError(
            f"the cluster takes static pods from {used}; to take them from {wanted}, stop it "
            "first, with `quarterdeck local down`"
        )


def _deploy_operators(cluster: ClusterAccess, contents: Contents, show: Show) -> None:
    """Deploy the operators that no release installs."""
    of_release = {one.name for one in payload_operators()} if has_releases(cluster) else set()
    for name in contents.operators:
        declared = find_operator(name)
        if name not in of_release:
            show(f"starting {declared.title[:1].lower()}{declared.title[1:]}")
            deploy_operator(cluster, name, changes=contents.changes)
        elif not contents.payload:
            wait_for_operators(cluster, [declared])
