"""The objects for Prometheus, which are in no release: without their kinds it would fail.

They are the files of `deploy/monitoring`; each kind of monitoring.coreos.com has to be served.
"""

from collections.abc import Collection
from pathlib import Path

import msgspec
import yaml

import quarterdeck
from quarterdeck.api.meta import Object
from quarterdeck.delivery.installation import Step
from quarterdeck.install.facts import ClusterFacts
from quarterdeck.install.plan import FIELD_MANAGER, AppliedStep, InstallationPlan
from quarterdeck.install.preflight import warning
from quarterdeck.kube.kinds import GroupVersionKind, Kinds

GROUP = "monitoring.coreos.com"
CLUSTER_VERSION = "cluster-version"
"""The operator in whose namespace the dashboard is."""


def with_monitoring(plan: InstallationPlan, facts: ClusterFacts, kinds: Kinds) -> InstallationPlan:
    """The plan with the objects for Prometheus, or with what to do first."""
    if plan.way == "all-in-one":
        return _with_warning(
            plan,
            "the objects for Prometheus select operators in Deployments of their own, so none is "
            "applied with --all-in-one; see files/prometheus.yaml in deploy/monitoring",
        )
    if GROUP not in facts.groups:
        return _with_warning(
            plan,
            f"the cluster does not serve {GROUP}: install the Prometheus operator, then run this "
            "again",
        )
    if plan.refused:
        return plan
    objects = monitoring_objects(plan.operators)
    served = [obj for obj in objects if GroupVersionKind.of(obj) in kinds]
    missing = sorted({obj["kind"] for obj in objects} - {obj["kind"] for obj in served})
    step = AppliedStep(
        step=Step(title="objects for Prometheus", objects=tuple(served)), manager=FIELD_MANAGER
    )
    made = msgspec.structs.replace(plan, later=(step,))
    if not missing:
        return made
    return _with_warning(
        made,
        f"the cluster does not serve {', '.join(missing)} of {GROUP}: those are left out until you "
        "update the Prometheus operator and run this again",
    )


def monitoring_objects(operators: Collection[str]) -> list[Object]:
    """The objects of these operators in `deploy/monitoring`, of an installed package or a clone.

    Alerts about an operator that is not there would fire.
    """
    package = Path(quarterdeck.__file__).parent
    inside = package / "deploy" / "monitoring"
    directory = inside if inside.is_dir() else package.parents[1] / "deploy" / "monitoring"
    about = [f"{name}{suffix}.yaml" for name in operators for suffix in ("", "-service", "-pods")]
    if CLUSTER_VERSION in operators:
        about.append("dashboard.yaml")
    return [
        obj
        for file in sorted(directory / name for name in about)
        if file.is_file()
        for obj in yaml.load_all(file.read_bytes(), Loader=yaml.CSafeLoader)
    ]


def _with_warning(plan: InstallationPlan, message: str) -> InstallationPlan:
    finding = warning(f"--monitoring: {message}")
    return msgspec.structs.replace(plan, findings=(*plan.findings, finding))
