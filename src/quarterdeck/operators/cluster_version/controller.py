"""Sets up the cluster version operator from its parts.

Each part adds its own controllers to the manager. The operator installs the resource types itself,
so they may be missing when it starts: everything that it watches is optional.
"""

from pathlib import Path

from quarterdeck.controller import Manager
from quarterdeck.operators.cluster_version.feature_gates.controller import add_feature_gates
from quarterdeck.operators.cluster_version.log_level.controller import add_log_level
from quarterdeck.operators.cluster_version.log_level.file_controller import add_log_level_file
from quarterdeck.operators.cluster_version.minimal_version import add_minimal_version
from quarterdeck.operators.cluster_version.new_version import KEY
from quarterdeck.operators.cluster_version.payloads import Payloads
from quarterdeck.operators.cluster_version.platform import add_platform
from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.operators.cluster_version.version.controller import add_cluster_version


def setup(manager: Manager, settings: Settings) -> None:
    """Add the operator's controllers."""
    payloads = None
    if settings.applies_payload:
        payloads = Payloads(settings, manager.clock)
    add_feature_gates(manager, settings, payloads)
    if not settings.is_hosted:
        add_log_level(manager, settings)
    if settings.default_platform:
        add_platform(manager, settings.default_platform)
    if payloads is not None:
        version = add_cluster_version(manager, settings, payloads)
    else:
        version = add_minimal_version(manager, settings)
    if settings.config:
        # After a raise of the log level, the skipped manifests are logged at once.
        add_log_level_file(manager, Path(settings.config), lambda: version.wake(KEY))
