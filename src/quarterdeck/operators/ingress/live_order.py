"""Gives the lists of a desired pod the order that the live pod has. Pure.

For volumes, mounts, containers and our variables, which do not refer to each other, another order
means the same. But a pod template in another order rolls the pods.
"""

from typing import Any

from quarterdeck.api.meta import Object

_POD_LISTS = {"containers": "name", "volumes": "name"}
_CONTAINER_LISTS = {"env": "name", "volumeMounts": "mountPath"}
"""The lists and the field that identifies an entry."""


def in_live_order(desired: Object, live: Object | None) -> Object:
    """The desired Deployment in the order of the live one; new entries come last."""
    if live is None:
        return desired
    template = desired["spec"]["template"]
    live_pod = live["spec"]["template"]["spec"]
    pod = _ordered(template["spec"], live_pod, _POD_LISTS)
    live_containers = {one["name"]: one for one in live_pod.get("containers") or ()}
    pod["containers"] = [
        _ordered(one, live_containers.get(one["name"], {}), _CONTAINER_LISTS)
        for one in pod["containers"]
    ]
    return desired | {"spec": desired["spec"] | {"template": template | {"spec": pod}}}


def _ordered(desired: Object, live: Object, lists: dict[str, str]) -> Object:
    made = dict(desired)
    for field, key in lists.items():
        if field in desired:
            places: dict[Any, int] = {
                entry.get(key): place for place, entry in enumerate(live.get(field) or ())
            }
            # The sort is stable: entries that are new keep their own order.
            made[field] = sorted(
                desired[field], key=lambda entry: places.get(entry[key], len(places))
            )
    return made
