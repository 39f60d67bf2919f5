"""What an IngressController means, and what a change of it would do. Pure.

`inspect` reads the live objects and asks HAProxy; the command `ingress explain` shows the result.
"""

import re
from collections.abc import Iterator
from datetime import timedelta

import msgspec

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operator_v1 import IngressController
from quarterdeck.controller import key_of
from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.access_log_lines import access_log_lines
from quarterdeck.kube.compare import differences
from quarterdeck.operators.ingress.access_logging import router_environment
from quarterdeck.operators.ingress.admission import Admission
from quarterdeck.operators.ingress.live_order import in_live_order
from quarterdeck.operators.ingress.logging.access.destination.container import OMSTDOUT
from quarterdeck.operators.ingress.operands import Operands, desired_config_map, desired_operands
from quarterdeck.operators.ingress.router_pod import (
    EXTERNAL_NAMES,
    LOOPBACK_BACKENDS,
    ROUTER,
    STOP_DELAY,
    logging_additions,
    router_variables,
)
from quarterdeck.operators.ingress.settings import Settings

FIELD_MANAGER = "quarterdeck-ingress"
_TEMPLATE = "spec.template"


class LiveObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of an IngressController in a cluster."""

    deployment: Object | None = None
    services: tuple[Object, ...] = ()
    config_maps: tuple[Object, ...] = ()
    ingress_class: Object | None = None


class Section(msgspec.Struct, frozen=True):
    """Lines of haproxy.cfg."""

    name: str
    lines: tuple[str, ...]


class ObjectChange(msgspec.Struct, frozen=True):
    """What the operator would do with one object."""

    action: str
    """create, update or delete."""
    object: str
    details: tuple[str, ...] = ()


class Consequences(msgspec.Struct, frozen=True, rename="camel"):
    """What the operator would do, and whether that replaces pods."""

    pods_roll: bool
    reason: str
    changes: tuple[ObjectChange, ...]


class IngressExplanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an IngressController means."""

    name: str
    admitted: bool
    reason: str
    message: str
    publishing: str
    environment: dict[str, str]
    """The router's variables, as the router reads them."""
    haproxy_lines: tuple[Section, ...]
    """The lines of haproxy.cfg for access logs."""
    sample_line: str | None
    """None if nothing is logged, or if there is no HAProxy to ask."""
    consequences: Consequences | None
    """None without a cluster to compare with."""


def explanation(
    controller: IngressController,
    settings: Settings,
    verdict: Admission,
    log: AccessLog | None,
    *,
    line: str | None = None,
    live: LiveObjects | None = None,
) -> IngressExplanation:
    """The explanation of an IngressController; with live objects, also what would change."""
    variables: dict[str, str] = {}
    if verdict.admitted:
        added = logging_additions(controller, settings)
        variables = router_variables(controller, added, settings)
    return IngressExplanation(
        name=controller.metadata.name,
        admitted=verdict.admitted,
        reason=verdict.reason,
        message=verdict.message,
        publishing=controller.strategy.type,
        environment=variables,
        haproxy_lines=haproxy_sections(log) if verdict.admitted else (),
        sample_line=line,
        consequences=_consequences(controller, settings, verdict, live) if live else None,
    )


def haproxy_sections(log: AccessLog | None) -> tuple[Section, ...]:
    """The lines of haproxy.cfg for an access log, by section."""
    lines = access_log_lines(log)
    ring = lines.ring_section
    found = (
        Section("global", lines.global_section),
        *([Section(ring[0], ring[1:])] if ring else []),
        Section("defaults", lines.defaults),
        Section("frontend", lines.frontend),
    )
    return tuple(section for section in found if section.lines)


def live_settings(settings: Settings, live: LiveObjects) -> Settings:
    """The settings with which the operator of the cluster wrote the live objects.

    The image is the release's, and the rest is what the administrator gave the operator.
    """
    template = _template(live.deployment)
    containers = (template.get("spec") or {}).get("containers") or ()
    image = next((one["image"] for one in containers if one["name"] == ROUTER), None)
    if not image:
        return settings
    variables = router_environment(template)
    delay = _seconds(variables.get(STOP_DELAY, ""))
    texts = [text for one in live.config_maps for text in (one.get("data") or {}).values()]
    return msgspec.structs.replace(
        settings,
        router_image=image,
        external_names=variables.get(EXTERNAL_NAMES) == "true",
        loopback_backends=variables.get(LOOPBACK_BACKENDS) == "true",
        router_stop_delay=settings.router_stop_delay if delay is None else delay,
        omstdout=any(OMSTDOUT in text for text in texts),
    )


def _seconds(text: str) -> timedelta | None:
    match = re.fullmatch("([0-9]{1,6})s", text)
    return timedelta(seconds=int(match[1])) if match else None


def _consequences(
    controller: IngressController, settings: Settings, verdict: Admission, live: LiveObjects
) -> Consequences:
    if not verdict.admitted:
        reason = "the IngressController is not admitted: what runs stays as it is"
        return Consequences(False, reason, ())
    wanted = desired_operands(controller, settings)
    changes = tuple(_changes(controller, wanted, live))
    if live.deployment is None:
        return Consequences(False, "there are no pods yet", changes)
    rolls = any(
        detail.startswith(_TEMPLATE)
        for change in changes
        if change.object.startswith("Deployment ")
        for detail in change.details
    )
    reason = "the pod template changes" if rolls else "the pod template stays the same"
    return Consequences(rolls, reason, changes)


def _changes(
    controller: IngressController, wanted: Operands, live: LiveObjects
) -> Iterator[ObjectChange]:
    desired = in_live_order(wanted.deployment, live.deployment)
    yield from _change("Deployment", desired, live.deployment)
    maps = {key_of(one).name: one for one in live.config_maps}
    for name, data in wanted.config_maps.items():
        owner = live.deployment or {**_UNKNOWN_OWNER, "metadata": {"name": "", "uid": ""}}
        made = desired_config_map(controller, owner, name, data)
        yield from _change("ConfigMap", made, maps.get(name))
    for name in sorted(maps.keys() - wanted.config_maps.keys()):
        yield ObjectChange("delete", f"ConfigMap {key_of(maps[name])}")
    services = {key_of(one): one for one in live.services}
    if wanted.service is not None:
        key = key_of(wanted.service)
        yield from _change("Service", wanted.service, services.pop(key, None))
    for key in services:
        yield ObjectChange("delete", f"Service {key}")
    yield from _change("IngressClass", wanted.ingress_class, live.ingress_class)


_UNKNOWN_OWNER = {"apiVersion": "apps/v1", "kind": "Deployment"}


def _change(kind: str, desired: Object, live: Object | None) -> Iterator[ObjectChange]:
    about = f"{kind} {_key(desired)}"
    if live is None:
        yield ObjectChange("create", about)
        return
    changed, left = differences(live, desired, FIELD_MANAGER)
    paths = list(dict.fromkeys([*changed, *left]))
    if paths:
        details = [*paths, *_variable_changes(desired, live)]
        yield ObjectChange("update", about, tuple(details))


def _variable_changes(desired: Object, live: Object) -> Iterator[str]:
    """A line for each variable of the router that changes."""
    before, after = (router_environment(_template(one)) for one in (live, desired))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            was, is_ = before.get(name, "(unset)"), after.get(name, "(unset)")
            yield f"{name}: {was} -> {is_}"


def _template(deployment: Object | None) -> Object:
    template: Object = ((deployment or {}).get("spec") or {}).get("template") or {}
    return template


def _key(desired: Object) -> Key:
    return Key(desired["metadata"].get("namespace", ""), desired["metadata"]["name"])
