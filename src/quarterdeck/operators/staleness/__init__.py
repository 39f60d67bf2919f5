"""Finds cluster operators that no longer update their conditions, and marks those conditions."""

from quarterdeck.delivery.declaration import Declaration, Local, SeldomUsed, StaticPodDelivery

OPERATOR = Declaration(
    name="staleness",
    part_of="quarterdeck",
    title="The staleness checker",
    setup="quarterdeck.operators.staleness.controller:setup",
    settings="quarterdeck.operators.staleness.settings:Settings",
    namespace="kube-system",
    delivery=StaticPodDelivery(
        user="system:quarterdeck:staleness",
        port=10270,
        container="checker",
        account="staleness-checker",
        account_namespace="quarterdeck-staleness",
        # The default, written out so that an administrator finds the place to change it.
        args=("--interval=10m",),
    ),
    alerts="quarterdeck.operators.staleness.alerts:ALERTS",
    seldom_used=(
        SeldomUsed(
            group="coordination.k8s.io",
            resource="leases",
            verbs=("get",),
            why="only the Lease of an operator with quarterdeck.dev/lease-proves-life is read",
        ),
    ),
    local=Local(
        args=("--interval=60s",),
        text=(
            ", a static pod: a cluster operator that is silent for 1m\n"
            "is asked for a sign of life, and its conditions become Unknown after 2m\n"
            "(elsewhere 10m and 20m)"
        ),
    ),
)
