"""Interpolation with SciPy's names and arguments (`jitcore.scipy.interpolate`).

In: values on grids. Out: functions of places. Source: scipy.interpolate, of which what JAX has.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import ensure_array

__all__ = ["RegularGridInterpolator"]


class RegularGridInterpolator:
    """Values between the points of a grid whose axes need not be evenly spaced.

    Args:
        points: for each axis its coordinates, which rise. values: [len(points[0]), len(points[1]), ...,
            more].
        method: "linear" or "nearest". bounds_error: for SciPy's signature; False alone.
        fill_value: what is outside of the grid; None: the outermost cells go on.

    Raises: ValueError for another method, shapes that do not fit, and coordinates that do not rise.
    Example: `RegularGridInterpolator(([0., 1.],), jnp.array([0., 2.]))(jnp.array([[0.25]]))` is `[0.5]`.
    Source: scipy.interpolate.RegularGridInterpolator."""

    def __init__(self, points: Sequence, values, method: str = "linear", bounds_error: bool = False,
                 fill_value=np.nan):
        if method not in ("linear", "nearest"):
            raise ValueError(f"method {method!r} is not defined")
        if bounds_error:
            raise NotImplementedError("`bounds_error` takes no effect under tracing")
        values = ensure_array("RegularGridInterpolator", values)
        self.values = jnp.asarray(values, dtypes.inexact_dtype(values.dtype))
        self.grid = tuple(ensure_array("RegularGridInterpolator", np.asarray(p) if isinstance(p, list) else p)
                          for p in points)
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        if len(self.grid) > values.ndim:
            raise ValueError(f"there are {len(self.grid)} point arrays, but values has {values.ndim} "
                             "dimensions")
        for axis, (p, n) in enumerate(zip(self.grid, values.shape)):
            if p.ndim != 1 or p.shape[0] != n:
                raise ValueError(f"the points of axis {axis} have shape {p.shape}, values have {n} there")

    def __call__(self, xi, method: str | None = None) -> Array:
        """Values at xi, [..., number of axes], a tuple with an array for each axis, or a vector."""
        method = self.method if method is None else method
        if method not in ("linear", "nearest"):
            raise ValueError(f"method {method!r} is not defined")
        if isinstance(xi, tuple):
            xi = jnp.stack(jnp.broadcast_arrays(*xi), -1)
        xi = ensure_array("RegularGridInterpolator", np.asarray(xi) if isinstance(xi, list) else xi)
        if xi.ndim == 1:  # points on a line, or one point, which is a list of points too
            xi = xi[:, None] if len(self.grid) == 1 else xi[None]
        if xi.shape[-1:] != (len(self.grid),):
            raise ValueError(f"the requested sample points xi have dimension {xi.shape[-1:]}, but this "
                             f"RegularGridInterpolator has dimension {len(self.grid)}")
        ends, is_outside = [], False
        for axis, points in enumerate(self.grid):
            x = xi[..., axis]
            below = jnp.clip(jnp.searchsorted(points, x) - 1, 0, max(points.shape[0] - 2, 0))
            above = jnp.minimum(below + 1, points.shape[0] - 1)
            width = points[above] - points[below]
            share = jnp.where(width == 0, 0, (x - points[below]) / jnp.where(width == 0, 1, width))
            if method == "nearest":
                share = jnp.where(share <= 0.5, 0.0, 1.0)
            ends.append(((below, 1 - share), (above, share)))
            is_outside = is_outside | (x < points[0]) | (x > points[-1])
        total: Array | int = 0
        more = (1,) * (self.values.ndim - len(self.grid))
        for corner in itertools.product(*ends):
            indices, shares = zip(*corner)
            weight = shares[0]
            for share in shares[1:]:
                weight = weight * share
            total = total + self.values[indices] * jnp.reshape(weight, (*weight.shape, *more))
        total = jnp.asarray(total, dtypes.result_type(self.values.dtype, *(
            dtypes.inexact_dtype(x.dtype) for x in (xi, *self.grid))))
        if self.fill_value is None:
            return total
        return jnp.where(jnp.reshape(is_outside, (*is_outside.shape, *more)), self.fill_value, total)
