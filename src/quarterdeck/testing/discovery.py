"""The kinds that an API server serves, read by single requests."""

from collections.abc import Iterator
from typing import NamedTuple

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.localcluster.errors import LocalClusterError

_ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class ServedResource(NamedTuple):
    """A resource in one version of its group."""

    base: str
    """The path of the group's version: `/apis/apps/v1`."""
    group: str
    described: Object
    """What discovery says of it."""

    @property
    def plural(self) -> str:
        """The name of the resource in paths."""
        return str(self.described["resource"])

    @property
    def namespaced(self) -> bool:
        """Whether its objects are in namespaces."""
        return bool(self.described["scope"] == "Namespaced")


def served_resources(requests: Requests) -> Iterator[ServedResource]:
    """All resources, those of a group's preferred version first.

    Another version of a group may have resources that the preferred one lacks.
    """
    for root in ("/api", "/apis"):
        answer = requests.send("GET", root, accept=_ACCEPT)
        if not answer.ok:
            said = answer.body.decode(errors="replace")
            raise LocalClusterError(f"discovery: {answer.status} {said}")
        for group in answer.json()["items"] or ():
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                base = "/".join(filter(None, (root, name, version["version"])))
                # Null for a moment in a group with a new definition.
                for described in version.get("resources") or ():
                    yield ServedResource(base, name, described)
