"""Quarterdeck: the sample operator, a ConfigMap for each Widget."""

import asyncio
from typing import Any

from bench.subjects.marks import arguments, mark
from bench.subjects.quarterdeck_widgets import WIDGETS, Widget, WidgetStatus, run
from quarterdeck.api.meta import CONFIG_MAPS, Key, Object
from quarterdeck.controller import DONE, Controller, Manager, Result, Watch, to_owner
from quarterdeck.kube import Cache


def desired_config_map(widget: Widget) -> Object:
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {
            "name": widget.metadata.name,
            "namespace": widget.metadata.namespace,
            "ownerReferences": [
                {
                    "apiVersion": WIDGETS.api_version,
                    "kind": WIDGETS.kind,
                    "name": widget.metadata.name,
                    "uid": widget.metadata.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "data": {"text": widget.spec.text, "round": str(widget.spec.round)},
    }


def desired_status(widget: Widget) -> WidgetStatus:
    return WidgetStatus(
        observed_generation=widget.metadata.generation,
        config_map=widget.metadata.name,
        phase="Ready",
    )


def main() -> None:
    args = arguments()

    def setup(manager: Manager) -> None:
        widgets = manager.objects(WIDGETS, writes=["status"])
        config_maps = manager.objects(CONFIG_MAPS, writes=["ensure"])

        async def reconcile(key: Key) -> Result:
            if (widget := widgets.get(key)) is not None:
                await config_maps.ensure(desired_config_map(widget))
                await widgets.set_status(widget, desired_status(widget))
            return DONE

        watches: list[Watch] = [Watch(widgets), Watch(config_maps, to_owner(WIDGETS))]
        manager.add(Controller("widget", reconcile, watches, workers=args.workers))
        caches: list[Cache[Any]] = [widgets.cache, config_maps.cache]
        tasks.append(asyncio.create_task(say_when_synced(caches)))

    tasks: list[asyncio.Task[None]] = []
    asyncio.run(run(setup, args.kubeconfig))


async def say_when_synced(caches: list[Cache[Any]]) -> None:
    for cache in caches:
        await cache.wait_synced()
    mark("synced")


main()
