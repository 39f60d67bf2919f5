"""The ConfigMaps and Secrets to which the config of Subscriptions refers, watched by name."""

from collections.abc import Callable, Collection, Sequence

from quarterdeck.api.meta import CONFIG_MAPS, SECRETS, Key, Object
from quarterdeck.api.operators_v1alpha1 import ConfigEntry
from quarterdeck.controller import Controller, Manager
from quarterdeck.operators.subscriptions.config.references import (
    ConfigReference,
    Kind,
    references,
    why_unresolved,
)
from quarterdeck.operators.subscriptions.names import is_object_name

MAX_WATCHED = 100
"""The most ConfigMaps, and the most Secrets, of one config: each has a watch of its own."""


MAX_NAMESPACE = 500
"""The most of all configs of a namespace: each watch is a connection, and all users share them."""


def watchable(wanted: Sequence[Key], watched: Collection[Key]) -> list[Key]:
    """Those of the wanted objects of a namespace that may be watched, beside the watched ones."""
    allowed = wanted[:MAX_WATCHED]
    new = [key for key in allowed if key not in watched]
    if not new:
        return list(allowed)
    used = sum(1 for key in watched if key.namespace == new[0].namespace)
    refused = set(new[max(0, MAX_NAMESPACE - used) :])
    return [key for key in allowed if key not in refused]


class ConfigObjects:
    """Watches what configs refer to, for the ClusterServiceVersions that they are for."""

    def __init__(self, manager: Manager, controller: Controller) -> None:
        """Wake a key of the controller when something that it needs changes."""
        self._config_maps = manager.named(CONFIG_MAPS, controller)
        self._secrets = manager.named(SECRETS, controller)

    def unread(self, csv: Key, config: Sequence[ConfigEntry]) -> bool:
        """Watch what the config refers to; whether some of it is not read yet."""
        needed = [one for entry in config for one in references(entry) if is_object_name(one.name)]
        unread = False
        for kind, objects in (("ConfigMap", self._config_maps), ("Secret", self._secrets)):
            names = dict.fromkeys(one.name for one in needed if one.kind == kind)
            wanted = [Key(csv.namespace, name) for name in names]
            allowed = watchable(wanted, objects.watched) if wanted else []
            unread |= bool(objects.watch(csv, allowed))
        return unread

    def forget(self, csv: Key) -> None:
        """Watch nothing for this ClusterServiceVersion any more."""
        self._config_maps.watch(csv, [])
        self._secrets.watch(csv, [])

    def lookup(self, namespace: str) -> Callable[[ConfigReference], str]:
        """Tells why a reference cannot be resolved in the namespace; empty if it can."""

        def find(kind: Kind, name: str) -> Object | None:
            objects = self._config_maps if kind == "ConfigMap" else self._secrets
            return objects.get(Key(namespace, name))

        def why(reference: ConfigReference) -> str:
            key = Key(namespace, reference.name)
            if is_object_name(reference.name) and not self._is_watched(reference.kind, key):
                return (
                    f"the config refers to more than {MAX_WATCHED} objects of this kind, or all "
                    f"configs of the namespace to more than {MAX_NAMESPACE}"
                )
            return why_unresolved(reference, find)

        return why

    def _is_watched(self, kind: Kind, key: Key) -> bool:
        return key in (self._config_maps if kind == "ConfigMap" else self._secrets).watched
