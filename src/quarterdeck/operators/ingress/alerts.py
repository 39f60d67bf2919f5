"""The alerts about the routers."""

from quarterdeck.delivery.alerts import Alert

ALERTS = (
    Alert(
        name="AccessLogLoss",
        expr="sum by (namespace, pod) (increase(quarterdeck_router_access_lines_lost_total[15m]))"
        " > 0",
        summary="The router {{ $labels.pod }} loses lines of its access log.",
        description="In the last 15 minutes it served requests whose access line did not arrive. "
        "The condition AccessLoggingReady of the pod {{ $labels.pod }} in {{ $labels.namespace }} "
        "says whether lines arrive now, and what is in the way if not.",
    ),
)
