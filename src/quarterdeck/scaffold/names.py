"""The names in a new project, all derived from the operator's name. Pure."""

import keyword
import re
from collections.abc import Collection

import msgspec

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_NAME_LIMIT = 40
"""Characters of a name: with `-operator` behind it, it must be a label of at most 63."""
_KIND_LIMIT = 63


# fmt: off
TAKEN = frozenset(
    {
        "AGE", "Annotated", "Any", "CONFIG_MAPS", "Condition", "Conditions", "ControlPlane",
        "Controller", "CustomResource", "DONE", "Declaration", "Deployed", "InvalidSpec",
        "Iterator", "Key", "Kubectl", "LABELS", "LabelSelector", "Manager", "NOW", "OPERATOR",
        "Object", "ObjectMeta", "OperatorProcess", "Part", "Path", "Report", "Reporter",
        "Result", "Selection", "Settings", "StatusWriter", "TypedObject", "UTC", "Watch",
        "all_of", "always", "condition_column", "conditions", "config_maps", "control_plane",
        "create", "datetime", "degraded", "delivered_operator", "desired", "desired_config_map",
        "desired_status", "eventually", "failing", "find", "flags", "found", "has_the_text",
        "health", "json", "key", "kind", "kubectl", "labelled", "manager", "message",
        "metadata", "msgspec", "namespace", "now", "number", "one", "operator", "owned_by",
        "prefix", "pytest", "ready", "reason", "reconcile", "refusal", "set_condition",
        "settings", "setup", "standard_conditions", "start", "status", "text", "tmp_path",
        "to_owner", "watches",
    }
)
# fmt: on
"""The names that the project's files have for other things."""


class InvalidNameError(ValueError):
    """A name that Kubernetes or Python would refuse."""

    def __init__(self, what: str, value: str, remedy: str) -> None:
        super().__init__(f"{what} {value!r}: {remedy}")


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """What the parts of a new project are called."""

    operator: str
    """The operator's name: `quarterdeck run --operator NAME`."""
    kind: str
    plural: str
    group: str

    @property
    def distribution(self) -> str:
        """The Python distribution, and the namespace and account of the operator."""
        return f"{self.operator}-operator"

    @property
    def package(self) -> str:
        """The Python package."""
        return self.distribution.replace("-", "_")

    @property
    def singular(self) -> str:
        """One object of the kind, as kubectl calls it."""
        return self.kind.lower()

    @property
    def variable(self) -> str:
        """One object of the kind in the code."""
        return _free(self.singular)

    @property
    def variables(self) -> str:
        """The objects of the kind in the code."""
        return _free(self.plural)

    @property
    def constant(self) -> str:
        """The constant that holds the resource."""
        return self.plural.upper()


def names_for(
    operator: str,
    kind: str = "",
    plural: str = "",
    group: str = "example.com",
    own: Collection[str] = (),
) -> Names:
    """The names of a project; `InvalidNameError` for what cannot be one.

    `own` are the operators of Quarterdeck itself: another of the same name would be ignored.
    """
    if operator in own:
        raise InvalidNameError(
            "the name", operator, "Quarterdeck has this operator already; choose another name"
        )
    if not _LABEL.fullmatch(operator) or len(operator) > _NAME_LIMIT:
        raise InvalidNameError(
            "the name",
            operator,
            f"use at most {_NAME_LIMIT} lower-case letters, digits and hyphens, a letter first",
        )
    kind = kind or "".join(word.capitalize() for word in operator.split("-"))
    if not _KIND.fullmatch(kind) or len(kind) > _KIND_LIMIT:
        raise InvalidNameError("the kind", kind, "use letters and digits, a capital first: Website")
    if taken := {kind, f"{kind}Spec", f"{kind}Status"} & TAKEN:
        raise InvalidNameError(
            "the kind", kind, f"the code has another {min(taken)}; name one with --kind"
        )
    plural = plural or _plural(kind.lower())
    if not re.fullmatch(r"[a-z][a-z0-9]*", plural) or plural == kind.lower():
        raise InvalidNameError(
            "the plural", plural, "use lower-case letters and digits, other than the kind's"
        )
    if not _GROUP.fullmatch(group):
        raise InvalidNameError("the API group", group, "use a domain name of yours: example.com")
    return Names(operator=operator, kind=kind, plural=plural, group=group)


def _free(word: str) -> str:
    """The word as a variable: not a word of Python, and not one that means something else."""
    return f"{word}_" if keyword.iskeyword(word) or word in TAKEN else word


def _plural(word: str) -> str:
    """The plural by the common rules; `--plural` names another one."""
    if re.search(r"(s|x|z|ch|sh)$", word):
        return f"{word}es"
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}s"
