"""Names the platform of the cluster, in the Infrastructure `cluster`, where nobody else does.

On OpenShift the installer writes it. On plain Kubernetes nobody does, and a release cannot, because
it applies no status; operators wait until they know the platform. One that is named is left alone.
"""

import msgspec

from quarterdeck.api.config_v1 import INFRASTRUCTURES, InfrastructureStatus, PlatformStatus
from quarterdeck.api.config_v1.platforms import PlatformType
from quarterdeck.api.meta import Key
from quarterdeck.controller import DONE, Controller, Manager, Result, Selection, Watch
from quarterdeck.kube import AlreadyExists, NotFound
from quarterdeck.log import get_logger

log = get_logger("operators.cluster-version")

KEY = Key("", "cluster")


def add_platform(manager: Manager, platform: str) -> None:
    """Create the Infrastructure with this platform, unless one names a platform."""
    here = Selection(name=KEY.name, optional=True)
    found = manager.objects(INFRASTRUCTURES, here, writes=["create", "status"])

    async def reconcile(_key: Key) -> Result:
        live = found.get(KEY)
        if live is None:
            try:
                await found.create({"metadata": {"name": KEY.name}, "spec": {}})
            except AlreadyExists:
                return DONE  # The watch delivers it.
            except NotFound:
                return Result(requeue_after=2)  # The release brings its type.
            return DONE
        if live.platform_type != PlatformType.UNSET:
            return DONE
        was = live.status or InfrastructureStatus()
        named = msgspec.structs.replace(
            was, platform=platform, platform_status=PlatformStatus(type=platform)
        )
        await found.set_status(live, named)
        log.info("platform named", platform=platform)
        return DONE

    manager.add(Controller("platform", reconcile, [Watch(found)], at_start=[KEY]))
