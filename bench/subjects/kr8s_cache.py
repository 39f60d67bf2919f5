"""kr8s: list and watch into a dictionary."""

import asyncio
from typing import Any

import kr8s
from kr8s.asyncio.objects import new_class

from bench.subjects.marks import GROUP, KIND, PLURAL, VERSION, arguments, mark


async def main() -> None:
    args = arguments()
    api = await kr8s.asyncio.api(kubeconfig=args.kubeconfig)
    widgets = new_class(kind=KIND, version=f"{GROUP}/{VERSION}", namespaced=True, plural=PLURAL)
    objects: dict[str, Any] = {}
    version = 0
    async for obj in api.get(widgets, namespace=kr8s.ALL):
        objects[obj.name] = obj
        # kr8s does not tell the version of the list.
        version = max(version, int(obj.metadata.resourceVersion))
    mark("synced", len(objects))
    seen = 0
    # It cannot watch from the list without a gap or a repetition; here both versions are known.
    async for _, obj in api.watch(widgets, namespace=kr8s.ALL, since=str(version + 1)):
        objects[obj.name] = obj
        seen += 1
        if seen == args.events:
            mark("done", seen)


asyncio.run(main())
