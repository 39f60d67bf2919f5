"""The controller of InstallPlans: installs the bundle of an approved plan.

All checks come first, so that a plan that cannot be carried out changes nothing. Then follow the
definitions, the ClusterServiceVersion and the Services; each step can be repeated after a crash.
"""

from collections.abc import Callable
from datetime import datetime

from quarterdeck.api.conditions import Condition
from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operators_v1alpha1 import (
    SUBSCRIPTIONS,
    ClusterServiceVersion,
    InstallPlan,
    InstallPlanStatus,
    Subscription,
)
from quarterdeck.controller import DONE, Controller, Manager, Objects, Result, Watch
from quarterdeck.controller.metadata import controller_of, key_of
from quarterdeck.kube import AlreadyExists, Forbidden, Invalid
from quarterdeck.operators.subscriptions.catalog.installable import (
    Installable,
    NotInstallable,
    installable,
)
from quarterdeck.operators.subscriptions.catalog.model import Bundle
from quarterdeck.operators.subscriptions.install.desired import desired_service, without_nulls
from quarterdeck.operators.subscriptions.install.writers import Writers
from quarterdeck.operators.subscriptions.names import (
    MANAGED,
    PACKAGE,
    PACKAGE_VERSION,
    REPLACES,
    SUBSCRIPTION,
)
from quarterdeck.status import set_condition
from quarterdeck.versions import parse_version

RETRY_INTERVAL = 30.0

FindBundle = Callable[[InstallPlan, Subscription], Bundle | str | None]
"""The bundle of a plan, or why there is none; None while its catalog is not read yet."""


class CannotInstall(Exception):  # noqa: N818 - reads as what it is
    """Why a plan cannot be carried out, for people."""


class Plans:
    """Reconciles InstallPlans."""

    def __init__(
        self,
        manager: Manager,
        writers: Writers,
        plans: Objects[InstallPlan],
        subscriptions: Objects[Subscription],
        csvs: Objects[ClusterServiceVersion],
        definitions: Objects[Object],
        find_bundle: FindBundle,
    ) -> None:
        self._manager = manager
        self._writers = writers
        self._plans = plans
        self._subscriptions = subscriptions
        self._csvs = csvs
        self._definitions = definitions
        self._find_bundle = find_bundle
        self.controller = Controller("install-plan", self._reconcile, [Watch(plans)], workers=4)
        manager.add(self.controller)

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
            await self._install(plan, subscription, bundle)
        except (CannotInstall, Forbidden, Invalid, AlreadyExists) as error:
            text = getattr(error, "message", "") or str(error)
            await self._write(plan, "Failed", text)
            return Result(requeue_after=RETRY_INTERVAL)
        await self._write(plan, "Complete", "")
        return DONE

    async def _install(self, plan: InstallPlan, subscription: Subscription, bundle: Bundle) -> None:
        content = installable(bundle)
        if isinstance(content, NotInstallable):
            raise CannotInstall(f"{bundle.name} cannot be installed here: {content.why}")
        key = Key(plan.metadata.namespace, bundle.name)
        self._check_csv(key, subscription)
        for one in content.definitions:
            self._check_definition(one, bundle)
        for one in content.definitions:
            await self._ensure_definition(one, bundle)
        csv = self._csvs.get(key)
        if csv is None:
            csv = await self._csvs.create(
                desired_csv(content, plan.metadata.namespace, subscription, plan)
            )
        for service in content.services:
            await self._writers.services.ensure(desired_service(csv, service))

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

    def _check_definition(self, definition: Object, bundle: Bundle) -> None:
        name = definition["metadata"]["name"]
        live = self._definitions.get(Key("", name))
        owner = _annotation(live, PACKAGE)
        if live is not None and owner != bundle.package:
            raise CannotInstall(
                f"CustomResourceDefinition {name} belongs to the package {owner or 'of another'}"
            )

    async def _ensure_definition(self, definition: Object, bundle: Bundle) -> None:
        name = definition["metadata"]["name"]
        live = self._definitions.get(Key("", name))
        newest = parse_version(_annotation(live, PACKAGE_VERSION))
        if newest is not None and newest > bundle.version:
            return  # A newer version of the operator is in another namespace.
        try:
            await self._definitions.ensure(desired_definition(definition, bundle))
        except AlreadyExists as error:
            raise CannotInstall(
                f"CustomResourceDefinition {name} exists, and was not installed by a Subscription; "
                "delete it, or let the other operator have it"
            ) from error

    async def _write(self, plan: InstallPlan, phase: str, message: str) -> None:
        now = self._manager.now()
        live = self._plans.get(key_of(plan)) or plan
        await self._plans.set_status(live, desired_status(live, phase, message, now))


def desired_definition(definition: Object, bundle: Bundle) -> Object:
    """The CustomResourceDefinition, marked with its package."""
    meta = definition["metadata"]
    version = bundle.version
    text = f"{version.major}.{version.minor}.{version.patch}"
    text += f"-{'.'.join(version.pre)}" if version.pre else ""
    metadata = {
        "name": meta["name"],
        "labels": {**(meta.get("labels") or {}), **MANAGED},
        "annotations": {
            **(meta.get("annotations") or {}),
            PACKAGE: bundle.package,
            PACKAGE_VERSION: text,
        },
    }
    return {"metadata": metadata, "spec": without_nulls(definition["spec"])}


def desired_csv(
    content: Installable, namespace: str, subscription: Subscription, plan: InstallPlan
) -> Object:
    """The ClusterServiceVersion of the bundle, as it is created."""
    meta = content.csv["metadata"]
    annotations = {
        **without_nulls(meta.get("annotations") or {}),
        SUBSCRIPTION: subscription.metadata.name,
    }
    if plan.spec.replaces:
        annotations[REPLACES] = plan.spec.replaces
    return {
        "metadata": {
            "name": meta["name"],
            "namespace": namespace,
            "labels": without_nulls(meta.get("labels") or {}),
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
        observed_generation=plan.metadata.generation,
        conditions=set_condition(plan.status.conditions, installed, now),
    )


def _annotation(live: Object | None, name: str) -> str:
    found: str = ((live or {"metadata": {}})["metadata"].get("annotations") or {}).get(name, "")
    return found
