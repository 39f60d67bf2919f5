"""The operators, one package each, and where to find them by name.

Nothing is imported until an operator is asked for.
"""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from quarterdeck.controller import Manager


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's names."""

    setup: str
    """`module:function`; given a Manager, and the settings where the operator has some."""
    namespace: str
    """Where it runs unless POD_NAMESPACE says otherwise; its Lease is there."""
    lease: str
    """The name of its Lease, ServiceAccount and Deployment; empty where none is elected."""
    settings: str = ""
    """`module:struct` of what can be set for it; `quarterdeck.cli.run_options` has the options."""


OPERATORS = {
    "cluster-version": Registered(
        setup="quarterdeck.operators.cluster_version.controller:setup",
        namespace="openshift-cluster-version",
        lease="cluster-version-operator",
        settings="quarterdeck.operators.cluster_version.settings:Settings",
    ),
    "sample": Registered(
        setup="quarterdeck.operators.sample.controller:setup",
        namespace="quarterdeck-sample",
        lease="sample-operator",
    ),
    "staleness": Registered(
        setup="quarterdeck.operators.staleness.controller:setup",
        namespace="kube-system",
        lease="",
        settings="quarterdeck.operators.staleness.settings:Settings",
    ),
}


def field_manager(name: str) -> str:
    """Whose fields an operator's are, on the objects that it applies."""
    return f"quarterdeck-{name}"


def set_up(name: str, options: Mapping[str, Any], manager: "Manager") -> None:
    """Import an operator and let it add its controllers; options are fields of its settings."""
    registered = OPERATORS[name]
    setup: Callable[..., None] = _load(registered.setup)
    if registered.settings:
        setup(manager, _load(registered.settings)(**options))
    else:
        setup(manager)


def _load(where: str) -> Any:
    module, _, attribute = where.partition(":")
    return getattr(importlib.import_module(module), attribute)
