"""Keeps a deleted object until its clean-up is done."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from quarterdeck.api.meta import Object, TypedObject
from quarterdeck.controller.handle import Handle
from quarterdeck.controller.metadata import finalizers_of, is_being_deleted

T = TypeVar("T", bound=TypedObject | Object)

CleanUp = Callable[[T], Awaitable[bool]]
"""Removes what the operator made elsewhere for an object; returns whether nothing is left."""


class Finalizer(Generic[T]):
    """Keeps a deleted object until its clean-up is done.

    Call `add_or_clean_up` in a reconcile, before you make anything that the clean-up removes:

        note = await finalizer.add_or_clean_up(note)
        if note is None:
            return DONE
    """

    def __init__(self, objects: Handle[T], name: str, clean_up: CleanUp[T]) -> None:
        """Put the finalizer `name`, such as `example.com/backend`, on the objects.

        `clean_up` can run any number of times. It returns False while something is left; a watch on
        that must wake the controller. If it raises, the object stays and the key is tried again.
        """
        self.name = name
        self._objects = objects
        self._clean_up = clean_up

    async def add_or_clean_up(self, obj: T) -> T | None:
        """The object with its finalizer; None if it is being deleted, and `clean_up` was called."""
        if not is_being_deleted(obj):
            return await self._objects.ensure_finalizer(obj, self.name)
        if self.name in finalizers_of(obj) and await self._clean_up(obj):
            await self._objects.remove_finalizer(obj, self.name)
        return None
