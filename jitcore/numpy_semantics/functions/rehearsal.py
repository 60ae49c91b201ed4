"""NumPy's own word on a call: the call is rehearsed on a few ones.

In: a function of NumPy, or a method of arrays, and arguments of which some are traced. Out: what NumPy itself
gives for small arrays of the same dtypes, ranks and orders in memory: the errors of that, the types that the
traced results must have, and the order in which their axes lie.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore.numpy_semantics.errors import NotTraceable, not_traceable
from jitcore.numpy_semantics.values.storage import C_ORDER, Order, list_arrays, sort_axes
from jitcore.rewriter.handles import Handle

#: Elements up to which an example has the shape of what it stands for. Larger axes are cut.
_MAX_SIZE, _MAX_EXTENT = 64, 3
_MAX_KNOWN = 4096
_known: dict[tuple, Any] = {}
#: Functions whose results are real or complex by values; what their implementations do not give, Python does.
_OF_ARGUMENTS = TypeError, ValueError, IndexError, OverflowError, NotImplementedError
_BY_VALUE = frozenset([np.roots, np.poly, np.linalg.eig, np.linalg.eigvals, np.real_if_close])


class _Unknown(Exception):
    """An argument without an example: a function, a number of several types, an array of traced extent."""


class _Example:
    """An array or a number that stands for a traced one. is_view: it is not written to. order: of the axes in
    memory, None where it is not known; has_gaps: whether there are other elements between those of the
    array."""

    __slots__ = ("kind", "shape", "is_array", "is_view", "order", "has_gaps")

    def __init__(self, kind: Any, shape: tuple, is_array: bool, is_view: bool = False,
                 order: Order | None = C_ORDER, has_gaps: bool = False):
        self.kind, self.shape, self.is_array, self.is_view = kind, shape, is_array, is_view
        self.order, self.has_gaps = order, has_gaps

    @property
    def key(self) -> tuple:
        return self.kind, self.shape, self.is_array, self.order, self.has_gaps

    def make(self, fill: int) -> Any:
        if not self.is_array:
            kind = self.kind.type if isinstance(self.kind, np.dtype) else self.kind
            return kind(2 if fill < 0 else fill)
        if self.is_view:  # as large as the array, but of one element
            return np.broadcast_to(np.zeros((), self.kind), self.shape)
        values = (np.arange(math.prod(self.shape)) if fill < 0 else np.full(self.shape, fill)).reshape(
            self.shape).astype(self.kind)
        return self._lay_out(values) if self.order or self.has_gaps else values

    def _lay_out(self, values: np.ndarray) -> np.ndarray:
        """The same values in memory of this kind."""
        order = self.order or tuple(range(len(self.shape)))
        step = 2 if self.has_gaps else 1
        memory = np.zeros([step * self.shape[axis] for axis in order], self.kind)
        laid = memory[(slice(None, None, step),) * len(order)].transpose(np.argsort(order))
        laid[...] = values
        return laid


def rehearsed(function: Callable, implementation: Callable, is_view: bool = False) -> Callable:
    """An implementation of a function of NumPy that raises what NumPy raises about types and options, and
    whose results have NumPy's types, and their axes in the order of NumPy's. is_view: whether NumPy looks at
    no element; then examples have the shapes of the call, however large these are.

    Raises: what NumPy raises; NotTraceable for a result of another type, and for errors that NumPy does not
    raise."""

    @functools.wraps(implementation)
    def call(*args: Any, **kwargs: Any) -> Any:
        expected, is_whole = _rehearse(function, args, kwargs, is_view)
        try:
            found = implementation(*args, **kwargs)
        except _OF_ARGUMENTS as error:
            if not is_whole or expected is None or isinstance(error, NotTraceable):
                raise
            raise not_traceable(f"np.{function.__name__} of such operands is not supported") from error
        if expected is not None and function not in _BY_VALUE and not _is_alike(expected, found):
            raise not_traceable(f"np.{function.__name__} of operands of these types is not supported")
        if expected is None or is_view:
            return found
        operands = list_arrays((*args, *kwargs.values()))
        return _settle_order(found, expected, {id(x.storage): x for x in operands})

    return call


def _rehearse(function: Callable, args: Sequence, kwargs: dict, is_view: bool) -> tuple[Any, bool]:
    """The types of NumPy's result, as `_describe` has them, None where they are not known; whether the
    operands had their own shapes."""
    try:
        is_cut: list[bool] | None = None if is_view else []
        outlines = [_outline(x, is_cut) for x in (*args, *kwargs.values())]
    except _Unknown:
        return None, False
    key = (function, tuple(map(_name, outlines)), tuple(kwargs))
    try:
        hash(key)
    except TypeError:
        return _ask(function, outlines, tuple(kwargs), bool(is_cut)), not is_cut
    if key not in _known:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[key] = _ask(function, outlines, tuple(kwargs), bool(is_cut))
    return _known[key], not is_cut


def _ask(function: Callable, outlines: Sequence, names: tuple, is_cut: bool) -> Any:
    """What NumPy gives for ones. Raises: TypeError as NumPy; other errors if they come for other numbers too
    and shapes are those of the call."""
    first = None
    for fill in (1, 0, -1):
        values = [_fill(outline, fill) for outline in outlines]
        count = len(values) - len(names)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return _describe(function(*values[:count], **dict(zip(names, values[count:]))))
        except TypeError:
            raise
        except Exception as error:  # by these numbers, or by what is known
            if is_cut or isinstance(error, np.linalg.LinAlgError):
                return None
            if first is not None and (type(first), str(first)) != (type(error), str(error)):
                return None
            first = error
    raise first


def _outline(value: Any, is_cut: list | None) -> Any:
    """A value with examples for what is traced in it. is_cut: gets an item if shapes are cut; None: they are
    not."""
    if isinstance(value, Handle):
        dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", ())
        if getattr(value, "is_padded", False) or not isinstance(dtype, np.dtype) or type(shape) is not tuple:
            raise _Unknown
        kind = getattr(value, "python_type", None)
        if kind is not None:
            return _Example(kind, (), False)
        if not hasattr(value, "storage"):
            return _Example(*_cut(dtype, shape, is_cut), False, is_cut is None)
        ranks = value.rank_axes()
        order = None if ranks is None else sort_axes(shape, ranks)
        return _Example(*_cut(dtype, shape, is_cut), True, is_cut is None, order, value.order is None)
    if isinstance(value, np.ndarray) and value.size > _MAX_SIZE:
        return _Example(*_cut(value.dtype, value.shape, is_cut), True, is_cut is None)
    if type(value) in (list, tuple):
        return type(value)(_outline(part, is_cut) for part in value)
    if callable(value) and not isinstance(value, type):
        raise _Unknown
    return value


def _cut(dtype: np.dtype, shape: tuple, is_cut: list | None) -> tuple:
    if is_cut is None or math.prod(shape) <= _MAX_SIZE:
        return dtype, shape
    is_cut.append(True)
    return dtype, tuple([min(extent, _MAX_EXTENT) for extent in shape])


def _fill(outline: Any, fill: int) -> Any:
    if isinstance(outline, _Example):
        return outline.make(fill)
    if type(outline) in (list, tuple):
        return type(outline)(_fill(part, fill) for part in outline)
    return outline.copy() if isinstance(outline, np.ndarray) else outline


def _name(outline: Any) -> Any:
    """A key for an outline; 1, 1.0 and True have several."""
    if isinstance(outline, _Example):
        return outline.key
    if type(outline) in (list, tuple):
        return (type(outline), *map(_name, outline))
    if isinstance(outline, np.ndarray):
        return outline.dtype, outline.shape, outline.tobytes()
    return type(outline), outline, math.copysign(1, outline) if type(outline) is float else None


# -- results ------------------------------------------------------------------------------------------------
def _describe(value: Any) -> Any:
    """The types of a result: (type, dtype, rank, order) of arrays and numbers, lists of these; else ()."""
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.ndim, sort_axes(value.shape, value.strides)
    if isinstance(value, np.generic):
        return np.generic, value.dtype, 0, C_ORDER
    if isinstance(value, (list, tuple)):
        return [_describe(part) for part in value]
    return (type(value), None, 0, C_ORDER) if type(value) in (bool, int, float, complex) else ()


def _settle_order(found: Any, expected: Any, operands: dict[int, Any]) -> Any:
    """A result with the axes of new arrays in the order of NumPy's.

    operands: by the ids of their storages."""
    if isinstance(expected, list):
        if type(found) not in (list, tuple):
            return found
        return type(found)(_settle_order(part, one, operands) for part, one in zip(found, expected))
    if not hasattr(found, "storage") or id(found.storage) in operands:
        return found
    is_known = expected and all(x.rank_axes() is not None for x in operands.values())
    return found.lie_in(expected[-1]) if is_known else found


def _is_alike(expected: Any, found: Any) -> bool:
    if isinstance(expected, list):
        return not isinstance(found, (list, tuple)) or len(found) == len(expected) and all(
            map(_is_alike, expected, found))
    if not expected or getattr(found, "is_padded", False) or not hasattr(found, "dtype"):
        return True
    kind, dtype, rank, _ = expected
    if getattr(found, "python_type", None) is not None:
        return dtype is None and found.python_type is kind
    return dtype == found.dtype and rank == len(found.shape) and (
        (kind is not np.generic) == (isinstance(found, np.ndarray) or hasattr(found, "storage")))
