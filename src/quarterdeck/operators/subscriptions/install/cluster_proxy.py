"""The cluster's proxy, if its kind is installed; that may happen later."""

import math
import time
from collections.abc import Mapping

from quarterdeck.api.config_v1 import PROXIES
from quarterdeck.api.meta import CRDS, Key, Object
from quarterdeck.controller import Manager, Selection
from quarterdeck.kube import Change
from quarterdeck.operators.subscriptions.config.proxy import proxy_variables
from quarterdeck.status import rollout

DEFINITION = f"{PROXIES.plural}.{PROXIES.group}"


class ClusterProxy:
    """Watches the Proxy `cluster`."""

    def __init__(self, manager: Manager) -> None:
        self.proxies = manager.objects(PROXIES, Selection(name="cluster", optional=True))
        # The cache itself looks for a missing kind every few seconds only.
        definitions = manager.objects(CRDS, Selection(name=DEFINITION))
        definitions.cache.subscribe(self._definition_changed)

    def variables(self) -> Mapping[str, str]:
        """The variables of the proxy; empty without one."""
        return proxy_variables(self.proxies.get(Key("", "cluster")))

    def _definition_changed(self, change: Change[Object]) -> None:
        before, now = _is_established(change.old), _is_established(change.new)
        if now and not before:
            self.proxies.cache.list_again(time.monotonic(), 0, -math.inf)


def _is_established(definition: Object | None) -> bool:
    return definition is not None and isinstance(rollout.definition(definition), rollout.Done)
