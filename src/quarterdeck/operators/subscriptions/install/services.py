"""The Services of a bundle, recorded in its ClusterServiceVersion. Pure.

A ClusterServiceVersion has no field for them, and its catalog may be gone when a Service has to be
created again.
"""

from collections.abc import Sequence

from quarterdeck.api.meta import Object
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion
from quarterdeck.operators.subscriptions.install.desired import desired_service
from quarterdeck.operators.subscriptions.install.records import packed, unpacked
from quarterdeck.operators.subscriptions.names import SERVICES, is_object_name

PARTS = ("name", "labels", "annotations")


def services_record(services: Sequence[Object]) -> str | None:
    """The Services as the text of an annotation; None if they are too long for one."""
    return packed(
        [
            {
                "metadata": {part: one["metadata"].get(part) or {} for part in PARTS},
                "spec": one["spec"],
            }
            for one in services
        ]
    )


def desired_services(csv: ClusterServiceVersion) -> list[Object]:
    """The Services of the version; what was not recorded by us is left out."""
    record = csv.metadata.annotations.get(SERVICES)
    found = unpacked(record) if record else None
    services = [one for one in (found if isinstance(found, list) else ()) if _is_service(one)]
    # Two of one name would undo each other without an end; only somebody else records that.
    by_name = {one["metadata"]["name"]: one for one in services}
    return [desired_service(csv, one) for one in by_name.values()]


def _is_service(found: object) -> bool:
    match found:
        case {
            "metadata": {"name": str(name), "labels": dict(labels), "annotations": dict(notes)},
            "spec": dict(),
        }:
            texts = (*labels.values(), *notes.values())
            return is_object_name(name) and all(isinstance(one, str) for one in texts)
        case _:
            return False
