"""Minima of functions with SciPy's names and arguments (`jitcore.scipy.optimize`).

In: functions of a vector that give a number. Out: where they are least. Works inside of `jit` and `vmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import ensure_array
from jitcore.transforms.reverse import value_and_grad

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(NamedTuple):
    """Result of `minimize`: where the minimum is, whether it was found, and what it took."""

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array
    nfev: Array
    njev: Array
    nit: Array


def minimize(fun: Callable, x0, args: tuple = (), *, method: str, tol: float | None = None,
             options: Mapping[str, Any] | None = None) -> OptimizeResults:
    """A minimum of fun(x, *args) near x0, by quasi-Newton steps with the function's gradient.

    Args:
        fun: a differentiable function of a vector. x0: [n] floats, where the search begins.
        method: "BFGS". tol: bound of the gradient, where options have none.
        options: "gtol" (1e-5), bound of the gradient in the norm "norm" (inf), "maxiter" (200 n),
            "line_search_maxiter" (30).

    Returns: `OptimizeResults`; status is 0, 1 after maxiter steps, 3 where no step lowers the function.
    Raises: TypeError for args that are no tuple; ValueError for another method and for shapes other than [n].
    Example: `minimize(lambda x: jnp.sum((x - 1.) ** 2), jnp.zeros(2), method="BFGS").x` is `[1., 1.]`.
    Source: J. Nocedal, S. Wright, Numerical optimization (2006), algorithm 6.1; steps by bisection for the
    weak Wolfe conditions, A. Lewis, M. Overton, Nonsmooth optimization via quasi-Newton methods (2013)."""
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to minimize must be a tuple, got {args}")
    if method.lower() != "bfgs":
        raise ValueError(f"Method {method} not recognized; there is 'BFGS'")
    x0 = ensure_array("minimize", x0)
    x0 = jnp.asarray(x0, dtypes.inexact_dtype(x0.dtype))
    if x0.ndim != 1:
        raise ValueError(f"minimize needs x0 of one axis, got shape {x0.shape}")
    options = dict(options or {})
    gtol, norm = options.pop("gtol", 1e-5 if tol is None else tol), options.pop("norm", jnp.inf)
    most = options.pop("maxiter", None)
    most_tries = options.pop("line_search_maxiter", 30)
    if options:
        raise ValueError(f"minimize does not know the options {sorted(options)}")
    most = 200 * x0.shape[0] if most is None else most
    function = value_and_grad(lambda x: fun(x, *args))
    value, slope = function(x0)
    one = jnp.eye(x0.shape[0], dtype=x0.dtype)

    def is_done(slope) -> Array:
        return jnp.linalg.norm(slope, norm) < gtol

    def goes_on(state) -> Array:
        _, _, slope, _, _, steps, failed = state
        return ~is_done(slope) & ~failed & (steps < most)

    def step(state):
        x, value, slope, inverse, calls, steps, _ = state
        direction = -(inverse @ slope)
        width, next_value, next_slope, tries, found = _search(function, x, value, slope, direction,
                                                              most_tries)
        moved, turned = width * direction, next_slope - slope
        curvature = jnp.dot(moved, turned)
        rho = jnp.where(curvature > 0, 1 / jnp.where(curvature > 0, curvature, 1), 0)
        # The first guess, the identity, is scaled by the curvature along the first step: equation 6.20.
        scale = jnp.where((steps == 0) & (curvature > 0), curvature / jnp.dot(turned, turned), 1)
        left = one - rho * jnp.outer(moved, turned)
        updated = scale * left @ inverse @ left.T + rho * jnp.outer(moved, moved)
        updated = jnp.where(curvature > 0, updated, inverse)
        return x + moved, next_value, next_slope, updated, calls + tries, steps + 1, ~found

    zero = jnp.zeros((), dtypes.int32)
    start = (x0, value, slope, one, zero + 1, zero, jnp.zeros((), bool))
    x, value, slope, inverse, calls, steps, failed = lax.while_loop(goes_on, step, start)
    success = is_done(slope)
    status = jnp.where(success, 0, jnp.where(failed, 3, 1))
    return OptimizeResults(x, success, status, value, slope, inverse, calls, calls, steps)


def _search(function: Callable, x, value, slope, direction, most: int):
    """(width, value, slope, tries, whether it lowers the function enough) of a step along a direction."""
    down = jnp.dot(slope, direction)

    def is_low(width, there) -> Array:
        return there <= value + 1e-4 * width * down

    def is_flat(turned) -> Array:
        return jnp.dot(turned, direction) >= 0.9 * down

    def goes_on(state) -> Array:
        width, _, _, there, turned, tries = state
        return ~(is_low(width, there) & is_flat(turned)) & (tries < most)

    def bisect(state):
        width, low, high, there, _, tries = state
        too_long = ~is_low(width, there)
        low, high = jnp.where(too_long, low, width), jnp.where(too_long, width, high)
        width = jnp.where(jnp.isinf(high), 2 * low, 0.5 * (low + jnp.where(jnp.isinf(high), 0, high)))
        return width, low, high, *function(x + width * direction), tries + 1

    width = jnp.ones((), x.dtype)
    start = (width, 0 * width, width * jnp.inf, *function(x + direction), jnp.ones((), dtypes.int32))
    width, _, _, there, turned, tries = lax.while_loop(goes_on, bisect, start)
    found = is_low(width, there) & (there < value)
    return jnp.where(found, width, 0), jnp.where(found, there, value), jnp.where(found, turned,
                                                                                 slope), tries, found
