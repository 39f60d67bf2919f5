"""The alerts about an operator, from its declaration. Pure.

Every operator has the same ones about its leader and its reconciles; the declaration can name more.
They select the operator's own pods, because other programs have metrics of the same names.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.delivery.checks import check_line, check_profile
from quarterdeck.delivery.declaration import Declaration, StaticPodDelivery, load


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert of Prometheus."""

    name: str
    expr: str
    """Fires for each series of this expression."""
    wait: str = ""
    """How long there has to be a series first, as `10m`; not at all if empty."""
    severity: Literal["warning", "critical"] = "warning"
    summary: str
    description: str

    def __post_init__(self) -> None:
        """Refuse an alert that nobody can read."""
        check_profile("alerts.name", self.name)
        for field in ("expr", "summary", "description"):
            check_line(f"alerts.{field}", getattr(self, field))


def alerts(declared: Declaration) -> list[Alert]:
    """All alerts about an operator; none about one that is only run by hand."""
    if declared.delivery is None:
        return []
    named = tuple(load(declared.alerts)) if declared.alerts else ()
    if not all(isinstance(one, Alert) for one in named):
        raise TypeError(f"{declared.alerts}: make it a tuple of quarterdeck.delivery.alerts.Alert")
    return [*_general(declared), *named]


def rule_object(declared: Declaration) -> Object | None:
    """The PrometheusRule with the alerts about an operator; None without alerts."""
    found = alerts(declared)
    if not found:
        return None
    name = declared.field_manager
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": name, "namespace": declared.namespace, "labels": {"app": name}},
        "spec": {
            "groups": [{"name": name, "rules": [_rule(alert, declared) for alert in found]}],
        },
    }


def own_pods(declared: Declaration) -> str:
    """The label matchers of the operator's own pods."""
    places = []
    if isinstance(declared.delivery, StaticPodDelivery):
        # A mirror pod has the name of its static pod with that of its node.
        places.append((declared.namespace, declared.name))
    if (deployed := declared.as_deployment()) is not None:
        places.append((deployed.namespace, deployed.account))
    namespaces, pods = map("|".join, zip(*places, strict=True))
    if len(places) == 1:
        return f'namespace="{namespaces}", pod=~"{pods}-.+"'
    return f'namespace=~"{namespaces}", pod=~"({pods})-.+"'


def _general(declared: Declaration) -> Iterator[Alert]:
    if declared.account:
        lease = f'namespace="{declared.namespace}", name="{declared.account}"'
        yield Alert(
            name="OperatorWithoutLeader",
            expr=f"absent(leader_election_master_status{{{lease}}} == 1)",
            # Longer than a roll-out and than the move to another node.
            wait="10m",
            severity="critical",
            summary=f"{declared.title} has no leader.",
            description=(
                f"No replica of {_workload(declared)} leads, so nobody does its work. Look whether "
                "its pods run, whether Prometheus finds them as targets, and at its Lease: "
                f'"kubectl get lease {declared.account} --namespace {declared.namespace} -o yaml".'
            ),
        )
    if isinstance(declared.delivery, StaticPodDelivery):
        renewal, ends = (
            f"client_certificate_{what}_timestamp_seconds{{{own_pods(declared)}}}"
            for what in ("renewal", "expiration")
        )
        yield Alert(
            name="ClientCertificateNotRenewed",
            # With 90 days of lifetime: 30 days before the end.
            expr=f"time() - {renewal} > ({ends} - {renewal}) / 3",
            wait="5m",
            summary="The client certificate of {{ $labels.pod }} is not renewed.",
            description=(
                f"{declared.title} has asked for its next client certificate for a third of the "
                "time that is left, and has none. Its log says what is in the way. Look at its "
                "request (kubectl get certificatesigningrequests), and approve it if it is right. "
                "When the certificate ends, the pod cannot sign in any more."
            ),
        )
    errors = f"controller_runtime_reconcile_errors_total{{{own_pods(declared)}}}"
    yield Alert(
        name="OperatorReconcileErrors",
        # A key that fails is tried again within ten minutes; one mistake alone ends before.
        expr=f"sum by (controller) (increase({errors}[10m])) > 0",
        wait="30m",
        summary=f"{declared.title} keeps failing in its controller {{{{ $labels.controller }}}}.",
        description=(
            "For half an hour its reconciles fail again and again. The log of "
            f"{_workload(declared)} names the objects and the errors."
        ),
    )


def _workload(declared: Declaration) -> str:
    found = []
    if isinstance(declared.delivery, StaticPodDelivery):
        found.append(f"the static pods {declared.name} in {declared.namespace}")
    if (deployed := declared.as_deployment()) is not None:
        found.append(f"the Deployment {deployed.account} in {deployed.namespace}")
    return " or ".join(found)


def _rule(alert: Alert, declared: Declaration) -> Object:
    return {
        "alert": alert.name,
        "expr": alert.expr,
        **({"for": alert.wait} if alert.wait else {}),
        "labels": {"severity": alert.severity, "operator": declared.name},
        "annotations": {"summary": alert.summary, "description": alert.description},
    }
