"""What new routes need: commands to HAProxy now, and a reload if they do not suffice. Pure."""

import msgspec

from quarterdeck.haproxy.model import Backend, Config
from quarterdeck.haproxy.runtime import runtime_commands
from quarterdeck.haproxy.slots import fresh_slots, reassigned
from quarterdeck.router.routing import Routing


class Plan(msgspec.Struct, frozen=True):
    """The commands that bring what runs as near as they can, and the configuration to reload."""

    commands: tuple[str, ...]
    adapted: Config
    """What runs after the commands."""
    reload: Config | None
    """The configuration that needs a reload; None if the commands suffice."""


def config_of(routing: Routing, base: Config, running: Config | None) -> Config:
    """The configuration for these routes; an endpoint that runs in a slot keeps it."""
    slots = {one.name: one.slots for one in running.backends} if running else {}
    return msgspec.structs.replace(
        base,
        exact_paths=routing.exact_paths,
        path_prefixes=routing.path_prefixes,
        certificates=routing.certificates,
        default_names=routing.default_names,
        backends=tuple(
            Backend(name, reassigned(slots.get(name, ()), found) or fresh_slots(found))
            for name, found in routing.backends.items()
        ),
    )


def plan(running: Config, routing: Routing) -> Plan:
    """How to get from what runs to these routes."""
    wanted = config_of(routing, running, running)
    adapted = _adapted(running, wanted)
    commands = runtime_commands(running, adapted)
    reload = None if adapted == wanted else wanted
    return Plan(tuple(commands or ()), adapted, reload)


def _adapted(running: Config, wanted: Config) -> Config:
    """What runs, with the wanted endpoints and certificates as far as its structure allows."""
    slots = {one.name: one.slots for one in wanted.backends}
    pems = {one.name: one.pem for one in wanted.certificates}
    return msgspec.structs.replace(
        running,
        backends=tuple(
            Backend(one.name, new)
            if len(new := slots.get(one.name, one.slots)) == len(one.slots)
            else one
            for one in running.backends
        ),
        certificates=tuple(
            msgspec.structs.replace(one, pem=pems.get(one.name, one.pem))
            for one in running.certificates
        ),
    )
