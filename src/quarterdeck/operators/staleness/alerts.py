"""The alerts about what the staleness checker finds.

Several checkers may say the same: each alert is about the operator, not about who said so.
"""

from quarterdeck.delivery.alerts import Alert

_LAST_LOOK = "staleness_checker_last_look_timestamp_seconds"

ALERTS = (
    Alert(
        name="ClusterOperatorStale",
        # A checker that is blind shows no operators, so it neither keeps this alert nor hides it.
        # While no checker sees at all, what was seen last stands until StalenessCheckerDown fires.
        expr="max by (name) (cluster_operator_stale) == 1 "
        "or (max by (name) (last_over_time(cluster_operator_stale[20m])) == 1 "
        f"unless on () (time() - max({_LAST_LOOK}) <= 120))",
        summary="Cluster operator {{ $labels.name }} no longer updates its conditions.",
        description="Operator {{ $labels.name }} did not answer the staleness checker. Its "
        "conditions are Unknown, and what they said before may be wrong: look whether its pod "
        'runs, and whether it reaches the API server. "quarterdeck staleness explain '
        '{{ $labels.name }}" tells when it last gave a sign of life.',
    ),
    Alert(
        name="StalenessCheckerDown",
        expr=f"absent({_LAST_LOOK}) or time() - max({_LAST_LOOK}) > 120",
        wait="15m",
        summary="No staleness checker reports.",
        description="Nobody checks whether cluster operators still update their conditions: what "
        '"kubectl get clusteroperators" shows may be old. Look at the static pods named staleness '
        "in kube-system, and whether Prometheus finds them as targets.",
    ),
    Alert(
        name="StalenessCheckerBlind",
        expr=f"time() - {_LAST_LOOK} > 120",
        wait="5m",
        summary="The staleness checker {{ $labels.instance }} cannot see or write.",
        description="The checker runs, but for more than two minutes it could not follow the "
        "cluster operators or may not write to them. Its /readyz and its log tell what is in the "
        "way: the API server beside it, its certificate or its rights. If it is ready, the clocks "
        "of its node and of Prometheus differ.",
    ),
)
