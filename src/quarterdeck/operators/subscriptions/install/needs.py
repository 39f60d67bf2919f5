"""Watches what ClusterServiceVersions need of the cluster: definitions, and its version."""

import msgspec

from quarterdeck.api.meta import CRDS, Key, Object
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion
from quarterdeck.controller import Controller, Manager, Objects
from quarterdeck.controller.metadata import key_of
from quarterdeck.operators.subscriptions.install.requirements import missing_requirements
from quarterdeck.operators.subscriptions.names import is_object_name
from quarterdeck.versions import Version, parse_version


class Needs:
    """Finds what is missing for a ClusterServiceVersion."""

    def __init__(
        self, manager: Manager, controller: Controller, definitions: Objects[Object]
    ) -> None:
        """Wake a key of the controller when a definition changes that it needs."""
        self._client = manager.replica_client
        self._ours = definitions
        self._others = manager.named(CRDS, controller)
        self._kubernetes: Version | None = None

    async def missing(self, csv: ClusterServiceVersion) -> list[str] | None:
        """What is missing, for people; None while something is not read yet."""
        kinds = csv.spec.customresourcedefinitions
        listed = (*kinds.owned, *kinds.required)
        names = [Key("", one.name) for one in listed if is_object_name(one.name)]
        foreign = [name for name in names if self._ours.get(name) is None]
        if self._others.watch(key_of(csv), foreign):
            return None
        kubernetes = await self._kubernetes_version() if csv.spec.min_kube_version else None
        return missing_requirements(csv, self._definition, kubernetes)

    def forget(self, csv: Key) -> None:
        """Watch nothing for this ClusterServiceVersion any more."""
        self._others.watch(csv, [])

    def _definition(self, name: str) -> Object | None:
        key = Key("", name)
        return self._ours.get(key) or self._others.get(key)

    async def _kubernetes_version(self) -> Version | None:
        """The API server's version, asked for once."""
        if self._kubernetes is None:
            body = await self._client.raw("/version")
            told = msgspec.json.decode(body, type=dict[str, str]).get("gitVersion", "")
            self._kubernetes = parse_version(told.removeprefix("v"))
        return self._kubernetes
