"""What the console asks the operators' packages, which it does not import.

The console lies beside the operators. The command line, which knows both, passes these functions.
Their answers are plain data: what the commands show with `-o json`.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from quarterdeck.api.config_v1 import ClusterVersion, FeatureGate
from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operator_v1 import IngressController
from quarterdeck.kube import Client


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """The functions of the operators' packages that pages use."""

    staleness: Callable[[Object, Object | None, str, Sequence[Object], datetime], Object]
    """The staleness checker's explanation of an operator: from the ClusterOperator, the checkers'
    settings or why these cannot be read, and the Leases that count for it."""
    leases: Callable[[Object], Sequence[Key]]
    """The Leases that count for a ClusterOperator."""
    keeps_upgradeable_false: Callable[[Object | None, datetime], bool | None]
    """Whether the checkers with these settings keep an Upgradeable=False; None if unknown."""
    updates: Callable[[ClusterVersion], Object]
    """The version of the cluster, its update, and the updates there are, with their risks."""
    update_patch: Callable[[str], Object]
    """The patch of ClusterVersion that requests an update to a version."""
    log_level: Callable[[Object, FeatureGate | None, ClusterVersion | None], Object]
    """The log level that the ClusterVersionOperator asks for, and whether it is in force."""
    log_level_patch: Callable[[Object, str, timedelta | None, datetime], Object]
    """The patch that sets a level, for good or for a while."""
    ingress: Callable[[IngressController, Client | None], Awaitable[Object]]
    """What an IngressController means; with a client, also what would change in the cluster."""
    subscription: Callable[[Client, str, str], Awaitable[Object]]
    """The Deployments of a Subscription, with the origin of each field; or `why` there are none."""
    next_version: Callable[[Client, str, str], Awaitable[Object]]
    """What the next version of a Subscription changes and breaks; or `why` that is not known."""
