"""The ConfigMaps and Secrets to which the config of Subscriptions refers, watched by name."""

from collections.abc import Callable, Iterable, Sequence

from quarterdeck.api.meta import CONFIG_MAPS, SECRETS, Key, Object
from quarterdeck.api.operators_v1alpha1 import ConfigEntry
from quarterdeck.controller import Controller, Manager
from quarterdeck.operators.subscriptions.config.references import (
    Kind,
    Reference,
    references,
    why_unresolved,
)
from quarterdeck.operators.subscriptions.names import is_object_name

MAX_WATCHED = 100
"""The most ConfigMaps, and the most Secrets, of one config: each has a watch of its own."""


def _keys(namespace: str, names: Iterable[str]) -> list[Key]:
    return [Key(namespace, name) for name in dict.fromkeys(names)][:MAX_WATCHED]


class ConfigObjects:
    """Watches what configs refer to, for the ClusterServiceVersions that they are for."""

    def __init__(self, manager: Manager, controller: Controller) -> None:
        """Wake a key of the controller when something that it needs changes."""
        self._config_maps = manager.named(CONFIG_MAPS, controller)
        self._secrets = manager.named(SECRETS, controller)

    def unread(self, csv: Key, config: Sequence[ConfigEntry]) -> bool:
        """Watch what the config refers to; whether some of it is not read yet."""
        needed = [one for entry in config for one in references(entry) if is_object_name(one.name)]
        names: dict[Kind, list[Key]] = {
            kind: _keys(csv.namespace, (one.name for one in needed if one.kind == kind))
            for kind in ("ConfigMap", "Secret")
        }
        maps = self._config_maps.watch(csv, names["ConfigMap"])
        secrets = self._secrets.watch(csv, names["Secret"])
        return bool(maps or secrets)

    def forget(self, csv: Key) -> None:
        """Watch nothing for this ClusterServiceVersion any more."""
        self._config_maps.watch(csv, [])
        self._secrets.watch(csv, [])

    def lookup(self, namespace: str) -> Callable[[Reference], str]:
        """Tells why a reference cannot be resolved in the namespace; empty if it can."""

        def find(kind: Kind, name: str) -> Object | None:
            objects = self._config_maps if kind == "ConfigMap" else self._secrets
            return objects.get(Key(namespace, name))

        def why(reference: Reference) -> str:
            key = Key(namespace, reference.name)
            if is_object_name(reference.name) and not self._is_watched(reference.kind, key):
                return f"the config refers to more than {MAX_WATCHED} objects of this kind"
            return why_unresolved(reference, find)

        return why

    def _is_watched(self, kind: Kind, key: Key) -> bool:
        return key in (self._config_maps if kind == "ConfigMap" else self._secrets).watched
