"""Whose object it is when HAProxy refuses a configuration. Pure.

HAProxy names a line of its configuration or a file. A line is of the section of a backend, a file
that of a certificate, and both are there for Ingress objects.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from quarterdeck.api.meta import Object
from quarterdeck.haproxy.check import Complaint
from quarterdeck.router.observed import Problem

_WORD = re.compile(r"[A-Za-z0-9:._-]+")
REASON = "ConfigurationRefused"


def problems(
    complaints: Iterable[Complaint], config: str, users: Mapping[str, Sequence[Object]]
) -> list[Problem]:
    """A problem for each Ingress that uses a backend or certificate that HAProxy complains about.

    `users` has the Ingress objects by the name of the backend, or of the certificate's file.
    """
    found: dict[str, Problem] = {}
    for one in complaints:
        for name in _WORD.findall(f"{_section(config, one.line)} {one.words}"):
            for ingress in users.get(name, users.get(name.rstrip(".:"), ())):
                message = f"HAProxy refuses the configuration: {one.words}"
                uid = str(ingress["metadata"]["uid"])
                found.setdefault(uid, Problem(ingress, REASON, message))
    return list(found.values())


def _section(config: str, line: int | None) -> str:
    """The head of the section that has this line; empty without one."""
    heads = [text for text in config.split("\n")[: line or 0] if text and not text[0].isspace()]
    return heads[-1] if heads else ""
