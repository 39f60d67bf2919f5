"""Sets up the cluster version operator from its parts.

Each part adds its own controllers to the manager. The operator installs the resource types itself,
so they may be missing when it starts: everything that it watches is optional.
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
    # In a hosted cluster the administrator of the management cluster sets the log level, even if
    # somebody installs the resource type.
    if settings.profile in SELF_MANAGED:
        add_log_level(manager, settings)
    if payloads is not None:
        add_cluster_version(manager, settings, payloads)
    else:
        add_minimal_version(manager, settings)
