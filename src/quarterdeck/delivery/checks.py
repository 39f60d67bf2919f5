"""Checks the values in a declaration, before Kubernetes would refuse them. Pure.

They become names of objects, names of files and options of commands. Each fault is a ValueError
with field, value and remedy, raised when the declaration is made.
"""

import re
from collections.abc import Iterable

LABEL_LIMIT = 63
"""The most characters of a label's value, and of a name with the same rules."""

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PROFILE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?([kMGTPE]|[KMGTPE]i)?")
_CPU = re.compile(r"[0-9]+m|[0-9]+(\.[0-9]{1,3})?")
_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_FLAG = re.compile(r"--[a-z][a-z0-9]*(-[a-z0-9]+)*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_label(field: str, value: str) -> None:
    """Refuse a value that cannot name a namespace, an account, a container or a volume."""
    if not _LABEL.fullmatch(value):
        raise ValueError(
            f"{field}: {value!r}: use lower-case letters, digits and hyphens, "
            f"at most {LABEL_LIMIT} of them"
        )


def check_subdomain(field: str, value: str) -> None:
    """Refuse a value that cannot name an object."""
    if len(value) > 253 or not all(map(_LABEL.fullmatch, value.split("."))):
        raise ValueError(f"{field}: {value!r}: use names of lower-case letters, joined by dots")


def check_profile(field: str, value: str) -> None:
    """Refuse a value that cannot be part of an annotation's name."""
    if not _PROFILE.fullmatch(value):
        raise ValueError(f"{field}: {value!r}: use letters, digits, hyphens, dots, underscores")


def check_label_key(field: str, value: str) -> None:
    """Refuse a value that cannot be the key of a label or a taint."""
    domain, slash, name = value.rpartition("/")
    if slash:
        check_subdomain(field, domain)
    check_profile(field, name)


def check_label_value(field: str, value: str) -> None:
    """Refuse a value that no label can have; a label's value may be empty."""
    if value:
        check_profile(field, value)


def check_cpu(field: str, value: str) -> None:
    """Refuse a value that is not an amount of CPU."""
    if not _CPU.fullmatch(value):
        raise ValueError(f"{field}: {value!r}: write it like 10m or 0.5")


def check_quantity(field: str, value: str) -> None:
    """Refuse a value that is not an amount of memory."""
    if not _QUANTITY.fullmatch(value):
        raise ValueError(f"{field}: {value!r}: write it like 64Mi or 1Gi")


def check_reference(field: str, value: str) -> None:
    """Refuse a value that is not `module:attribute`."""
    if not _REFERENCE.fullmatch(value):
        raise ValueError(f"{field}: {value!r}: write it as module:attribute")


def check_flag(field: str, value: str) -> None:
    """Refuse a value that is not a long option."""
    if not _FLAG.fullmatch(value):
        raise ValueError(f"{field}: {value!r}: write it like --log-level")


def check_variable(field: str, value: str) -> None:
    """Refuse a value that cannot name an environment variable."""
    if not _VARIABLE.fullmatch(value):
        raise ValueError(f"{field}: {value!r}: write it like LOG_LEVEL")


def check_path(field: str, value: str) -> None:
    """Refuse a path that is not absolute."""
    if not value.startswith("/") or ".." in value.split("/"):
        raise ValueError(f"{field}: {value!r}: use an absolute path without ..")


def check_line(field: str, value: str) -> None:
    """Refuse a value that is not one line of text."""
    if not value.strip() or not value.isprintable():
        raise ValueError(f"{field}: {value!r}: write one line of text")


def check_range(field: str, value: int, lowest: int, highest: int) -> None:
    """Refuse a number that is out of range."""
    if not lowest <= value <= highest:
        raise ValueError(f"{field}: {value}: use {lowest} to {highest}")


def check_distinct(field: str, values: Iterable[str]) -> None:
    """Refuse duplicates."""
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{field}: {value!r}: there are two of this name; rename one")
        seen.add(value)
