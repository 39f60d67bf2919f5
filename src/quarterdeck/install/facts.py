"""What is known about a cluster before anything is installed or removed. Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.status.definitions import is_foreign

CLUSTER_VERSIONS = "clusterversions.config.openshift.io"
"""The definition that every OpenShift cluster has."""
OPENSHIFT_GROUPS = frozenset({"route.openshift.io", "security.openshift.io"})
"""API groups that only OpenShift's own API servers serve."""


Identity = tuple[str, str, str]
"""Kind, namespace and name of an object."""


def identity(obj: Object) -> Identity:
    """The kind, namespace and name of an object."""
    metadata = obj["metadata"]
    return str(obj["kind"]), str(metadata.get("namespace") or ""), str(metadata["name"])


class NeededRight(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Something that an installation or a removal does, for which the user needs a right."""

    group: str
    resource: str
    """With the subresource, as `notes/status`."""
    verb: str
    namespace: str = ""
    name: str = ""


def described(rights: Iterable[NeededRight]) -> str:
    """Rights for people, the verbs on one resource together."""
    verbs: dict[str, list[str]] = {}
    for right in rights:
        resource, slash, subresource = right.resource.partition("/")
        kind = f"{resource}.{right.group}" if right.group else resource
        what = f"{kind}{slash}{subresource}" + (f" {right.name}" if right.name else "")
        where = f" in {right.namespace}" if right.namespace else ""
        verbs.setdefault(what + where, []).append(right.verb)
    return "; ".join(f"{', '.join(sorted(set(found)))} {what}" for what, found in verbs.items())


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The observed cluster."""

    server_version: str
    """The API server's `gitVersion`."""
    groups: frozenset[str] = frozenset()
    """The API groups that are served."""
    definitions: Mapping[str, Object] = {}
    """The CustomResourceDefinitions in the cluster, by name."""
    unreadable: tuple[NeededRight, ...] = ()
    """What the user may not read."""
    reporting: frozenset[str] = frozenset()
    """The ClusterOperators that operators of others report in."""
    cluster_version: Object | None = None
    """The ClusterVersion `version`, if there is one."""
    applier: Object | None = None
    """The Deployment of the operator that applies releases, if there is one."""
    all_in_one: Object | None = None
    """The Deployment of all operators in one, if there is one."""

    @property
    def foreign(self) -> dict[str, str]:
        """The definitions that somebody else installed, with their field managers."""
        return {
            name: managers_of(live) for name, live in self.definitions.items() if is_foreign(live)
        }

    @property
    def is_openshift(self) -> bool:
        """Whether another cluster version operator is in charge here."""
        return bool(self.groups & OPENSHIFT_GROUPS) or CLUSTER_VERSIONS in self.foreign

    @property
    def release(self) -> str:
        """The version of our release that the cluster has or gets; empty if it has none."""
        return str(self._newest.get("version") or "")

    @property
    def release_image(self) -> str:
        """The image of that release; empty if it has none."""
        return str(self._newest.get("image") or "")

    @property
    def _newest(self) -> Object:
        """The newest entry of the history, if the release is one of ours."""
        if self.is_openshift or self.applier is None or is_foreign(self.applier):
            return {}
        status = (self.cluster_version or {}).get("status") or {}
        history = status.get("history") or [{}]
        newest: Object = history[0]
        return newest


def managers_of(live: Object) -> str:
    """The field managers of an object, for people."""
    entries = live["metadata"].get("managedFields") or ()
    found = {str(one.get("manager")) for one in entries if not one.get("subresource")}
    return ", ".join(sorted(found)) or "somebody else"
