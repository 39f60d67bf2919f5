"""Merging lists whose entries belong to different people: conditions, versions, related objects.

Pure. What the new entries do not speak of stays as and where it is, so merging what is already
so changes nothing. An entry goes only when it is asked for.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from quarterdeck.api.config_v1 import ObjectReference, OperandVersion

E = TypeVar("E")


def merged(
    old: Iterable[E],
    new: Iterable[E],
    key: Callable[[E], Hashable],
    gone: Iterable[Hashable] = (),
) -> tuple[E, ...]:
    """The old entries, those of the same key replaced in place, others added, `gone` left out."""
    waiting = {key(entry): entry for entry in new}
    ours, unwanted = set(waiting), set(gone)
    kept: list[E] = []
    for entry in old:
        of = key(entry)
        if of in unwanted:
            continue
        if of in ours:
            # A second entry of a key that is ours has nothing to say any more.
            if of in waiting:
                kept.append(waiting.pop(of))
            continue
        kept.append(entry)
    return (*kept, *(entry for of, entry in waiting.items() if of not in unwanted))


def merge_versions(
    old: Iterable[OperandVersion], new: Iterable[OperandVersion], removed: Iterable[str] = ()
) -> tuple[OperandVersion, ...]:
    """The versions after these were added or updated; one is removed only when it is named."""
    return merged(old, new, lambda version: version.name, removed)


def merge_related_objects(
    old: Iterable[ObjectReference],
    new: Iterable[ObjectReference],
    removed: Iterable[ObjectReference] = (),
) -> tuple[ObjectReference, ...]:
    """The related objects after these were added; one is removed only when it is named."""
    return merged(old, new, reference_key, map(reference_key, removed))


def reference_key(reference: ObjectReference) -> Hashable:
    """What makes two references the same one; no namespace and an empty one are the same."""
    return (reference.group, reference.resource, reference.namespace or "", reference.name)
