"""Polynomials, interpolation, convolution, phase unwrapping.

In: coefficient vectors (highest power first), samples, signals. Out: arrays.
"""

from __future__ import annotations

import operator

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.lax.define import canonicalize_axis
from jitcore.numpy import cumulative, diagonals, linalg, reductions, sorting
from jitcore.numpy.arrays.promotion import apply_select, convert_dtype, ensure_array, promote_arrays
from jitcore.numpy.creation import asarray
from jitcore.numpy.indexing import searching
from jitcore.numpy.indexing.reading import get_item
from jitcore.numpy.indexing.taking import trim_zeros
from jitcore.numpy.joining import concatenate
from jitcore.numpy.shaping import atleast_1d, expand_dims, moveaxis, roll
from jitcore.numpy.ufuncs import arithmetic, logic


def polyval(p, x, *, unroll: int = 16):
    """The polynomial with coefficients p (highest power first) at x, by Horner's rule. Same as:
    `numpy.polyval`."""
    p, x = promote_arrays("polyval", p, x)
    y = lax.full(x.shape, 0, x.dtype)
    for i in range(p.shape[0]):
        y = arithmetic.add(arithmetic.multiply(y, x), get_item(p, i))  # at first too: inf * 0 is nan
    return y


def _align(name: str, a1, a2) -> list[Array]:
    """Two coefficient vectors of one length: zeros stand in front of the shorter."""
    a1, a2 = (atleast_1d(x) for x in promote_arrays(name, a1, a2))
    length = max(a1.shape[0], a2.shape[0])
    return [lax.pad(x, x.dtype.type(0), [(length - x.shape[0], 0, 0)]) if x.shape[0] < length else x
            for x in (a1, a2)]


def polyadd(a1, a2):
    """Sum of two polynomials. Same as: `numpy.polyadd`."""
    return arithmetic.add(*_align("polyadd", a1, a2))


def polysub(a1, a2):
    """Difference of two polynomials. Same as: `numpy.polysub`."""
    return arithmetic.subtract(*_align("polysub", a1, a2))


def polymul(a1, a2, *, trim_leading_zeros: bool = False):
    """Product of two polynomials. Same as: `numpy.polymul`."""
    a1, a2 = (atleast_1d(x) for x in promote_arrays("polymul", a1, a2, to=dtypes.inexact_dtype))
    if trim_leading_zeros:
        a1, a2 = trim_zeros(a1, "f"), trim_zeros(a2, "f")
    return convolve(a1, a2)


def polydiv(u, v, *, trim_leading_zeros: bool = False):
    """(quotient, remainder) of two polynomials. Same as: `numpy.polydiv`."""
    u, v = (atleast_1d(x) for x in promote_arrays("polydiv", u, v, to=dtypes.inexact_dtype))
    m, n = u.shape[0], v.shape[0]
    if m < n:
        return lax.full((1,), 0, u.dtype), u
    quotient, scale = [], get_item(v, 0)
    for i in range(m - n + 1):
        factor = arithmetic.divide(get_item(u, i), scale)
        quotient.append(lax.reshape(factor, (1,)))
        step = arithmetic.subtract(get_item(u, slice(i, i + n)), arithmetic.multiply(factor, v))
        u = concatenate([get_item(u, slice(0, i)), step, get_item(u, slice(i + n, None))])
    remainder = trim_zeros(u, "f") if trim_leading_zeros else u
    return concatenate(quotient), remainder


def polyder(p, m: int = 1):
    """The m-th derivative of a polynomial. Same as: `numpy.polyder`."""
    (p,) = promote_arrays("polyder", p, to=dtypes.inexact_dtype)
    if operator.index(m) < 0:
        raise ValueError("Order of derivative must be positive")
    for _ in range(m):
        n = p.shape[0]
        if n == 0:
            break
        factors = np.arange(n - 1, 0, -1).astype(p.dtype)
        p = arithmetic.multiply(get_item(p, slice(0, n - 1)), factors)
    return p


def polyint(p, m: int = 1, k=None):
    """The m-th antiderivative of a polynomial, with constants k. Same as: `numpy.polyint`."""
    m = operator.index(m)
    p, k = promote_arrays("polyint", p, asarray(0 if k is None else k), to=dtypes.inexact_dtype)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    k = lax.broadcast_in_dim(lax.reshape(k, (k.size,)), (m,), (0,)) if k.size == 1 else atleast_1d(k)
    if k.shape[0] != m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    for i in range(m):
        n = p.shape[0]
        powers = np.arange(n, 0, -1).astype(p.dtype)
        p = concatenate([arithmetic.divide(p, powers), get_item(k, slice(i, i + 1))])
    return p


def polyfit(x, y, deg: int, rcond=None, full: bool = False, w=None, cov=False):
    """Least-squares polynomial of degree deg through points. Same as: `numpy.polyfit`.

    Args:
        w: weights of the points. full: also residuals, rank, singular values, rcond. cov: also the
        covariance."""
    x, y = promote_arrays("polyfit", x, y, to=dtypes.inexact_dtype)
    deg = operator.index(deg)
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise TypeError("expected vectors x and y (or a matrix y) of the same length")
    if not x.shape[0]:
        raise TypeError("expected non-empty vector for x")
    rcond = x.shape[0] * float(np.finfo(x.dtype).eps) if rcond is None else rcond
    lhs, rhs = diagonals.vander(x, deg + 1), y
    if w is not None:
        w = convert_dtype(ensure_array("polyfit", w), x.dtype)
        lhs = arithmetic.multiply(lhs, expand_dims(w, 1))
        rhs = arithmetic.multiply(rhs, expand_dims(w, 1) if rhs.ndim == 2 else w)
    scale = arithmetic.sqrt(reductions.sum(arithmetic.square(lhs), 0))
    lhs = arithmetic.divide(lhs, scale)
    solution, residuals, rank, values = linalg.lstsq(lhs, rhs, rcond)
    coefficients = arithmetic.divide(solution, expand_dims(scale, 1) if rhs.ndim == 2 else scale)
    if full:
        return coefficients, residuals, rank, values, asarray(rcond)
    if not cov:
        return coefficients
    base = linalg.inv(lhs.T @ lhs)
    base = arithmetic.divide(base, arithmetic.multiply(expand_dims(scale, 1), expand_dims(scale, 0)))
    factor = 1 if cov == "unscaled" else arithmetic.divide(residuals, x.shape[0] - (deg + 1))
    if y.ndim == 1:
        return coefficients, arithmetic.multiply(base, factor)
    return coefficients, arithmetic.multiply(expand_dims(base, 2), factor)


def poly(seq_of_zeros):
    """Coefficients of the polynomial with these roots (or of a matrix's eigenvalues). Same as:
    `numpy.poly`."""
    (roots_,) = promote_arrays("poly", seq_of_zeros, to=dtypes.inexact_dtype)
    if roots_.ndim == 2:
        roots_ = linalg.eigvals(roots_)
    one = lax.full((1,), 1, roots_.dtype)
    if not roots_.shape[0]:
        return lax.reshape(one, ())
    out = one
    for i in range(roots_.shape[0]):
        out = convolve(out, concatenate([one, lax.reshape(arithmetic.negative(get_item(roots_, i)), (1,))]))
    return out


def roots(p, *, strip_zeros: bool = True):
    """Roots of a polynomial: eigenvalues of its companion matrix, complex. Same as: `numpy.roots`.

    strip_zeros: drop zero coefficients at both ends first; must be False while tracing. Then there are as
        many roots as p has places for: those at zero follow the others, NaN stands for what leading zeros
        lack."""
    (p,) = promote_arrays("roots", p, to=dtypes.inexact_dtype)
    p = atleast_1d(p)
    zeros = 0
    if strip_zeros:
        p = trim_zeros(p, "f")
        stripped = trim_zeros(p, "b")
        zeros, p = p.shape[0] - stripped.shape[0], stripped
    if p.shape[0] < 2:
        return lax.full((zeros,), 0, dtypes.complex_dtype(p.dtype))
    if not strip_zeros:
        return _roots_of_all(p)
    found = _roots_without_zeros(p)
    return concatenate([found, lax.full((zeros,), 0, found.dtype)]) if zeros else found


def _roots_of_all(p):
    """The roots where the highest coefficients may be zero, which is not known before the program runs."""
    is_zero = logic.equal(p, 0)
    missing = apply_select(reductions.all(is_zero), p.shape[0], reductions.argmin(is_zero))
    p = apply_select(logic.equal(missing, p.shape[0]), p.dtype.type(1), p)
    found = _roots_without_zeros(roll(p, arithmetic.negative(missing)))
    found = get_item(found, sorting.argsort(logic.equal(found, 0)))
    places = np.arange(found.shape[0], dtype=np.int32)
    is_real = logic.less(places, arithmetic.subtract(found.shape[0], missing))
    return apply_select(is_real, found, found.dtype.type(complex(np.nan, np.nan)))


def _roots_without_zeros(p):
    n = p.shape[0] - 1
    top = arithmetic.divide(arithmetic.negative(get_item(p, slice(1, None))), get_item(p, 0))
    rows = [expand_dims(top, 0), *([diagonals.eye(n - 1, n, dtype=p.dtype)] if n > 1 else [])]
    return linalg.eigvals(concatenate(rows))


# -- signals ------------------------------------------------------------------------------------------------
def interp(x, xp, fp, left=None, right=None, period=None):
    """Linear interpolation of the points (xp, fp) at x; xp rises. Same as: `numpy.interp`.

    Args:
        left, right: values outside the range of xp; fp[0] and fp[-1] by default, "extrapolate" continues
        the line.
        period: of x and xp; left and right are then ignored."""
    x, xp = promote_arrays("interp", x, xp, to=dtypes.inexact_dtype)
    (fp,) = promote_arrays("interp", fp, to=dtypes.inexact_dtype)
    if dtypes.is_complex(x.dtype):
        raise ValueError("interp: complex x values are not supported, they have no order")
    if xp.ndim != 1 or fp.ndim != 1 or xp.shape != fp.shape:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    if period is not None:
        x, xp, fp = unroll_period(x, xp, fp, period)
    n = xp.shape[0]
    index = arithmetic.maximum(arithmetic.minimum(searching.searchsorted(xp, x, "right"), n - 1), 1)
    before = arithmetic.subtract(index, 1)
    f0, x0 = get_item(fp, before), get_item(xp, before)
    df, dx = arithmetic.subtract(get_item(fp, index), f0), arithmetic.subtract(get_item(xp, index), x0)
    offset = arithmetic.subtract(x, x0)
    is_step = logic.less_equal(arithmetic.absolute(dx), float(np.spacing(np.finfo(xp.dtype).eps)))
    share = arithmetic.divide(offset, apply_select(is_step, dx.dtype.type(1), dx))
    out = arithmetic.add(arithmetic.multiply(share, df), f0)
    out = apply_select(is_step, convert_dtype(f0, out.dtype), out)
    weak = x.weak_type and xp.weak_type and fp.weak_type
    if period is not None:
        return convert_dtype(out, out.dtype, weak)
    for side, beyond, edge in ((left, logic.less(x, get_item(xp, 0)), 0),
                               (right, logic.greater(x, get_item(xp, -1)), -1)):
        if isinstance(side, str):
            if side != "extrapolate":
                raise ValueError(
                    f"the only valid string value of left and right is 'extrapolate', but got {side!r}")
            continue
        value = convert_dtype(get_item(fp, edge), out.dtype) if side is None else asarray(side, out.dtype)
        out = apply_select(beyond, value, out)
    return convert_dtype(out, out.dtype, weak)


def unroll_period(x, xp, fp, period) -> tuple[Array, Array, Array]:
    """The points of one period, sorted, with a neighbour from the next period at either end."""
    period = arithmetic.absolute(asarray(period, x.dtype))
    x, xp = arithmetic.remainder(x, period), arithmetic.remainder(xp, period)
    xp, fp = lax.sort((xp, fp), 0, True, 1)
    before = arithmetic.subtract(get_item(xp, slice(-1, None)), period)
    xp = concatenate([before, xp, arithmetic.add(get_item(xp, slice(0, 1)), period)])
    return x, xp, concatenate([get_item(fp, slice(-1, None)), fp, get_item(fp, slice(0, 1))])


def convolve(a, v, mode: str = "full", *, precision=None, preferred_element_type=None):
    """Discrete convolution of two vectors. mode: "full", "same", "valid". Same as: `numpy.convolve`."""
    a, v = _signals("convolve", a, v)
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    return _slide(a, lax.rev(v, (0,)), mode, preferred_element_type)


def correlate(a, v, mode: str = "valid", *, precision=None, preferred_element_type=None):
    """Discrete correlation of a with conjugate(v). mode: "full", "same", "valid". Same as:
    `numpy.correlate`."""
    a, v = _signals("correlate", a, v)
    v = arithmetic.conjugate(v)
    if a.shape[0] < v.shape[0]:
        # The shorter signal slides; exchanging the two reverses the result.
        return lax.rev(_slide(v, a, mode, preferred_element_type), (0,))
    return _slide(a, v, mode, preferred_element_type)


def _signals(name: str, a, v) -> list[Array]:
    a, v = promote_arrays(name, a, v, to=dtypes.inexact_dtype)
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError(f"jnp.{name} only supports 1-dimensional inputs.")
    if not a.shape[0] or not v.shape[0]:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {a.shape} and {v.shape}.")
    return [a, v]


def _slide(a, window, mode: str, dtype) -> Array:
    """Products of a window with every part of a, padded with zeros as `mode` says."""
    n = window.shape[0]
    if mode == "full":
        pads = (n - 1, n - 1)
    elif mode == "same":
        pads = (n // 2, n - n // 2 - 1)
    elif mode == "valid":
        pads = (0, 0)
    else:
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    if dtype is not None:
        a, window = (convert_dtype(x, dtypes.canonicalize(dtype)) for x in (a, window))
    lhs, rhs = (lax.reshape(x, (1, 1, x.shape[0])) for x in (a, window))
    out = lax.conv_general_dilated(lhs, rhs, (1,), [pads])
    return lax.reshape(out, (out.shape[-1],))


def unwrap(p, discont=None, axis: int = -1, period=2 * np.pi):
    """p with jumps larger than half a period taken out. Same as: `numpy.unwrap`."""
    p = ensure_array("unwrap", p)
    if dtypes.is_complex(p.dtype):
        raise ValueError("jnp.unwrap does not support complex inputs.")
    if not isinstance(period, int) or not dtypes.is_integer(p.dtype):
        dtypes.reject_narrow("unwrap", p.dtype)
        is_float = dtypes.is_inexact(p.dtype)
        p = p if is_float else convert_dtype(p, dtypes.canonicalize_for(float, p.dtype))
    axis = canonicalize_axis(axis, p.ndim)
    p = moveaxis(p, axis, -1)
    if not p.shape[-1]:
        return moveaxis(p, -1, axis)
    steps = cumulative.diff(p)
    half = period // 2 if dtypes.is_integer(p.dtype) else period / 2
    wrapped = arithmetic.subtract(arithmetic.remainder(arithmetic.add(steps, half), period), half)
    is_edge = logic.logical_and(logic.equal(wrapped, -half), logic.greater(steps, 0))
    if not dtypes.is_integer(p.dtype) or period % 2 == 0:
        wrapped = apply_select(is_edge, wrapped.dtype.type(half), wrapped)
    correction = arithmetic.subtract(wrapped, steps)
    limit = half if discont is None else arithmetic.maximum(discont, half)
    is_small = logic.less(arithmetic.absolute(steps), limit)
    correction = apply_select(is_small, correction.dtype.type(0), correction)
    rest = arithmetic.add(get_item(p, (Ellipsis, slice(1, None))), cumulative.cumsum(correction, -1))
    out = lax.concatenate([get_item(p, (Ellipsis, slice(0, 1))), convert_dtype(rest, p.dtype)], p.ndim - 1)
    return moveaxis(out, -1, axis)


__all__ = ["convolve", "correlate", "interp", "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint",
           "polymul", "polysub", "polyval", "roots", "unwrap"]
