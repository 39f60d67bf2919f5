"""The alerts about the release and about the cluster operators.

Only the leading cluster version operator has these metrics; while another takes over, both may for
a moment. So each expression takes the maximum.
"""

from quarterdeck.delivery.alerts import Alert

_LOOK = '"kubectl get clusterversion version -o yaml".'

ALERTS = (
    Alert(
        name="ClusterVersionFailing",
        expr='max by (reason) (cluster_operator_conditions{name="version", condition="Failing"})'
        " == 1",
        wait="15m",
        summary="The release cannot be applied, or not be kept: {{ $labels.reason }}.",
        description="The condition Failing of ClusterVersion names the manifests and what helps: "
        + _LOOK,
    ),
    Alert(
        name="ClusterReleaseNotAccepted",
        expr="max by (reason) (cluster_operator_conditions"
        '{name="version", condition="ReleaseAccepted"} == 0) == 0',
        wait="15m",
        summary="The update that was asked for is refused: {{ $labels.reason }}.",
        description="The condition ReleaseAccepted of ClusterVersion says why, and what helps: "
        + _LOOK,
    ),
    Alert(
        name="ClusterUpdateStuck",
        # Also while no manifest could be applied yet, and so there is no progress to compare.
        expr='max by (version) (cluster_version{type="updating"}) unless on (version) '
        'max by (version) (changes(cluster_version_payload{type="applied"}[30m])) > 0',
        wait="30m",
        summary="The update to {{ $labels.version }} makes no progress.",
        description="For half an hour and more no further manifest of the release was done. "
        '"quarterdeck update" shows what it waits for, and how to turn back.',
    ),
    Alert(
        name="ClusterOperatorDown",
        expr="max by (name, reason) (cluster_operator_up) == 0",
        wait="10m",
        severity="critical",
        summary="Cluster operator {{ $labels.name }} is not available.",
        description="What the operator {{ $labels.name }} manages does not work, says its "
        'condition Available with the reason {{ or $labels.reason "(none)" }}. "quarterdeck '
        'operators {{ $labels.name }}" tells more.',
    ),
    Alert(
        name="ClusterOperatorDegraded",
        expr="max by (name, reason) "
        '(cluster_operator_conditions{name!="version", condition="Degraded"}) == 1',
        wait="30m",
        summary="Cluster operator {{ $labels.name }} is degraded.",
        description="The operator {{ $labels.name }} does not do all that it should, with the "
        'reason {{ or $labels.reason "(none)" }}. "quarterdeck operators {{ $labels.name }}" tells '
        "more.",
    ),
)
