"""Lists of the caller's that hold objects of one class: a structure of arrays that acts as a list.

In: for each attribute a column, with what the objects hold. Out: an `ObjectList`; its elements are
`Element`s, each a place in the list, which may be traced. To read an attribute of an element is to read a
column there, to set it is to write there. The objects themselves are the caller's: their attributes are set
behind the call. What a column cannot hold leaves the call to plain Python, or to a program that takes each
object by itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from jitcore import dtypes, lax
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.arithmetic import fail, interval_of
from jitcore.numpy_semantics.values.lists import ListHandle
from jitcore.numpy_semantics.values.ndarray import NDArray
from jitcore.numpy_semantics.values.numbers import Number, bound_int
from jitcore.numpy_semantics.values.promotion import to_raw
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.rewriter.control_flow.iterators import iterate_elements
from jitcore.rewriter.handles import CompoundHandle, Handle
from jitcore.rewriter.values import as_predicate, wrap_predicate

__all__ = ["Arrays", "Constant", "Element", "ObjectList", "Tuples", "find_element_class"]


class Constant:
    """A column of one object, or of equal numbers or texts."""

    def __init__(self, value: Any):
        self.value = value

    def __getitem__(self, place: Any) -> Any:
        return self.value

    def __setitem__(self, place: Any, value: Any) -> None:
        if value is not self.value:
            raise not_traceable("an attribute is set that all objects of a list have in common")


class Tuples:
    """A column of tuples, of which each item is a column."""

    def __init__(self, columns: Sequence):
        self.columns = columns

    def __getitem__(self, place: Any) -> tuple:
        return tuple([column[place] for column in self.columns])

    def __setitem__(self, place: Any, value: Any) -> None:
        if type(value) is not tuple or len(value) != len(self.columns):
            raise not_traceable("an attribute that is a tuple is set to something else, in a list of objects")
        for column, item in zip(self.columns, value):
            column[place] = item


class Arrays:
    """A column of arrays, which are the rows of one."""

    def __init__(self, rows: NDArray):
        self.rows = rows

    def __getitem__(self, place: Any) -> NDArray:
        return self.rows[place]

    def __setitem__(self, place: Any, value: Any) -> None:
        _check_same(self[place], value)


def _check_same(held: Handle, value: Any) -> None:
    """Raises: NotTraceable where what an object has in memory of its own is to be another one."""
    if not isinstance(value, Handle) or not held.is_same(value):
        raise not_traceable("an attribute is set to another array, list or object, in a list of objects")


class ObjectList(ListHandle):
    """A list. kind: the class of its objects; count: of them; columns: by attribute."""

    __slots__ = ("kind", "count", "columns")
    leaf_type = None  # it is not carried: what it holds is

    def __init__(self, kind: type, count: int, columns: Mapping[str, Any]):
        self.kind, self.count, self.columns = kind, count, columns

    # -- as a handle ----------------------------------------------------------------------------------------
    shape = property(lambda self: (self.count,))

    def is_same(self, other: Handle) -> bool:
        return self is other

    def is_made_in(self, trace) -> bool:
        return False

    def as_predicate(self) -> bool:
        return self.count > 0

    def read(self) -> NoReturn:
        self.refuse("the value of")

    def to_array(self, *, is_index: bool = False) -> NoReturn:
        self.refuse("an array of")

    def refuse(self, what: str) -> NoReturn:
        raise not_traceable(f"{what} a list of objects")

    # -- as a list ------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return self.as_predicate()

    def __iter__(self):
        return iterate_elements(self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(self.count)[index]]
        if type(index) is int:
            return self.find(range(self.count)[index])
        if type(index) is Scalar and index.dtype.kind in "iu":
            index = index.item()
        if type(index) is not Number or index.python_type is not int:
            raise not_traceable("an object of a list at a place that is no int")
        low, high = interval_of(index)
        error = IndexError("list index out of range")
        if high >= self.count:
            fail(as_predicate(index >= self.count), error)
        if low < 0:
            fail(as_predicate(index < -self.count), error)
            raw = to_raw(index, dtypes.int64)
            moved = lax.add(raw, dtypes.int64.type(self.count))
            index = Number(int, lax.select(lax.lt(raw, dtypes.int64.type(0)), moved, raw))
        return self.find(index)

    def find(self, place: Any, *, is_optional: bool = False) -> Element:
        """The element at a place from 0 on. is_optional: whether it may be -1, for None."""
        return find_element_class(self.kind)(self, place, is_optional)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.refuse("an object is put into")

    def __getattr__(self, name: str) -> Any:
        if name == "copy":
            return lambda: self[:]
        return super().__getattr__(name)

    def __repr__(self) -> str:
        return f"Traced<list of {self.kind.__name__}>"


class Element(CompoundHandle):
    """An object of a list. Its class is derived from the object's, whose special methods it has.

    Attributes: owner: the list; place: in it; is_optional: whether it is None where the place is -1."""

    stands_for: type

    def __init__(self, owner: ObjectList, place: Any, is_optional: bool = False):
        self.__dict__.update(owner=owner, place=place, is_optional=is_optional)

    # -- as a handle ----------------------------------------------------------------------------------------
    leaf_type = None

    def children(self) -> list:
        return [self.__dict__["place"]]

    def structure(self) -> Any:
        return "element", id(self.__dict__["owner"]), self.__dict__["is_optional"]

    def rebuild(self, children: Sequence) -> Element:
        return type(self)(self.__dict__["owner"], children[0], self.__dict__["is_optional"])

    def join_structure(self, other: Any) -> Callable[[Any], Element] | None:
        owner = self.__dict__["owner"]
        if other is None or isinstance(other, Element) and other.__dict__["owner"] is owner:
            return lambda value: owner.find(
                -1 if value is None else value.__dict__["place"], is_optional=True)
        return None

    def is_same(self, other: Handle) -> bool:
        return isinstance(other, Element) and self.structure() == other.structure() and _is_one_place(
            self.__dict__["place"], other.__dict__["place"])

    def is_made_in(self, trace) -> bool:
        place = self.__dict__["place"]
        return isinstance(place, Handle) and place.is_made_in(trace)

    def as_predicate(self) -> Any:
        return as_predicate(self.__dict__["place"] >= 0) if self.__dict__["is_optional"] else True

    def is_object(self, other: Any) -> Any:
        own = self.__dict__
        if other is None:
            return own["is_optional"] and as_predicate(own["place"] < 0)
        if not isinstance(other, Element) or other.__dict__["owner"] is not own["owner"]:
            return False
        return as_predicate(own["place"] == other.__dict__["place"])

    def read(self) -> NoReturn:
        raise not_traceable("an object of a list is an operand of NumPy's")

    # -- as an object ---------------------------------------------------------------------------------------
    def locate(self, name: str) -> tuple[Any, Any]:
        """(column of an attribute, place in it). Where this is None, plain Python raises."""
        owner, place = self.__dict__["owner"], self.__dict__["place"]
        if self.__dict__["is_optional"]:
            error = AttributeError(f"'NoneType' object has no attribute '{name}'")
            fail(as_predicate(place < 0), error)
            place = max(place, 0) if type(place) is int else Number(
                int, lax.max(to_raw(place, dtypes.int64), dtypes.int64.type(0)))
        return owner.columns[name], bound_int(place, 0, owner.count - 1)


def _is_one_place(one: Any, other: Any) -> bool:
    return one is other or type(one) is type(other) is int and one == other


class ElementRules:
    """What holds for elements where their class says nothing else."""

    def __eq__(self, other: Any) -> Any:
        return wrap_predicate(self.is_object(other))

    def __ne__(self, other: Any) -> Any:
        found = self.is_object(other)
        return not found if isinstance(found, bool) else wrap_predicate(lax.bitwise_not(found))

    def _refuse(self, *args: Any) -> NoReturn:
        raise not_traceable("an object of a list is asked for what depends on which one it is")

    __hash__ = __repr__ = __str__ = __format__ = _refuse  # type: ignore[assignment]


@functools.cache
def find_element_class(kind: type) -> type[Element]:
    """The class of what stands for objects of a class."""
    variables = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "stands_for": kind}
    return type(kind.__name__, (Element, kind, ElementRules), variables)
