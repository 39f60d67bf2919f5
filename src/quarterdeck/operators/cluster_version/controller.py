"""The cluster version operator: what it is made of.

Each part hangs its controllers into the manager by itself. Resource types may be missing when
the operator starts, because it is the one that brings them: everything it watches is optional.
"""

from pathlib import Path

from quarterdeck.api.custom_resource import SELF_MANAGED
from quarterdeck.controller import Manager
from quarterdeck.operators.cluster_version.feature_gates.controller import add_feature_gates
from quarterdeck.operators.cluster_version.log_level.controller import add_log_level
from quarterdeck.operators.cluster_version.minimal_version import add_minimal_version
from quarterdeck.operators.cluster_version.payloads import Payloads
from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.operators.cluster_version.version.controller import add_cluster_version


def setup(manager: Manager, settings: Settings) -> None:
    """Add the operator's controllers."""
    payloads = None
    if settings.releases:
        payloads = Payloads(Path(settings.releases), settings.profile, manager.clock)
    add_feature_gates(manager, settings, payloads)
    # In a hosted cluster the log level belongs to those who run the control plane, even if
    # somebody brings the type.
    if settings.profile in SELF_MANAGED:
        add_log_level(manager, settings)
    if payloads is not None:
        add_cluster_version(manager, settings, payloads)
    else:
        add_minimal_version(manager, settings)
