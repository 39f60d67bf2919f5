"""kubernetes, the official client: list and watch into a dictionary."""

from typing import Any

from kubernetes import client, config, watch

from bench.subjects.marks import GROUP, PLURAL, VERSION, arguments, mark


def main() -> None:
    args = arguments()
    config.load_kube_config(config_file=args.kubeconfig)
    api = client.CustomObjectsApi()
    listed = api.list_cluster_custom_object(GROUP, VERSION, PLURAL)
    objects: dict[str, Any] = {obj["metadata"]["name"]: obj for obj in listed["items"]}
    version = listed["metadata"]["resourceVersion"]
    del listed
    mark("synced", len(objects))
    stream = watch.Watch().stream(
        api.list_cluster_custom_object, GROUP, VERSION, PLURAL, resource_version=version
    )
    for seen, event in enumerate(stream, 1):
        obj = event["object"]
        objects[obj["metadata"]["name"]] = obj
        if seen == args.events:
            mark("done", seen)


main()
