"""Applies an installation plan, and follows it until the cluster has what was planned.

Every step can be repeated. Definitions are served before what needs them is applied.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from uuid import uuid4

import msgspec

from quarterdeck.api.config_v1 import CLUSTER_VERSIONS
from quarterdeck.api.meta import CRDS, DEPLOYMENTS, NAMESPACES, PODS, Object, Resource
from quarterdeck.install.plan import FIELD_MANAGER, AppliedStep, InstallationPlan
from quarterdeck.install.pods import OUR_PODS, pod_trouble
from quarterdeck.kube import AlreadyExists, Client, KubeError, NotFound
from quarterdeck.kube.kinds import GroupVersionKind, KnownKinds, kinds_of_definition
from quarterdeck.status.definitions import is_foreign
from quarterdeck.status.rollout import READINESS, Done, Failed

SERVED_TIMEOUT = 60.0
"""Seconds after which a definition that is not served counts as refused."""
LOOK_PERIOD = 0.5
NO_VERSION_YET = "waiting for the cluster version operator"
ITS_LOG = "kubectl logs --namespace openshift-cluster-version deployment/cluster-version-operator"

Show = Callable[[str], None]


class InstallError(Exception):
    """The installation stopped; the message says where, and what to do."""


async def carry_out(client: Client, plan: InstallationPlan, show: Show) -> None:
    """Apply all steps; a KubeError or InstallError stops, and a later run continues."""
    kinds = KnownKinds(client)
    workloads = [applied for applied in plan.steps if _has_workload(applied)]
    for applied in plan.steps:
        if applied in workloads:
            continue
        show(applied.step.title)
        await _apply(client, kinds, applied)
    if plan.way == "release":
        await _create_version(client, plan)
    for applied in workloads:
        show(_started(applied.step.title))
        await _apply(client, kinds, applied)


async def carry_out_later(client: Client, plan: InstallationPlan, show: Show) -> None:
    """Apply what needs the operators' namespaces; objects for namespaces that lack are left out."""
    kinds = KnownKinds(client)
    for applied in plan.later:
        show(applied.step.title)
        there = {one["metadata"]["name"] for one in (await client.list(NAMESPACES)).items}
        kept = tuple(
            obj
            for obj in applied.step.objects
            if obj["metadata"].get("namespace", "default") in there
        )
        step = msgspec.structs.replace(applied.step, objects=kept)
        await _apply(client, kinds, msgspec.structs.replace(applied, step=step))


def _has_workload(applied: AppliedStep) -> bool:
    return any(obj["kind"] == "Deployment" for obj in applied.step.objects)


def _started(title: str) -> str:
    return f"starting {title[:1].lower()}{title[1:]}"


async def _apply(client: Client, kinds: KnownKinds, applied: AppliedStep) -> None:
    for obj in applied.step.objects:
        resource = await _resource(kinds, obj)
        if obj["kind"] == CRDS.kind:
            await _apply_definition(client, kinds, obj, applied)
        elif applied.step.create_only:
            with suppress(AlreadyExists):
                await client.create(resource, obj, field_manager=applied.manager)
        else:
            await client.apply(resource, obj, field_manager=applied.manager)


async def _resource(kinds: KnownKinds, obj: Object) -> Resource[Object]:
    kind = GroupVersionKind.of(obj)
    try:
        async with asyncio.timeout(SERVED_TIMEOUT):
            while (found := await kinds.find(kind)) is None:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(LOOK_PERIOD)
    except TimeoutError:
        raise InstallError(
            f"the API server does not serve {obj['kind']} of {obj['apiVersion']}, which "
            f"{obj['metadata']['name']} needs; install its definition, then run this again"
        ) from None
    return found


async def _apply_definition(
    client: Client, kinds: KnownKinds, obj: Object, applied: AppliedStep
) -> None:
    """Apply a definition unless it is somebody else's, and return when it is served."""
    name = obj["metadata"]["name"]
    live = await client.find(CRDS, name)
    if live is None or not (is_foreign(live) or applied.step.create_only):
        live = await client.apply(CRDS, obj, field_manager=applied.manager)
    try:
        async with asyncio.timeout(SERVED_TIMEOUT):
            while not isinstance(READINESS["apiextensions.k8s.io", CRDS.kind](live), Done):
                await asyncio.sleep(LOOK_PERIOD)
                live = await client.get(CRDS, name)
            await _until_listed(client, live)
    except TimeoutError:
        raise InstallError(
            f"the API server does not serve {name}; see: kubectl describe crd {name}"
        ) from None
    kinds.learn(live)


async def _until_listed(client: Client, live: Object) -> None:
    """Wait until objects of a definition can be listed: that comes a moment after Established."""
    for resource in kinds_of_definition(live).values():
        while True:
            try:
                await client.list(resource, limit=1)
                break
            except NotFound:
                await asyncio.sleep(LOOK_PERIOD)


async def _create_version(client: Client, plan: InstallationPlan) -> None:
    """Create the ClusterVersion with the capabilities of the plan, unless there is one."""
    spec: Object = {"clusterID": str(uuid4())}
    if plan.capabilities is not None:
        spec["capabilities"] = {
            "baselineCapabilitySet": "None",
            "additionalEnabledCapabilities": list(plan.capabilities),
        }
    resource = CLUSTER_VERSIONS.plain
    version = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "version"},
        "spec": spec,
    }
    with suppress(AlreadyExists):
        await client.create(resource, version, field_manager=FIELD_MANAGER)


async def follow(client: Client, plan: InstallationPlan) -> AsyncIterator[str]:
    """What the installation waits for, again and again, until all is there."""
    while message := await _pending(client, plan):
        yield message
        await asyncio.sleep(LOOK_PERIOD)


async def _pending(client: Client, plan: InstallationPlan) -> str:
    """What is not there yet; empty if nothing is missing."""
    try:
        deployments = [
            obj
            for applied in plan.steps
            for obj in applied.step.objects
            if obj["kind"] == DEPLOYMENTS.kind
        ]
        version = await _version(client) if plan.way == "release" else ""
        if version and version != NO_VERSION_YET:
            # The operator replaces its own Deployment by that of the release meanwhile.
            return await _with_trouble(client, version)
        return await _with_trouble(client, await _rollouts(client, deployments) or version)
    except KubeError as error:
        return f"the cluster does not answer: {error}"


async def _with_trouble(client: Client, message: str) -> str:
    """The message, and why a pod of ours does not run."""
    if not message:
        return ""
    trouble = pod_trouble((await client.list(PODS, label_selector=OUR_PODS)).items)
    return f"{message}; {trouble}" if trouble else message


async def _rollouts(client: Client, deployments: Iterable[Object]) -> str:
    for obj in deployments:
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        live = await client.get(DEPLOYMENTS, name, namespace)
        outcome = READINESS["apps", DEPLOYMENTS.kind](live)
        if not isinstance(outcome, Done):
            trouble = "fails: " if isinstance(outcome, Failed) else ""
            return f"Deployment {namespace}/{name} {trouble}{outcome.message}"
    return ""


async def _version(client: Client) -> str:
    found = await client.find(CLUSTER_VERSIONS.plain, "version")
    conditions = ((found or {}).get("status") or {}).get("conditions") or []
    said = {one["type"]: one for one in conditions}
    if said.get("Available", {}).get("status") == "True":
        return ""
    if said.get("Failing", {}).get("status") == "True":
        return f"failing: {said['Failing'].get('message', '')}"
    message = str(said.get("Progressing", {}).get("message") or "")
    return message or NO_VERSION_YET
