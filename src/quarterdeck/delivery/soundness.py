"""Whether what an operator declares can be delivered, alone and beside others.

What it declares is code and data of others. What is wrong with it is told in a sentence, is that
operator's, and keeps nobody else from being delivered.
"""

from collections.abc import Iterable
from functools import cache

from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration
from quarterdeck.delivery.files import files
from quarterdeck.delivery.payload import SHARED, payload
from quarterdeck.delivery.setting_up import uses

_Identity = tuple[str, str, str, str]


@cache
def trouble(declared: Declaration) -> str:
    """Why nothing can be delivered of what the operator declares; empty when all can."""
    try:
        uses(declared)  # also of one that has no files
        files([declared])
    except (Exception, SystemExit) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return f"it cannot be set up: {said}"
    return ""


def troubles(operators: Iterable[Declaration]) -> dict[str, str]:
    """Why some of these operators cannot be delivered beside those before them, by their names."""
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
    """Which object another operator brings too, and not just the same; empty when none."""
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
    """The object without the annotations, which say only when it counts."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    return {**obj, "metadata": meta}
