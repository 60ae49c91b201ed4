"""From specs to what is traced in the place of values.

In: specs, each of which builds its stand-in by the methods of a `Builder`. Out: the stand-ins, by place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jitcore.autojitted.inputs.specs import Spec

__all__ = ["Builder"]


class Builder:
    """Makes the stand-ins.

    Args:
        make_leaf: of an array or scalar; make_object: of what is taken as it is.
        note_instance: is told of the stand-in of an object of a user's class.

    Attributes:
        places, stand_ins: spec and stand-in of each place.
    """

    def __init__(self, make_leaf: Callable[[Spec], Any], make_object: Callable[[Any], Any],
                 note_instance: Callable[[Any], None]):
        self.make_leaf, self.make_object, self.note_instance = make_leaf, make_object, note_instance
        self.places: list[Spec] = []
        self.stand_ins: list[Any] = []
        self._ids: set[int] = set()

    def add(self, spec: Spec, stand_in: Any) -> Any:
        self.places.append(spec)
        self.stand_ins.append(stand_in)
        self._ids.add(id(stand_in))
        return stand_in

    def has_made(self, value: Any) -> bool:
        """Whether a value is a stand-in."""
        return id(value) in self._ids

    def reserve(self, spec: Spec) -> int:
        """The place of what is made of others, whose places follow."""
        self.add(spec, None)
        return len(self.places) - 1

    def fill(self, place: int, stand_in: Any) -> Any:
        self.stand_ins[place] = stand_in
        return stand_in
