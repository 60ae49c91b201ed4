"""Lists of the caller's that hold numbers, or rows of numbers: arrays that act as lists.

In: an array of the numbers. Out: a `NumberList`, whose elements are Python's numbers, and whose rows are
lists. Its length does not change. Elements keep their type, unless the list is one of ints and floats; where
a list of ints is given a float, `NeedsMixed` asks for that. What else is done to a list leaves the call to
plain Python, or to a program that takes each element by itself.
"""

from __future__ import annotations

from typing import Any, NoReturn

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray
from jitcore.numpy_semantics.errors import NotTraceable, not_traceable
from jitcore.numpy_semantics.values.arithmetic import fail, kind_of
from jitcore.numpy_semantics.values.lists import ListHandle
from jitcore.numpy_semantics.values.mixed import Join, Mixed, as_mixed
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import NUMBER_DTYPES, Number, number_type
from jitcore.numpy_semantics.values.promotion import to_raw
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.process.lists import BOXED_BITS, BOXED_LIMIT, BOXED_SIGN, MIXED, NAN
from jitcore.rewriter.control_flow.arms import make_final
from jitcore.rewriter.control_flow.iterators import iterate_elements
from jitcore.rewriter.handles import Alias, ConflictError, Handle, Kind, LeafType

#: Types of elements, by the kind of their dtype.
_TYPES = {"b": bool, "i": int, "f": float, "c": complex}


#: Numbers from which on a list of one number is an array.
MIN_REPEATED = 64
_BOTH = Join((number_type(int), number_type(float)))


class NeedsMixed(NotTraceable):
    """A list of ints is given a float, or one of floats an int. memory: of the list."""

    def __init__(self, reason: str, memory: Any):
        super().__init__(reason)
        self.memory = memory


def unbox(bits: Array) -> Mixed:
    """An int or a float, see `process.lists`."""
    to_int = dtypes.int64.type
    is_int = lax.eq(lax.shift_right_arithmetic(bits, to_int(BOXED_BITS)), to_int(BOXED_SIGN))
    rest = to_int(64 - BOXED_BITS)
    whole = lax.shift_right_arithmetic(lax.shift_left(bits, rest), rest)
    value = lax.select(is_int, lax.convert_element_type(whole, dtypes.float64),
                       lax.bitcast_convert_type(bits, dtypes.float64))
    tag = lax.select(is_int, lax.full((), 0, dtypes.int32), lax.full((), 1, dtypes.int32))
    return Mixed(_BOTH.kinds, value, tag, whole)


def box(value: Any) -> Array:
    """The bits of an int or a float. An int that is too large is Python's to keep."""
    number = as_mixed(value, _BOTH)
    is_int, whole = number.is_kind(0), number.whole
    shifted = lax.add(whole, dtypes.int64.type(BOXED_LIMIT))
    is_large = lax.bitwise_or(lax.lt(shifted, dtypes.int64.type(0)),
                              lax.ge(shifted, dtypes.int64.type(2 * BOXED_LIMIT)))
    fail(lax.bitwise_and(is_int, is_large), OverflowError("an int among floats is large"))
    low = lax.bitwise_and(whole, dtypes.int64.type((1 << BOXED_BITS) - 1))
    bits = lax.select(lax.ne(number.raw, number.raw), lax.full((), NAN, dtypes.int64),
                      lax.bitcast_convert_type(number.raw, dtypes.int64))
    return lax.select(is_int, lax.bitwise_or(low, dtypes.int64.type(BOXED_SIGN << BOXED_BITS)), bits)


def repeat_number(items: list, count: Any, is_mixed: bool) -> NumberList | None:
    """A long list of one number; None for other ones."""
    kind = kind_of(items[0]) if len(items) == 1 and type(items[0]) in (bool, int, float, Number) else None
    if kind is None or type(count) is not int or count < MIN_REPEATED:
        return None
    is_mixed &= kind in MIXED
    value = box(items[0]) if is_mixed else to_raw(items[0], NUMBER_DTYPES[kind])
    return NumberList(new_array(lax.full((count,), value)), is_mixed)


class NumberListKind(Kind):
    """What a carried list is."""

    __slots__ = ("is_mixed",)

    def __init__(self, is_mixed: bool):
        self.is_mixed = is_mixed

    def __eq__(self, other) -> bool:
        return type(other) is NumberListKind and other.is_mixed == self.is_mixed

    def __hash__(self) -> int:
        return hash((NumberListKind, self.is_mixed))

    def __repr__(self) -> str:
        return "list"

    def join(self, aval: ShapedArray, other: LeafType) -> LeafType:
        if other.kind != self or other.aval != aval:
            raise ConflictError(f"a list of {aval} and a {other.kind!r}")
        return other

    def wrap(self, raw: Array, aval: ShapedArray) -> NumberList:
        return NumberList(new_array(raw), self.is_mixed)


class NumberList(ListHandle):
    """A list. array: of its elements; is_mixed: whether these are ints and floats."""

    __slots__ = ("array", "is_mixed")

    def __init__(self, array: NDArray, is_mixed: bool = False):
        self.array, self.is_mixed = array, is_mixed

    # -- as a handle ----------------------------------------------------------------------------------------
    @property
    def leaf_type(self) -> LeafType:
        return LeafType(ShapedArray(self.array.shape, self.array.dtype), NumberListKind(self.is_mixed))

    memory = property(lambda self: self.array.memory)
    is_shared = property(lambda self: self.array.is_shared)
    is_given = property(lambda self: self.array.is_given)
    is_whole = property(lambda self: self.array.is_whole)
    shape = property(lambda self: self.array.shape[:1])
    kind = property(lambda self: MIXED if self.is_mixed else _TYPES[self.array.dtype.kind])

    def read(self) -> Array:
        return self.array.read()

    def write(self, value: Array) -> None:
        self.array.write(value)

    def is_same(self, other: Handle) -> bool:
        return self is other or (type(other) is NumberList and self.is_mixed == other.is_mixed
                                 and self.array.is_same(other.array))

    def is_made_in(self, trace) -> bool:
        return self.array.is_made_in(trace)

    def as_predicate(self) -> bool:
        return self.array.shape[0] > 0

    def mark_shared(self, alias: Alias | None = None) -> None:
        handle = getattr(alias, "handle", None)
        self.array.mark_shared(alias._replace(handle=handle.array) if type(handle) is NumberList else alias)

    def to_array(self, *, is_index: bool = False) -> NDArray:
        if self.is_mixed:
            raise not_traceable("an array of a list of numbers, ints and floats")
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
                return NumberList(found.copy(), self.is_mixed)
        if type(index) is not int and type(index) is not Number:
            raise not_traceable("a part of a list of numbers")
        found = self.array[index]
        if type(found) is not Scalar:
            return NumberList(found, self.is_mixed)
        return unbox(found.read()) if self.is_mixed else found.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        is_index = type(index) is int or type(index) is Number and index.python_type is int
        types = [kind.kind for kind in value.kinds] if type(value) is Mixed else [value]
        kinds = {getattr(one, "python_type", type(one)) for one in types}
        is_known = is_index and self.array.ndim == 1
        if is_known and kinds <= ({*MIXED} if self.is_mixed else {self.kind}):
            self.array[index] = Scalar(box(value) if self.is_mixed else to_raw(value, self.array.dtype))
            return
        error = not_traceable("an element of another type, or a row, in a list of numbers")
        if is_known and kinds <= {*MIXED} and self.kind in MIXED:
            error = NeedsMixed(str(error), self.memory)
            make_final(error)
        raise error

    def __iter__(self):
        return iterate_elements(self)

    def copy(self) -> NumberList:
        if self.array.ndim > 1:
            raise not_traceable("a copy of a list of lists")
        return NumberList(self.array.copy(), self.is_mixed)

    def refuse(self, what: str) -> NoReturn:
        raise not_traceable(f"{what} a list of numbers")

    def __repr__(self) -> str:
        return f"Traced<list of {'int and float' if self.is_mixed else self.kind.__name__}>"
