"""Which requests an API server has counted. Pure: its metrics in, counts out."""

import re
from collections import Counter
from typing import NamedTuple

WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
_LINE = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Request(NamedTuple):
    """A kind of request; the subresource is empty for the object itself."""

    verb: str
    resource: str
    subresource: str
    code: str

    @property
    def writes(self) -> bool:
        """Whether it was meant to change something, with or without success."""
        return self.verb in WRITES


def counted(metrics: str) -> Counter[Request]:
    """The requests that were answered so far, by kind."""
    found: Counter[Request] = Counter()
    for labels, value in _LINE.findall(metrics):
        given = dict(_LABEL.findall(labels))
        request = Request(given["verb"], given["resource"], given["subresource"], given["code"])
        found[request] += int(float(value))
    return found


def writes(counts: Counter[Request], resources: tuple[str, ...] = ("widgets", "configmaps")) -> int:
    """How many writes there were to these resources."""
    return sum(n for one, n in counts.items() if one.writes and one.resource in resources)


def unprompted(counts: Counter[Request]) -> int:
    """How many requests there were that an operator with nothing to do has no reason to make.

    Watches end and are opened again, and leases are renewed. What names no resource (health,
    metrics, the API server's own look at schemas) is not an operator's work.
    """
    return sum(
        n
        for one, n in counts.items()
        if one.resource and one.verb != "WATCH" and one.resource != "leases"
    )
