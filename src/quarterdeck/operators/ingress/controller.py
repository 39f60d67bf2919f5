"""Makes a router for each IngressController: what wakes it, and the order of writes."""

import msgspec

from quarterdeck.api.meta import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    INGRESS_CLASSES,
    PODS,
    SERVICES,
    Key,
    Object,
)
from quarterdeck.api.operator_v1 import INGRESS_CONTROLLERS, IngressController
from quarterdeck.controller import (
    DONE,
    Controller,
    Finalizer,
    Manager,
    Objects,
    Result,
    Selection,
    StatusWriter,
    Watch,
    key_of,
)
from quarterdeck.controller.metadata import labels_of
from quarterdeck.operators.ingress import names
from quarterdeck.operators.ingress.admission import (
    Admission,
    admission,
    is_made_by,
    name_is_free,
    taken,
    variables_fit,
)
from quarterdeck.operators.ingress.live_order import in_live_order
from quarterdeck.operators.ingress.log_format import FormatChecks
from quarterdeck.operators.ingress.logging.additions import Additions
from quarterdeck.operators.ingress.observed import Observed
from quarterdeck.operators.ingress.operands import Operands, desired_config_map, desired_operands
from quarterdeck.operators.ingress.parts import is_rolled_out
from quarterdeck.operators.ingress.report import report
from quarterdeck.operators.ingress.router_pod import logging_additions, router_variables
from quarterdeck.operators.ingress.settings import Settings
from quarterdeck.operators.ingress.status import desired_status, is_refused_anew, refused_status
from quarterdeck.status import Reporter

FINALIZER = "quarterdeck.dev/ingress"
WORKERS = 8
REFUSED_RETRY = 60.0
"""Seconds until a refused IngressController is looked at again: what refuses it may be gone."""

_ROUTERS = Selection(namespace=names.NAMESPACE)
_BY_CONTROLLER = "ingress-controller"


class IngressControllers:
    """The reconcile of IngressControllers."""

    def __init__(self, manager: Manager, settings: Settings) -> None:
        """Ask for the objects of the operator's own namespace and of the routers'."""
        self._manager = manager
        self._settings = settings
        self._formats = FormatChecks()
        self.controllers = manager.objects(
            INGRESS_CONTROLLERS,
            Selection(namespace=manager.home.namespace),
            writes=["status", "finalizer"],
        )
        by_owner = {_BY_CONTROLLER: names.labelled(names.OWNER)}
        self.deployments = manager.objects(DEPLOYMENTS, _ROUTERS, writes=["ensure", "delete"])
        self.config_maps = manager.objects(
            CONFIG_MAPS, _ROUTERS, indexes=by_owner, writes=["ensure", "delete"]
        )
        self.services = manager.objects(SERVICES, _ROUTERS, writes=["ensure", "delete"])
        self.classes = manager.objects(INGRESS_CLASSES, writes=["ensure", "delete"])
        self.pods = manager.objects(
            PODS,
            Selection(namespace=names.NAMESPACE, labels=names.ROUTER_PODS),
            indexes={_BY_CONTROLLER: names.labelled(names.POD_LABEL)},
        )
        self._finalizer = Finalizer(self.controllers, FINALIZER, self._clean_up)

    def watches(self) -> list[Watch]:
        """What wakes an IngressController: itself, and everything that was made for it."""
        namespace = self._manager.home.namespace
        to_owner = names.to_controller(namespace)
        return [
            Watch(self.controllers),
            Watch(self.deployments, to_owner),
            Watch(self.config_maps, to_owner),
            Watch(self.services, to_owner),
            Watch(self.classes, to_owner),
            Watch(self.pods, names.to_controller(namespace, names.POD_LABEL)),
        ]

    async def reconcile(self, key: Key) -> Result:
        """Make the objects of an IngressController as desired, and write its status."""
        controller = self.controllers.get(key)
        if controller is not None:
            controller = await self._finalizer.add_or_clean_up(controller)
        if controller is None:
            return DONE
        verdict, added = await self._admission(controller)
        seen = self._observe(controller, verdict)
        if verdict.admitted:
            await self._carry_out(seen, desired_operands(controller, self._settings, added))
            seen = self._observe(controller, verdict)
        return await self._write_status(seen)

    async def _admission(self, controller: IngressController) -> tuple[Admission, Additions | None]:
        """Whether the spec can be carried out, and what its logging adds to the pods.

        By what the spec says, by HAProxy, and by the objects that are there.
        """
        verdict = admission(controller)
        if verdict.admitted:
            verdict = name_is_free(controller, self._rivals(controller))
        if not verdict.admitted:
            return verdict, None
        added = logging_additions(controller, self._settings)
        verdict = variables_fit(router_variables(controller, added, self._settings))
        if verdict.admitted:
            verdict = await self._formats.admission(added.environment)
        if not verdict.admitted:
            return verdict, added
        maps = (self.config_maps.get(Key(names.NAMESPACE, each)) for each in added.config_maps)
        named = (obj for _, obj in self._named(controller.metadata.name))
        found = [*named, *(one for one in maps if one is not None)]
        return taken(found, self._manager.field_manager), added

    def _rivals(self, controller: IngressController) -> list[IngressController]:
        namespace = controller.metadata.namespace
        keys = (Key(namespace, name) for name in names.rivals(controller.metadata.name))
        return [found for key in keys if (found := self.controllers.get(key)) is not None]

    def _observe(self, controller: IngressController, verdict: Admission) -> Observed:
        name = controller.metadata.name
        service = names.services(name).get(controller.strategy.type)
        return Observed(
            controller=controller,
            admission=verdict,
            deployment=self.deployments.get(names.deployment(name)),
            service=self.services.get(service) if service else None,
            pods=tuple(self.pods.by_index(_BY_CONTROLLER, name)),
        )

    async def _carry_out(self, seen: Observed, wanted: Operands) -> None:
        """Write what differs.

        A ConfigMap comes before the Deployment whose pods mount it, except for the first time:
        the Deployment owns it. A ConfigMap that is no longer wanted goes when no pod mounts it.
        """
        if seen.deployment is not None:
            await self._ensure_config_maps(seen, wanted, seen.deployment)
        deployment = await self.deployments.ensure(
            in_live_order(wanted.deployment, seen.deployment)
        )
        if seen.deployment is None:
            await self._ensure_config_maps(seen, wanted, deployment)
        if wanted.service is not None:
            await self.services.ensure(wanted.service)
        await self.classes.ensure(wanted.ingress_class)
        name = seen.controller.metadata.name
        for key in names.services(name).values():
            if wanted.service is None or key != key_of(wanted.service):
                await self.services.ensure_absent(key)
        if is_rolled_out(msgspec.structs.replace(seen, deployment=deployment)):
            for old in self.config_maps.by_index(_BY_CONTROLLER, name):
                if key_of(old).name not in wanted.config_maps and self._made(old):
                    await self.config_maps.ensure_absent(key_of(old))

    async def _ensure_config_maps(
        self, seen: Observed, wanted: Operands, deployment: Object
    ) -> None:
        for name, data in wanted.config_maps.items():
            await self.config_maps.ensure(
                desired_config_map(seen.controller, deployment, name, data)
            )

    async def _write_status(self, seen: Observed) -> Result:
        now = self._manager.now()
        found = desired_status(seen, self._settings, now)
        if await self.controllers.set_status(seen.controller, found.status):
            self._announce(seen)
        waits = [] if seen.admission.admitted else [REFUSED_RETRY]
        if found.valid_until is not None:
            # One second more: the server's times have whole seconds.
            waits.append(max(0.0, (found.valid_until - now).total_seconds()) + 1.0)
        return Result(requeue_after=min(waits)) if waits else DONE

    def _announce(self, seen: Observed) -> None:
        """Record an event about a spec that was not refused like this before."""
        if is_refused_anew(seen):
            verdict = seen.admission
            self._manager.events.event(
                seen.controller, "Warning", verdict.reason, verdict.message, action="Reconcile"
            )

    async def _clean_up(self, controller: IngressController) -> bool:
        """Delete everything that was made for an IngressController; whether nothing is left."""
        name, gone = controller.metadata.name, True
        maps = self.config_maps.by_index(_BY_CONTROLLER, name)
        for objects, obj in [*self._named(name), *((self.config_maps, one) for one in maps)]:
            if self._made(obj) and labels_of(obj).get(names.OWNER, name) == name:
                gone &= await objects.ensure_absent(key_of(obj))
        return gone

    def _named(self, name: str) -> list[tuple[Objects[Object], Object]]:
        """The objects that have the names of those of this IngressController, whoever made them."""
        keys = [
            (self.deployments, names.deployment(name)),
            *((self.services, key) for key in names.services(name).values()),
            (self.classes, names.ingress_class(name)),
        ]
        return [(objects, obj) for objects, key in keys if (obj := objects.get(key)) is not None]

    def _made(self, obj: Object) -> bool:
        return is_made_by(obj, self._manager.field_manager)


def setup(manager: Manager, settings: Settings) -> None:
    """Add the controller of IngressControllers and the reporter of the operator."""
    ingress = IngressControllers(manager, settings)
    manager.add(
        Controller(
            "ingress-controller",
            ingress.reconcile,
            ingress.watches(),
            workers=WORKERS,
            status=StatusWriter(ingress.controllers, refused_status),
        )
    )
    controllers = ingress.controllers
    Reporter(
        manager,
        "ingress",
        lambda _now: report(controllers.all(), settings),
        [Watch(controllers)],
    )
