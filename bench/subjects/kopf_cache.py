"""kopf: an event handler that keeps the object in a dictionary."""

from typing import Any

import kopf

from bench.subjects.marks import GROUP, PLURAL, VERSION, Following, arguments

ARGS = arguments()
FOLLOWING = Following(ARGS.objects, ARGS.last_round)
OBJECTS: dict[str, Any] = {}


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.scanning.disabled = True
    settings.posting.enabled = False


@kopf.on.event(GROUP, VERSION, PLURAL)
async def seen(name: str, body: kopf.Body, spec: kopf.Spec, **_: Any) -> None:
    OBJECTS[name] = body
    FOLLOWING.ran(name, spec["round"])


kopf.configure(quiet=True)
kopf.run(clusterwide=True, standalone=True)
