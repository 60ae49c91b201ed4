"""The derivative of the regularised incomplete gamma function by its first argument, which SciPy lacks.

In: ndarrays a and x of one floating dtype. Out: d P(a, x) / d a in that dtype. The power series below the
mean of the distribution and the continued fraction above it are differentiated term by term, in float64.
"""

from __future__ import annotations

import numpy as np

from jitcore.lax.lazy import LazyModule

special = LazyModule("scipy.special")

_EPSILON = float(np.finfo(np.float64).eps)
_MOST_TERMS = 10_000


def gammainc_slope(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """d P(a, x) / d a; zero at x = 0 and infinity; NaN for a <= 0, x < 0 and NaN.

    Source: Moore, Algorithm AS 187, Applied Statistics 31 (1982)."""
    wide_a, wide_x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    result = np.full(wide_a.shape, np.nan)
    valid = (wide_a > 0) & (wide_x >= 0)
    inside = valid & (wide_x > 0) & np.isfinite(wide_x)
    result[valid & ~inside] = 0
    above = inside & (wide_x > 1) & (wide_x > wide_a)
    below = inside & ~above
    with np.errstate(all="ignore"):
        result[below] = _sum_series(wide_a[below], wide_x[below])
        result[above] = _expand_fraction(wide_a[above], wide_x[above])
    return result.astype(x.dtype)


def _sum_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """P(a, x) = x**a exp(-x) / gamma(a + 1) * (1 + x / (a + 1) + x**2 / (a + 1) (a + 2) + ...)"""
    term, slope = np.ones_like(a), np.zeros_like(a)
    total, total_slope = term.copy(), slope.copy()
    for n in range(1, _MOST_TERMS):
        ratio = x / (a + n)
        slope = ratio * (slope - term / (a + n))
        term = ratio * term
        total += term
        total_slope += slope
        if np.all((np.abs(slope) <= _EPSILON * np.abs(total_slope)) & (term <= _EPSILON * total)):
            break
    factor = np.exp(a * np.log(x) - x - special.gammaln(a + 1))
    return factor * (total * (np.log(x) - special.digamma(a + 1)) + total_slope)


def _expand_fraction(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """1 - P(a, x) = x**a exp(-x) / gamma(a) / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...))"""
    # Rows: numerator and denominator of the convergents, and their derivatives.
    last = np.array([np.zeros_like(a), np.ones_like(a), np.zeros_like(a), np.zeros_like(a)])
    here = np.array([np.ones_like(a), x + 1 - a, np.zeros_like(a), -np.ones_like(a)])
    value = here[0] / here[1]
    slope = -value * here[3] / here[1]
    for n in range(1, _MOST_TERMS):
        partial, step = -n * (n - a), x + 2 * n + 1 - a
        following = step * here + partial * last
        following[2:] += n * last[:2] - here[:2]
        scale = np.abs(following[1]) + (following[1] == 0)
        last, here = here / scale, following / scale
        before, value = (value, slope), here[0] / here[1]
        slope = (here[2] - value * here[3]) / here[1]
        changes = np.abs(value - before[0]) + np.abs(slope - before[1])
        if not np.any(changes > 4 * _EPSILON * (np.abs(value) + np.abs(slope))):
            break
    factor = np.exp(a * np.log(x) - x - special.gammaln(a))
    return -factor * (value * (np.log(x) - special.digamma(a)) + slope)
