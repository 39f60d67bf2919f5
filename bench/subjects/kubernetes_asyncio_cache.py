"""kubernetes-asyncio: list and watch into a dictionary."""

import asyncio
from typing import Any

from kubernetes_asyncio import client, config, watch

from bench.subjects.marks import GROUP, PLURAL, VERSION, arguments, mark


async def main() -> None:
    args = arguments()
    await config.load_kube_config(config_file=args.kubeconfig)
    async with client.ApiClient() as connection:
        api = client.CustomObjectsApi(connection)
        listed = await api.list_cluster_custom_object(GROUP, VERSION, PLURAL)
        objects: dict[str, Any] = {obj["metadata"]["name"]: obj for obj in listed["items"]}
        version = listed["metadata"]["resourceVersion"]
        del listed
        mark("synced", len(objects))
        seen = 0
        stream = watch.Watch().stream(
            api.list_cluster_custom_object, GROUP, VERSION, PLURAL, resource_version=version
        )
        async for event in stream:
            obj = event["object"]
            objects[obj["metadata"]["name"]] = obj
            seen += 1
            if seen == args.events:
                mark("done", seen)


asyncio.run(main())
