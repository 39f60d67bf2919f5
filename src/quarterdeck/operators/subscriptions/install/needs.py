"""Watches what ClusterServiceVersions need of the cluster: definitions, and its version."""

from collections.abc import Collection, Mapping

import msgspec

from quarterdeck.api.meta import CRDS, Key, Object
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion
from quarterdeck.controller import Controller, Manager, Objects
from quarterdeck.controller.metadata import key_of
from quarterdeck.operators.subscriptions.install.requirements import missing_requirements
from quarterdeck.operators.subscriptions.names import is_object_name
from quarterdeck.versions import Version, parse_version

MAX_FOREIGN = 100
"""The most definitions of one version that no Subscription installed: each has a watch."""
MAX_NAMESPACE = 500
"""The most of all versions of a namespace: each watch is a connection, and all users share them."""


class Needs:
    """Finds what is missing for a ClusterServiceVersion."""

    def __init__(
        self, manager: Manager, controller: Controller, definitions: Objects[Object]
    ) -> None:
        """Wake a key of the controller when a definition changes that it needs."""
        self._client = manager.replica_client
        self._ours = definitions
        self._others = manager.named(CRDS, controller)
        self._watched: dict[Key, frozenset[Key]] = {}
        self._kubernetes: Version | None = None

    async def missing(self, csv: ClusterServiceVersion) -> list[str] | None:
        """What is missing, for people; None while something is not read yet."""
        kinds = csv.spec.customresourcedefinitions
        listed = (*kinds.owned, *kinds.required)
        names = [Key("", one.name) for one in listed if is_object_name(one.name)]
        foreign = frozenset(name for name in names if self._ours.get(name) is None)
        key = key_of(csv)
        if why := too_many(key, foreign, self._watched):
            self.forget(key)
            return [why]
        if foreign:
            self._watched[key] = foreign
        else:
            self._watched.pop(key, None)
        if self._others.watch(key, foreign):
            return None
        kubernetes = await self._kubernetes_version() if csv.spec.min_kube_version else None
        return missing_requirements(csv, self._definition, kubernetes)

    def forget(self, csv: Key) -> None:
        """Watch nothing for this ClusterServiceVersion any more."""
        self._others.watch(csv, [])
        self._watched.pop(csv, None)

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


def too_many(csv: Key, wanted: Collection[Key], watched: Mapping[Key, frozenset[Key]]) -> str:
    """Why these definitions cannot be watched for a version; empty if they can. Pure.

    `watched` are those that are watched for each version now.
    """
    if len(wanted) > MAX_FOREIGN:
        return f"it needs more than {MAX_FOREIGN} definitions that no Subscription has installed"
    if not set(wanted) - watched.get(csv, frozenset()):
        return ""
    others = [names for key, names in watched.items() if key.namespace == csv.namespace]
    if len(set(wanted).union(*others)) > MAX_NAMESPACE:
        return (
            f"the versions in this namespace need more than {MAX_NAMESPACE} definitions that no "
            "Subscription has installed"
        )
    return ""
