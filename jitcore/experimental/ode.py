"""Ordinary differential equations: `odeint`, whose derivatives are those of the adjoint.

In: the right side, what it starts from, times. Out: the solution at these times. The method is Dormand's and
Prince's of order 5 with their error estimate of order 4; between steps the solution is a polynomial of degree
4. Reverse mode solves the adjoint equation backwards, so that no step is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core import source
from jitcore.core.jaxpr import aval_of
from jitcore.core.trace import Tracer
from jitcore.flatten_util import ravel_pytree
from jitcore.transforms.autodiff import vjp
from jitcore.transforms.custom_derivatives import closure_convert, custom_vjp
from jitcore.transforms.vmap import vmap
from jitcore.tree_util import tree_flatten, tree_leaves, tree_map

__all__ = ["odeint"]

# Dormand and Prince, "A family of embedded Runge-Kutta formulae", 1980: when stages are, what they are made
# of, the error of the result; and Shampine, "Some practical Runge-Kutta formulas", 1986: the middle of a
# step.
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = ((1 / 5,), (3 / 40, 9 / 40), (44 / 45, -56 / 15, 32 / 9),
           (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
           (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
           (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84))
_ERROR = (35 / 384 - 1951 / 21600, 0, 500 / 1113 - 22642 / 50085, 125 / 192 - 451 / 720,
          -2187 / 6784 + 12231 / 42400,
          11 / 84 - 649 / 6300, -1 / 60)
_MIDDLE = (6025192743 / 30085553152 / 2, 0, 51252292925 / 65400821598 / 2, -2691868925 / 45128329728 / 2,
           187940372067 / 1594534317056 / 2, -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2)
# The next step: a little shorter than the estimate asks for, and within these factors of the last one.
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 10.0


class _Tolerance(NamedTuple):
    """Of each step; mxstep: steps between two times at most; hmax: the longest step."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float

    def measure(self, error, *values):
        """The root mean square of an error, in parts of what is allowed beside these values."""
        largest = functools.reduce(jnp.maximum, map(jnp.abs, values))
        return jnp.sqrt(jnp.mean(jnp.square(jnp.abs(error) / (self.atol + self.rtol * largest))))


class _Step(NamedTuple):
    """Behind a step: the solution there, its slope, the time, the length of the next step, the time before
    the step, and the polynomial on it, coefficients of highest powers first."""

    y: Any
    slope: Any
    t: Any
    length: Any
    start: Any
    polynomial: Any

    def interpolate(self, t):
        """The solution within the step."""
        span = self.t - self.start
        place = jnp.where(span == 0, 0, (t - self.start) / jnp.where(span == 0, 1, span))
        return jnp.polyval(self.polynomial, place.astype(self.polynomial.dtype))


def _combine(weights: Sequence[float], slopes: Sequence):
    return sum(weight * slope for weight, slope in zip(weights, slopes) if weight)


def _take_step(fun: Callable, tolerance: _Tolerance, last: _Step) -> _Step:
    """The next step, or the last one with a shorter length to try, where the error was too large."""
    y, h = last.y, last.length
    slopes = [last.slope]
    for time, weights in zip(_TIMES, _STAGES):
        slopes.append(fun(y + h * _combine(weights, slopes), last.t + h * time))
    stepped = y + h * _combine(_STAGES[-1], slopes)
    error = tolerance.measure(h * _combine(_ERROR, slopes), y, stepped)
    longest = jnp.where(error < 1, _GROW, 1.0)
    shortest = jnp.where(error < 1, 1.0, _SHRINK)
    factor = jnp.where(error == 0, _GROW, jnp.clip(_SAFETY * error ** -0.2, shortest, longest))
    length = jnp.clip(h * factor, 0, tolerance.hmax).astype(h.dtype)
    middle = y + h * _combine(_MIDDLE, slopes)
    taken = _Step(stepped, slopes[-1], last.t + h, length, last.t,
                  _fit_polynomial(y, middle, stepped, h * slopes[0], h * slopes[-1]))
    is_good = error <= 1
    return _Step(*(jnp.where(is_good, new, old) for new, old in zip(taken, last)))._replace(length=length)


def _fit_polynomial(start, middle, end, first, last):
    """Of degree 4 on [0, 1], by its values at three places and its derivatives at both ends."""
    return jnp.stack([-2 * first + 2 * last - 8 * start - 8 * end + 16 * middle,
                      5 * first - 3 * last + 18 * start + 14 * end - 32 * middle,
                      -4 * first + last - 11 * start - 5 * end + 16 * middle, first, start])


def _choose_length(fun: Callable, tolerance: _Tolerance, y, slope, t):
    """The first step (Hairer, Norsett and Wanner, "Solving ordinary differential equations I", II.4)."""
    size, speed = tolerance.measure(y, y), tolerance.measure(slope, y)
    is_still = (size < 1e-5) | (speed < 1e-5)
    trial = jnp.where(is_still, 1e-6, 0.01 * size / jnp.where(is_still, 1, speed)).astype(t.dtype)
    bend = tolerance.measure(fun(y + trial * slope, t + trial) - slope, y) / trial
    largest = jnp.maximum(speed, bend)
    length = jnp.where(largest <= 1e-15, jnp.maximum(1e-6, trial * 1e-3),
                       (0.01 / jnp.where(largest <= 1e-15, 1, largest)) ** 0.2)
    return jnp.clip(jnp.minimum(100 * trial, length), 0, tolerance.hmax).astype(t.dtype)


def _solve(fun: Callable, tolerance: _Tolerance, y, ts, args: tuple):
    """The solution, a vector, at each of the times."""

    def rate(y, t):
        return fun(y, t, *args)

    def reach(step: _Step, t):
        def goes_on(carry):
            count, step = carry
            return (step.t < t) & (count < tolerance.mxstep) & (step.length > 0)

        def go_on(carry):
            count, step = carry
            return count + 1, _take_step(rate, tolerance, step)

        _, step = lax.while_loop(goes_on, go_on, (jnp.int32(0), step))
        return step, step.interpolate(jnp.minimum(t, step.t))

    slope = rate(y, ts[0])
    zeros = jnp.zeros_like(y)
    start = _Step(y, slope, ts[0], _choose_length(rate, tolerance, y, slope, ts[0]), ts[0],
                  jnp.stack([zeros, zeros, zeros, zeros, y]))
    _, ys = lax.scan(reach, start, ts[1:])
    return jnp.concatenate([y[None], ys])


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _integrate(fun: Callable, tolerance: _Tolerance, y, ts, *args):
    return _solve(fun, tolerance, y, ts, args)


def _integrate_forward(fun: Callable, tolerance: _Tolerance, y, ts, *args) -> tuple:
    ys = _integrate(fun, tolerance, y, ts, *args)
    return ys, (ys, ts, args)


def _integrate_backward(fun: Callable, tolerance: _Tolerance, residuals: tuple, ct) -> tuple:
    """The adjoint equation from each time to the one before, where the cotangent of the solution there is
    added (Chen, Rubanova, Bettencourt, Duvenaud, "Neural ordinary differential equations", 2018, appendix
    B)."""
    ys, ts, args = residuals
    leaves, tree = tree_flatten(args)
    smooth = [place for place, leaf in enumerate(leaves) if dtypes.is_inexact(aval_of(leaf).dtype)]
    chosen = [jnp.asarray(leaves[place]) for place in smooth]

    def rate(y, t, *values):
        merged = list(leaves)
        for place, value in zip(smooth, values):
            merged[place] = value
        return fun(y, t, *tree.unflatten(merged))

    def go_back(state, t, *values):
        """Of the reversed time: the solution, and cotangents of it, of the time and of the arguments."""
        slope, pull_back = vjp(rate, state[0], -t, *values)
        return (-slope, *pull_back(state[1]))

    def solve_span(carry, row):
        y_ct, t_ct, values_ct = carry
        y, slope_ct, t, before, before_ct = row
        end_ct = jnp.real(jnp.dot(rate(y, t, *chosen), slope_ct)).astype(ts.dtype)
        state = (y, y_ct, t_ct - end_ct, *values_ct)
        found = odeint(go_back, state, jnp.stack([-t, -before]), *chosen, **tolerance._asdict())
        _, y_ct, t_ct, *values_ct = (value[1] for value in found)
        return (y_ct + before_ct, t_ct, values_ct), end_ct

    start = ct[-1], jnp.zeros((), ts.dtype), [jnp.zeros_like(value) for value in chosen]
    rows = ys[1:], ct[1:], ts[1:], ts[:-1], ct[:-1]
    (y_ct, t_ct, values_ct), ends = lax.scan(solve_span, start, rows, reverse=True)
    cotangents: list = [None] * len(leaves)
    for place, value in zip(smooth, values_ct):
        cotangents[place] = value
    filled = [np.zeros(aval_of(leaf).shape, dtypes.float0) if value is None else value
              for leaf, value in zip(leaves, cotangents)]
    return (y_ct, jnp.concatenate([t_ct[None], ends]), *tree.unflatten(filled))


_integrate.defvjp(_integrate_forward, _integrate_backward)


@source.api_boundary
def odeint(func: Callable, y0: Any, t: Any, *args: Any, rtol: float = 1.4e-8, atol: float = 1.4e-8,
           mxstep: float = np.inf, hmax: float = np.inf) -> Any:
    """The solution of `dy/dt = func(y, t, *args)` at given times, from y0 at the first of them.

    Args:
        func: (y, t, *args) -> dy/dt, of the structure and shapes of y.
        y0: pytree of real or complex arrays of any shapes.
        t: increasing times, real, [n].
        args: pytrees of arrays for func; it may also use values from outside.
        rtol, atol: error of a step beside the size of the solution, and beside none.
        mxstep: steps between two times at most; behind them the solution stands still.
        hmax: the longest step.

    Returns: y0's structure; each array with a leading axis of the n times.
    Raises: TypeError for what is no array; ValueError for times that are no vector or, where they are known,
        do not increase.
    Cost: seven calls of func for a step; derivatives one more solution backwards, and no memory for steps.
        Inside of `jit` the loop is native code.
    Derivatives: reverse mode, by y0, t, args and values from outside, also repeated; not forward mode.
    Source: `jax.experimental.ode.odeint`; `scipy.integrate.odeint` with other steps.

    Example:
        >>> import jitcore, jitcore.numpy as jnp
        >>> from jitcore.experimental.ode import odeint
        >>> decay = jitcore.jit(lambda rate: odeint(lambda y, t: -rate * y, 1.0, jnp.array([0.0, 1.0]))[-1])
        >>> bool(abs(decay(2.0) - jnp.exp(-2.0)) < 1e-5)
        True"""
    for leaf in tree_leaves((y0, t, args)):
        aval_of(leaf)
    t = _to_inexact(t)
    if t.ndim != 1 or dtypes.is_complex(t.dtype) or not t.size:
        raise ValueError(f"odeint: t must be a vector of real times, got {aval_of(t).long()}")
    if not isinstance(t, Tracer) and (np.diff(np.asarray(t)) <= 0).any():
        raise ValueError("odeint: the times in t must increase.\nTo fix: for a solution backwards, use "
                         "lambda y, s: -func(y, -s) and -t.")
    y0 = tree_map(_to_inexact, y0)
    flat, unravel = ravel_pytree(y0)

    def rate(y, t, *args):
        return ravel_pytree(func(unravel(y), t, *args))[0].astype(flat.dtype)

    converted, consts = closure_convert(rate, flat, t[0], *args)
    tolerance = _Tolerance(rtol, atol, mxstep, hmax)
    ys = _integrate(converted, tolerance, flat, t, *args, *consts)
    return vmap(unravel)(ys)


def _to_inexact(x) -> Array:
    x = jnp.asarray(x)
    return x if dtypes.is_inexact(x.dtype) else x.astype(dtypes.default_dtype("f"))
