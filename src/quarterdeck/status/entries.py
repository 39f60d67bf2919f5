"""Merges lists whose entries belong to several writers: conditions, versions, related objects.

Pure. Entries without a new entry of the same key keep their content and position, so merging equal
entries changes nothing. An entry is removed only if the caller names it.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

E = TypeVar("E")


def merged(
    old: Iterable[E],
    new: Iterable[E],
    key: Callable[[E], Hashable],
    gone: Iterable[Hashable] = (),
) -> tuple[E, ...]:
    """The old entries with those of the same key replaced, new ones added and `gone` removed."""
    waiting = {key(entry): entry for entry in new}
    ours, unwanted = set(waiting), set(gone)
    kept: list[E] = []
    for entry in old:
        of = key(entry)
        if of in unwanted:
            continue
        if of in ours:
            # A second old entry with one of our keys is dropped.
            if of in waiting:
                kept.append(waiting.pop(of))
            continue
        kept.append(entry)
    return (*kept, *(entry for of, entry in waiting.items() if of not in unwanted))
