"""The controller of InstallPlans: installs the bundle of an approved plan.

All checks come first, so that a plan that cannot be carried out changes nothing. Then follow the
definitions and the ClusterServiceVersion; each step can be repeated after a crash. The definitions
are written by the operator, all else as the account of the OperatorGroup. The Services are recorded
in the ClusterServiceVersion, whose controller creates them.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Literal

import msgspec

from quarterdeck.api.conditions import Condition
from quarterdeck.api.meta import Key, Object
from quarterdeck.api.nulls import without_nulls
from quarterdeck.api.operators_v1 import OperatorGroup
from quarterdeck.api.operators_v1alpha1 import (
    SUBSCRIPTIONS,
    InstallPlan,
    InstallPlanStatus,
    Subscription,
)
from quarterdeck.controller import DONE, Controller, Manager, Objects, Result, Watch
from quarterdeck.controller.faults import readable
from quarterdeck.controller.metadata import controller_of, key_of
from quarterdeck.kube import AlreadyExists, ApiError, Forbidden, Invalid
from quarterdeck.operators.subscriptions.announce import StatusEvent, record
from quarterdeck.operators.subscriptions.catalog.installable import (
    Installable,
    NotInstallable,
    installable,
)
from quarterdeck.operators.subscriptions.catalog.model import Bundle
from quarterdeck.operators.subscriptions.definitions import CannotInstall, DefinitionWriter
from quarterdeck.operators.subscriptions.groups import GroupFault, Target
from quarterdeck.operators.subscriptions.install.services import services_record
from quarterdeck.operators.subscriptions.install.targets import Targets
from quarterdeck.operators.subscriptions.install.writers import Impersonated, Writers
from quarterdeck.operators.subscriptions.names import (
    MANAGED,
    REPLACES,
    SERVICES,
    SUBSCRIPTION,
    owner_of,
    without_reserved,
)
from quarterdeck.status import set_condition

RETRY_INTERVAL = 30.0

FindBundle = Callable[[InstallPlan, Subscription], Bundle | str | None]
"""The bundle of a plan, or why there is none; None while its catalog is not read yet."""


class Plans:
    """Reconciles InstallPlans."""

    def __init__(
        self,
        manager: Manager,
        writers: Writers,
        impersonated: Impersonated,
        targets: Targets,
        plans: Objects[InstallPlan],
        subscriptions: Objects[Subscription],
        definitions: Objects[Object],
        find_bundle: FindBundle,
    ) -> None:
        self._manager = manager
        self._own = writers
        self._impersonated = impersonated
        self._targets = targets
        self._plans = plans
        self._subscriptions = subscriptions
        self._csvs = writers.csvs
        self._definitions = DefinitionWriter(definitions, writers.csvs, manager.home.namespace)
        self._find_bundle = find_bundle
        watches = [Watch(plans), Watch(targets.groups, self._of_namespace)]
        self.controller = Controller("install-plan", self._reconcile, watches, workers=4)
        manager.add(self.controller)

    def _of_namespace(self, group: OperatorGroup) -> Iterable[Key]:
        found = self._plans.by_index("namespace", group.metadata.namespace)
        return [key_of(plan) for plan in found]

    async def _reconcile(self, key: Key) -> Result:
        plan = self._plans.get(key)
        if plan is None or plan.metadata.deletion_timestamp or plan.status.phase == "Complete":
            return DONE
        owner = controller_of(plan)
        if owner is None or owner.kind != SUBSCRIPTIONS.kind:
            await self._write(plan, "Failed", "no Subscription owns it; delete it")
            return DONE
        subscription = self._subscriptions.get(Key(key.namespace, owner.name))
        if subscription is None or subscription.metadata.uid != owner.uid:
            return DONE  # The garbage collector deletes it.
        if not plan.spec.approved:
            await self._write(plan, "RequiresApproval", "set spec.approved to true to install it")
            return DONE
        bundle = self._find_bundle(plan, subscription)
        if bundle is None:
            return DONE
        try:
            if isinstance(bundle, str):
                raise CannotInstall(bundle)
            if not await self._install(plan, subscription, bundle):
                return DONE  # The OperatorGroup is not read yet; that wakes the key.
        except (CannotInstall, Forbidden, Invalid, AlreadyExists) as error:
            await self._write(plan, "Failed", _with_remedy(error))
            return Result(requeue_after=RETRY_INTERVAL)
        await self._write(plan, "Complete", "")
        return DONE

    async def _install(self, plan: InstallPlan, subscription: Subscription, bundle: Bundle) -> bool:
        """Install the bundle; False while it is not known as which account."""
        content = installable(bundle)
        if isinstance(content, NotInstallable):
            raise CannotInstall(f"{bundle.name} cannot be installed here: {content.why}")
        key = Key(plan.metadata.namespace, bundle.name)
        target = await self._targets.confirmed_target(key.namespace)
        if target is None:
            return False
        if isinstance(target, GroupFault):
            raise CannotInstall(target.message)
        self._check_csv(key, subscription)
        self._check_replaced(Key(key.namespace, plan.spec.replaces or ""), subscription)
        for one in content.services:
            self._check_service(Key(key.namespace, one["metadata"]["name"]), bundle.name, plan)
        source = Key(plan.spec.source_namespace or "", plan.spec.source or "")
        for one in content.definitions:
            self._definitions.check(one, bundle, source, key.namespace)
        await self._remember(plan, target)
        writers = await self._impersonated.writers(target)
        wanted = desired_csv(content, key.namespace, subscription, plan)
        await self._rehearse(wanted, content, bundle, source, writers)
        for one in content.definitions:
            await self._definitions.ensure(one, bundle, source)
        if self._csvs.get(key) is None:
            await writers.csvs.create(wanted)
        return True

    async def _remember(self, plan: InstallPlan, target: Target) -> None:
        """Record as which account it is carried out, before the first write as that account."""
        account = target.account or None
        live = self._plans.get(key_of(plan)) or plan
        if account != live.status.installed_as:
            status = msgspec.structs.replace(live.status, installed_as=account)
            await self._plans.set_status(live, status)

    async def _rehearse(
        self, csv: Object, content: Installable, bundle: Bundle, source: Key, writers: Writers
    ) -> None:
        """Let the server check everything that is new, so that nothing is half done."""
        namespace = csv["metadata"]["namespace"]
        for one in content.definitions:
            await self._definitions.rehearse(one, bundle, source)
        if self._csvs.get(key_of(csv)) is None:
            await writers.csvs.rehearse_create(csv)
        for one in content.services:
            key = Key(namespace, one["metadata"]["name"])
            if self._own.services.get(key) is None:
                meta = {"name": key.name, "namespace": namespace, "labels": MANAGED}
                await writers.services.rehearse_create({**one, "metadata": meta})

    def _check_csv(self, key: Key, subscription: Subscription) -> None:
        found = self._csvs.get(key)
        if found is None:
            return
        owner = found.metadata.annotations.get(SUBSCRIPTION)
        if owner != subscription.metadata.name:
            raise CannotInstall(
                f"there is a ClusterServiceVersion {key.name} already, which belongs to "
                f"{owner or 'somebody else'}; delete it first"
            )

    def _check_replaced(self, key: Key, subscription: Subscription) -> None:
        """The replaced version is deleted in the end: a plan cannot name that of another."""
        found = self._csvs.get(key)
        if found is None:
            return
        owner = found.metadata.annotations.get(SUBSCRIPTION)
        if owner != subscription.metadata.name:
            raise CannotInstall(
                f"spec.replaces: {key.name!r}: it belongs to {owner or 'somebody else'}; "
                "delete this plan"
            )

    def _check_service(self, key: Key, csv: str, plan: InstallPlan) -> None:
        live = self._own.services.get(key)
        owner = owner_of(live) if live is not None else None
        mine = {Key(key.namespace, name) for name in (csv, plan.spec.replaces or csv)}
        if live is None or owner in mine:
            return
        if owner is None or self._csvs.get(owner) is not None:
            who = owner.name if owner else "somebody else"
            raise CannotInstall(f"Service {key.name} belongs to {who}; delete or rename it")

    async def _write(self, plan: InstallPlan, phase: str, message: str) -> None:
        message = readable(message)
        now = self._manager.now()
        live = self._plans.get(key_of(plan)) or plan
        if await self._plans.set_status(live, desired_status(live, phase, message, now)):
            level: Literal["Normal", "Warning"] = "Warning" if phase == "Failed" else "Normal"
            names = ", ".join(plan.spec.cluster_service_version_names)
            made = StatusEvent(type=level, reason=REASONS[phase], note=f"{names}: {message}")
            record(self._manager.events, plan, [made], "Install")


REASONS = {
    "RequiresApproval": "RequiresApproval",
    "Complete": "Installed",
    "Failed": "InstallFailed",
}
"""The reasons of the events about the phases."""


def desired_csv(
    content: Installable, namespace: str, subscription: Subscription, plan: InstallPlan
) -> Object:
    """The ClusterServiceVersion of the bundle, as it is created."""
    meta = content.csv["metadata"]
    annotations = {
        **without_reserved(meta.get("annotations")),
        SUBSCRIPTION: subscription.metadata.name,
    }
    if plan.spec.replaces:
        annotations[REPLACES] = plan.spec.replaces
    if content.services:
        record = services_record(content.services)
        if record is None:
            raise CannotInstall("the Services of the bundle are too long; make them shorter")
        annotations[SERVICES] = record
    return {
        "metadata": {
            "name": meta["name"],
            "namespace": namespace,
            "labels": without_reserved(meta.get("labels")),
            "annotations": annotations,
        },
        "spec": without_nulls(content.csv["spec"]),
    }


def desired_status(plan: InstallPlan, phase: str, message: str, now: datetime) -> InstallPlanStatus:
    """The status of the InstallPlan."""
    installed = Condition(
        type="Installed",
        status="True" if phase == "Complete" else "False",
        reason=phase,
        message=message,
        last_transition_time=now,
    )
    return InstallPlanStatus(
        phase=phase,
        message=message or None,
        installed_as=plan.status.installed_as,
        observed_generation=plan.metadata.generation,
        conditions=set_condition(plan.status.conditions, installed, now),
    )


def _with_remedy(error: CannotInstall | ApiError) -> str:
    match error:
        case CannotInstall():
            return str(error)
        case Forbidden():
            remedy = "give the account of the OperatorGroup this right, or change the bundle"
        case AlreadyExists():
            remedy = "delete it, or rename one of the two"
        case _:
            remedy = "correct the bundle"
    return f"{error.message}; {remedy}"
