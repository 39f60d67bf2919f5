"""Finds the installed operators: each distribution lists its own as entry points.

    [project.entry-points."quarterdeck.operators"]
    sample = "quarterdeck.operators.sample:OPERATOR"

An operator that cannot be loaded is left out and reported; the others run.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from quarterdeck.delivery.declaration import Declaration, StaticPodDelivery

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "quarterdeck.operators"
OWN = "quarterdeck"
"""The distribution of this module; its operators come first."""


class LeftOut(msgspec.Struct, frozen=True):
    """An entry point without a usable operator."""

    name: str
    distribution: str
    why: str

    def __str__(self) -> str:
        return f"operator {self.name} of {self.distribution} is left out: {self.why}"


class InstalledOperators(msgspec.Struct, frozen=True, kw_only=True):
    """The installed operators by name, and those that were left out."""

    operators: Mapping[str, Declaration]
    """Quarterdeck's own come first."""
    distributions: Mapping[str, str]
    """The distribution of each operator."""
    left_out: tuple[LeftOut, ...] = ()

    def chosen(self, names: Collection[str] = ()) -> tuple[str, ...]:
        """The names of these operators, or of all if empty, in the order of their setup.

        Ours come first, so that a name that two controllers or metrics share is the other's fault.
        """
        return tuple(name for name in self.operators if not names or name in names)

    def of(self, distribution: str) -> tuple[Declaration, ...]:
        """The operators of one distribution, by name."""
        return tuple(
            self.operators[name]
            for name in sorted(self.operators)
            if self.distributions[name] == distribution
        )


@cache
def installed() -> InstalledOperators:
    """The operators of all installed distributions."""
    from importlib.metadata import entry_points

    return read(entry_points(group=GROUP))


def read(entries: "Iterable[EntryPoint]") -> InstalledOperators:
    """The operators of these entry points: ours first, then by distribution and name."""
    operators: dict[str, Declaration] = {}
    distributions: dict[str, str] = {}
    left_out = []
    for entry in sorted(entries, key=_rank):
        distribution = _distribution(entry)
        found = _declared(entry)
        why = found if isinstance(found, str) else _clash(found, operators, distributions)
        if why:
            left_out.append(LeftOut(entry.name, distribution, why))
        elif isinstance(found, Declaration):
            operators[entry.name] = found
            distributions[entry.name] = distribution
    return InstalledOperators(
        operators=operators,
        distributions=distributions,
        left_out=tuple(left_out),
    )


def _declared(entry: "EntryPoint") -> Declaration | str:
    """The declaration of the entry point, or what is wrong with it."""
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:
        return f"{entry.value} cannot be imported: {_in_one_line(error)}"
    if not isinstance(found, Declaration):
        return f"{entry.value} is a {type(found).__name__}; make it a Declaration"
    try:
        # Only this checks the types of the fields: a struct does not check them when it is made.
        found = msgspec.convert(msgspec.to_builtins(found), Declaration)
    except Exception as error:
        return f"{entry.value} has a field of the wrong type: {_in_one_line(error)}"
    if found.name != entry.name:
        return f"{entry.value} has the name {found.name}; call the entry point so too"
    return found


def _clash(
    new: Declaration, known: Mapping[str, Declaration], distributions: Mapping[str, str]
) -> str:
    """Which name the operator shares with another although it must be unique; empty if none."""
    if new.name in known:
        return f"{distributions[new.name]} has one of this name; rename one of the two"
    for name, other in known.items():
        both = _exclusive_names(new) & _exclusive_names(other)
        for what in sorted(both):
            return f"{what} is that of {name} of {distributions[name]}; rename one of the two"
    return ""


def _exclusive_names(declared: Declaration) -> set[str]:
    """The names that only one operator can have, as text."""
    flags = {f"--{declared.name}", *(option.flag for option in declared.local.options)}
    found = {f"its option {flag} of `quarterdeck local up`" for flag in flags}
    if declared.account:
        found.add(f"its account {declared.namespace}/{declared.account}")
    if declared.cluster_operator:
        found.add(f"its ClusterOperator {declared.cluster_operator}")
    if isinstance(declared.delivery, StaticPodDelivery):
        found.add(f"its port {declared.delivery.port}")
        found.add(f"its user {declared.delivery.user}")
    return found


def _in_one_line(error: BaseException) -> str:
    """The error on one line, printable: it comes from code of others and is shown on terminals."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return "".join(letter for letter in text if letter.isprintable())[:500]


def _distribution(entry: "EntryPoint") -> str:
    # None if the distribution was removed only in part; its `name` is deprecated there.
    names = entry.dist.metadata.get_all("Name") if entry.dist is not None else None
    return names[0] if names else "an unknown distribution"


def _rank(entry: "EntryPoint") -> tuple[bool, str, str]:
    distribution = _distribution(entry)
    return distribution != OWN, distribution, entry.name
