"""The files of operators, which `make generate` writes into `deploy`.

`crds` has the resource types, a directory for each operator its manifests, and `payload` the
release payload of all operators. `install` and `chart` put a release into a cluster. `monitoring`
has what the Prometheus operator and Grafana read: every YAML file in it is objects to apply, and
`monitoring/files` has what is none.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.definition_text import definition_text
from quarterdeck.api.meta import Object
from quarterdeck.delivery.alerts import rule_object
from quarterdeck.delivery.charts import installation_files
from quarterdeck.delivery.console import console_objects
from quarterdeck.delivery.dashboard import dashboard_object, dashboard_text
from quarterdeck.delivery.declaration import Declaration, Deployed, StaticPodDelivery
from quarterdeck.delivery.manifests import (
    account_objects,
    custom_resource,
    disruption_budgets,
    part_objects,
    workload,
)
from quarterdeck.delivery.monitoring import pod_monitor_objects, service_monitor_objects
from quarterdeck.delivery.payload import payload
from quarterdeck.delivery.yaml_text import HEADER, text

PAYLOAD = "payload"


def kinds(operators: Iterable[Declaration]) -> list[CustomResource[Any]]:
    """The resource types of these operators, each once."""
    references = [
        reference
        for declared in operators
        for group in (declared.kinds, *(part.kinds for part in declared.parts))
        for reference in group
    ]
    return [custom_resource(reference) for reference in dict.fromkeys(references)]


def files(operators: Iterable[Declaration]) -> dict[str, str]:
    """The text of every file by its path below `deploy`."""
    operators = list(operators)
    made = {f"crds/{kind.crd_name}.yaml": definition_text(kind) for kind in kinds(operators)}
    for declared in operators:
        made |= _operator_files(declared) | _monitoring_files(declared)
    if any(declared.applies_payload for declared in operators):
        # A whole release, not the operators of one project.
        made["console/deployment.yaml"] = HEADER + text(console_objects())
        made["monitoring/dashboard.yaml"] = HEADER + text([dashboard_object(operators)])
        made["monitoring/files/dashboard.json"] = dashboard_text(operators)
        made |= installation_files(operators)
    made |= {f"{PAYLOAD}/{name}": content for name, content in payload_files(operators).items()}
    return made


def payload_files(operators: Iterable[Declaration]) -> dict[str, str]:
    """The text of every file of the operators' payload by its name."""
    return {name: HEADER + text(objects) for name, objects in payload(operators).items()}


def _operator_files(declared: Declaration) -> dict[str, str]:
    made: dict[str, str] = {}
    if declared.delivery is None:
        return made
    made["rbac.yaml"] = HEADER + text(account_objects(declared))
    name = "deployment.yaml" if isinstance(declared.delivery, Deployed) else "static-pod.yaml"
    explained = _explained(declared) if isinstance(declared.delivery, StaticPodDelivery) else ""
    made[name] = HEADER + explained + text([workload(declared) or {}])
    if budgets := disruption_budgets(declared):
        made["disruption-budget.yaml"] = HEADER + text(budgets)
    instead = declared.as_deployment()
    if instead is not None and instead is not declared:
        made["as-deployment.yaml"] = HEADER + _instead(declared) + text(operator_objects(instead))
    for part in declared.parts:
        if part.objects:
            made[f"{part.name}.yaml"] = HEADER + text(part_objects(part))
    return {f"{declared.name}/{name}": content for name, content in made.items()}


def operator_objects(declared: Declaration) -> list[Object]:
    """The objects that run an operator: account, rights, Deployment."""
    found = workload(declared)
    return [*account_objects(declared), *filter(None, [found]), *disruption_budgets(declared)]


def _monitoring_files(declared: Declaration) -> dict[str, str]:
    rule = rule_object(declared)
    by_name = {
        "": [rule] if rule else [],
        "-service": service_monitor_objects(declared),
        "-pods": pod_monitor_objects(declared),
    }
    lines = [
        "",
        "For clusters with the Prometheus operator. Give it the labels by which your Prometheus",
        "selects objects of its kind. docs/monitoring.md tells more.",
    ]
    return {
        f"monitoring/{declared.name}{name}.yaml": HEADER + _comment(lines) + text(objects)
        for name, objects in by_name.items()
        if objects
    }


def _comment(lines: Iterable[str]) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _explained(declared: Declaration) -> str:
    """A comment on how to install a static pod on a node."""
    assert isinstance(declared.delivery, StaticPodDelivery)  # noqa: S101 - the caller has checked it
    directory = f"/etc/quarterdeck/{declared.name}"
    lines = [
        "",
        "For the kubelet's directory of static pods, with your image, on each control plane node:",
        f"they need not know of each other. {directory} has to have a kubeconfig for",
        f"https://localhost:6443 and a certificate of the user {declared.delivery.user} on each.",
        "docs/install.md tells how to make them. The rights are in rbac.yaml.",
    ]
    return _comment(lines)


def _instead(declared: Declaration) -> str:
    """A comment on a Deployment that stands in for a static pod."""
    lines = [
        "",
        "For clusters whose control plane nodes are not yours, in place of static-pod.yaml and",
        f"rbac.yaml. {declared.title} then depends on what runs pods in the cluster.",
    ]
    return _comment(lines)


def write(deploy: Path, wanted: Mapping[str, str]) -> list[str]:
    """Write files that differ, remove files that are no longer wanted; return the names of both.

    All manifests in `payload` are ours; elsewhere only generated files are removed.
    """
    changed = []
    for path in sorted(deploy.glob("*/**/*")):
        name = str(path.relative_to(deploy))
        if name not in wanted and _is_generated(path):
            path.unlink()
            changed.append(name)
    for name, content in wanted.items():
        path = deploy / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != content:
            path.write_text(content)
            changed.append(name)
    return sorted(changed)


def _is_generated(path: Path) -> bool:
    """Whether we generated the file: the directory may have files of others."""
    if not path.is_file():
        return False
    if path.parent.name == PAYLOAD and path.suffix == ".yaml":
        return True
    with path.open("rb") as file:
        return file.readline().startswith(b"# Generated ")
