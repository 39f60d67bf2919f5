"""Creates the ClusterVersion `version`, with only a cluster identifier in its spec."""

from contextlib import suppress
from uuid import uuid4

from quarterdeck.api.config_v1 import CLUSTER_VERSIONS, ClusterVersion
from quarterdeck.api.definition import definition
from quarterdeck.api.meta import CRDS, Key
from quarterdeck.controller import DONE, Manager, Objects, Result, Selection
from quarterdeck.kube import AlreadyExists, NotFound
from quarterdeck.log import get_logger
from quarterdeck.operators.cluster_version.settings import Settings

log = get_logger("operators.cluster-version")

KEY = Key("", "version")
THE_VERSION = Selection(name=KEY.name, optional=True)


async def create_version(
    versions: Objects[ClusterVersion], manager: Manager, settings: Settings
) -> Result:
    """Create the ClusterVersion; retry while its resource type is missing."""
    try:
        await versions.create({"metadata": {"name": KEY.name}, "spec": {"clusterID": str(uuid4())}})
    except AlreadyExists:
        return DONE  # The watch delivers it.
    except NotFound:
        if settings.is_hosted:
            await _install_type(manager)
        log.info("waiting for the type of ClusterVersion")
        return Result(requeue_after=2)
    log.info("cluster version created")
    return DONE


async def _install_type(manager: Manager) -> None:
    """Create the resource type in a hosted cluster: what installs a cluster elsewhere does not run.

    The payload has the type too, but is applied only when there is a ClusterVersion.
    """
    with suppress(AlreadyExists):
        await manager.client.create(
            CRDS, definition(CLUSTER_VERSIONS), field_manager=manager.field_manager
        )
        log.info("type of ClusterVersion installed")
