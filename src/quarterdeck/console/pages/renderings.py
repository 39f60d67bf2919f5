"""The Deployments that a Subscription gives, for people. Pure."""

from typing import Any

import msgspec

from quarterdeck.api.meta import Object


def shown_entries(subscription: Object, rendering: Object | None) -> list[Object]:
    """The config entries, with the Deployments that each applies to."""
    found = []
    for index, entry in enumerate((subscription.get("spec") or {}).get("config") or ()):
        matches = [
            one["deployment"]["metadata"]["name"]
            for one in (rendering or {}).get("deployments") or ()
            if index in one["entries"]
        ]
        fields = [name for name in entry if name not in ("selector", "deployments")]
        found.append(
            {
                "source": f"config[{index}]",
                "selector": entry.get("selector") or {},
                "names": entry.get("deployments") or [],
                "fields": fields,
                "matches": matches,
            }
        )
    return found


def origins(rendering: Object | None) -> list[tuple[str, list[Object]]]:
    """For each Deployment the fields that do not come from its version, then those that do."""
    return [
        (
            one["deployment"]["metadata"]["name"],
            sorted(one["origins"], key=lambda origin: origin["source"] == "CSV"),
        )
        for one in (rendering or {}).get("deployments") or ()
    ]


def shown_value(value: Any) -> str:
    """A value in one line."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 300 else f"{text[:300]}…"
