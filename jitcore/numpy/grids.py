"""Index grids, index expressions and window functions.

In: vectors, slices, lengths. Out: arrays.
"""

from __future__ import annotations

import operator

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import broadcast_array, ensure_arrays, require_static
from jitcore.numpy.creation import arange, array, asarray, linspace, zeros
from jitcore.numpy.joining import concatenate

s_ = np.s_
index_exp = np.index_exp


def meshgrid(*xi, copy: bool = True, sparse: bool = False, indexing: str = "xy"):
    """Coordinate grids of vectors. Same as: `numpy.meshgrid`, as a list.

    indexing: "xy" exchanges the first two axes, "ij" does not."""
    arrays = ensure_arrays("meshgrid", *xi)
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    if any(x.ndim > 1 for x in arrays):
        raise ValueError(
            "Arguments to jnp.meshgrid must be 1D, got shapes {}".format([x.shape for x in arrays]))
    rank = len(arrays)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    sizes = [x.size for x in arrays]
    shape = tuple(sizes[order.index(i)] for i in range(rank))
    out = []
    for x, axis in zip(arrays, order):
        x = lax.reshape(x, (1,) * axis + (x.size,) + (1,) * (rank - axis - 1))
        out.append(x if sparse else broadcast_array(x, shape))
    return out


class _Grid:
    """`jnp.mgrid[0:3, 0:5]`: stacked full grids; an imaginary step is a number of points, as in NumPy."""

    def __init__(self, is_sparse: bool):
        self._is_sparse = is_sparse

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        if not keys:
            return () if self._is_sparse else zeros((0,))
        ranges = [_range_of(one) for one in keys]
        dtype = dtypes.result_type(*ranges)
        ranges = [asarray(x, dtype) for x in ranges]
        if not isinstance(key, tuple):
            return ranges[0]
        grids = meshgrid(*ranges, sparse=self._is_sparse, indexing="ij")
        if self._is_sparse:
            return grids
        return lax.concatenate([lax.expand_dims(g, (0,)) for g in grids], 0)


def _range_of(key: slice) -> Array:
    start = 0 if key.start is None else key.start
    step = 1 if key.step is None else key.step
    for name, value in (("start", start), ("stop", key.stop), ("step", step)):
        require_static("mgrid", name, value)
    if isinstance(step, complex):
        return linspace(start, key.stop, int(abs(step)))
    return arange(start, key.stop, step)


class _Joiner:
    """`jnp.r_[1:4, 0, x]`: ranges, numbers and arrays joined along the last (`c_`) or first axis.

    A string in front says how, "axis,ndmin,place": the axis, how many axes each part has at least, and where
    its own ones begin among these; "r" and "c" give a matrix of one row or column, see NumPy."""

    def __init__(self, is_column: bool):
        self._is_column = is_column

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        axis, least, place = (-1, 2, 0) if self._is_column else (0, 1, -1)
        matrix = None
        if keys and isinstance(keys[0], str):
            if keys[0] in ("r", "c"):
                matrix = keys[0]
            else:
                given = [int(number) for number in keys[0].split(",")]
                axis, least, place = [*given, *(axis, least, place)[len(given):]]
            keys = keys[1:]
        parts = []
        for one in keys:
            if isinstance(one, str):
                raise ValueError("special directives must be the first entry.")
            part = _range_of(one) if isinstance(one, slice) else array(one)
            added = max(0, least - part.ndim)
            first = place if place >= 0 else least + place - part.ndim + 1  # where its own axes begin
            new = [i for i in range(least) if not first <= i < first + part.ndim]
            parts.append(lax.expand_dims(part, new) if added else part)
        joined = concatenate(parts, axis)
        if matrix and joined.ndim == 1:
            return lax.expand_dims(joined, (0 if matrix == "r" else 1,))
        return joined


mgrid, ogrid = _Grid(False), _Grid(True)
r_, c_ = _Joiner(False), _Joiner(True)


# -- windows ------------------------------------------------------------------------------------------------
def _window(M, function) -> Array:
    """A NumPy window of a length known now, in the default float dtype."""
    return asarray(function(operator.index(require_static("window", "M", M))), dtypes.default_dtype("f"))


def bartlett(M: int):
    """The triangular window of M points. Same as: `numpy.bartlett`."""
    return _window(M, np.bartlett)


def blackman(M: int):
    """The Blackman window of M points. Same as: `numpy.blackman`."""
    return _window(M, np.blackman)


def hamming(M: int):
    """The Hamming window of M points. Same as: `numpy.hamming`."""
    return _window(M, np.hamming)


def hanning(M: int):
    """The Hann window of M points. Same as: `numpy.hanning`."""
    return _window(M, np.hanning)


def kaiser(M: int, beta: float):
    """The Kaiser window of M points with shape parameter beta. Same as: `numpy.kaiser`."""
    return _window(M, lambda count: np.kaiser(count, float(require_static("kaiser", "beta", beta))))


__all__ = ["bartlett", "blackman", "c_", "hamming", "hanning", "index_exp", "kaiser", "meshgrid", "mgrid",
           "ogrid", "r_", "s_"]
