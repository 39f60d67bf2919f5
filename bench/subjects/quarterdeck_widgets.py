"""The Widget as a Quarterdeck operator has it, and how its operators are run here."""

from collections.abc import Callable

import msgspec

from bench.subjects.marks import GROUP, KIND, PLURAL, VERSION
from quarterdeck.api.meta import Resource, TypedObject
from quarterdeck.controller import Manager, Operator, Process, ProcessSettings
from quarterdeck.kube import load_kubeconfig


class Endpoint(msgspec.Struct, kw_only=True, rename="camel"):
    name: str
    host: str
    port: int
    tags: list[str] = []


class WidgetSpec(msgspec.Struct, kw_only=True, rename="camel"):
    text: str
    round: int
    settings: dict[str, str] = {}
    endpoints: list[Endpoint] = []


class WidgetStatus(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    observed_generation: int = 0
    config_map: str = ""
    phase: str = ""


class Widget(TypedObject, kw_only=True):
    spec: WidgetSpec
    status: WidgetStatus = msgspec.field(default_factory=WidgetStatus)


WIDGETS = Resource(
    group=GROUP, version=VERSION, kind=KIND, plural=PLURAL, namespaced=True, type=Widget
)


async def run(setup: Callable[[Manager], None], kubeconfig: str) -> None:
    """Run one operator with all that a process of ours has, and without election."""
    operator = Operator(
        name="bench",
        setup=setup,
        field_manager="quarterdeck-bench",
        lease_namespace="bench",
        lease_name="bench",
    )
    settings = ProcessSettings(identity="bench", probe_address="127.0.0.1:0")
    await Process([operator], load_kubeconfig(kubeconfig), settings).run()
