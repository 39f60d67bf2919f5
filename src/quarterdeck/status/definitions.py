"""CustomResourceDefinitions that somebody else installed are never overwritten. Pure.

For every operator that applies definitions of others, from a release or a bundle.
"""

from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.status.rollout import Done, Failed

OURS = "quarterdeck-"
"""The prefix of our field managers, also of `quarterdeck local` and `install`."""

OWNER = "quarterdeck.dev/owner"
"""The annotation of what was installed."""


def is_foreign(live: Object) -> bool:
    """Whether it has no mark of ours, and no field outside of its status is one of our managers'.

    The mark is the annotation of what was installed by `kubectl apply` or by Helm. To hand a
    definition over to us, an administrator writes one field of it under such a name:
    `kubectl annotate --field-manager=quarterdeck-install crd NAME quarterdeck.dev/owner=true`.
    """
    if OWNER in (live["metadata"].get("annotations") or {}):
        return False
    return not any(
        str(entry.get("manager", "")).startswith(OURS)
        for entry in live["metadata"].get("managedFields") or ()
        # The staleness checker writes the status of objects of others.
        if not entry.get("subresource")
    )


def foreign_definition(desired: Object, live: Object) -> Done | Failed:
    """The outcome for a foreign definition: done if it serves the desired versions."""
    missing = _served(desired) - _served(live)
    owners = sorted({str(e.get("manager")) for e in live["metadata"].get("managedFields") or ()})
    who = f"it was installed by {', '.join(owners) or 'somebody else'} and is left as it is"
    if missing:
        message = f"{who}, but does not serve {', '.join(sorted(missing))}; update it there"
        return Failed("ForeignDefinition", message)
    return Done("ForeignDefinition", who)


def _served(definition: Object) -> set[str]:
    versions: Any = (definition.get("spec") or {}).get("versions") or ()
    return {str(version.get("name")) for version in versions if version.get("served")}
