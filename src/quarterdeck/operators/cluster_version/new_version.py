"""The ClusterVersion `version` of a cluster that has none: an identifier, and no wishes."""

from uuid import uuid4

from quarterdeck.api.config_v1 import CLUSTER_VERSIONS
from quarterdeck.api.meta import Key
from quarterdeck.controller import DONE, Manager, Result
from quarterdeck.kube import AlreadyExists, NotFound
from quarterdeck.log import get_logger

log = get_logger("operators.cluster-version")

KEY = Key("", "version")


async def create_version(manager: Manager) -> Result:
    """Create it; tried again while its type is not there."""
    new = {
        "apiVersion": CLUSTER_VERSIONS.api_version,
        "kind": CLUSTER_VERSIONS.kind,
        "metadata": {"name": KEY.name},
        "spec": {"clusterID": str(uuid4())},
    }
    try:
        await manager.client.create(CLUSTER_VERSIONS, new, field_manager=manager.field_manager)
    except AlreadyExists:
        return DONE  # the watch brings it
    except NotFound:
        log.info("waiting for the type of ClusterVersion")
        return Result(requeue_after=2)
    log.info("cluster version created")
    return DONE
