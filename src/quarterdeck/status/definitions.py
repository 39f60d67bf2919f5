"""CustomResourceDefinitions that somebody else installed are never overwritten. Pure.

For every operator that applies definitions of others, from a release or a bundle.
"""

from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.status.rollout import Done, Failed

OURS = "quarterdeck-"
"""The prefix of our field managers, also of `quarterdeck local` and `install`."""


def is_foreign(live: Object) -> bool:
    """Whether none of our field managers owns a field of the object.

    To hand a definition over to us, an administrator writes one field of it under such a name:
    `kubectl annotate --field-manager=quarterdeck-install crd NAME quarterdeck.dev/owner=true`.
    """
    return not any(
        str(entry.get("manager", "")).startswith(OURS)
        for entry in live["metadata"].get("managedFields") or ()
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
