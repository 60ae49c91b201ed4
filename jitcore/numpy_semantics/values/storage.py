"""Storages: the memory of arrays, which several views may share.

In: an Array. Out: a place that holds one, which stores replace. Stores are journalled, so that the sides of a
traced decision roll back and merge, and loops carry, what they write.

In which order the axes of a new array lie in memory is asked of NumPy itself, on arrays of one or two
elements an axis. Orders are `()` for C order; the axes from the outermost in memory to the innermost one;
None where that is not known, which leaves open whether `reshape` gives a view: then neither array may be
written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from jitcore import lax
from jitcore.array import Array
from jitcore.core.trace import Trace, context
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.equality import is_visible
from jitcore.numpy_semantics.values.views import is_same_view, read_steps, write_steps
from jitcore.process.effort import spend
from jitcore.rewriter.handles import Alias, Handle, LeafType, current
from jitcore.rewriter.journal import Location, note_mark, record
from jitcore.rewriter.values import Poison


class Store(NamedTuple):
    """A store into a part of a storage: what that held before and behind it, which part, what went there, and
    the trace that was current."""

    before: Array
    after: Array
    steps: tuple
    value: Array
    trace: Trace


class Storage:
    """Memory of an array: an Array of the base shape, C order.

    Attributes:
        value: what it holds now; never weakly typed.
        trace: the trace that was current when it was made.
        source: which of the caller's arrays it is, or None; is_moved: whether the caller handed it over and
            does not look at it again.
        is_shared: whether it may share memory with another array; aliases: when, and with which, or None
            where that is not known.
        is_c_order: whether the memory that it stands for is C-contiguous, so that reshaping gives views.
        has_gaps: whether it is not, but its axes lie in memory in their order.
        home: the steps that lead to the array that was made, where its axes lie in memory in another order.
        is_read_only: whether NumPy's array is not writeable.
        last_store: the last one; it tells what a part holds as long as its `after` is the value.
        is_observed: whether anything but the part of the last store was read since.
        stores: by the id of what the storage held behind them.
    """

    __slots__ = ("value", "trace", "source", "is_shared", "aliases", "is_c_order", "has_gaps", "home",
                 "is_read_only", "last_store", "is_observed", "stores", "is_moved")

    def __init__(self, value: Array, source: Any = None, *, is_c_order: bool = True, is_read_only=False):
        self.value, self.trace, self.source = value, context.trace, source
        self.is_shared, self.is_c_order, self.is_read_only = False, is_c_order, is_read_only
        self.has_gaps = False
        self.home: tuple = ()
        self.is_moved = False
        self.aliases: tuple[Alias, ...] | None = ()
        self.last_store: Store | None = None
        self.is_observed = False
        self.stores: dict[int, Store] = {}

    @property
    def shape(self) -> tuple:
        return self.value.shape

    @property
    def location(self) -> StorageLocation:
        return StorageLocation(self)

    def write(self, value: Array) -> None:
        """Raises: NotTraceable where other arrays may have to change too."""
        if self.is_read_only:
            raise ValueError("assignment destination is read-only")
        if self.is_shared and not self._fail_if_alias():
            raise not_traceable("an array is written that may share memory with another one")
        if value is not self.value:
            record(StorageLocation(self))
            self.value = value

    def mark_shared(self, alias: Alias | None) -> None:
        note_mark(functools.partial(self._unmark, self.is_shared, self.aliases))
        self.is_shared = True
        self.aliases = None if alias is None or self.aliases is None else (*self.aliases, alias)

    def _unmark(self, is_shared: bool, aliases: tuple[Alias, ...] | None) -> None:
        self.is_shared, self.aliases = is_shared, aliases

    @property
    def is_own(self) -> bool:
        """Whether it is in C order, writeable, and known to be no other array's memory."""
        return self.is_c_order and not self.is_read_only and not self.is_shared

    @property
    def may_be_other(self) -> bool:
        """Whether it may share memory with another storage. Raises: while that is carried by a loop."""
        if isinstance(self.value, Poison):
            self.value.raise_reason()
        return self.is_shared

    def find_object(self, one: Handle, other: Handle) -> Any:
        """Whether two handles, this memory's and another array's, are one object of Python's.

        Raises: NotTraceable where that is not known."""
        if not self.may_be_other and not other.memory.may_be_other:
            return False
        for handle in (one, other):
            aliases = handle.memory.aliases
            if aliases is None or not all(is_visible(alias.predicate) for alias in aliases):
                raise not_traceable("`is` of an array that may share memory with another one")
        found: Any = False
        for first in (Alias(True, one), *self.aliases):
            for second in (Alias(True, other), *other.memory.aliases):
                if first.handle is not None and first.handle is second.handle:
                    found = _either(found, _both(first.predicate, second.predicate))
        return found

    def _fail_if_alias(self) -> bool:
        """Leaves the call to plain Python where this memory is another array's after all. False where that
        is not known, or is to be expected."""
        if current.mode is None or self.aliases is None:
            return False
        if not all(alias.is_rare and is_visible(alias.predicate) for alias in self.aliases):
            return False
        for alias in self.aliases:
            current.mode.fail(alias.predicate, ValueError("an array has a second name"))
        return True

    def note_store(self, before: Array, steps: tuple, value: Array) -> None:
        """Remembers which part the store that was just made replaced, of which contents."""
        if len(self.stores) >= _MAX_STORES:
            self.stores.pop(next(iter(self.stores)))
        self.is_observed = False
        store = Store(before, self.value, steps, value, context.trace)
        self.last_store = self.stores[id(self.value)] = store

    def list_stores(self, after: Array, before: Array) -> list[Store] | None:
        """The stores of parts that lead from one contents to another; None where they are not known."""
        found: list[Store] = []
        while after is not before:
            store = self.stores.get(id(after))
            if store is None or store.after is not after or not store.steps or len(found) == _MAX_PARTS:
                return None
            found.append(store)
            after = store.before
        return found[::-1]


def _both(one: Any, other: Any) -> Any:
    if one is True or other is True:
        return other if one is True else one
    return lax.bitwise_and(one, other)


def _either(one: Any, other: Any) -> Any:
    if one is False or other is True:
        return other
    return True if one is True else lax.bitwise_or(one, other)


_MAX_STORES, _MAX_PARTS = 256, 4


class StorageLocation(Location):
    """The contents of a storage, for the journal."""

    name = "array contents"

    def __init__(self, storage: Storage):
        self.storage = self.memory = storage
        self.key = "storage", id(storage)

    def read(self) -> Array:
        return self.storage.value

    def write(self, value: Array) -> None:
        self.storage.value = value

    def is_new_in(self, trace: Trace) -> bool:
        """Whether the storage was made while a trace was recorded: it is neither merged nor rolled back."""
        return self.storage.trace is trace

    def merge_parts(self, arms: Sequence, values: Sequence[Array], add_output: Callable) -> Callable | None:
        """The merge of two contents that differ in few parts, so that only these leave the arms.

        arms: whose `resume()` makes their trace current; add_output(one, other, type): names what both
            return.
        Returns: a function from the results to the contents; None where whole arrays have to leave."""
        storage, before = self.storage, self.storage.value
        first, second = (storage.list_stores(value, before) for value in values)
        if first is None or second is None or not all(map(_is_place_visible, (*first, *second))):
            return None
        parts: list[tuple[tuple, Callable]] = []
        if len(first) == len(second) == 1 and is_same_view(first[0].steps, second[0].steps):
            pairs = [(first[0].steps, first[0].value, second[0].value)]
        else:
            with arms[1].resume():
                pairs = [(store.steps, store.value, read_steps(store.steps, before)) for store in first]
            with arms[0].resume():
                pairs += [(store.steps, read_steps(store.steps, values[0]), store.value) for store in second]
        for steps, one, other in pairs:
            parts.append((steps, add_output(one, other, LeafType(one.aval))))

        def read(results):
            for steps, read_part in parts:
                held, value = storage.value, read_part(results)
                storage.value = write_steps(steps, held, value)
                storage.note_store(held, steps, value)
            return storage.value

        return read


def _is_place_visible(store: Store) -> bool:
    numbers = (number for step in store.steps for number in step.list_values())
    return all(is_visible(term.raw) for number in numbers for term, _ in number.form.terms)


# -- the order of axes in memory ----------------------------------------------------------------------------
Order = tuple[int, ...]
C_ORDER: Order = ()


def sort_axes(shape: Sequence[int], strides: Sequence[int]) -> Order:
    """The order of the axes of an array, by strides; axes of one element stand where they are."""
    places = [axis for axis, extent in enumerate(shape) if extent > 1]
    if 0 in shape or len(places) < 2:
        return C_ORDER
    found = sorted(places, key=lambda axis: -abs(strides[axis]))
    if found == places:
        return C_ORDER
    order = list(range(len(shape)))
    for place, axis in zip(places, found):
        order[place] = axis
    return tuple(order)


def find_dense_order(shape: Sequence[int], strides: Sequence[int]) -> Order | None:
    """The order of an array that fills its memory without gaps, forwards; None for others."""
    order, size = sort_axes(shape, strides), 1
    for axis in reversed(order or range(len(shape))):
        if shape[axis] != 1 and strides[axis] != size and 0 not in shape:
            return None
        size *= shape[axis]
    return order


def describe_order(array: np.ndarray) -> tuple[Order | None, bool]:
    """(order of the axes, whether there are no gaps) of the caller's array. The order is unknown where
    elements share memory: as NumPy, what lies in two orders at once has that of its axes."""
    is_aligned = array.flags.aligned
    if array.flags.c_contiguous and is_aligned:
        return C_ORDER, True
    steps = [abs(stride) for stride, extent in zip(array.strides, array.shape) if extent > 1]
    if len({0, *steps}) <= len(steps):
        return None, False
    order = sort_axes(array.shape, array.strides)
    return order, is_aligned and (array.transpose(order) if order else array).flags.c_contiguous


def find_joint_order(arrays: Iterable[Any]) -> Order | None:
    """The order of what a ufunc makes of some operands, one of which has the result's rank."""
    arrays = [x for x in arrays if x.ndim > 1]
    if all(x.is_in_order for x in arrays):
        return C_ORDER
    found = [_make_small(x.shape, x.rank_axes()) for x in arrays]
    if any(x is None for x in found):
        return None
    flags = [["readonly"]] * len(found) + [["writeonly", "allocate"]]
    *_, made = np.nditer([*found, None], ["zerosize_ok"], flags).operands
    return sort_axes(made.shape, made.strides)


def find_own_order(array: Any, order: str | None = "K", ndim: int | None = None) -> Order | None:
    """The order of a copy of an array, or of an array made like it. order: as NumPy's parameter."""
    ndim = array.ndim if ndim is None else ndim
    if order not in ("K", "A", None):
        return name_order(order, ndim)
    if array.ndim < 2 or ndim != array.ndim:
        return C_ORDER
    strides = array.find_strides() if order == "A" else array.rank_axes()
    if strides is None:
        return None
    if order == "A":
        is_fortran = find_dense_order(array.shape[::-1], strides[::-1]) == C_ORDER
        return name_order("F" if is_fortran and not array.is_contiguous else "C", ndim)
    made = np.empty_like(_make_small(array.shape, strides))
    return sort_axes(made.shape, made.strides)


def name_order(order: str | None, ndim: int) -> Order:
    """C or Fortran order."""
    return tuple(range(ndim))[::-1] if order == "F" and ndim > 1 else C_ORDER


def find_item_order(array: Any, index: Sequence[Any]) -> Order | None:
    """The order of an item by arrays. index: of all axes; arrays as their shapes."""
    strides = array.rank_axes()
    orders = [C_ORDER, name_order("F", array.ndim)] if strides is None else [sort_axes(array.shape, strides)]
    small = [min(extent, 2) for extent in array.shape]
    entries = tuple([np.zeros([min(n, 2) for n in entry], np.intp) if isinstance(entry, tuple) else entry
                     for entry in index])
    found = set()
    for order in orders:
        order = order or tuple(range(array.ndim))
        memory = np.empty([small[axis] for axis in order], np.int8).transpose(np.argsort(order))
        made = memory[entries]
        found.add(sort_axes(made.shape, made.strides))
    return found.pop() if len(found) == 1 else None


def _make_small(shape: Sequence[int], strides: Sequence[int] | None) -> np.ndarray | None:
    """An array with these strides, to ask NumPy with: its elements are not to be read."""
    if strides is None:
        return None
    small = [min(extent, 2) for extent in shape]
    return as_strided(np.zeros(1, np.int8), small, strides, writeable=False)


#: Steps of looking at an item of an operand.
_ITEM = 0.3


# -- functions that do not say in which order their results are ---------------------------------------------
def leaves_order_open(implementation: Callable) -> Callable:
    """The implementation of a function whose results are in C order if its operands are."""

    @functools.wraps(implementation)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = implementation(*args, **kwargs)
        operands = list(list_arrays((*args, *kwargs.values())))
        if not all(x.is_in_order for x in operands):
            known = {id(x.storage) for x in operands}
            for made in list_arrays((found,)):
                if made.ndim > 1 and not made.steps and id(made.storage) not in known:
                    made.storage.is_c_order = False
        return found

    return call


def list_arrays(values: Iterable[Any]) -> Iterable[Any]:
    """The traced arrays among some values, and in lists and tuples among them."""
    for value in values:
        if type(value) in (list, tuple):
            spend(_ITEM * len(value))
            yield from list_arrays(value)
        elif hasattr(type(value), "is_in_order") and not value.is_padded:
            yield value
