"""Texts that a program reads letter by letter: strs of the caller's as arrays of code points.

In: an array of the code points of a str, or a str that is known. Out: `Letters`, which acts as that str, and
`Letter`, one letter of it: compared, looked up among known ones, made a number by `ord` and `int`. What else
is done to a text needs it as it is: programs are made for the text then.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray
from jitcore.core.jaxpr import ShapedArray
from jitcore.numpy_semantics.errors import needs_identity, needs_value
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.operators import WithoutValue
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.process.lists import pack_text
from jitcore.rewriter.control_flow.iterators import iterate_elements
from jitcore.rewriter.handles import ConflictError, Handle, Kind, LeafType

__all__ = ["Letter", "Letters", "TracedText", "chr_of", "int_of", "ord_of"]

#: Code points of which it is known what they are.
_ASCII = 128
_QUESTIONS = ("isalnum", "isalpha", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "isupper")
_CHANGES = ("lower", "swapcase", "upper")


class TextKind(Kind):
    """What a carried letter is, or a carried text. make: the handle of its code points."""

    __slots__ = ("make",)

    def __init__(self, make: type):
        self.make = make

    def __eq__(self, other) -> bool:
        return type(other) is TextKind and other.make is self.make

    def __hash__(self) -> int:
        return hash((TextKind, self.make))

    def __repr__(self) -> str:
        return "str"

    def join(self, aval: ShapedArray, other: LeafType) -> LeafType:
        if other.kind != self or other.aval != aval:
            raise ConflictError("strs of several lengths")
        return other

    def wrap(self, raw: Array, aval: ShapedArray) -> Any:
        return self.make(raw)


class TracedText(WithoutValue, Handle):
    """A str. raw: its code points, int32."""

    __slots__ = ("raw",)
    python_type = str

    def __init__(self, raw: Array):
        self.raw = raw

    @property
    def leaf_type(self) -> LeafType:
        return LeafType(ShapedArray(self.raw.shape, dtypes.int32), TextKind(type(self)))

    def read(self) -> Array:
        return self.raw

    def is_same(self, other: Handle) -> bool:
        return type(other) is type(self) and other.raw is self.raw

    def is_object(self, other: Any) -> Any:
        if self is other or not isinstance(other, (str, TracedText)):
            return self is other
        raise needs_identity(str)

    def is_made_in(self, trace) -> bool:
        return getattr(self.raw, "owner", None) is trace

    def __getattr__(self, name: str) -> Any:
        if hasattr(str, name):
            raise needs_value(self, f"str.{name}")
        raise AttributeError(f"'str' object has no attribute '{name}'")

    def _refuse(self, *args: Any) -> Any:
        raise needs_value(self, "an operation on it")

    __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _refuse

    def __repr__(self) -> str:
        return "Traced<str>"


def _wrap(raw: Array) -> Number:
    return Number(bool, raw)


# -- one letter ---------------------------------------------------------------------------------------------
class Letter(TracedText):
    """A str of one letter."""

    __slots__ = ()

    def as_predicate(self) -> bool:
        return True

    def _compare(self, other: Any, compare: Callable) -> Any:
        if type(other) is Letter:
            return _wrap(compare(self.raw, other.raw))
        if type(other) is str and len(other) == 1:
            return _wrap(compare(self.raw, np.int32(ord(other))))
        if not isinstance(other, (str, Letters)):
            return NotImplemented
        if compare in (lax.eq, lax.ne):
            return compare is lax.ne
        raise needs_value(self, "an order of several letters")

    __hash__ = WithoutValue.__hash__

    def __len__(self) -> int:
        return 1

    def _look_up(self, table: np.ndarray) -> Array:
        """What a table of ASCII's letters has; other letters are Python's."""
        place = _bound(_widen(self.raw), _ASCII - 1, ValueError("a letter beyond ASCII"))
        return new_array(ConcreteArray(table))[place].read()


def _make_question(name: str) -> Callable:
    table = np.array([getattr(chr(code), name)() for code in range(_ASCII)])
    return lambda self: _wrap(self._look_up(table))


def _make_change(name: str) -> Callable:
    table = np.array([ord(getattr(chr(code), name)()) for code in range(_ASCII)], np.int32)
    return lambda self: Letter(self._look_up(table))


def _make_comparison(compare: Callable) -> Callable:
    return lambda self, other: self._compare(other, compare)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Letter, f"__{_name}__", _make_comparison(getattr(lax, _name)))
for _name in _QUESTIONS:
    setattr(Letter, _name, _make_question(_name))
for _name in _CHANGES:
    setattr(Letter, _name, _make_change(_name))


def _widen(raw: Array) -> Array:
    return lax.convert_element_type(raw, dtypes.int64)


def _bound(raw: Array, most: int, error: Exception) -> Number:
    """An int from 0 to a bound. Where it is another one, the call fails; until then the program goes on with
    one that is safe to find places in memory by."""
    bounded = lax.clamp(np.int64(0), raw, np.int64(most))
    fail(lax.ne(bounded, raw), error)
    return Number(int, bounded, interval=(0, most))


def ord_of(letter: Any) -> Any:
    """`ord`."""
    return Number(int, _widen(letter.raw), interval=(0, 0x10FFFF)) if type(letter) is Letter else ord(letter)


def chr_of(number: Any) -> Any:
    """`chr`."""
    if type(number) is not Number or number.python_type not in (bool, int):
        return chr(number)
    code = _bound(_widen(number.read()), 0x10FFFF, ValueError("chr() arg not in range(0x110000)"))
    return Letter(lax.convert_element_type(code.read(), dtypes.int32))


def int_of(letter: Letter) -> Number:
    """`int` of a digit."""
    value = lax.sub(_widen(letter.raw), np.int64(ord("0")))
    return _bound(value, 9, ValueError("int() of a letter that is no digit of ASCII"))


# -- many letters -------------------------------------------------------------------------------------------
class Letters(TracedText):
    """A str of a length that is known."""

    __slots__ = ()

    @classmethod
    def of(cls, text: str) -> Letters:
        return cls(ConcreteArray(pack_text(len(text), text)))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.raw.shape

    @property
    def _array(self) -> NDArray:
        return new_array(self.raw)

    def as_predicate(self) -> bool:
        return len(self) > 0

    def __len__(self) -> int:
        return self.raw.shape[0]

    def __bool__(self) -> bool:
        return self.as_predicate()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            found = self._array[index]
            return Letters(found.read()) if type(found) is NDArray else self._refuse()
        kinds = "iub" if type(index) is Number else "iu" if type(index) is Scalar else ""
        if not kinds or index.dtype.kind not in kinds:
            index = operator.index(index)
        return Letter(self._array[index].read())

    def __iter__(self) -> Iterator:
        return iterate_elements(self)

    def __eq__(self, other):
        if type(other) is str and len(other) == len(self):
            other = Letters.of(other)
        if type(other) is Letters and len(other) == len(self):
            return _wrap(lax.reduce_and(lax.eq(self.raw, other.raw), (0,)))
        return False if isinstance(other, (str, TracedText)) else NotImplemented

    def __ne__(self, other):
        found = self.__eq__(other)
        if type(found) is Number:
            return _wrap(lax.bitwise_not(found.read()))
        return found if found is NotImplemented else not found

    __hash__ = WithoutValue.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = TracedText._refuse

    def holds(self, letter: Any) -> Array:
        """`letter in self`."""
        if type(letter) is not Letter and not (type(letter) is str and len(letter) == 1):
            raise needs_value(self, "`in`")
        code = letter.raw if type(letter) is Letter else np.int32(ord(letter))
        return lax.reduce_or(lax.eq(self.raw, code), (0,))
