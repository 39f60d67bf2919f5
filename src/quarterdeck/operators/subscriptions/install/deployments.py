"""Applies the Deployments of a ClusterServiceVersion, with the configuration.

A Deployment that a faulty entry matches keeps the spec that was last applied, whole: somebody's
edits of it are undone. If it does not exist it is not created. Other Deployments go on.
"""

import asyncio
from collections.abc import Iterable, Sequence

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion, ConfigEntry
from quarterdeck.controller.metadata import key_of
from quarterdeck.kube import AlreadyExists, Forbidden, Invalid
from quarterdeck.operators.subscriptions.config.faults import ConfigFault, Lookup, config_faults
from quarterdeck.operators.subscriptions.config.merge import MergedDeployment
from quarterdeck.operators.subscriptions.config.refusals import refused_entries
from quarterdeck.operators.subscriptions.install.applied import last_applied
from quarterdeck.operators.subscriptions.install.desired import desired_deployment
from quarterdeck.operators.subscriptions.install.phase import DeploymentResult
from quarterdeck.operators.subscriptions.install.writers import Writers, prune
from quarterdeck.operators.subscriptions.names import owner_of
from quarterdeck.status import rollout


class DeploymentApplier:
    """Applies the Deployments of one ClusterServiceVersion."""

    def __init__(
        self,
        csv: ClusterServiceVersion,
        config: Sequence[ConfigEntry],
        lookup: Lookup,
        own: Writers,
        writers: Writers,
    ) -> None:
        """Write as the account of `writers`; `lookup` resolves what the config refers to."""
        self._csv = csv
        self._config = config
        self._lookup = lookup
        self._own = own.deployments
        self._deployments = writers.deployments

    async def apply(self, wanted: Iterable[MergedDeployment]) -> list[DeploymentResult]:
        """Apply these Deployments, and delete those of before."""
        results = []
        for one in wanted:
            results.append(await self._apply(one))
            await asyncio.sleep(0)  # A merge can take a while, and a faulty one waits for nothing.
        names = [Key(self._csv.metadata.namespace, one.name) for one in results]
        await prune(self._own, self._csv, names)
        return results

    async def _apply(self, wanted: MergedDeployment) -> DeploymentResult:
        live = self._own.get(Key(self._csv.metadata.namespace, wanted.name))
        faults = config_faults(wanted, self._config, self._lookup)
        if faults:
            return await self._keep(wanted.name, live, faults, [])
        try:
            live = await self._deployments.ensure(desired_deployment(self._csv, wanted))
        except (Forbidden, Invalid, AlreadyExists) as error:
            if live is not None and any(one.field == "spec.selector" for one in error.causes):
                # The selector cannot be changed: the watch wakes the key when it is gone.
                await self._own.delete(live, propagation="Background")
                return _recreated(wanted.name)
            causes = [(one.field, one.message) for one in error.causes]
            faults, refused = refused_entries(wanted, causes or [("", error.message)])
            return await self._keep(wanted.name, live, faults, refused)
        return result_of(self._csv, wanted.name, live)

    async def _keep(
        self, name: str, live: Object | None, faults: list[ConfigFault], refused: list[str]
    ) -> DeploymentResult:
        """Restore what was last applied, if somebody has changed it."""
        held = last_applied(live) if live is not None else None
        if held is not None:
            try:
                live = await self._deployments.ensure(held)
            except (Forbidden, Invalid, AlreadyExists) as error:
                refused = [*refused, error.message]
        return result_of(self._csv, name, live, faults, refused)


def result_of(
    csv: ClusterServiceVersion,
    name: str,
    live: Object | None,
    faults: Sequence[ConfigFault] = (),
    refused: Sequence[str] = (),
) -> DeploymentResult:
    """What came of a Deployment of the version, as it is now."""
    return DeploymentResult(
        name=name,
        is_applied=live is not None and owner_of(live) == key_of(csv),
        faults=tuple(faults),
        refused=tuple(refused),
        outcome=rollout.deployment(live) if live is not None else None,
        is_observed=live is None or not rollout.is_unobserved(live),
        version=live["metadata"]["resourceVersion"] if live is not None else "",
    )


def _recreated(name: str) -> DeploymentResult:
    message = "it is deleted and created again, because its selector changed"
    return DeploymentResult(
        name=name, is_applied=True, outcome=rollout.Waiting("DeploymentNotReady", message)
    )
