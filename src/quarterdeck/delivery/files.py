"""The files of operators, which `make generate` writes into `deploy`.

`crds` has the resource types, a directory for each operator its manifests, and `payload` the
release payload of all operators. `monitoring` has a ServiceMonitor for each operator; its alerts
are written by hand.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.definition_text import definition_text
from quarterdeck.api.meta import Object
from quarterdeck.delivery.console import console_objects
from quarterdeck.delivery.declaration import Declaration, Deployed, StaticPodDelivery
from quarterdeck.delivery.manifests import account_objects, custom_resource, part_objects, workload
from quarterdeck.delivery.monitoring import service_monitor_objects
from quarterdeck.delivery.payload import payload

HEADER = "# Generated from what its operator declares: change that, and generate again.\n"
PAYLOAD = "payload"


class _ManifestDumper(yaml.CSafeDumper):
    """Writes no references within a document."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def text(objects: Iterable[Object]) -> str:
    """The objects as YAML, the same in every run."""
    return yaml.dump_all(objects, Dumper=_ManifestDumper, sort_keys=False, width=100)


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
    for part in declared.parts:
        if part.objects:
            made[f"{part.name}.yaml"] = HEADER + text(part_objects(part))
    return {f"{declared.name}/{name}": content for name, content in made.items()}


def _monitoring_files(declared: Declaration) -> dict[str, str]:
    objects = service_monitor_objects(declared)
    if not objects:
        return {}
    lines = [
        "",
        "For clusters with the Prometheus operator, in place of a PodMonitor of all operators.",
        "Give the ServiceMonitor the labels that your Prometheus selects ServiceMonitors by. Its",
        "account needs get, list and watch of services, endpoints and pods in the namespace",
        f"{declared.namespace}.",
    ]
    content = HEADER + _comment(lines) + text(objects)
    return {f"monitoring/{declared.name}-service.yaml": content}


def _comment(lines: Iterable[str]) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _explained(declared: Declaration) -> str:
    """A comment on how to install a static pod on a node."""
    assert isinstance(declared.delivery, StaticPodDelivery)  # noqa: S101 - the caller has checked it
    directory = f"/etc/quarterdeck/{declared.name}"
    lines = [
        "",
        f"On the node: put a kubeconfig with the certificate of the user {declared.delivery.user}",
        f"and the server https://localhost:6443 into {directory}/kubeconfig (mode 0600), set the",
        "image to yours, and this file into the kubelet's directory of static pods. Its rights are",
        "in rbac.yaml. One on each control plane node is fine: they need not know of each other.",
    ]
    return _comment(lines)


def write(deploy: Path, wanted: Mapping[str, str]) -> list[str]:
    """Write files that differ, remove files that are no longer wanted; return the names of both.

    All manifests in `payload` are ours; elsewhere only generated files are removed.
    """
    changed = []
    for path in sorted(deploy.glob("*/*")):
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
