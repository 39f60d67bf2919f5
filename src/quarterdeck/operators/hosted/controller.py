"""The controller of HostedClusters: the namespace, the control plane, and its operator.

In order: the namespace and this operator's rights in it, the HostedControlPlane, its configuration,
its kubeconfig and its Deployment, the status. After a crash at any point the next reconcile
continues. A deleted HostedCluster stays until the namespace, and with it everything else, is gone.
"""

import re
from datetime import datetime, timedelta
from typing import Any

from quarterdeck.api.config_v1 import FEATURE_GATES
from quarterdeck.api.hypershift_v1beta1 import (
    HOSTED_CLUSTERS,
    HOSTED_CONTROL_PLANES,
    SECRET_NAME,
)
from quarterdeck.api.meta import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    SECRETS,
    Key,
    Object,
    foreign,
)
from quarterdeck.controller import (
    DONE,
    Controller,
    Finalizer,
    InvalidSpec,
    Manager,
    NamedObjects,
    Result,
    Selection,
    StatusWriter,
    Watch,
)
from quarterdeck.controller.merge import merge_patch
from quarterdeck.controller.metadata import is_being_deleted, key_of
from quarterdeck.controller.watch import to_labelled
from quarterdeck.feature_gates import FEATURE_GATE_NAME, LOG_LEVEL_GATE, gate_is_on, gate_states
from quarterdeck.kube import Forbidden
from quarterdeck.log import get_logger
from quarterdeck.operators.hosted import names
from quarterdeck.operators.hosted.desired import (
    PlanePlan,
    desired_binding,
    desired_config_map,
    desired_deployment,
    desired_kubeconfig,
    desired_namespace,
    kubeconfig_in,
    plan_plane,
)
from quarterdeck.operators.hosted.kubeconfig import kubeconfig_fault
from quarterdeck.operators.hosted.settings import Settings
from quarterdeck.operators.hosted.status import (
    applied,
    available,
    desired_status,
    faulty_status,
    valid,
)

log = get_logger("hosted")

ROLE_BINDINGS = foreign(
    "rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", namespaced=True
)
SECRET_FIELD = "spec.kubeconfigSecret.name"  # noqa: S105 - the path of a field
NO_KUBECONFIG = (
    "the cluster version operator needs a Secret in this namespace with the key kubeconfig"
)
BY_NAMESPACE = "control-plane-namespace"
WORKERS = 16
RIGHTS_PERIOD = 0.2
"""Seconds until new rights are tried: API servers learn of a new binding a moment later."""
RIGHTS_TIMEOUT = timedelta(seconds=30)
"""For how long after their creation missing rights are no fault."""
LEFT_OVER_AGE = timedelta(seconds=15)
"""How old a namespace is before it can be one that nobody needs: a backup may be coming back."""

_TO_CLUSTER = to_labelled(names.NAME_LABEL, namespace=names.NAMESPACE_LABEL)


def setup(manager: Manager, settings: Settings) -> None:
    """Add the controller of HostedClusters."""
    hosted = HostedClusters(manager, settings)
    watches = [
        Watch(hosted.clusters),
        Watch(hosted.namespaces, hosted.to_namespace_users),
        Watch(hosted.gates, lambda _: map(key_of, hosted.clusters.all())),
        Watch(hosted.bindings, _TO_CLUSTER),
        Watch(hosted.planes, _TO_CLUSTER),
        Watch(hosted.config_maps, _TO_CLUSTER),
        Watch(hosted.copies, _TO_CLUSTER),
        Watch(hosted.deployments, _TO_CLUSTER),
    ]
    controller = Controller(
        "hosted-cluster",
        hosted.reconcile,
        watches,
        workers=WORKERS,
        status=StatusWriter(hosted.clusters, faulty_status),
    )
    hosted.kubeconfigs = manager.named(SECRETS, controller)
    manager.add(controller)


class HostedClusters:
    """The reconcile function of HostedClusters."""

    kubeconfigs: NamedObjects[Object]

    def __init__(self, manager: Manager, settings: Settings) -> None:
        self._manager = manager
        self._settings = settings
        self.clusters = manager.objects(
            HOSTED_CLUSTERS.plain,
            indexes={BY_NAMESPACE: lambda it: [names.control_plane_namespace(key_of(it))]},
            writes=["status", "finalizer"],
        )
        self.gates = manager.cache(FEATURE_GATES, Selection(name=FEATURE_GATE_NAME, optional=True))
        self.namespaces = manager.objects(NAMESPACES, writes=["ensure", "delete"])
        role = f"{manager.field_manager}-{names.ROLE}"
        self.bindings = manager.objects(ROLE_BINDINGS, Selection(name=role), writes=["ensure"])
        # All writes below are by that role, so only in namespaces that this operator has made.
        self.planes = manager.objects(
            HOSTED_CONTROL_PLANES.plain, writes=["create", "patch", "status"], role=names.ROLE
        )
        self.config_maps = manager.objects(
            CONFIG_MAPS, Selection(name=names.CONFIG_MAP), writes=["ensure"], role=names.ROLE
        )
        self.copies = manager.objects(
            SECRETS, Selection(name=names.KUBECONFIG), writes=["ensure", "delete"], role=names.ROLE
        )
        self.deployments = manager.objects(
            DEPLOYMENTS,
            Selection(name=names.DEPLOYMENT),
            writes=["ensure", "delete"],
            role=names.ROLE,
        )
        manager.declare(HOSTED_CLUSTERS.plain, "get")
        self._finalizer = Finalizer(self.clusters, names.FINALIZER, self._clean_up)

    def to_namespace_users(self, namespace: Object) -> list[Key]:
        """The HostedClusters whose control plane would be in the namespace, and whose it was."""
        users = self.clusters.by_index(BY_NAMESPACE, namespace["metadata"]["name"])
        return [*map(key_of, users), *_TO_CLUSTER(namespace)]

    async def reconcile(self, key: Key) -> Result:
        """Bring the control plane of a HostedCluster to what it asks for."""
        found = self.clusters.get(key)
        if (wait := await self._remove_left_over(key, found)) is not None:
            return wait
        if found is None:
            self.kubeconfigs.watch(key, [])
            return DONE
        if not is_being_deleted(found):
            self._check_namespace(found)
            self._plan(found)  # raises if nothing can be made
        cluster = await self._finalizer.add_or_clean_up(found)
        if cluster is None:
            return DONE
        wanted = _kubeconfig_secret(cluster)
        if self.kubeconfigs.watch(key, [wanted] if wanted else []):
            return DONE  # It is woken when the Secret has been read.
        # Again: somebody else may have made it meanwhile, and to apply our labels to a namespace is
        # to own it.
        self._check_namespace(cluster)
        await self.namespaces.ensure(desired_namespace(cluster))
        known = self.bindings.get(self._binding_key(key))
        binding = await self.bindings.ensure(
            desired_binding(key, self._manager.home, self._manager.field_manager)
        )
        if known is None:
            return Result(requeue_after=RIGHTS_PERIOD)
        try:
            return await self._write_plane(cluster, wanted)
        except Forbidden as error:
            if not error.by_role or self._manager.now() - _created(binding) > RIGHTS_TIMEOUT:
                raise
            log.v(4).info("waiting for rights", hosted_cluster=str(key))
            return Result(requeue_after=RIGHTS_PERIOD)

    async def _write_plane(self, cluster: Object, wanted: Key | None) -> Result:
        """Write everything in the control plane's namespace, then the status.

        What is no longer allowed is removed also if something else in the HostedCluster is invalid.
        """
        plan = self._plan(cluster)
        plane = await self._ensure_plane(plan.plane)
        await self.config_maps.ensure(desired_config_map(plane))
        kubeconfig = kubeconfig_in(self.kubeconfigs.get(wanted)) if wanted else None
        why = NO_KUBECONFIG if kubeconfig is None else kubeconfig_fault(kubeconfig)
        faults = [*plan.faults]
        if why or kubeconfig is None:
            kubeconfig = None
            faults.append(InvalidSpec(SECRET_FIELD, _secret_name(cluster), why))
        deployment = await self._ensure_operator(plane, kubeconfig, plan)
        now, is_available = self._manager.now(), available(deployment)
        await self.planes.set_status(plane, desired_status(plane, [is_available], now))
        is_applied = applied(
            gate_on=self._gate_is_on(),
            gates_version=self._manager.release_version,
            release=plane["spec"].get("releaseVersion") or "",
        )
        conditions = [is_applied, is_available] if faults else [valid(), is_applied, is_available]
        await self.clusters.set_status(cluster, desired_status(cluster, conditions, now))
        if faults:
            raise faults[0]
        return DONE

    def _plan(self, cluster: Object) -> PlanePlan:
        """The HostedControlPlane as it has to be; `InvalidSpec` if it cannot be made."""
        key = key_of(cluster)
        current = self.planes.get(Key(names.control_plane_namespace(key), key.name))
        plan = plan_plane(cluster, current, gate_on=self._gate_is_on())
        if plan.faults and current is None:
            raise plan.faults[0]
        return plan

    async def _ensure_plane(self, desired: Object) -> Object:
        """The HostedControlPlane, whose fields are exactly as desired, whoever wrote them."""
        plane = self.planes.get(key_of(desired))
        if plane is None:
            spec = {name: value for name, value in desired["spec"].items() if value is not None}
            return await self.planes.create({**desired, "spec": spec})
        has = {name: plane["spec"].get(name) for name in desired["spec"]}
        patch: Object = {}
        if spec := merge_patch(has, desired["spec"]):
            patch["spec"] = spec
        wanted = desired["metadata"]["labels"]
        if not wanted.items() <= (plane["metadata"].get("labels") or {}).items():
            patch["metadata"] = {"labels": wanted}
        return await self.planes.patch(plane, patch) if patch else plane

    async def _ensure_operator(
        self, plane: Object, kubeconfig: str | None, plan: PlanePlan
    ) -> Object | None:
        """The Deployment of the cluster version operator; without a kubeconfig it has none."""
        namespace = plane["metadata"]["namespace"]
        if kubeconfig is None:
            await self.deployments.ensure_absent(Key(namespace, names.DEPLOYMENT))
            await self.copies.ensure_absent(Key(namespace, names.KUBECONFIG))
            return None
        await self.copies.ensure(desired_kubeconfig(plane, kubeconfig))
        if not plan.knows_release:
            return self.deployments.get(Key(namespace, names.DEPLOYMENT))
        return await self.deployments.ensure(desired_deployment(plane, kubeconfig, self._settings))

    async def _clean_up(self, cluster: Object) -> bool:
        """Delete the control plane's namespace; it takes all that is in it along."""
        key = key_of(cluster)
        self.kubeconfigs.watch(key, [])
        namespace = self.namespaces.get(Key("", names.control_plane_namespace(key)))
        if namespace is None:
            return True
        if not names.is_namespace_of(namespace, cluster):
            return True
        return await self.namespaces.ensure_absent(key_of(namespace))

    async def _remove_left_over(self, key: Key, cluster: Object | None) -> Result | None:
        """Delete a namespace that arrived after its HostedCluster was gone; None if there is none.

        A process that is cut off from the server may have sent the create long before. Nobody has
        used such a namespace: it does not even have our binding. One with the binding stays: an
        administrator has removed the finalizer, or restored a backup.
        """
        namespace = self.namespaces.get(Key("", names.control_plane_namespace(key)))
        manager = self._manager.field_manager
        if (
            namespace is None
            or is_being_deleted(namespace)
            or not names.is_left_over(namespace, key, cluster, manager)
            or self.bindings.get(self._binding_key(key)) is not None
        ):
            return None
        age = self._manager.now() - _created(namespace)
        if age < LEFT_OVER_AGE:
            return Result(requeue_after=(LEFT_OVER_AGE - age).total_seconds())
        # The cache may be older than the namespace.
        live = await self._manager.client.find(HOSTED_CLUSTERS.plain, key.name, key.namespace)
        if not names.is_left_over(namespace, key, live, manager):
            return None
        log.info("namespace without its HostedCluster removed", hosted_cluster=str(key))
        await self.namespaces.ensure_absent(key_of(namespace))
        return DONE

    def _check_namespace(self, cluster: Object) -> None:
        """Raise `InvalidSpec` if the control plane cannot have its namespace."""
        namespace = self.namespaces.get(Key("", names.control_plane_namespace(key_of(cluster))))
        names.check_namespace(cluster, namespace)

    def _gate_is_on(self) -> bool:
        if self.gates.missing:
            # Nobody can set gates here, so they are as in the release's default feature set.
            return gate_states("")[LOG_LEVEL_GATE]
        found = self.gates.get(Key("", FEATURE_GATE_NAME))
        return gate_is_on(found, self._manager.release_version, LOG_LEVEL_GATE)

    def _binding_key(self, cluster: Key) -> Key:
        role = f"{self._manager.field_manager}-{names.ROLE}"
        return Key(names.control_plane_namespace(cluster), role)


def _secret_name(cluster: Object) -> Any:
    return (cluster["spec"].get("kubeconfigSecret") or {}).get("name")


def _kubeconfig_secret(cluster: Object) -> Key | None:
    """The Secret that the HostedCluster names; None if it names none."""
    name = _secret_name(cluster)
    # It becomes part of a field selector.
    if not isinstance(name, str) or not re.fullmatch(SECRET_NAME, name):
        return None
    return Key(cluster["metadata"]["namespace"], name)


def _created(obj: Object) -> datetime:
    return datetime.fromisoformat(obj["metadata"]["creationTimestamp"])
