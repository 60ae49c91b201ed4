"""What texts need of handles: Arrays, and what makes Python's and NumPy's objects of ndarrays.

In: a handle. Out: its Arrays, and a `Leaf` that makes what is printed of their values when the program runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitcore.array import Array
from jitcore.numpy_semantics.dynamic_extents.packing import pack
from jitcore.numpy_semantics.values.mixed import Conversion, Mixed
from jitcore.numpy_semantics.values.ndarray import NDArray
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.rewriter.operations.texts import Leaf


def _make_number(value: np.ndarray) -> Any:
    return value.item()


def _make_scalar(value: np.ndarray) -> Any:
    return value[()]


def _make_array(value: np.ndarray) -> np.ndarray:
    return value


def _make_part(values: np.ndarray, *extents: np.ndarray) -> np.ndarray:
    return values[tuple([slice(extent.item()) for extent in extents])]


def express_handle(handle: Any) -> tuple[list[Array], Leaf] | None:
    """(Arrays, what makes the object); None for other handles."""
    if type(handle) is Mixed:
        children = handle.children()
        return children, Leaf(Conversion(handle.kinds), len(children), ("mixed", handle.kinds))
    if isinstance(handle, Number):
        return [handle.read()], _LEAVES[_make_number]
    if isinstance(handle, Scalar):
        return [handle.read()], _LEAVES[_make_scalar]
    if not isinstance(handle, NDArray):
        return None
    if handle.is_padded:
        values, extents = pack(handle)
        raws = [extent.read() if isinstance(extent, Number) else np.asarray(extent) for extent in extents]
        return [values, *raws], Leaf(_make_part, 1 + len(raws), _make_part)
    return [handle.read()], _LEAVES[_make_array]


_LEAVES = {make: Leaf(make, 1, make) for make in (_make_number, _make_scalar, _make_array)}
