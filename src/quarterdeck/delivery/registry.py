"""Which operators are installed: each distribution names its own as entry points.

    [project.entry-points."quarterdeck.operators"]
    sample = "quarterdeck.operators.sample:OPERATOR"

One that cannot be loaded is left out and told; it keeps no other from running.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from quarterdeck.delivery.declaration import Declaration, StaticPod

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "quarterdeck.operators"
OWN = "quarterdeck"
"""The distribution that these lines are in; its operators come first."""


class LeftOut(msgspec.Struct, frozen=True):
    """An entry point that gives no operator."""

    name: str
    distribution: str
    why: str

    def __str__(self) -> str:
        return f"operator {self.name} of {self.distribution} is left out: {self.why}"


class Registry(msgspec.Struct, frozen=True, kw_only=True):
    """The operators of this installation by name, and what there is of others."""

    operators: Mapping[str, Declaration]
    """Quarterdeck's own come first."""
    distributions: Mapping[str, str]
    """The distribution that each operator is from."""
    left_out: tuple[LeftOut, ...] = ()

    def chosen(self, names: Collection[str] = ()) -> tuple[str, ...]:
        """The names of these operators, or of all, in the order in which they are set up.

        Ours come first: a controller or a metric whose name is taken is the other's fault.
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
def installed() -> Registry:
    """The operators of all distributions that this program can import from."""
    from importlib.metadata import entry_points

    return read(entry_points(group=GROUP))


def read(entries: "Iterable[EntryPoint]") -> Registry:
    """The operators that these entry points name: ours first, then by distribution and name."""
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
    return Registry(
        operators=operators,
        distributions=distributions,
        left_out=tuple(left_out),
    )


def _declared(entry: "EntryPoint") -> Declaration | str:
    """What the entry point declares, or what is wrong with it."""
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:
        return f"{entry.value} cannot be imported: {_in_one_line(error)}"
    if not isinstance(found, Declaration):
        return f"{entry.value} is a {type(found).__name__}; make it a Declaration"
    try:
        # The types of a struct's fields are looked at only here: nothing else does at run time.
        found = msgspec.convert(msgspec.to_builtins(found), Declaration)
    except Exception as error:
        return f"{entry.value} has a field of the wrong type: {_in_one_line(error)}"
    if found.name != entry.name:
        return f"{entry.value} has the name {found.name}; call the entry point so too"
    return found


def _clash(
    new: Declaration, known: Mapping[str, Declaration], distributions: Mapping[str, str]
) -> str:
    """What the operator has that another has already, and only one can have; empty if nothing."""
    if new.name in known:
        return f"{distributions[new.name]} has one of this name; rename one of the two"
    for name, other in known.items():
        both = _taken(new) & _taken(other)
        for what in sorted(both):
            return f"{what} is that of {name} of {distributions[name]}; rename one of the two"
    return ""


def _taken(declared: Declaration) -> set[str]:
    """What an operator has for itself alone, in words."""
    flags = {f"--{declared.name}", *(option.flag for option in declared.local.options)}
    found = {f"its option {flag} of `quarterdeck local up`" for flag in flags}
    if declared.account:
        found.add(f"its account {declared.namespace}/{declared.account}")
    if declared.cluster_operator:
        found.add(f"its ClusterOperator {declared.cluster_operator}")
    if isinstance(declared.delivery, StaticPod):
        found.add(f"its port {declared.delivery.port}")
        found.add(f"its user {declared.delivery.user}")
    return found


def _in_one_line(error: BaseException) -> str:
    """The error as part of a sentence: it is shown on terminals, and others wrote it."""
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return "".join(letter for letter in said if letter.isprintable())[:500]


def _distribution(entry: "EntryPoint") -> str:
    name = entry.dist.name if entry.dist is not None else None
    # None is also the name of a distribution that was removed by halves.
    return name or "an unknown distribution"


def _rank(entry: "EntryPoint") -> tuple[bool, str, str]:
    distribution = _distribution(entry)
    return distribution != OWN, distribution, entry.name
