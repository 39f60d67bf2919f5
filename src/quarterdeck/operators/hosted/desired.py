"""The objects that a HostedCluster gets: its control plane, in a namespace of its own. Pure.

HostedCluster → HostedControlPlane → ConfigMap, Secret and Deployment of the cluster version
operator. That operator works on the hosted cluster. In this one it has neither token nor rights.
"""

from contextlib import suppress
from hashlib import sha256
from typing import Any

import msgspec
import yaml

from quarterdeck.api.hypershift_v1beta1 import HOSTED_CONTROL_PLANES
from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operator_v1alpha1 import CLUSTER_VERSION_OPERATORS, LogLevel
from quarterdeck.controller import InvalidSpec
from quarterdeck.controller.metadata import key_of, owned_by
from quarterdeck.delivery.declaration import Declaration, Deployed, HostPath
from quarterdeck.delivery.manifests import add_host_path, deployment
from quarterdeck.operators.hosted.names import (
    CONFIG_MAP,
    DEPLOYMENT,
    KUBECONFIG,
    NAME_LABEL,
    NAMESPACE_LABEL,
    ROLE,
    control_plane_namespace,
    labels,
    namespace_labels,
)
from quarterdeck.operators.hosted.release import checked_release, reads_config
from quarterdeck.operators.hosted.settings import Settings

CONFIG_KEY = "config.yaml"
KUBECONFIG_KEY = "kubeconfig"
PROGRESS_DEADLINE = 120
"""Seconds without progress after which the status says what keeps the pods from running."""
LEVEL_FIELD = "spec.operatorConfiguration.clusterVersionOperator.operatorLogLevel"
PART_OF_HOSTED = {"app.kubernetes.io/part-of": "quarterdeck-hosted"}
"""Not the label of this cluster's own operators: their metrics are about another cluster."""
_MOUNTS = "/etc/quarterdeck/hosted"
_HASH = "quarterdeck.dev/kubeconfig-hash"
_PROFILE = "hypershift"


def desired_namespace(cluster: Object) -> Object:
    """The namespace of the control plane."""
    name = control_plane_namespace(key_of(cluster))
    return {"metadata": {"name": name, "labels": namespace_labels(cluster)}}


def desired_binding(cluster: Key, operator: Key, field_manager: str) -> Object:
    """The binding by which this operator may write in that namespace."""
    group, role = "rbac.authorization.k8s.io", f"{field_manager}-{ROLE}"
    subject = {"kind": "ServiceAccount", "name": operator.name, "namespace": operator.namespace}
    namespace = control_plane_namespace(cluster)
    return {
        "metadata": {"name": role, "namespace": namespace, "labels": labels(cluster)},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


class PlanePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The HostedControlPlane of a HostedCluster, and what is wrong with the HostedCluster."""

    plane: Object
    """Its spec has None for what has to be absent, and nothing for what is not known."""
    faults: tuple[InvalidSpec, ...] = ()

    @property
    def knows_release(self) -> bool:
        """Whether there is a valid release for the Deployment."""
        return "releaseImage" in self.plane["spec"]


def plan_plane(cluster: Object, current: Object | None, *, gate_on: bool) -> PlanePlan:
    """The HostedControlPlane as it has to be; `current` is the one that exists.

    A field of the HostedCluster that is not valid keeps its last valid value. All else is copied
    and withdrawn as usual: an invalid release must not keep a level that the gate forbids.
    """
    key, spec, faults = key_of(cluster), cluster["spec"], list[InvalidSpec]()
    had: Object = (current or {}).get("spec") or {}
    release: Object = {}
    try:
        release = _release(checked_release(spec))
    except InvalidSpec as fault:
        faults.append(fault)
        last = {"image": had.get("releaseImage"), "version": had.get("releaseVersion")}
        with suppress(InvalidSpec):
            release = _release(checked_release({"release": last}))
    configuration = None
    if gate_on:
        try:
            configuration = _configuration(spec)
        except InvalidSpec as fault:
            faults.append(fault)
            with suppress(InvalidSpec):
                configuration = _configuration(had)
    metadata = {"name": key.name, "namespace": control_plane_namespace(key), "labels": labels(key)}
    plane = {
        "apiVersion": HOSTED_CONTROL_PLANES.api_version,
        "kind": HOSTED_CONTROL_PLANES.kind,
        "metadata": metadata,
        "spec": release | {"operatorConfiguration": configuration},
    }
    return PlanePlan(plane=plane, faults=tuple(faults))


def _release(checked: tuple[str, str]) -> Object:
    image, version = checked
    return {"releaseImage": image, "releaseVersion": version}


def _configuration(spec: Object) -> Any:
    """The `operatorConfiguration` of a spec; InvalidSpec if it is not valid."""
    configuration = _without_nulls(spec.get("operatorConfiguration"))
    level_of(configuration)
    return configuration


def level_of(configuration: Object | None) -> str | None:
    """The log level in `operatorConfiguration`; None if it has none, InvalidSpec if it is none."""
    operator = (configuration or {}).get("clusterVersionOperator") or {}
    level = operator.get("operatorLogLevel")
    if level is None:
        return None
    if level not in list(LogLevel):
        raise InvalidSpec(LEVEL_FIELD, level, f"choose one of {', '.join(filter(None, LogLevel))}")
    return str(level)


def desired_config_map(plane: Object) -> Object:
    """The configuration file of the control plane's cluster version operator."""
    level = level_of(plane["spec"].get("operatorConfiguration"))
    manifest = {
        "apiVersion": CLUSTER_VERSION_OPERATORS.api_version,
        "kind": CLUSTER_VERSION_OPERATORS.kind,
        "metadata": {"name": "cluster"},
        "spec": {} if level is None else {"operatorLogLevel": level},
    }
    text = yaml.safe_dump(manifest, sort_keys=False)
    return {"metadata": _metadata(plane, CONFIG_MAP), "data": {CONFIG_KEY: text}}


def kubeconfig_in(secret: Object | None) -> str | None:
    """The kubeconfig of a Secret, encoded as there; None if it has none."""
    found = ((secret or {}).get("data") or {}).get(KUBECONFIG_KEY)
    return found if isinstance(found, str) and found else None


def desired_kubeconfig(plane: Object, kubeconfig: str) -> Object:
    """The copy of the kubeconfig: pods cannot mount a Secret of another namespace."""
    return {
        "metadata": _metadata(plane, KUBECONFIG),
        "type": "Opaque",
        "data": {KUBECONFIG_KEY: kubeconfig},
    }


def desired_deployment(plane: Object, kubeconfig: str, settings: Settings) -> Object:
    """The Deployment of the control plane's cluster version operator.

    A new kubeconfig needs new pods; a new configuration does not, because the operator follows it.
    """
    spec = plane["spec"]
    version, has_config = spec["releaseVersion"], reads_config(spec["releaseVersion"])
    args = [
        f"--kubeconfig={_MOUNTS}/{KUBECONFIG}/{KUBECONFIG_KEY}",
        "--lease-namespace=kube-system",
        f"--cluster-profile={_PROFILE}",
    ]
    if settings.hosted_releases:
        args.append("--releases=/releases")
    if has_config:
        args.append(f"--config={_MOUNTS}/{CONFIG_MAP}/{CONFIG_KEY}")
    made = _operator_deployment(spec["releaseImage"], args, settings.hosted_replicas)
    made["metadata"] = _metadata(plane, DEPLOYMENT)
    made["spec"]["progressDeadlineSeconds"] = PROGRESS_DEADLINE
    template = made["spec"]["template"]
    template["metadata"]["labels"] |= PART_OF_HOSTED
    template["metadata"]["annotations"] = {_HASH: sha256(kubeconfig.encode()).hexdigest()[:16]}
    pod = template["spec"]
    del pod["serviceAccountName"]
    pod["automountServiceAccountToken"] = False
    (container,) = pod["containers"]
    for variable in container["env"]:
        if variable["name"] == "RELEASE_VERSION":
            variable["value"] = version
    volumes: list[Object] = [{"name": KUBECONFIG, "secret": {"secretName": KUBECONFIG}}]
    if has_config:
        volumes.append({"name": CONFIG_MAP, "configMap": {"name": CONFIG_MAP}})
    pod["volumes"] = volumes
    container["volumeMounts"] = [
        {"name": one["name"], "mountPath": f"{_MOUNTS}/{one['name']}", "readOnly": True}
        for one in volumes
    ]
    if settings.hosted_releases:
        add_host_path(pod, HostPath("releases", settings.hosted_releases, "/releases"))
    return made


def _without_nulls(value: Any) -> Any:
    """The value without its nulls, which mean nothing: no merge patch could write them."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value if inner is not None]
    return value


def _operator_deployment(image: str, args: list[str], replicas: int) -> Object:
    """A Deployment of the cluster version operator, like that of every operator."""
    delivery = Deployed(image=image, args=tuple(args), replicas=replicas, memory_limit="1Gi")
    declared = Declaration(
        name="cluster-version",
        title="The cluster version operator of a hosted cluster",
        setup="quarterdeck.operators.cluster_version.controller:setup",
        namespace="hosted",
        account=DEPLOYMENT,
        delivery=delivery,
    )
    return deployment(declared, delivery)


def _metadata(plane: Object, name: str) -> Object:
    given = plane["metadata"]["labels"]
    cluster = Key(given[NAMESPACE_LABEL], given[NAME_LABEL])
    return {"name": name, "labels": labels(cluster), **owned_by(plane)}
