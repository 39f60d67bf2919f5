"""The smallest JSON merge patch from one value to another. Pure."""

from quarterdeck.api.meta import Object


def merge_patch(old: Object, new: Object) -> Object:
    """What a merge patch has to say to turn `old` into `new`; empty when they are equal.

    A key that went is null in it, and a list is replaced as a whole. None in `new` is the
    same as no key, because a merge patch cannot say it.
    """
    patch: Object = {key: None for key in old if new.get(key) is None and old[key] is not None}
    for key, value in new.items():
        if value is None or (key in old and old[key] == value):
            continue
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            patch[key] = merge_patch(before, value)
        else:
            patch[key] = value
    return patch
