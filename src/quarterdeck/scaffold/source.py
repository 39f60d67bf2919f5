"""Where this Quarterdeck was installed from, so that a new project can install the same one."""

import json
from importlib.metadata import Distribution, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

EXTRA = "testing"


def requirement() -> str:
    """What pip is given for the same Quarterdeck: a directory, a wheel, or a version."""
    return requirement_of(distribution("quarterdeck"))


def requirement_of(installed: Distribution) -> str:
    """The same of this distribution."""
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    parts = urlsplit(origin.get("url", ""))
    if parts.scheme == "file":
        path = Path(url2pathname(parts.path))
        if path.exists():
            return f"{path}[{EXTRA}]"
    return f"{installed.name}[{EXTRA}]=={installed.version}"
