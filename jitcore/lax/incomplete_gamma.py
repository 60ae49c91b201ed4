"""The derivative of the regularised incomplete gamma function by its first argument, which SciPy lacks.

In: values a and x of one floating dtype and shape. Out: d P(a, x) / d a in that dtype, in other primitives.
The power series below the mean of the distribution and the continued fraction above it are differentiated
term by term, in float64, by loops in which each element goes on until its own sum has settled.

Source: Moore, Algorithm AS 187, Applied Statistics 31 (1982).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes
from jitcore.config import config
from jitcore.core.aval import ShapedArray, aval_of
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ClosedJaxpr
from jitcore.core.primitive import registry
from jitcore.core.trace import trace_to_jaxpr
from jitcore.lax.bits import and_, not_, or_
from jitcore.lax.elementary import exp, log
from jitcore.lax.elementwise import abs_, add, convert_element_type, div, eq, gt, lt, mul, neg, select_n, sub
from jitcore.lax.loops import run_while
from jitcore.lax.shape import broadcast, full_like

_EPSILON = float(np.finfo(np.float64).eps)
_MOST_TERMS = 10_000.0


def expand_slope(avals: Sequence[ShapedArray], params: dict) -> ClosedJaxpr:
    """The jaxpr of `gammainc_slope` for a and x of these types."""
    return _trace_slope(tuple(avals), config.trace_key)


def run_slope(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """`gammainc_slope` of ndarrays."""
    return run_jaxpr_numpy(expand_slope([aval_of(a), aval_of(x)], {}), [a, x])[0]


@functools.lru_cache(maxsize=64)
def _trace_slope(avals: tuple[ShapedArray, ...], trace_key) -> ClosedJaxpr:
    return ClosedJaxpr(*trace_to_jaxpr(lambda a, x: [gammainc_slope(a, x)], avals))


def gammainc_slope(a, x):
    """d P(a, x) / d a; zero at x = 0 and infinity; NaN for a <= 0, x < 0 and NaN."""
    dtype, shape = aval_of(x).dtype, aval_of(a).shape or aval_of(x).shape
    a, x = (v if aval_of(v).shape else broadcast(v, shape) for v in (a, x))
    a, x = (convert_element_type(v, dtypes.float64) for v in (a, x))
    is_positive = and_(gt(a, 0.0), lt(a, math.inf))
    inside = and_(is_positive, and_(gt(x, 0.0), lt(x, math.inf)))
    at_end = and_(is_positive, or_(eq(x, 0.0), eq(x, math.inf)))
    safe_a, safe_x = (select_n(inside, full_like(v, 1.0), v) for v in (a, x))
    above = and_(gt(safe_x, 1.0), gt(safe_x, safe_a))
    total, slope = _sum_series(safe_a, safe_x, and_(inside, not_(above)))
    value, value_slope = _expand_fraction(safe_a, safe_x, and_(inside, above))
    # P(a, x) = x**a exp(-x) / gamma(a + 1) * total, 1 - P(a, x) = x**a exp(-x) / gamma(a) * value
    order, log_x = select_n(above, add(safe_a, 1.0), safe_a), log(safe_x)
    factor = exp(sub(sub(mul(safe_a, log_x), safe_x), registry["lgamma"].bind(order)))
    total, slope = select_n(above, total, value), select_n(above, slope, value_slope)
    result = mul(factor, add(mul(total, sub(log_x, registry["digamma"].bind(order))), slope))
    result = select_n(inside, full_like(a, math.nan), select_n(above, result, neg(result)))
    return convert_element_type(select_n(at_end, result, full_like(a, 0.0)), dtype)


def _sum_series(a, x, active):
    """1 + x / (a + 1) + x**2 / (a + 1) (a + 2) + ... and its derivative by a."""

    zero, one = full_like(a, 0.0), full_like(a, 1.0)

    def step(n, term, slope, total, total_slope, active):
        n = add(n, one)
        inverse = div(one, add(a, n))
        ratio = mul(x, inverse)
        slope, term = mul(ratio, sub(slope, mul(term, inverse))), mul(ratio, term)
        total, total_slope = add(total, term), add(total_slope, slope)
        grows = or_(gt(abs_(slope), mul(abs_(total_slope), _EPSILON)), gt(term, mul(total, _EPSILON)))
        return [n, term, slope, total, total_slope, and_(grows, lt(n, _MOST_TERMS))]

    _, _, _, total, slope, _ = run_while(_is_active, step, [zero, one, zero, one, zero, active])
    return total, slope


def _expand_fraction(a, x, active):
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)) and its derivative by a.

    Numerators and denominators of the convergents, and their derivatives, are scaled so that the denominator
    is one. Rounding errors of the derivative are as large as the terms of its difference.
    """

    one = full_like(a, 1.0)

    def step(n, value, slope, last, last_one, last_top, last_bottom, top, bottom, active):
        n = add(n, one)
        partial, start = mul(n, sub(a, n)), sub(add(add(x, n), add(n, one)), a)

        def follow(here, before):
            return add(mul(start, here), mul(partial, before))

        scale = div(one, follow(one, last_one))
        new = mul(follow(value, last), scale)
        rise = mul(sub(add(follow(top, last_top), mul(n, last)), value), scale)
        fall = mul(sub(add(follow(bottom, last_bottom), mul(n, last_one)), one), scale)
        product = mul(new, fall)
        new_slope = sub(rise, product)
        change = add(abs_(sub(new, value)), abs_(sub(new_slope, slope)))
        size = add(abs_(new), add(abs_(new_slope), abs_(product)))
        moves = and_(gt(change, mul(size, 4 * _EPSILON)), lt(n, _MOST_TERMS))
        before = [mul(part, scale) for part in (value, one, top, bottom)]
        return [n, new, new_slope, *before, rise, fall, moves]

    zero, inverse = full_like(a, 0.0), div(one, sub(add(x, one), a))
    # convergents 0 / 1 and 1 / (x + 1 - a), scaled by the last denominator
    init = [zero, inverse, mul(inverse, inverse), zero, inverse, zero, zero, zero, neg(inverse), active]
    _, value, slope, *_ = run_while(_is_active, step, init)
    return value, slope


def _is_active(*carry):
    return carry[-1]
