"""The rights of an operator that most runs do not use, with the reasons. Pure.

What follows from the runtime is the same for each operator and is said here; the rest is in the
declaration.
"""

from collections import defaultdict
from collections.abc import Iterator

from quarterdeck.delivery.declaration import Declaration, SeldomUsed
from quarterdeck.delivery.setting_up import uses

EVENTS = SeldomUsed(
    group="events.k8s.io",
    resource="events",
    verbs=("create", "patch"),
    why="an event is created when there is something to say, and patched when it happens again",
)
ENSURED = frozenset({"get", "create", "patch"})
"""The verbs of `Objects.ensure`."""


def seldom_used(declared: Declaration) -> list[SeldomUsed]:
    """The rights that a run of the operator need not use."""
    return [EVENTS, *_of_runtime(declared), *_of_report(declared), *declared.seldom_used]


def _of_runtime(declared: Declaration) -> Iterator[SeldomUsed]:
    verbs: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for use in () if declared.cluster_admin else uses(declared):
        if not use.subresource:
            verbs[use.resource.group, use.resource.plural] |= use.verbs
    for (group, resource), found in verbs.items():
        if found >= ENSURED:
            yield SeldomUsed(
                group=group,
                resource=resource,
                verbs=("get", "patch"),
                why="`ensure` patches an object that somebody changed or a new version wants "
                "otherwise, and reads one that exists although its cache does not have it yet",
            )
        if "watch" in found:
            yield SeldomUsed(
                group=group,
                resource=resource,
                verbs=("list",),
                why="a cache lists where the API server does not stream its objects by the watch",
            )


def _of_report(declared: Declaration) -> Iterator[SeldomUsed]:
    if declared.cluster_operator:
        yield SeldomUsed(
            group="config.openshift.io",
            resource="clusteroperators",
            verbs=("create",),
            why="a release creates the ClusterOperator; the operator does so where there is none",
        )
