"""Reads and writes metal3 in a cluster, for the operator that manages it.

    operand = Operand(group, manager, role, deadline)
    group.add(Controller("metal3", reconcile, operand.watches, at_start=[PROVISIONING_KEY]))

    async def reconcile(_: Key) -> Result:
        state = await operand.reconcile(decide)

The operator decides whether the Deployment is its own (`handover`). The rest is the same for both.
`part` adds the controller.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec

from quarterdeck.api.meta import CONFIG_MAPS, DEPLOYMENTS, PODS, SECRETS, Key, Object
from quarterdeck.api.metal3_v1alpha1 import PROVISIONINGS, Provisioning
from quarterdeck.controller import Manager, Selection, Watch, to_singleton
from quarterdeck.controller.group import Group
from quarterdeck.kube import AlreadyExists, Forbidden, LabelSelector, NotFound
from quarterdeck.log import get_logger
from quarterdeck.metal3.deployment import OPERAND, desired_deployment, template_hash
from quarterdeck.metal3.handover import HandoverDecision, Ownership, ownership_of
from quarterdeck.metal3.images import MissingImages, images_in
from quarterdeck.metal3.names import (
    BAREMETAL_IMAGES,
    BAREMETAL_MANAGER,
    BAREMETAL_OWNS,
    DEPLOYMENT_KEY,
    MACHINE_API_IMAGES,
    MACHINE_API_MANAGER,
    MACHINE_API_OWNS,
    NAMESPACE,
    PROVISIONING_KEY,
    SECRET_KEY,
)
from quarterdeck.metal3.password import PasswordMissing, check_secret, new_secret
from quarterdeck.metal3.progress import APPLYING, progress
from quarterdeck.metal3.state import State, StateReason
from quarterdeck.metal3.validation import InvalidValue, faults
from quarterdeck.metal3.validity import described, desired_status

log = get_logger("metal3")


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two operators, and the other one."""

    annotation: str
    """By which it says that it manages the Deployment."""
    others_annotation: str
    others_field_manager: str
    images: Key
    """The ConfigMap with the images of its release."""


MACHINE_API_ROLE = Role(
    annotation=MACHINE_API_OWNS,
    others_annotation=BAREMETAL_OWNS,
    others_field_manager=BAREMETAL_MANAGER,
    images=MACHINE_API_IMAGES,
)
BAREMETAL_ROLE = Role(
    annotation=BAREMETAL_OWNS,
    others_annotation=MACHINE_API_OWNS,
    others_field_manager=MACHINE_API_MANAGER,
    images=BAREMETAL_IMAGES,
)

Decide = Callable[[Ownership | None], Awaitable[HandoverDecision]]
"""Decides by the annotations of the Deployment; raises `CannotDecide`."""


class CannotDecide(Exception):  # noqa: N818 - reads as what it is
    """It cannot be read who manages metal3."""


class Operand:
    """metal3, for one of the two operators."""

    def __init__(self, group: Group, manager: Manager, role: Role, deadline: timedelta) -> None:
        """Ask for the objects in the group, so that nothing is watched while it is stopped."""
        self._role = role
        self._deadline = deadline
        self._events = manager.events
        self._now = manager.now
        self._ran_with: Object | None = None
        # Optional: a release may install the machine API operator before the resource type.
        self._provisionings = group.objects(
            PROVISIONINGS, Selection(name=PROVISIONING_KEY.name, optional=True), writes=["status"]
        )
        self._deployments = group.objects(
            DEPLOYMENTS, _named(DEPLOYMENT_KEY), writes=["create", "ensure", "claim"]
        )
        self._secrets = group.objects(SECRETS, _named(SECRET_KEY), writes=["create"])
        self._config_maps = group.objects(CONFIG_MAPS, _named(role.images))
        labelled = LabelSelector(match_labels=OPERAND)
        self._pods = group.objects(PODS, Selection(namespace=NAMESPACE, labels=labelled))
        to_only = to_singleton(PROVISIONING_KEY)
        self.watches = [
            Watch(self._provisionings),
            Watch(self._deployments, to_only),
            Watch(self._secrets, to_only),
            Watch(self._config_maps, to_only),
            Watch(self._pods, to_only),
        ]

    async def reconcile(self, decide: Decide) -> State:
        """Make metal3 as its Provisioning says, if the operator manages it; return its state."""
        found = self._deployments.get(DEPLOYMENT_KEY)
        decision = await decide(ownership_of(found))
        if decision is HandoverDecision.STAND_DOWN:
            return State(StateReason.STANDING_DOWN, "another operator manages metal3")
        provisioning = self._provisionings.get(PROVISIONING_KEY)
        if provisioning is None or provisioning.metadata.deletion_timestamp:
            message = f"Waiting for Provisioning {PROVISIONING_KEY} on the platform BareMetal"
            return State(StateReason.WAITING, message)
        wrong = faults(provisioning.spec)
        await self._tell(provisioning, wrong)
        if wrong:
            return State(StateReason.INVALID, described(wrong))
        try:
            images = images_in(self._config_maps.get(self._role.images), self._role.images)
        except MissingImages as error:
            return State(StateReason.NO_IMAGES, str(error))
        try:
            await self._ensure_password()
        except PasswordMissing as error:
            return State(StateReason.NO_PASSWORD, str(error))
        if decision is HandoverDecision.CLAIM and found is not None:
            found = await self._claim(found)
        desired = desired_deployment(
            provisioning,
            images,
            owner=self._role.annotation,
            current=found,
            deadline=self._deadline,
        )
        # The decision is about the Deployment that was found, so the write is refused for any
        # other: the other operator may have created or claimed it meanwhile.
        made = await (
            self._deployments.create(desired)
            if found is None
            else self._deployments.ensure(desired, seen=found)
        )
        self._announce_roll_out(found, made)
        if "status" not in made:
            return State(StateReason.SYNCING, APPLYING)
        state = progress(made, self._pods.all(), self._now(), ran_with=self._ran_with)
        self._ran_with = made["spec"] if state.reason is StateReason.COMPLETE else None
        return state

    async def _tell(self, provisioning: Provisioning, wrong: list[InvalidValue]) -> None:
        """Say in the Provisioning's own status, and by an event, whether it is valid."""
        if wrong:
            note = described(wrong)
            self._events.event(
                provisioning, "Warning", StateReason.INVALID, note, action="Validate"
            )
        status = desired_status(provisioning, wrong, self._now())
        try:
            await self._provisionings.set_status(provisioning, status)
        except (Forbidden, NotFound) as error:
            # A policy denies it, or an older resource type has no such subresource: metal3 does not
            # wait for it.
            log.warning("the status of the Provisioning is not written", error=str(error))

    async def _ensure_password(self) -> None:
        """Create the Secret if there is none; an existing one is never changed."""
        if (secret := self._secrets.get(SECRET_KEY)) is not None:
            check_secret(secret)
            return
        try:
            await self._secrets.create(new_secret())
        except AlreadyExists:
            return

    async def _claim(self, found: Object) -> Object:
        """Take the Deployment over in one write, which leaves the pod template as it is."""
        role = self._role
        changes = {role.annotation: "", role.others_annotation: None}
        made = await self._deployments.claim(found, role.others_field_manager, changes)
        self._events.event(
            made,
            "Normal",
            "Claimed",
            f"taken over from {role.others_field_manager}",
            action="Claim",
        )
        return made

    def _announce_roll_out(self, before: Object | None, after: Object) -> None:
        if before is None or template_hash(before) == template_hash(after):
            return
        message = "the pod is replaced, and Ironic's database starts empty"
        self._events.event(after, "Normal", "PodTemplateChanged", message, action="RollOut")


def _named(key: Key) -> Selection:
    return Selection(namespace=key.namespace, name=key.name)
