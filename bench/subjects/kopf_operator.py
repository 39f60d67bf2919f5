"""kopf: the sample operator, a ConfigMap for each Widget."""

from typing import Any

import kopf
from kubernetes_asyncio import client, config

from bench.subjects.marks import GROUP, PLURAL, VERSION, arguments

ARGS = arguments()


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.scanning.disabled = True
    settings.posting.enabled = False
    await config.load_kube_config(config_file=ARGS.kubeconfig)
    memo.api = client.CoreV1Api(client.ApiClient())


def desired_config_map(body: kopf.Body, spec: kopf.Spec) -> dict[str, Any]:
    desired = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": body.metadata.name, "namespace": body.metadata.namespace},
        "data": {"text": spec["text"], "round": str(spec["round"])},
    }
    kopf.append_owner_reference(desired, owner=body)
    return desired


@kopf.on.create(GROUP, VERSION, PLURAL)
async def created(
    body: kopf.Body, spec: kopf.Spec, patch: kopf.Patch, memo: kopf.Memo, **_: Any
) -> None:
    desired = desired_config_map(body, spec)
    try:
        await memo.api.create_namespaced_config_map(body.metadata.namespace, desired)
    except client.ApiException as error:
        if error.status != 409:
            raise
    report(body, patch)


@kopf.on.update(GROUP, VERSION, PLURAL, field="spec")
async def changed(
    body: kopf.Body, spec: kopf.Spec, patch: kopf.Patch, memo: kopf.Memo, **_: Any
) -> None:
    desired = desired_config_map(body, spec)
    await memo.api.patch_namespaced_config_map(
        body.metadata.name, body.metadata.namespace, {"data": desired["data"]}
    )
    report(body, patch)


def report(body: kopf.Body, patch: kopf.Patch) -> None:
    patch.status["observedGeneration"] = body.metadata["generation"]
    patch.status["configMap"] = body.metadata.name
    patch.status["phase"] = "Ready"


kopf.configure(quiet=True)
kopf.run(clusterwide=True, standalone=True)
