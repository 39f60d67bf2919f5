"""Merges a Subscription's config and the cluster's proxy into a Deployment of a CSV. Pure.

Entries apply in order, each to the Deployments whose pod template labels in the CSV match. The
rules per field are in `rules`. The result says for each field where it came from.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.operators_v1alpha1 import ConfigEntry, NamedDeployment
from quarterdeck.controller import InvalidSpec
from quarterdeck.controller.selection import selector_in
from quarterdeck.operators.subscriptions.config.origins import (
    ANNOTATIONS,
    OLM,
    POD,
    PROXY,
    FieldOrigin,
    Ledger,
    config_source,
    container_path,
)
from quarterdeck.operators.subscriptions.config.rules import (
    append_missing,
    merge_affinity,
    merge_by_key,
    merge_map,
    replace,
)

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
TEMPLATE = "spec.template.metadata"
MAX_ITEMS = 5_000
"""The most variables, sources and mounts that a config adds to the containers of a Deployment. Each
container gets them, so a small config can become huge."""


class MergedDeployment(msgspec.Struct, frozen=True, kw_only=True):
    """A Deployment of a CSV with the configuration."""

    name: str
    deployment: Object
    """Labels and annotations in its metadata, and its spec; the installer adds the rest."""
    ledger: Ledger
    entries: tuple[int, ...]
    """The positions of the entries that apply to it."""
    too_large: str = ""
    """Why the entries are not merged; empty if they are."""

    @property
    def origins(self) -> tuple[FieldOrigin, ...]:
        """The origin of every field."""
        return self.ledger.origins(self.deployment)


def merged(
    deployment: NamedDeployment,
    config: Sequence[ConfigEntry],
    proxy: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> MergedDeployment:
    """The Deployment with the config, the proxy's variables and the annotations of the pods.

    An entry whose selector is invalid applies to nothing.
    """
    ledger = Ledger()
    result: Object = {
        "metadata": {"labels": dict(deployment.label)} if deployment.label else {},
        "spec": copy.deepcopy(deployment.spec),
    }
    template = result["spec"].setdefault("template", {})
    pod = template.setdefault("spec", {})
    for _, container in _containers(pod):
        _drop_repeated_variables(container)
    if annotations:
        meta = template.setdefault("metadata", {})
        merge_map(meta, "annotations", annotations, TEMPLATE, OLM, ledger)
    applied = tuple(
        index for index, entry in enumerate(config) if applies(entry, deployment, index)
    )
    too_large = _too_large(pod, [config[index] for index in applied])
    for index in () if too_large else applied:
        _apply(result, config[index], config_source(index), ledger)
    if proxy and not overrides_proxy(config):
        variables = [{"name": name, "value": value} for name, value in proxy.items()]
        for container in pod.get("containers") or ():
            path = container_path(container)
            merge_by_key(container, "env", "name", variables, path, PROXY, ledger)
    return MergedDeployment(
        name=deployment.name,
        deployment=result,
        ledger=ledger,
        entries=applied,
        too_large=too_large,
    )


def _too_large(pod: Object, entries: Sequence[ConfigEntry]) -> str:
    """Why these entries are too much for the containers of the pod; empty if they are not."""
    total = 0
    for entry in entries:
        items = len(entry.env) + len(entry.env_from) + len(entry.volume_mounts)
        total += items * sum(1 for _ in selected_containers(entry, pod))
    if total <= MAX_ITEMS:
        return ""
    return (
        f"the entries add {total:,} variables, sources and mounts to the containers, more than "
        f"{MAX_ITEMS:,}"
    )


def applies(entry: ConfigEntry, deployment: NamedDeployment, index: int = 0) -> bool:
    """Whether the entry is for this Deployment, by its name and its pod template's labels."""
    if entry.deployments and deployment.name not in entry.deployments:
        return False
    template = deployment.spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    try:
        selector = selector_in(f"spec.config[{index}].selector", entry.selector)
    except InvalidSpec:
        return False
    return selector is None or selector.matches(labels)


def overrides_proxy(config: Sequence[ConfigEntry]) -> bool:
    """Whether the config sets one of the proxy's variables, and so none of them is added."""
    return any(item.get("name") in PROXY_VARIABLES for entry in config for item in entry.env)


def selected_containers(entry: ConfigEntry, pod: Object) -> Iterator[tuple[str, Object]]:
    """The containers that an entry is for, with their paths.

    Without names these are all containers; an init container only counts if it is named.
    """
    for path, container in _containers(pod):
        named = container.get("name") in entry.containers
        if named or (not entry.containers and path.startswith(f"{POD}.containers")):
            yield path, container


def _apply(result: Object, entry: ConfigEntry, source: str, ledger: Ledger) -> None:
    template = result["spec"]["template"]
    pod = template["spec"]
    for path, container in selected_containers(entry, pod):
        merge_by_key(container, "env", "name", entry.env, path, source, ledger)
        append_missing(container, "envFrom", entry.env_from, path, source, ledger)
        mounts = entry.volume_mounts
        merge_by_key(container, "volumeMounts", "mountPath", mounts, path, source, ledger)
        replace(container, "resources", entry.resources, path, source, ledger)
    merge_by_key(pod, "volumes", "name", entry.volumes, POD, source, ledger)
    append_missing(pod, "tolerations", entry.tolerations, POD, source, ledger)
    replace(pod, "nodeSelector", entry.node_selector, POD, source, ledger)
    merge_affinity(pod, entry.affinity, POD, source, ledger)
    if entry.annotations:
        own = ANNOTATIONS.rpartition(".")[0]
        merge_map(result["metadata"], "annotations", entry.annotations, own, source, ledger)
        meta = template.setdefault("metadata", {})
        merge_map(meta, "annotations", entry.annotations, TEMPLATE, source, ledger)


def _containers(pod: Object) -> Iterator[tuple[str, Object]]:
    for name in ("containers", "initContainers"):
        for container in pod.get(name) or ():
            yield container_path(container, init=name == "initContainers"), container


def _drop_repeated_variables(container: Object) -> None:
    """Keep the last of several variables of one name, as a process sees it.

    Server-side apply refuses a list of variables with the same name twice.
    """
    variables = container.get("env") or []
    last = {item.get("name"): position for position, item in enumerate(variables)}
    if len(last) < len(variables):
        container["env"] = [
            item for position, item in enumerate(variables) if last[item.get("name")] == position
        ]
