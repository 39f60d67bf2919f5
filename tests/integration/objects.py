"""Objects that integration tests of several parts make."""

from quarterdeck.api.meta import Object


def config_map(
    namespace: str, name: str = "x", annotations: Object | None = None, **data: str
) -> Object:
    """A ConfigMap with these data."""
    metadata: Object = {"namespace": namespace, "name": name}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def definition(group: str, kind: str, *versions: str, spec: Object | None = None) -> Object:
    """The CRD of a namespaced kind, stored as `v1`; without a schema its spec takes anything."""
    if spec is None:
        spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {"name": version, "served": True, "storage": version == "v1", "schema": schema}
                for version in versions or ("v1",)
            ],
        },
    }
