"""Who manages metal3 in a cluster, and what is to be done about it."""

import msgspec

from quarterdeck.api.config_v1 import CLUSTER_OPERATORS, INFRASTRUCTURES
from quarterdeck.api.meta import DEPLOYMENTS, Object
from quarterdeck.kube import Client
from quarterdeck.metal3.deployment import template_hash
from quarterdeck.metal3.handover import HandoverDecision, machine_api_decision, ownership_of
from quarterdeck.metal3.names import BAREMETAL, DEPLOYMENT_KEY, MACHINE_API, NAMESPACE
from quarterdeck.metal3.platform import (
    INFRASTRUCTURE_KEY,
    OtherPlatform,
    UnknownPlatform,
    platform_of,
)

OPERATOR_DEPLOYMENTS = {
    MACHINE_API: "machine-api-operator",
    BAREMETAL: "cluster-baremetal-operator",
}


class HandoverStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who manages metal3."""

    platform: str
    deployment: bool
    """Whether metal3's Deployment exists."""
    owner: str
    """The operator whose annotation it has; empty without one."""
    field_managers: tuple[str, ...] = ()
    """Who applied its fields."""
    template_hash: str = ""
    running: tuple[str, ...] = ()
    """Which of the two operators have a Deployment."""
    reported: tuple[str, ...] = ()
    """Which of the two operators have a ClusterOperator."""
    advice: str = ""
    """What an administrator has to do; empty if there is nothing."""


async def handover_status(client: Client) -> HandoverStatus:
    """The status, read from the cluster."""
    infrastructure = await client.find(INFRASTRUCTURES, INFRASTRUCTURE_KEY.name)
    live = await client.find(DEPLOYMENTS, DEPLOYMENT_KEY.name, DEPLOYMENT_KEY.namespace)
    running = [
        name
        for name, deployment in OPERATOR_DEPLOYMENTS.items()
        if await client.find(DEPLOYMENTS, deployment, NAMESPACE)
    ]
    reported = [
        name for name in OPERATOR_DEPLOYMENTS if await client.find(CLUSTER_OPERATORS.plain, name)
    ]
    match platform_of(infrastructure):
        case OtherPlatform(name):
            platform = name
        case UnknownPlatform():
            platform = "unknown"
        case _:
            platform = "BareMetal"
    return status_of(platform, live, running, reported)


def status_of(
    platform: str, live: Object | None, running: list[str], reported: list[str]
) -> HandoverStatus:
    """The status of what was found. Pure."""
    found = ownership_of(live)
    entries = (live or {}).get("metadata", {}).get("managedFields") or ()
    managers = {one["manager"] for one in entries if not one.get("subresource")}
    return HandoverStatus(
        platform=platform,
        deployment=live is not None,
        owner=found.owner if found else "",
        field_managers=tuple(sorted(managers)),
        template_hash=template_hash(live) if live else "",
        running=tuple(running),
        reported=tuple(reported),
        advice=_advice(platform, live, running, reported),
    )


def _advice(platform: str, live: Object | None, running: list[str], reported: list[str]) -> str:
    found = ownership_of(live)
    exists = BAREMETAL in reported
    if platform != "BareMetal":
        return ""
    if found is not None and found.machine_api and found.baremetal:
        return "both operators say that they manage metal3; the baremetal operator mends that"
    stands_down = (
        machine_api_decision(found, baremetal_exists=exists) is HandoverDecision.STAND_DOWN
    )
    if stands_down and BAREMETAL not in running:
        return (
            "nobody manages metal3: the baremetal operator is gone, and its ClusterOperator is "
            f"not; run: kubectl delete clusteroperator {BAREMETAL}"
        )
    return ""
