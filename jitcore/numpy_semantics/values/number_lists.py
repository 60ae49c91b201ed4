"""Lists of the caller's that hold numbers of one type, or rows of such numbers: arrays that act as lists.

In: an array of the numbers. Out: a `NumberList`, whose elements are Python's numbers, and whose rows are
lists. Its length does not change; elements keep their type. What else is done to a list leaves the call to
plain Python, or to a program that takes each element by itself.
"""

from __future__ import annotations

from typing import Any, NoReturn

from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.lists import ListHandle
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import to_raw
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.rewriter.control_flow.iterators import iterate_elements
from jitcore.rewriter.handles import Alias, ConflictError, Handle, Kind, LeafType

#: Types of elements, by the kind of their dtype.
_TYPES = {"b": bool, "i": int, "f": float, "c": complex}


class NumberListKind(Kind):
    """What a carried list is."""

    __slots__ = ()

    def __eq__(self, other) -> bool:
        return type(other) is NumberListKind

    def __hash__(self) -> int:
        return hash(NumberListKind)

    def __repr__(self) -> str:
        return "list"

    def join(self, aval: ShapedArray, other: LeafType) -> LeafType:
        if type(other.kind) is not NumberListKind or other.aval != aval:
            raise ConflictError(f"a list of {aval} and a {other.kind!r}")
        return other

    def wrap(self, raw: Array, aval: ShapedArray) -> NumberList:
        return NumberList(new_array(raw))


class NumberList(ListHandle):
    """A list. array: of its elements."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray):
        self.array = array

    # -- as a handle ----------------------------------------------------------------------------------------
    @property
    def leaf_type(self) -> LeafType:
        return LeafType(ShapedArray(self.array.shape, self.array.dtype), NumberListKind())

    memory = property(lambda self: self.array.memory)
    is_shared = property(lambda self: self.array.is_shared)
    is_given = property(lambda self: self.array.is_given)
    is_whole = property(lambda self: self.array.is_whole)
    shape = property(lambda self: self.array.shape[:1])
    kind = property(lambda self: _TYPES[self.array.dtype.kind])

    def read(self) -> Array:
        return self.array.read()

    def write(self, value: Array) -> None:
        self.array.write(value)

    def is_same(self, other: Handle) -> bool:
        return self is other or type(other) is NumberList and self.array.is_same(other.array)

    def is_made_in(self, trace) -> bool:
        return self.array.is_made_in(trace)

    def as_predicate(self) -> bool:
        return self.array.shape[0] > 0

    def mark_shared(self, alias: Alias | None = None) -> None:
        handle = getattr(alias, "handle", None)
        self.array.mark_shared(alias._replace(handle=handle.array) if type(handle) is NumberList else alias)

    def to_array(self, *, is_index: bool = False) -> NDArray:
        return self.array.copy()

    # -- as a list ------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return self.array.shape[0]

    def __bool__(self) -> bool:
        return self.as_predicate()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice) and self.array.ndim == 1:
            found = self.array[index]
            if type(found) is NDArray:
                return NumberList(found.copy())
        if type(index) is not int and type(index) is not Number:
            raise not_traceable("a part of a list of numbers")
        found = self.array[index]
        return found.item() if type(found) is Scalar else NumberList(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        is_index = type(index) is int or type(index) is Number and index.python_type is int
        kind = value.python_type if type(value) is Number else type(value)
        if not is_index or self.array.ndim > 1 or kind is not self.kind:
            raise not_traceable("an element of another type, or a row, in a list of numbers")
        self.array[index] = Scalar(to_raw(value, self.array.dtype))

    def __iter__(self):
        return iterate_elements(self)

    def copy(self) -> NumberList:
        if self.array.ndim > 1:
            raise not_traceable("a copy of a list of lists")
        return NumberList(self.array.copy())

    def refuse(self, what: str) -> NoReturn:
        raise not_traceable(f"{what} a list of numbers")

    def __repr__(self) -> str:
        return f"Traced<list of {self.kind.__name__}>"
