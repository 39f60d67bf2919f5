"""Checks whether an operator can be delivered, alone and together with others.

Declarations are code and data of others. A fault is reported in one sentence and affects only that
operator.
"""

import sys
import traceback
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration
from quarterdeck.delivery.files import files
from quarterdeck.delivery.payload import SHARED, payload
from quarterdeck.delivery.setting_up import uses

_Identity = tuple[str, str, str, str]


@cache
def trouble(declared: Declaration) -> str:
    """Why the operator cannot be delivered; empty if it can."""
    try:
        uses(declared)  # also for an operator without files
        files([declared])
    except (Exception, SystemExit) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        return f"it cannot be set up: {why}{_place(declared, error)}"
    return ""


def _place(declared: Declaration, error: BaseException) -> str:
    """Where in the operator's own package the error was raised; empty if it was not there."""
    package = sys.modules.get(declared.setup.partition(":")[0].partition(".")[0])
    file = Path(getattr(package, "__file__", None) or "?")
    own = file.parent if file.name == "__init__.py" else file
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{one.filename}:{one.lineno}" for one in frames if own in _upwards(one.filename)]
    return f" ({places[-1]})" if places and places[-1] not in str(error) else ""


def _upwards(filename: str) -> list[Path]:
    """The file and all its directories."""
    return [Path(filename), *Path(filename).parents]


def troubles(operators: Iterable[Declaration]) -> dict[str, str]:
    """By operator: why it cannot be delivered together with those before it."""
    found: dict[str, str] = {}
    brought: dict[_Identity, tuple[str, Object]] = {}
    for declared in operators:
        why = trouble(declared)
        if not why:
            mine = _objects(declared)
            why = _clash(mine, brought)
            if not why:
                brought |= {
                    key: (declared.name, obj) for key, obj in mine.items() if key not in brought
                }
        if why:
            found[declared.name] = why
    return found


def _clash(mine: dict[_Identity, Object], brought: dict[_Identity, tuple[str, Object]]) -> str:
    """Which object another operator has too, with other content; empty if none."""
    for key in mine.keys() & brought.keys():
        other, theirs = brought[key]
        if key[1] not in SHARED or _body(theirs) != _body(mine[key]):
            _, kind, namespace, name = key
            where = f" in {namespace}" if namespace else ""
            return f"the operator {other} brings the {kind} {name}{where} too; rename one"
    return ""


def _objects(declared: Declaration) -> dict[_Identity, Object]:
    return {
        (
            obj["apiVersion"].rpartition("/")[0],
            obj["kind"],
            obj["metadata"].get("namespace", ""),
            obj["metadata"]["name"],
        ): obj
        for name, objects in payload([declared]).items()
        for obj in objects
        if "name" in obj.get("metadata", {})
    }


def _body(obj: Object) -> Object:
    """The object without annotations, which only select clusters."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    return {**obj, "metadata": meta}
