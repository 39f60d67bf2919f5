"""The releases A to D of the handover, from the operators' declarations.

They differ in the build of the machine API operator, and in which operator brings metal3's kinds
and account: the machine API operator in A and B, the baremetal operator in C and D. Each release
lists the versions from which it can be reached; A can be reached only from B.
"""

from pathlib import Path

from msgspec import structs

from quarterdeck.delivery.declaration import Declaration, Deployed, PayloadPart
from quarterdeck.localcluster.operators import find_operator
from quarterdeck.localcluster.releases import write_release
from quarterdeck.metal3.model.edges import RELEASES, ModelRelease

PREVIOUS = {
    "A": ("B",),
    "B": ("A", "C", "D"),
    # A too: what refuses the update from there is Upgradeable=False.
    "C": ("A", "B", "D"),
    "D": ("A", "B", "C"),
}
METAL3_PARTS = ("metal3",)
"""The parts of the baremetal operator that the machine API operator brings before it."""


def write_handover_releases(root: Path, *, with_cluster_version: bool = True) -> None:
    """Write the four releases; without the cluster version operator if that one runs elsewhere."""
    for release in RELEASES.values():
        previous = tuple(RELEASES[name].version for name in PREVIOUS[release.name])
        operators = operators_of(release)
        if with_cluster_version:
            operators.insert(0, find_operator("cluster-version"))
        write_release(root, release.version, previous, operators)


def operators_of(release: ModelRelease) -> list[Declaration]:
    """The two operators of a release, or the one."""
    baremetal = find_operator("baremetal")
    found = [machine_api(release, baremetal)]
    return [*found, baremetal] if release.has_baremetal else found


def machine_api(release: ModelRelease, baremetal: Declaration) -> Declaration:
    """The machine API operator in its build for a release."""
    declared = find_operator("machine-api")
    built = _with_args(declared, (f"--metal3-build={release.name}",))
    if release.has_baremetal:
        return built
    return structs.replace(
        built,
        kinds=baremetal.kinds,
        parts=(
            *built.parts,
            *(_at_level(one) for one in baremetal.parts if one.name in METAL3_PARTS),
        ),
        delivery=_with_images(built, baremetal),
    )


def _at_level(part: PayloadPart) -> PayloadPart:
    return structs.replace(part, run_level=find_operator("machine-api").run_level)


def _with_images(declared: Declaration, other: Declaration) -> Deployed:
    assert isinstance(declared.delivery, Deployed)  # noqa: S101 - both are declared so
    assert isinstance(other.delivery, Deployed)  # noqa: S101
    return structs.replace(declared.delivery, other_images=other.delivery.other_images)


def _with_args(declared: Declaration, args: tuple[str, ...]) -> Declaration:
    assert isinstance(declared.delivery, Deployed)  # noqa: S101
    delivery = structs.replace(declared.delivery, args=(*declared.delivery.args, *args))
    return structs.replace(declared, delivery=delivery)
