"""What the preflight finds: the server, the user's rights, what others have installed. Pure."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from quarterdeck.delivery.declaration import Declaration
from quarterdeck.install.facts import CLUSTER_VERSIONS, ClusterFacts, NeededRight, described
from quarterdeck.status.definitions import is_foreign
from quarterdeck.versions import parse_version

OLDEST_SERVER = (1, 31)
"""The definitions have validation rules that older API servers do not know."""

Level = Literal["error", "warning", "info"]


class PreflightFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What the preflight found."""

    level: Level
    message: str


class InstallOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asks for."""

    image: str = ""
    registry: str = ""
    operators: tuple[str, ...] = ()
    """Only these; all if empty."""
    all_in_one: bool = False
    console: bool = False
    monitoring: bool = False
    trust: Mapping[str, bytes] = {}
    """The contents of files for registries, by `pull-secret.json`, `ca-bundle.crt`,
    `release.pub`."""


def server_findings(facts: ClusterFacts) -> list[PreflightFinding]:
    """Whether the API server is new enough."""
    parsed = parse_version(facts.server_version.removeprefix("v"))
    shown = facts.server_version or "of an unknown version"
    if parsed is None:
        return [warning(f"the API server is {shown}; it is not known whether that will do")]
    if parsed.line < OLDEST_SERVER:
        oldest = ".".join(map(str, OLDEST_SERVER))
        return [error(f"the API server is {shown}; update it to {oldest} or later first")]
    return [info(f"the API server is {shown}")]


def rights_findings(lacking: Sequence[NeededRight]) -> list[PreflightFinding]:
    """What the user may not do."""
    if not lacking:
        return []
    return [
        error(
            f"you may not: {described(lacking)}; install as a user with the ClusterRole "
            "cluster-admin, which the cluster version operator needs too"
        )
    ]


def way_findings(facts: ClusterFacts, options: InstallOptions, way: str) -> list[PreflightFinding]:
    """Another way of installation that the cluster has already, or that it cannot have."""
    if way == "all-in-one" and facts.applier is not None and not is_foreign(facts.applier):
        return [
            error(
                "--all-in-one: the cluster version operator is installed, whose release brings the "
                "same operators; remove it first: quarterdeck uninstall"
            )
        ]
    if way == "release" and facts.all_in_one is not None and not is_foreign(facts.all_in_one):
        return [
            error(
                "all operators run in one Deployment here, which a release would double: give "
                "--all-in-one, or remove it first: quarterdeck uninstall"
            )
        ]
    if way == "direct" and options.all_in_one:
        return [warning("--all-in-one: not on OpenShift, where each operator is installed alone")]
    return []


def operator_names(
    options: InstallOptions, operators: Sequence[Declaration]
) -> list[PreflightFinding]:
    """Operators that do not exist, or that no choice leaves out."""
    known = {one.name: one for one in operators}
    found = [
        error(f"--operators: {name!r}: there is no such operator, only {', '.join(sorted(known))}")
        for name in options.operators
        if name not in known
    ]
    fixed = [
        one.name
        for one in operators
        if options.operators
        and one.is_in_payload
        and not one.capability
        and not one.applies_payload
        and one.name not in options.operators
    ]
    found += [
        warning(f"the operator {name} has no capability, so a release always brings it")
        for name in fixed
    ]
    return found


def left_alone(facts: ClusterFacts) -> list[PreflightFinding]:
    """A line for the definitions of others that stay as they are."""
    ours = {CLUSTER_VERSIONS.partition(".")[2], "operator.openshift.io"}
    left = sorted(name for name in facts.foreign if name.partition(".")[2] in ours)
    if not left:
        return []
    return [info(f"left as they are, because others installed them: {', '.join(left)}")]


def release_findings(facts: ClusterFacts, image: str) -> list[PreflightFinding]:
    """That a release which is there stays."""
    found = [info(f"the cluster has the release {facts.release}, which stays")]
    if image and image.rpartition("@")[2] != facts.release_image.rpartition("@")[2]:
        found.append(warning(f"to change it: quarterdeck update --image {image}"))
    return found


def error(message: str) -> PreflightFinding:
    """A finding that refuses the installation."""
    return PreflightFinding(level="error", message=message)


def warning(message: str) -> PreflightFinding:
    """A finding about what is not as usual."""
    return PreflightFinding(level="warning", message=message)


def info(message: str) -> PreflightFinding:
    """A finding to know."""
    return PreflightFinding(level="info", message=message)
