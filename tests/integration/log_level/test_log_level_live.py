"""The log level of a running cluster version operator, changed through the API."""

from collections.abc import Callable
from typing import Any

from quarterdeck.testing.operator_process import OperatorProcess

Start = Callable[..., OperatorProcess]


def test_a_level_is_applied_observed_and_told(ready_cluster: Any, run_cvo: Start) -> None:
    operator = run_cvo()
    ready_cluster.wait_observed()
    ready_cluster.set_level("Trace")
    ready_cluster.wait_observed()
    assert operator.metric("quarterdeck_log_verbosity") == 6
