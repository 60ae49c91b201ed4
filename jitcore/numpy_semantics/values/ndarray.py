"""Arrays with NumPy's semantics: mutable, with views that share memory.

In: Arrays of a trace. Out: `NDArray`s: a storage and how the array lies in it. Items are in `items.py`,
operators in `operators.py`, the methods that are functions of NumPy's too in `tables.METHODS`.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from jitcore import lax
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.trace import context
from jitcore.lax.define import canonicalize_axis
from jitcore.numpy_semantics.errors import needs_value, not_traceable
from jitcore.numpy_semantics.functions import tables
from jitcore.numpy_semantics.values.equality import is_visible
from jitcore.numpy_semantics.values.operators import WithoutValue
from jitcore.numpy_semantics.values.promotion import (CONVERSIONS, as_operand, check_aval, check_dtype,
                                                      complete_shape, drop_leading_ones, repeat_elements,
                                                      to_item)
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.storage import (C_ORDER, Order, Storage, Store, find_dense_order,
                                                    find_own_order, name_order)
from jitcore.numpy_semantics.values.views import (Part, Reshape, Step, Steps, Window, add_step, broadcast_raw,
                                                  find_strides, is_same_view, read_steps, reshape_strides,
                                                  whole_window, write_steps)
from jitcore.rewriter.control_flow.iterators import iterate_elements
from jitcore.rewriter.handles import Alias, ConflictError, Handle, Kind, LeafType


class ArrayKind(Kind):
    """What a carried array is: its shape and dtype do not change. order: of its axes in memory."""

    __slots__ = ("order",)

    def __init__(self, order: Order | None):
        self.order = order

    def __eq__(self, other) -> bool:
        return type(other) is ArrayKind and other.order == self.order

    def __hash__(self) -> int:
        return hash((ArrayKind, self.order))

    def __repr__(self) -> str:
        return "array"

    def join(self, aval: ShapedArray, other: LeafType) -> LeafType:
        if type(other.kind) is not ArrayKind:
            raise ConflictError(f"an array {aval} and a {other.kind!r}")
        if other.aval.shape != aval.shape:
            raise ConflictError(f"shape {aval.shape} and {other.aval.shape}")
        if other.aval != aval:
            raise ConflictError(f"dtype {aval.dtype} and {other.aval.dtype}")
        return LeafType(aval, self if self == other.kind else ArrayKind(None))

    def wrap(self, raw: Array, aval: ShapedArray) -> Any:
        return new_array(raw, self.order)


class NDArray(WithoutValue, Handle):
    """A traced ndarray.

    Attributes:
        storage: its memory; steps: how it lies in that; shape, dtype: as NumPy's.
        objects: (predicate, one, other) of an array that is one or another object of Python's, or None."""

    __slots__ = ("storage", "steps", "objects", "_shape", "_memo")
    __array_priority__ = 1000
    is_padded = False
    has_views = True

    def __init__(self, storage: Storage, steps: Steps = ()):
        self.storage, self.steps, self.objects, self._memo = storage, steps, None, None
        self._shape = steps[-1].shape if steps else storage.shape

    # -- as a handle ----------------------------------------------------------------------------------------
    @property
    def leaf_type(self) -> LeafType:
        return LeafType(ShapedArray(self._shape, self.dtype), ArrayKind(self.order))

    def read(self) -> Array:
        """Its elements as they are now, C order."""
        if not self.steps:
            self.storage.is_observed = True
            return self.storage.value
        memo = self._memo
        if memo is None or memo[0] is not self.storage.value or not is_visible(memo[1]):
            value, store = self.storage.value, self._find_last_store()
            self.storage.is_observed |= store is None
            found = check_aval(read_steps(self.steps, value)) if store is None else store.value
            memo = self._memo = (value, found)
        return memo[1]

    def write(self, value: Array) -> None:
        """Replaces all elements. value: of this shape and dtype.

        Raises: ValueError for a read-only view; NotTraceable where another array may have to change too."""
        if any(step.is_read_only for step in self.steps):
            raise ValueError("assignment destination is read-only")
        storage, store = self.storage, self._find_last_store()
        # What is overwritten need not be stored, unless it was read together with what lies around it, or is
        # there on other ways too: a way with a version of its own would copy the array.
        is_needed = store is None or storage.is_observed or store.trace is not context.trace
        before = storage.value if is_needed else store.before
        storage.write(write_steps(self.steps, before, value))
        if storage.value is not before:  # else it has no elements
            storage.note_store(before, self.steps, value)
            self._memo = (storage.value, value)

    def _find_last_store(self) -> Store | None:
        """The storage's last store, if it still tells what this very part holds."""
        store = self.storage.last_store
        is_current = store is not None and store.after is self.storage.value
        return store if is_current and is_same_view(store.steps, self.steps) else None

    def assign(self, value: Any) -> None:
        """`self[...] = value`: converted as by `astype`, and broadcast."""
        value = as_operand(value)
        if isinstance(value, NDArray) and self.is_same(value):
            return
        raw = drop_leading_ones(to_item(value, self.dtype, is_packed=True), self.ndim)
        self.write(broadcast_raw(raw, self._shape))

    def is_same(self, other: Handle) -> bool:
        is_alike = type(other) is type(self) and other.storage is self.storage
        return self is other or is_alike and is_same_view(self.steps, other.steps)

    def is_made_in(self, trace) -> bool:
        if self.storage.trace is trace:
            return True
        return any(value.is_made_in(trace) for step in self.steps for value in step.list_values())

    def __bool__(self):
        self.as_predicate()
        raise needs_value(self, "bool(x)")

    __hash__ = None

    def as_predicate(self):
        if self.size != 1:
            raise ValueError(_AMBIGUOUS if self.size else _EMPTY)
        return Scalar(lax.reshape(self.read(), ())).as_predicate()

    @property
    def memory(self) -> Storage:
        return self.storage

    @property
    def is_shared(self) -> bool:
        return self.storage.is_shared

    @property
    def is_given(self) -> bool:
        return self.storage.source is not None

    @property
    def is_whole(self) -> bool:
        return type(self) is NDArray and not self.steps and self.storage.is_own

    def is_object(self, other: Handle) -> Any:
        if self is other or not isinstance(other, NDArray) or self.is_padded or other.is_padded:
            return self is other
        if self.objects is not None or other.objects is not None:
            raise not_traceable("whether two arrays are one object depends on a traced value")
        return self.storage.find_object(self, other)

    def mark_shared(self, alias: Alias | None = None) -> None:
        """From now on writing it cannot be traced: it may be two arrays at once."""
        self.storage.mark_shared(alias)

    def choose_object(self, predicate: Any, other: Handle) -> NDArray:
        found = NDArray(self.storage, self.steps)
        found.objects = predicate, self, other
        return found

    def add_view(self, *steps: Step) -> NDArray:
        """A view of this array."""
        chain = self.steps
        for step in steps:
            chain = add_step(chain, step)
        return NDArray(self.storage, chain)

    # -- attributes -----------------------------------------------------------------------------------------
    @property
    def dtype(self) -> np.dtype:
        dtype = self.storage.value.dtype
        for step in self.steps:
            dtype = step.dtype_of(dtype)
        return dtype

    @property
    def shape(self) -> tuple:
        return self._shape

    @shape.setter
    def shape(self, shape) -> None:
        found = self.reshape(shape)
        is_argument = not self.steps and self.storage.source is not None
        if found.storage is not self.storage or self.storage.is_shared or is_argument:
            raise not_traceable("a new shape for an argument, or for an array that is not contiguous")
        self.steps, self._shape, self._memo = found.steps, found.shape, None

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def size(self) -> int:
        return math.prod(self._shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple:
        strides = self.find_strides()
        if strides is None:
            raise not_traceable("the strides of an array whose layout is not known")
        unit = self.itemsize
        return tuple([unit * stride for stride in strides])

    @property
    def T(self) -> NDArray:  # noqa: N802  NumPy's name
        return self.transpose()

    @property
    def mT(self) -> NDArray:  # noqa: N802  NumPy's name
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return self.transpose(*range(self.ndim - 2), -1, -2)

    @property
    def real(self) -> NDArray:
        return self.add_view(Part(self._shape, is_real=True)) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value) -> None:
        self.real.assign(value)

    @property
    def imag(self) -> NDArray:
        if self.dtype.kind == "c":
            return self.add_view(Part(self._shape, is_real=False))
        zeros = new_array(lax.full(self._shape, 0, self.dtype), find_own_order(self, "A"))
        zeros.storage.is_read_only = True
        return zeros

    @imag.setter
    def imag(self, value) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag.assign(value)

    @property
    def flat(self) -> NDArray:
        return FlatArray(self.storage, add_step(self.steps, Reshape(self._shape, (self.size,))))

    @flat.setter
    def flat(self, value) -> None:
        value = to_item(as_operand(value), self.dtype, is_packed=True)
        self.flat.write(repeat_elements(lax.reshape(value, (math.prod(value.shape),)), self.size))

    # -- views and copies -----------------------------------------------------------------------------------
    def reshape(self, *shape, order: str = "C", copy=None) -> NDArray:
        shape = complete_shape(self.size, shape[0] if len(shape) == 1 else shape)
        if order == "F":
            turned = self.transpose().reshape(shape[::-1], copy=copy)
            return turned.transpose()
        if order != "C":
            raise not_traceable(f"reshape with order={order!r}")
        if shape == self._shape and not copy:
            return NDArray(self.storage, self.steps)
        return self._reshape(shape, copy)

    def _reshape(self, shape: tuple, copy) -> NDArray:
        step = Reshape(self._shape, shape)
        strides = find_strides(self.storage.shape, self.steps)
        is_view = strides is not None and reshape_strides(self._shape, strides, shape) is not None
        if self.storage.is_c_order and is_view and not copy:
            return self.add_view(step)
        if copy is False and self.storage.is_c_order:
            raise ValueError("Unable to avoid creating a copy while reshaping.")
        found = new_array(step.read(self.read()))
        if not self.storage.is_c_order and not copy:  # a view or not: nobody may write to either
            self.mark_shared()
            found.mark_shared()
        return found

    def ravel(self, order: str = "C") -> NDArray:
        if order == "F":
            return self.transpose().ravel()
        if order not in ("C", "A", "K") or order != "C" and not self.is_contiguous:
            raise not_traceable(f"ravel with order={order!r}")
        return self._reshape((self.size,), not self.is_contiguous and self.storage.is_c_order)

    def flatten(self, order: str = "C") -> NDArray:
        axes = find_own_order(self, order)
        if axes is None:
            raise not_traceable(f"flatten with order={order!r}, of an array whose layout is not known")
        return new_array(lax.reshape((self.transpose(axes) if axes else self).read(), (self.size,)))

    def transpose(self, *axes) -> NDArray:
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = axes[0]
        axes = axes or range(self.ndim)[::-1]
        order = tuple([canonicalize_axis(axis, self.ndim) for axis in axes])
        if sorted(order) != list(range(self.ndim)):
            raise ValueError("axes don't match array")
        window = whole_window(self._shape)
        return self.add_view(Window(self._shape, window.axes, order))

    def find_strides(self) -> tuple | None:
        """Its strides in elements; None where they are not known."""
        return find_strides(self.storage.shape, self.steps) if self.storage.is_c_order else None

    def rank_axes(self) -> tuple | None:
        """Numbers in the order of its strides; None where that is not known."""
        is_known = self.storage.is_c_order or self.storage.has_gaps
        return find_strides(self.storage.shape, self.steps) if is_known else None

    def lie_in(self, order: Order) -> NDArray:
        """The same with its axes in an order, for what a function has made. Others stay as they are."""
        storage = self.storage
        is_new = not (storage.has_gaps or storage.source is not None or storage.is_shared or self.steps)
        if not is_new or storage.is_c_order and not order:
            return self
        made = new_array(self.read(), order)
        made.storage.is_read_only = storage.is_read_only
        return made

    @property
    def order(self) -> Order | None:
        """The order of its axes in memory, if it fills that without gaps; None for others."""
        if self.storage.is_c_order and not self.steps:
            return C_ORDER
        strides = self.find_strides()
        return None if strides is None else find_dense_order(self._shape, strides)

    @property
    def is_contiguous(self) -> bool:
        """Whether it is known to lie in C order."""
        return self.order == C_ORDER

    @property
    def is_in_order(self) -> bool:
        """Whether its axes are known to lie in memory in their order; then those of results do."""
        if self.ndim < 2:
            return True
        strides = self.rank_axes()
        if strides is None:
            return False
        steps = [abs(stride) for stride, extent in zip(strides, self._shape) if extent > 1 and stride]
        return steps == sorted(steps, reverse=True)

    def copy(self, order: str = "C") -> NDArray:
        return new_array(self.read(), find_own_order(self, order))

    def __copy__(self) -> NDArray:
        return self.copy("K")

    def __deepcopy__(self, memo) -> NDArray:
        return self.copy("K")

    def arrange(self, order: str | None) -> NDArray:
        """The array itself where it lies in that order ("C", "F", else any), or a copy that does."""
        if order not in ("C", "F") or (self if order == "C" else self.transpose()).is_contiguous:
            return self
        found = new_array(self.read(), name_order(order, self.ndim))
        if not self.storage.is_c_order:  # a copy or not: nobody may write to either
            self.mark_shared()
            found.mark_shared()
        return found

    def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True) -> NDArray:
        dtype = check_dtype(dtype)
        if not np.can_cast(self.dtype, dtype, casting):
            np.empty(0, self.dtype).astype(dtype, casting=casting)  # raises
        if not copy and dtype == self.dtype:
            is_open = order == "A" and not self.transpose().is_contiguous
            return self.arrange("C" if is_open else order)
        return new_array(to_item(self, dtype), find_own_order(self, order))

    # -- elements -------------------------------------------------------------------------------------------
    def fill(self, value) -> None:
        """Sets every element."""
        if as_operand(value) is not value or getattr(value, "shape", ()) != ():
            raise ValueError("setting an array element with a sequence.")
        self.assign(value)

    def tolist(self):
        """Nested lists of Python numbers."""
        return [row.tolist() for row in self] if self.ndim else self.item()

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of unsized object")
        return self._shape[0]

    def __iter__(self):
        if not self._shape:
            raise TypeError("iteration over a 0-d array")
        return iterate_elements(self)

    def __getattr__(self, name: str):
        if not name.startswith("__"):
            tables.load()
            if name in tables.METHODS:
                return functools.partial(tables.METHODS[name], self)
            if hasattr(np.ndarray, name):
                raise not_traceable(f"ndarray.{name} of a traced array")
        raise AttributeError(f"'numpy.ndarray' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"Traced<ndarray {self.dtype}{list(self._shape)}>"


class FlatArray(NDArray):
    """What `x.flat` is: writes go to x, parts are copies."""

    __slots__ = ()

    def __getitem__(self, index):
        found = super().__getitem__(index)
        return found.copy() if isinstance(found, NDArray) else found


_AMBIGUOUS = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
_EMPTY = ("The truth value of an empty array is ambiguous. "
          "Use `array.size > 0` to check that an array is not empty.")


# -- making arrays ------------------------------------------------------------------------------------------
def new_array(raw: Array, order: Order | None = C_ORDER) -> NDArray:
    """An array with memory of its own, its axes in an order (`storage`)."""
    raw = check_aval(raw)
    if not order:
        return NDArray(Storage(raw, is_c_order=order is not None))
    made = NDArray(Storage(lax.transpose(raw, order))).transpose(*map(int, np.argsort(order)))
    made.storage.home = made.steps
    return made


CONVERSIONS[Array] = new_array


def wrap_result(raw: Array, is_scalar: bool = True, order: Order | None = C_ORDER) -> NDArray | Scalar:
    """A new array, or a NumPy scalar for a value without axes where NumPy gives one."""
    if is_scalar and not raw.shape:
        return Scalar(check_aval(raw))
    return new_array(raw, order)


def unwrap_array(value: Any) -> Any:
    """A scalar for an array without axes."""
    is_scalar = isinstance(value, NDArray) and not value.is_padded and not value.shape
    return Scalar(value.read()) if is_scalar else value
