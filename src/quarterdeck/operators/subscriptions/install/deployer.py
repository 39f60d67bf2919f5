"""Applies the Deployments of ClusterServiceVersions, and does nothing for those that are settled.

A roll-out wakes its version several times. What was applied last, and from what, is remembered, so
that such a reconcile merges and compares nothing.
"""

from collections.abc import Mapping, Sequence

import msgspec

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion, ConfigEntry
from quarterdeck.controller.metadata import key_of
from quarterdeck.operators.subscriptions.config.faults import ConfigFault, Lookup, config_faults
from quarterdeck.operators.subscriptions.config.merge import merged
from quarterdeck.operators.subscriptions.config.references import references
from quarterdeck.operators.subscriptions.groups import Target
from quarterdeck.operators.subscriptions.install.cluster_proxy import ClusterProxy
from quarterdeck.operators.subscriptions.install.config_objects import ConfigObjects
from quarterdeck.operators.subscriptions.install.deployments import DeploymentApplier, result_of
from quarterdeck.operators.subscriptions.install.desired import named_deployments
from quarterdeck.operators.subscriptions.install.phase import DeploymentResult
from quarterdeck.operators.subscriptions.install.writers import Writers
from quarterdeck.status import rollout

REVISION = "deployment.kubernetes.io/revision"
"""The annotation that the controller of Deployments writes in each roll-out."""


class DeploymentInputs(msgspec.Struct, frozen=True):
    """What the desired Deployments of a version follow from."""

    uid: str
    generation: int
    config: Sequence[ConfigEntry]
    proxy: Mapping[str, str]
    target: Target


class Deployer:
    """Applies Deployments with the configuration."""

    def __init__(
        self, writers: Writers, proxy: ClusterProxy, config_objects: ConfigObjects
    ) -> None:
        self._own = writers
        self._proxy = proxy
        self._config_objects = config_objects
        self._settled: dict[Key, tuple[DeploymentInputs, list[Object]]] = {}

    async def apply(
        self,
        csv: ClusterServiceVersion,
        config: Sequence[ConfigEntry],
        target: Target,
        writers: Writers,
    ) -> list[DeploymentResult]:
        """Apply the Deployments as the account of `writers`; what came of each."""
        key, variables = key_of(csv), self._proxy.variables()
        inputs = DeploymentInputs(
            csv.metadata.uid, csv.metadata.generation, config, variables, target
        )
        lookup = self._config_objects.lookup(key.namespace)
        live = self._live(csv)
        if live is not None and self._is_settled(key, inputs, live, lookup):
            self._settled[key] = inputs, live
            return [result_of(csv, one["metadata"]["name"], one) for one in live]
        self._settled.pop(key, None)
        # One after the other: together, the merged ones can take very much memory.
        wanted = (
            merged(one, config, variables, target.annotations) for one in named_deployments(csv)
        )
        results = await DeploymentApplier(csv, config, lookup, self._own, writers).apply(wanted)
        self._remember(csv, inputs, results)
        return results

    def _remember(
        self, csv: ClusterServiceVersion, inputs: DeploymentInputs, results: list[DeploymentResult]
    ) -> None:
        """Remember what was applied, unless somebody has changed it meanwhile."""
        live = self._live(csv)
        if live is None or not all(one.is_as_desired for one in results):
            return
        versions = [one["metadata"]["resourceVersion"] for one in live]
        if versions == [one.version for one in results]:
            self._settled[key_of(csv)] = inputs, live

    def faults(
        self, csv: ClusterServiceVersion, config: Sequence[ConfigEntry]
    ) -> list[ConfigFault]:
        """The faults of the config that are found without the API server."""
        lookup = self._config_objects.lookup(csv.metadata.namespace)
        return [
            fault
            for one in named_deployments(csv)
            for fault in config_faults(merged(one, config), config, lookup)
        ]

    def forget(self, csv: Key) -> None:
        """Remember nothing about this version."""
        self._settled.pop(csv, None)

    def _live(self, csv: ClusterServiceVersion) -> list[Object] | None:
        """The Deployments of the version as they are; None if one is missing."""
        namespace = csv.metadata.namespace
        found = [
            self._own.deployments.get(Key(namespace, one.name)) for one in named_deployments(csv)
        ]
        live = [one for one in found if one is not None]
        return live if len(live) == len(found) else None

    def _is_settled(
        self, key: Key, inputs: DeploymentInputs, live: list[Object], lookup: Lookup
    ) -> bool:
        known = self._settled.get(key)
        if known is None or known[0] != inputs:
            return False
        if any(lookup(one) for entry in inputs.config for one in references(entry)):
            return False
        return not any(map(applied_part_changed, known[1], live))


def applied_part_changed(old: Object, new: Object) -> bool:
    """Whether anything but the status of a Deployment differs, and what belongs to a roll-out."""
    was, now = old["metadata"], new["metadata"]
    fields = ("uid", "labels", "ownerReferences", "managedFields", "deletionTimestamp")
    if any(was.get(field) != now.get(field) for field in fields) or old["spec"] != new["spec"]:
        return True
    return _annotations(was) != _annotations(now)


def deployment_changed(old: Object | None, new: Object | None) -> bool:
    """Whether a change of a Deployment counts: of what was applied, or of how far it is.

    Its controller writes it several times in each roll-out.
    """
    if old is None or new is None or applied_part_changed(old, new):
        return True
    was, now = rollout.deployment(old), rollout.deployment(new)
    return was != now or rollout.is_unobserved(old) != rollout.is_unobserved(new)


def _annotations(meta: Object) -> Object:
    found = meta.get("annotations") or {}
    return {name: value for name, value in found.items() if name != REVISION}
