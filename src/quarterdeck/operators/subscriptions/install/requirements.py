"""What a ClusterServiceVersion needs before it can be installed. Pure."""

from collections.abc import Callable

from quarterdeck.api.meta import Object
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion
from quarterdeck.status import rollout
from quarterdeck.versions import Version, parse_version

Find = Callable[[str], Object | None]


def missing_requirements(
    csv: ClusterServiceVersion, find: Find, kubernetes: Version | None
) -> list[str]:
    """What is missing: a version of Kubernetes, or definitions that are not there or not served.

    `find` gives a definition by its name.
    """
    kinds = csv.spec.customresourcedefinitions
    found = []
    wanted = parse_version((csv.spec.min_kube_version or "").removeprefix("v"))
    if wanted is not None and kubernetes is not None and kubernetes < wanted:
        found.append(f"it needs Kubernetes {csv.spec.min_kube_version} or newer")
    for one, what in (
        *((one, "its own") for one in kinds.owned),
        *((one, "the required") for one in kinds.required),
    ):
        live = find(one.name)
        subject = f"{what} CustomResourceDefinition {one.name}"
        if live is None:
            found.append(f"{subject} does not exist")
        elif not isinstance(rollout.definition(live), rollout.Done):
            found.append(f"{subject} is not established")
        elif one.version not in _served(live):
            found.append(f"{subject} does not serve {one.version}")
    return found


def _served(live: Object) -> set[str]:
    return {version["name"] for version in live["spec"]["versions"] if version.get("served")}
