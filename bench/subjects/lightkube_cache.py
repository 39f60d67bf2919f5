"""lightkube: list and watch into a dictionary."""

import asyncio
from typing import Any

from lightkube import AsyncClient, KubeConfig
from lightkube.generic_resource import create_namespaced_resource

from bench.subjects.marks import GROUP, KIND, PLURAL, VERSION, arguments, mark


async def main() -> None:
    args = arguments()
    client = AsyncClient(config=KubeConfig.from_file(args.kubeconfig))
    widgets = create_namespaced_resource(GROUP, VERSION, KIND, PLURAL)
    listed = client.list(widgets, namespace="*")
    objects: dict[str, Any] = {obj.metadata.name: obj async for obj in listed}
    mark("synced", len(objects))
    seen = 0
    version = listed.resourceVersion
    async for _, obj in client.watch(widgets, namespace="*", resource_version=version):
        objects[obj.metadata.name] = obj
        seen += 1
        if seen == args.events:
            mark("done", seen)


asyncio.run(main())
