"""The class of arrays whose extents are traced.

In: a frame and the items that say which of its elements belong to the array. Out: an object that acts as
the ndarray of those elements. A view's frame is a view, so that stores into it reach the array that it was
taken from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore.numpy_semantics.dynamic_extents.spans import Item, Pick, find_axes
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.ndarray import NDArray
from jitcore.numpy_semantics.values.promotion import is_python_number
from jitcore.rewriter.handles import CompoundHandle
from jitcore.rewriter.values import is_made_in

#: NumPy function -> implementation over arrays of which at least one is partial.
FUNCTIONS: dict[Any, Callable] = {}
#: Name of an array method -> implementation(self, ...).
METHODS: dict[str, Callable] = {}


def accepts_partial(*functions: Any, method: str | None = None) -> Callable[[Callable], Callable]:
    """Decorator: the implementation of NumPy functions, and of an array method, for partial arrays."""

    def register(implementation: Callable) -> Callable:
        for function in functions:
            FUNCTIONS[function] = implementation
        if method is not None:
            METHODS[method] = implementation
        return implementation

    return register


class PartialArray(np.lib.mixins.NDArrayOperatorsMixin, NDArray, CompoundHandle):
    """Some elements of a plain array, as an array.

    Attributes:
        frame: the plain array; items: one per axis, which together run over the frame's axes."""

    __slots__ = ("frame", "items")
    is_partial = True

    def __init__(self, frame: NDArray, items: Sequence[Item]):
        self.frame, self.items = frame, tuple(items)

    # -- as a handle ----------------------------------------------------------------------------------------
    def children(self) -> list:
        """What it is made of, for the driver: the frame and the traced numbers and masks of the items."""
        return [self.frame, *(child for item in self.items for child in item.children())]

    def structure(self):
        return "partial array", *(item.structure() for item in self.items)

    def rebuild(self, children: Sequence) -> PartialArray:
        frame, *rest = children
        items = []
        for item in self.items:
            count = len(item.children())
            items.append(item.rebuild(rest[:count]))
            rest = rest[count:]
        return PartialArray(frame, items)

    def join_structure(self, other):
        from jitcore.numpy_semantics.dynamic_extents.joining import join_structures

        return join_structures(self, other)

    def settle(self):
        from jitcore.numpy_semantics.dynamic_extents.reading import compact_array, has_picks

        return compact_array(self) if has_picks(self) else self

    def changes_places(self, other):
        return any(isinstance(own, Pick) and not own.is_same(item)
                   for own, item in zip(self.items, other.items))

    @property
    def memory(self):
        return self.frame.memory

    @property
    def is_shared(self) -> bool:
        return self.frame.is_shared

    @property
    def is_given(self) -> bool:
        return self.frame.is_given

    def mark_shared(self, alias=None) -> None:
        self.frame.mark_shared()

    def is_same(self, other) -> bool:
        return self is other or isinstance(other, PartialArray) and self.frame.is_same(other.frame) and len(
            self.items) == len(other.items) and all(map(Item.is_same, self.items, other.items))

    def is_made_in(self, trace) -> bool:
        return any(is_made_in(child, trace) for child in self.children())

    def as_predicate(self):
        raise not_traceable("the truth of an array whose extent is traced")

    # -- attributes -----------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple:
        return tuple(item.size for item in self.items)

    @shape.setter
    def shape(self, shape) -> None:
        raise not_traceable("a new shape for an array whose extent is traced")

    @property
    def flat(self) -> PartialArray:
        return self.ravel()

    @property
    def ndim(self) -> int:
        return len(self.items)

    @property
    def size(self):
        size: Any = 1
        for item in self.items:
            size = size * item.size
        return size

    @property
    def dtype(self) -> np.dtype:
        return self.frame.dtype

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self):
        return self.size * self.itemsize

    @property
    def T(self) -> PartialArray:
        return self.transpose()

    @property
    def real(self) -> PartialArray:
        return PartialArray(self.frame.real, self.items)

    @property
    def imag(self) -> PartialArray:
        return PartialArray(self.frame.imag, self.items)

    def find_axes(self) -> list[int]:
        """The first axis of the frame of each item."""
        return find_axes(self.items)

    def read(self):
        raise not_traceable("this operation needs an array whose extents are known")

    def write(self, value) -> None:
        raise not_traceable("this operation needs an array whose extents are known")

    def __len__(self):
        raise not_traceable("len() of an array whose extent is traced")

    def add_view(self, *steps):
        raise not_traceable("this view of an array whose extent is traced")

    def __iter__(self):
        raise not_traceable("a loop over an array whose extent is traced, in Python")

    def __repr__(self) -> str:
        return f"PartialArray(dtype={self.dtype}, frame={self.frame.shape})"

    # -- protocols ------------------------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        from jitcore.numpy_semantics.dynamic_extents.elementwise import apply_ufunc

        return apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function, kinds, args, kwargs):
        return apply_function(function, args, kwargs)

    def __getitem__(self, index):
        from jitcore.numpy_semantics.dynamic_extents.reading import read_item

        return read_item(self, index)

    def __setitem__(self, index, value):
        from jitcore.numpy_semantics.dynamic_extents.writing import write_item

        write_item(self, index, value)

    def __pow__(self, other, modulo=None):
        if is_python_number(other):  # NumPy has short ways for some
            return PartialArray(self.frame**other, self.items)
        return np.power(self, other)

    def __ipow__(self, other):
        if isinstance(other, int) and other in (1, 2):
            self[...] = self**other
            return self
        return np.power(self, other, out=(self,))

    def __divmod__(self, other):
        return np.divmod(self, other)


def apply_function(function: Any, args: Sequence, kwargs: dict) -> Any:
    """A NumPy function with partial arrays among its arguments. Raises: NotTraceable for one without."""
    implementation = FUNCTIONS.get(function)
    if implementation is None:
        name = getattr(function, "__name__", function)
        raise not_traceable(f"np.{name} of an array whose extent is traced is not supported")
    return implementation(*args, **kwargs)


def _make_method(name: str) -> Callable:
    def method(self, *args, **kwargs):
        implementation = METHODS.get(name)
        if implementation is None:
            raise not_traceable(f"the method {name} of an array whose extent is traced is not supported")
        return implementation(self, *args, **kwargs)

    method.__name__ = name
    return method


for _name in dir(np.ndarray):
    if not _name.startswith("_") and callable(getattr(np.ndarray, _name)):
        setattr(PartialArray, _name, _make_method(_name))
