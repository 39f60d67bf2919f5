"""Creates the ClusterVersion `version`, with only a cluster identifier in its spec."""

from uuid import uuid4

from quarterdeck.api.config_v1 import ClusterVersion
from quarterdeck.api.meta import Key
from quarterdeck.controller import DONE, Objects, Result, Selection
from quarterdeck.kube import AlreadyExists, NotFound
from quarterdeck.log import get_logger

log = get_logger("operators.cluster-version")

KEY = Key("", "version")
THE_VERSION = Selection(name=KEY.name, optional=True)


async def create_version(versions: Objects[ClusterVersion]) -> Result:
    """Create the ClusterVersion; retry while its resource type is missing."""
    try:
        await versions.create({"metadata": {"name": KEY.name}, "spec": {"clusterID": str(uuid4())}})
    except AlreadyExists:
        return DONE  # The watch delivers it.
    except NotFound:
        log.info("waiting for the type of ClusterVersion")
        return Result(requeue_after=2)
    log.info("cluster version created")
    return DONE
