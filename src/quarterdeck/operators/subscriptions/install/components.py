"""Applies what the Deployments of a ClusterServiceVersion need: accounts, roles, Services.

Everything is checked first: the OperatorGroup, the requirements, and whose the objects are.
"""

import msgspec

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion, InstallPlan
from quarterdeck.controller import Objects
from quarterdeck.controller.metadata import key_of
from quarterdeck.kube import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
from quarterdeck.operators.subscriptions.catalog.installable import (
    repeated_deployments,
    too_many_deployments,
)
from quarterdeck.operators.subscriptions.groups import GroupFault, Target, mode_fault
from quarterdeck.operators.subscriptions.install.desired import named_deployments
from quarterdeck.operators.subscriptions.install.needs import Needs
from quarterdeck.operators.subscriptions.install.ownership import taken
from quarterdeck.operators.subscriptions.install.phase import Phase, PhaseResult
from quarterdeck.operators.subscriptions.install.replacement import replaces
from quarterdeck.operators.subscriptions.install.rights import (
    VersionRights,
    apply_rights,
    desired_rights,
)
from quarterdeck.operators.subscriptions.install.services import desired_services
from quarterdeck.operators.subscriptions.install.targets import Targets
from quarterdeck.operators.subscriptions.install.writers import Impersonated, Writers
from quarterdeck.operators.subscriptions.names import REPLACES


class Components:
    """Applies everything but the Deployments."""

    def __init__(
        self,
        writers: Writers,
        impersonated: Impersonated,
        targets: Targets,
        plans: Objects[InstallPlan],
        needs: Needs,
    ) -> None:
        self._own = writers
        self._csvs = writers.csvs
        self._impersonated = impersonated
        self._targets = targets
        self._plans = plans
        self._needs = needs

    async def apply(
        self, csv: ClusterServiceVersion
    ) -> tuple[Target, Writers] | PhaseResult | None:
        """The target, and who writes the Deployments; the phase if they cannot follow.

        None while something is not read yet; that wakes the key.
        """
        target = await self._target(csv)
        if target is None:
            return None
        if isinstance(target, GroupFault):
            return PhaseResult(phase=Phase.FAILED, reason=target.reason, message=target.message)
        message = too_many_deployments(csv)
        if repeated := repeated_deployments(csv):
            message = f"several Deployments have the name {', '.join(repeated)}; rename them"
        if message:
            return PhaseResult(phase=Phase.FAILED, reason="InvalidInstallStrategy", message=message)
        missing = await self._needs.missing(csv)
        if missing is None:
            return None
        if missing:
            return PhaseResult(
                phase=Phase.PENDING, reason="RequirementsNotMet", message="; ".join(missing)
            )
        rights, services = desired_rights(csv, target), desired_services(csv)
        if found := self._taken(csv, rights, services):
            return PhaseResult(
                phase=Phase.FAILED, reason="ComponentConflict", message="; ".join(found)
            )
        await self._remember(csv, target)
        writers = await self._impersonated.writers(target)
        try:
            await apply_rights(csv, rights, self._own, writers)
            for service in services:
                await writers.services.ensure(service)
        except Conflict as error:
            if not isinstance(error, AlreadyExists):
                raise
            return _failed(error)
        except (Forbidden, Invalid, NotFound) as error:
            return _failed(error)
        return target, writers

    async def _remember(self, csv: ClusterServiceVersion, target: Target) -> None:
        """Record as which account it is installed, before the first write as that account.

        Without the OperatorGroup it would be installed with our rights from then on. Only a group
        that names no account lifts that.
        """
        account = target.account or None
        live = self._csvs.get(key_of(csv)) or csv
        if account != live.status.installed_as:
            status = msgspec.structs.replace(live.status, installed_as=account)
            await self._csvs.set_status(live, status)

    async def _target(self, csv: ClusterServiceVersion) -> Target | GroupFault | None:
        """The target, confirmed by the server before the first write for a version."""
        namespace = csv.metadata.namespace
        is_new = csv.status.phase is None
        found: Target | GroupFault | None = self._targets.target(namespace)
        if is_new:
            found = await self._targets.confirmed_target(namespace)
        if isinstance(found, Target):
            return mode_fault(found, csv.spec.install_modes) or found
        return found

    def _taken(
        self, csv: ClusterServiceVersion, rights: VersionRights, services: list[Object]
    ) -> list[str]:
        namespace = csv.metadata.namespace
        wanted = [
            *rights.wanted(self._own),
            *((self._own.services, key_of(one)) for one in services),
            *((self._own.deployments, Key(namespace, one.name)) for one in named_deployments(csv)),
        ]
        before = self._csvs.get(Key(namespace, csv.metadata.annotations.get(REPLACES, "")))
        replaced = None
        if before is not None:
            plans = self._plans.by_index("namespace", namespace)
            replaced = key_of(before) if replaces(csv, before, plans) else None
        return taken(csv, wanted, lambda owner: self._csvs.get(owner) is not None, replaced)


def _failed(error: ApiError) -> PhaseResult:
    return PhaseResult(
        phase=Phase.FAILED, reason="InstallComponentFailed", message=error.message or str(error)
    )
