"""Grafana's dashboard of all operators, from their declarations. Pure.

Every query is a row of the table below, so that a test can ask a real Prometheus each of them. They
select the operators' pods, because other programs have metrics of the same names.
"""

from collections.abc import Iterable, Iterator

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration

UID = "quarterdeck"
SIDECAR_LABEL = "grafana_dashboard"
"""The label by which the sidecar of Grafana's chart finds dashboards."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24
"""The columns of a dashboard."""
COLUMNS = 2
HEIGHT = 8


class PanelQuery(msgspec.Struct, frozen=True):
    """One query of a panel."""

    expr: str
    legend: str


class Panel(msgspec.Struct, frozen=True):
    """One panel with its queries."""

    title: str
    kind: str
    """Grafana's type of panel: `stat`, `timeseries` or `table`."""
    unit: str
    queries: tuple[PanelQuery, ...]


def dashboard_object(operators: Iterable[Declaration]) -> Object:
    """The dashboard in a ConfigMap, which the sidecar of Grafana's chart reads."""
    operators = list(operators)
    (home,) = {one.namespace for one in operators if one.applies_payload}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "quarterdeck-dashboard",
            "namespace": home,
            "labels": {SIDECAR_LABEL: "1"},
        },
        "data": {"quarterdeck.json": dashboard_text(operators)},
    }


def dashboard_text(operators: Iterable[Declaration]) -> str:
    """The dashboard as Grafana imports it."""
    written = msgspec.json.encode(dashboard(operators))
    return msgspec.json.format(written, indent=2).decode() + "\n"


def dashboard(operators: Iterable[Declaration]) -> Object:
    """The dashboard."""
    return {
        "uid": UID,
        "title": "Quarterdeck",
        "tags": ["quarterdeck", "operators"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "label": "Prometheus", "type": "datasource"}
                | {"query": "prometheus"}
            ]
        },
        "panels": [_panel(number, panel) for number, panel in enumerate(panels(operators))],
    }


def panels(operators: Iterable[Declaration]) -> tuple[Panel, ...]:
    """All panels, in their order."""
    operators = [one for one in operators if one.delivery is not None]
    return (*_release(), *_cluster_operators(), *_runtime(operators), *_router(operators))


def _release() -> Iterator[Panel]:
    yield Panel(
        "Release",
        "stat",
        "none",
        (PanelQuery('count by (version) (cluster_version{type="current"})', "{{version}}"),),
    )
    applied = 'max by (version) (cluster_version_payload{type="applied"})'
    pending = 'max by (version) (cluster_version_payload{type="pending"})'
    yield Panel(
        "Manifests of the release",
        "timeseries",
        "none",
        (PanelQuery(applied, "{{version}} applied"), PanelQuery(pending, "{{version}} pending")),
    )


def _cluster_operators() -> Iterator[Panel]:
    degraded = 'cluster_operator_conditions{name!="version", condition="Degraded"}'
    yield Panel(
        "Cluster operators",
        "stat",
        "none",
        (
            PanelQuery("sum(max by (name) (cluster_operator_up))", "available"),
            PanelQuery("count(max by (name) (cluster_operator_up))", "all"),
            PanelQuery(f"sum(max by (name) ({degraded}))", "degraded"),
            PanelQuery("sum(max by (name) (cluster_operator_stale))", "stale"),
        ),
    )
    seen = "max by (name) (cluster_operator_last_proven_alive_timestamp_seconds > 0)"
    yield Panel(
        "Time since the last sign of life",
        "timeseries",
        "s",
        (PanelQuery(f"time() - {seen}", "{{name}}"),),
    )
    yield Panel(
        "Availability",
        "table",
        "none",
        (PanelQuery("max by (name, version, reason) (cluster_operator_up)", ""),),
    )
    yield Panel(
        "Conditions that are True",
        "table",
        "none",
        (PanelQuery("max by (name, condition, reason) (cluster_operator_conditions == 1)", ""),),
    )


def _runtime(operators: Iterable[Declaration]) -> Iterator[Panel]:
    operators = list(operators)
    deployed = [one.as_deployment() or one for one in operators]
    places = "|".join(sorted({one.namespace for one in (*operators, *deployed)}))
    leases = "|".join(sorted({one.account for one in operators if one.account}))
    pods = "|".join(sorted({one.account or one.name for one in operators}))
    ours = f'namespace=~"{places}", pod=~"({pods})-.+"'
    by_controller = "sum by (namespace, controller)"
    controller = "{{namespace}} {{controller}}"
    rate = "[$__rate_interval]"
    yield Panel(
        "Leaders",
        "table",
        "none",
        (
            PanelQuery(
                "max by (namespace, name, pod) "
                f'(leader_election_master_status{{{ours}, name=~"{leases}"}} == 1)',
                "",
            ),
        ),
    )
    yield Panel(
        "Reconciles",
        "timeseries",
        "ops",
        (
            PanelQuery(
                f"{by_controller} (rate(controller_runtime_reconcile_total{{{ours}}}{rate}))",
                controller,
            ),
        ),
    )
    yield Panel(
        "Reconciles that fail",
        "timeseries",
        "ops",
        (
            PanelQuery(
                f"{by_controller} "
                f"(rate(controller_runtime_reconcile_errors_total{{{ours}}}{rate}))",
                controller,
            ),
        ),
    )
    buckets = "controller_runtime_reconcile_time_seconds_bucket"
    yield Panel(
        "Duration of reconciles, 99th percentile",
        "timeseries",
        "s",
        (
            PanelQuery(
                "histogram_quantile(0.99, sum by (namespace, controller, le) "
                f"(rate({buckets}{{{ours}}}{rate})))",
                controller,
            ),
        ),
    )
    yield Panel(
        "Keys that wait",
        "timeseries",
        "none",
        (PanelQuery(f"{by_controller} (workqueue_depth{{{ours}}})", controller),),
    )
    yield Panel(
        "Requests to the API server",
        "timeseries",
        "reqps",
        (
            PanelQuery(
                "sum by (namespace, method, code) "
                f"(rate(rest_client_requests_total{{{ours}}}{rate}))",
                "{{namespace}} {{method}} {{code}}",
            ),
        ),
    )
    yield Panel(
        "Memory",
        "timeseries",
        "bytes",
        (PanelQuery(f"process_resident_memory_bytes{{{ours}}}", "{{namespace}} {{pod}}"),),
    )
    yield Panel(
        "CPU",
        "timeseries",
        "percentunit",
        (PanelQuery(f"rate(process_cpu_seconds_total{{{ours}}}{rate})", "{{namespace}} {{pod}}"),),
    )


def _router(operators: Iterable[Declaration]) -> Iterator[Panel]:
    if not any(one.operand_metrics for one in operators):
        return
    name = "quarterdeck_router_access"
    rate = "[$__rate_interval]"
    yield Panel(
        "Access lines",
        "timeseries",
        "ops",
        tuple(
            PanelQuery(f"sum by (pod) (rate({name}_{what}_total{rate}))", f"{{{{pod}}}} {legend}")
            for what, legend in (("requests", "requests"), ("lines", "lines"))
        ),
    )
    yield Panel(
        "Access lines that are lost",
        "timeseries",
        "none",
        (PanelQuery(f"sum by (pod) (increase({name}_lines_lost_total{rate}))", "{{pod}}"),),
    )
    yield Panel(
        "Reloads and starts of HAProxy",
        "timeseries",
        "none",
        tuple(
            PanelQuery(
                f"sum by (pod) (increase(quarterdeck_router_{what}_total{rate}))",
                f"{{{{pod}}}} {what}",
            )
            for what in ("reloads", "starts")
        ),
    )


def _panel(number: int, panel: Panel) -> Object:
    row, column = divmod(number, COLUMNS)
    width = WIDTH // COLUMNS
    as_table = panel.kind == "table"
    return {
        "id": number + 1,
        "title": panel.title,
        "type": panel.kind,
        "datasource": SOURCE,
        "gridPos": {"x": column * width, "y": row * HEIGHT, "w": width, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        **({"options": {"textMode": "value_and_name"}} if panel.kind == "stat" else {}),
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": SOURCE,
                "expr": query.expr,
                "legendFormat": query.legend,
                **({"format": "table", "instant": True} if as_table else {}),
            }
            for at, query in enumerate(panel.queries)
        ],
    }
