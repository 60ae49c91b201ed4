"""The class of arrays whose extents are traced.

In: a frame and the items that say which of its elements belong to the array. Out: an object that acts as
the ndarray of those elements. A view's frame is a view, so that stores into it reach the array that it was
taken from. The class says what such an array is; what it does, the other modules put there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from jitcore.numpy_semantics.dynamic_extents.spans import Item, Pick, find_axes
from jitcore.numpy_semantics.errors import NotTraceable, not_traceable
from jitcore.numpy_semantics.functions.dispatch import run_source
from jitcore.numpy_semantics.values.ndarray import NDArray
from jitcore.process.effort import TooMuchEffort
from jitcore.rewriter.handles import CompoundHandle
from jitcore.rewriter.values import is_made_in

#: NumPy function -> implementation over arrays of which at least one is padded.
FUNCTIONS: dict[Any, Callable] = {}


class PaddedArray(NDArray, CompoundHandle):
    """Some elements of a plain array, as an array; the others are padding.

    Attributes:
        frame: the plain array; items: one per axis, which together run over the frame's axes."""

    __slots__ = ("frame", "items")
    is_padded = True

    def __init__(self, frame: NDArray, items: Sequence[Item]):
        self.frame, self.items = frame, tuple(items)

    dtype, memory = property(attrgetter("frame.dtype")), property(attrgetter("frame.memory"))
    is_shared, is_given = property(attrgetter("frame.is_shared")), property(attrgetter("frame.is_given"))

    # -- as a handle ----------------------------------------------------------------------------------------
    def children(self) -> list:
        """What it is made of, for the driver: the frame and the traced numbers and masks of the items."""
        return [self.frame, *(child for item in self.items for child in item.children())]

    def structure(self):
        return "padded array", *(item.structure() for item in self.items)

    def rebuild(self, children: Sequence) -> PaddedArray:
        frame, *rest = children
        numbers = iter(rest)
        return PaddedArray(frame, [item.rebuild(numbers) for item in self.items])

    def changes_places(self, other):
        return any(isinstance(own, Pick) and not own.is_same(item)
                   for own, item in zip(self.items, other.items))

    def mark_shared(self, alias=None) -> None:
        self.frame.mark_shared()

    def is_same(self, other) -> bool:
        return self is other or isinstance(other, PaddedArray) and self.frame.is_same(other.frame) and len(
            self.items) == len(other.items) and all(map(Item.is_same, self.items, other.items))

    def is_made_in(self, trace) -> bool:
        return any(is_made_in(child, trace) for child in self.children())

    # -- attributes -----------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple:
        return tuple(item.size for item in self.items)

    @shape.setter
    def shape(self, shape) -> None:
        raise not_traceable("a new shape for an array whose extent is traced")

    @property
    def flat(self) -> PaddedArray:
        return self.ravel()

    @property
    def ndim(self) -> int:
        return len(self.items)

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def real(self) -> PaddedArray:
        return PaddedArray(self.frame.real, self.items)

    @property
    def imag(self) -> PaddedArray:
        return PaddedArray(self.frame.imag, self.items)

    def find_axes(self) -> list[int]:
        """The first axis of the frame of each item."""
        return find_axes(self.items)

    def __repr__(self) -> str:
        return f"PaddedArray(dtype={self.dtype}, frame={self.frame.shape})"


def wrap(frames: Any, items: Sequence[Item]) -> Any:
    """Arrays of these items; a plain array where all extents are known."""
    if isinstance(frames, tuple):
        return tuple(wrap(frame, items) for frame in frames)
    return frames if all(item.is_whole for item in items) else PaddedArray(frames, items)


# -- what it does -------------------------------------------------------------------------------------------
def accepts_padded(*functions: Any, method: str | None = None) -> Callable[[Callable], Callable]:
    """Decorator: the implementation of NumPy functions, and of an array method, for padded arrays."""

    def register(implementation: Callable) -> Callable:
        FUNCTIONS.update(dict.fromkeys(functions, implementation))
        if method is not None:
            setattr(PaddedArray, method, implementation)
        return implementation

    return register


def apply_function(function: Any, args: Sequence, kwargs: dict) -> Any:
    """A NumPy function with padded arrays among its arguments; one without an implementation here through
    its own source, where that is of functions with one. Raises: NotTraceable."""
    implementation = FUNCTIONS.get(function)
    if implementation is not None:
        return implementation(*args, **kwargs)
    try:
        return run_source(function, args, kwargs)
    except TooMuchEffort:
        raise
    except Exception as error:  # asks for an extent, or for something that only an ndarray has
        raise not_supported(f"np.{getattr(function, '__name__', function)}") from error


def not_supported(name: str) -> NotTraceable:
    return not_traceable(f"{name} of an array whose extent is traced is not supported")


def _refuse(name: str, make_error: Callable, reason: str) -> None:
    def method(self, *args, **kwargs):
        raise make_error(reason)

    setattr(PaddedArray, name, method)


for _name in dir(np.ndarray):
    if not _name.startswith("_") and callable(getattr(np.ndarray, _name)):
        _refuse(_name, not_supported, f"the method {_name}")

for _name, _reason in {
    "__iter__": "a loop over an array whose extent is traced, in Python",
    "__len__": "len() of an array whose extent is traced",
    "add_view": "this view of an array whose extent is traced",
    "as_predicate": "the truth of an array whose extent is traced",
    "read": "this operation needs an array whose extents are known",
    "write": "this operation needs an array whose extents are known"}.items():
    _refuse(_name, not_traceable, _reason)
