"""The metric with the verbosity in force."""

from prometheus_client import Gauge

from quarterdeck import log as logs
from quarterdeck.controller import Manager


def add_verbosity_gauge(manager: Manager) -> None:
    """Export how much this process logs now."""
    gauge = Gauge(
        "quarterdeck_log_verbosity",
        "How much is logged now, in klog's numbers: 2 Normal, 4 Debug, 6 Trace, 8 TraceAll.",
        registry=manager.registry,
    )
    gauge.set_function(logs.verbosity)
