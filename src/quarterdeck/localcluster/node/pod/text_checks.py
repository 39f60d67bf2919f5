r"""Refuses texts that no process can get: those with a NUL byte, and those that are not Unicode.

The API server accepts `\u0000` in most fields. For the kernel it ends a text. In bubblewrap's
arguments it begins the next argument, so that the author of a ConfigMap could add options.
Variables are resolved later, and are checked here too before use.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.pod.environment import UnresolvedError

_OF_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def check_spec(container: dict[str, Any], pod: Object) -> None:
    """Raise `UnresolvedError` for the first invalid text of a container or its pod."""
    of_pod = {key: value for key, value in pod["spec"].items() if key not in _OF_CONTAINERS}
    for field, text in [*_texts(container, ""), *_texts(of_pod, "spec")]:
        _check(field, text)


def check_variables(variables: Mapping[str, str]) -> None:
    """Raise `UnresolvedError` for the first variable with an invalid name or value."""
    for name, value in variables.items():
        _check(f"env {name!r}" if "\0" in name else f"env {name}", name)
        _check(f"env {name}", value)


def _check(field: str, text: str) -> None:
    if "\0" in text:
        raise UnresolvedError(field, repr(text[:40]), "remove the NUL byte; no process can have it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnresolvedError(field, ascii(text[:40]), "write it in Unicode") from None


def _texts(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Each text in a value, with its field."""
    match value:
        case str():
            yield field, value
        case dict():
            for key, each in value.items():
                yield field, str(key)
                yield from _texts(each, f"{field}.{key}".lstrip("."))
        case list():
            for index, each in enumerate(value):
                yield from _texts(each, f"{field}[{index}]")
