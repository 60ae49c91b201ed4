"""Layouts: the order in which the axes of a new array lie in memory.

In: shapes and strides of operands. Out: orders: `()` for C order; the axes from the outermost in memory to
the innermost one; None where that is not known. NumPy itself decides, on arrays of one or two elements an
axis. An order that is not known leaves open whether `reshape` gives a view: then neither array may be
written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from jitcore.process.effort import spend

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


def find_joint_order(arrays: Iterable[Any]) -> Order | None:
    """The order of what a ufunc makes of some operands, one of which has the result's rank."""
    arrays = [x for x in arrays if x.ndim > 1]
    if all(x.is_in_order for x in arrays):
        return C_ORDER
    found = [_make_small(x.shape, x.find_strides()) for x in arrays]
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
    small = _make_small(array.shape, array.find_strides())
    if small is None:
        return None
    if order == "A":
        is_fortran = find_dense_order(array.shape[::-1], array.find_strides()[::-1]) == C_ORDER
        return name_order("F" if is_fortran and not array.is_contiguous else "C", ndim)
    made = np.empty_like(small)
    return sort_axes(made.shape, made.strides)


def name_order(order: str | None, ndim: int) -> Order:
    """C or Fortran order."""
    return tuple(range(ndim))[::-1] if order == "F" and ndim > 1 else C_ORDER


def find_item_order(array: Any, index: Sequence[Any]) -> Order | None:
    """The order of an item by arrays. index: of all axes; arrays as their shapes."""
    strides = array.find_strides()
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
        operands = list(_list_arrays((*args, *kwargs.values())))
        if not all(x.is_in_order for x in operands):
            known = {id(x.storage) for x in operands}
            for made in _list_arrays((found,)):
                if made.ndim > 1 and not made.steps and id(made.storage) not in known:
                    made.storage.is_c_order = False
        return found

    return call


def _list_arrays(values: Iterable[Any]) -> Iterable[Any]:
    """The traced arrays among some values, and in lists and tuples among them."""
    for value in values:
        if type(value) in (list, tuple):
            spend(_ITEM * len(value))
            yield from _list_arrays(value)
        elif hasattr(type(value), "is_in_order") and not value.is_partial:
            yield value
