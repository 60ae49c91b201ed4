"""SciPy's functions over handles: `special`, `linalg`, `fft`, `integrate`, `stats`, `spatial.distance`.

Dtypes, kinds of results and errors are SciPy's. Its warnings (an ill-conditioned matrix) are not given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, scipy
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import dtype_of, to_common, to_inexact
from jitcore.numpy_semantics.functions.scipy_table import UFUNCS, implements_scipy
from jitcore.numpy_semantics.functions.shaping import as_array
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, wrap_result
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import as_operand, cast_raw, to_raw
from jitcore.rewriter.handles import Handle


# -- special: ufuncs ----------------------------------------------------------------------------------------
def _logit(x):
    """As SciPy: by `log1p` around 1/2, where `log` of a quotient near 1 loses digits."""
    half = jnp.subtract(x, x.dtype.type(0.5))
    near = jnp.subtract(jnp.log1p(jnp.add(half, half)), jnp.log1p(jnp.negative(jnp.add(half, half))))
    is_near = jnp.less(jnp.abs(half), x.dtype.type(0.2))
    return jnp.where(is_near, near, jnp.log(jnp.divide(x, jnp.subtract(x.dtype.type(1), x))))


for _name in """erf erfc erfinv ndtr ndtri log_ndtr expit gammaln i0 i0e i1 i1e xlogy xlog1py entr rel_entr
        kl_div gammainc gammaincc betainc""".split():
    UFUNCS[_name] = getattr(scipy.special, _name)
UFUNCS |= {
    "psi": scipy.special.digamma, "digamma": scipy.special.digamma, "logit": _logit, "exp2": jnp.exp2,
    "expm1": jnp.expm1, "log1p": jnp.log1p, "cbrt": jnp.cbrt, "sinc": jnp.sinc,
}


# -- special: functions -------------------------------------------------------------------------------------
def _define_normalized(name: str) -> None:
    compute = getattr(scipy.special, name)

    @implements_scipy(f"scipy.special.{name}")
    def normalize(x, axis=None):
        raw = to_inexact(x)
        return wrap_result(compute(_real(name, raw), axis=axis))


for _name in ("softmax", "log_softmax"):
    _define_normalized(_name)


def _real(name: str, *raws: Any) -> Any:
    if any(raw.dtype.kind == "c" for raw in raws):
        raise not_traceable(f"scipy's {name} of complex numbers")
    return raws[0] if len(raws) == 1 else raws


@implements_scipy("scipy.special.logsumexp")
def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False):
    raws = to_common(a, inexact=True) if b is None else to_common(a, b, inexact=True)
    _real("logsumexp", *raws)
    if 0 in raws[0].shape:
        raise not_traceable("scipy.special.logsumexp of an empty array")
    weights = None if b is None else raws[1]
    found = scipy.special.logsumexp(raws[0], axis, weights, keepdims, return_sign)
    return tuple(map(wrap_result, found)) if return_sign else wrap_result(found)


# -- linalg -------------------------------------------------------------------------------------------------
def _matrices(*operands: Any, check_finite: bool = True, is_square: bool = False) -> list:
    """Operands as `scipy.linalg` takes them."""
    raws = to_common(*operands, inexact=True)
    if any(0 in raw.shape for raw in raws) or raws[0].dtype == dtypes.float16:
        raise not_traceable("scipy.linalg of empty arrays or of float16")
    if raws[0].ndim != 2 or any(raw.ndim > 2 for raw in raws):
        raise not_traceable("scipy.linalg of several matrices, or of no matrix")
    if is_square and raws[0].shape[0] != raws[0].shape[1]:
        raise not_traceable("scipy.linalg of a matrix that has to be square and is not")
    if len(raws) > 1 and raws[0].shape[0] != raws[1].shape[0]:
        raise not_traceable("scipy.linalg of shapes that do not fit")
    if check_finite:
        for raw in raws:
            _fail(~jnp.all(jnp.isfinite(raw)), ValueError("array must not contain infs or NaNs"))
    return raws


def _fail(predicate: Any, error: Exception) -> None:
    fail(Number(bool, predicate), error)


def _fail_unless_finite(raw, text: str) -> None:
    _fail(~jnp.all(jnp.isfinite(raw)), np.linalg.LinAlgError(text))


def _wrap(found: Any) -> Any:
    return tuple(map(_wrap, found)) if isinstance(found, (tuple, list)) else wrap_result(found)


def _only_default(name: str, *options: Any) -> None:
    """options: those that are not traced, True for one that was given."""
    if any(options):
        raise not_traceable(f"scipy.linalg.{name} with such options")


@implements_scipy("scipy.linalg.solve")
def solve(a, b, lower=False, overwrite_a=False, overwrite_b=False, check_finite=True, assume_a=None,
          transposed=False):
    _only_default("solve", transposed, assume_a not in (None, "gen", "general", "pos", "positive definite"))
    one, other = _matrices(a, b, check_finite=check_finite, is_square=True)
    if assume_a in ("pos", "positive definite"):
        found = scipy.linalg.solve(one, other, lower=lower, assume_a="pos")
    else:
        found = jnp.linalg.solve(one, other)
    _fail_unless_finite(found, "A singular matrix detected.")
    return _wrap(found)


@implements_scipy("scipy.linalg.inv")
def inv(a, overwrite_a=False, check_finite=True, *, assume_a=None, lower=False):
    _only_default("inv", assume_a not in (None, "gen", "general"), lower)
    (raw,) = _matrices(a, check_finite=check_finite, is_square=True)
    found = jnp.linalg.inv(raw)
    _fail_unless_finite(found, "singular matrix")
    return _wrap(found)


@implements_scipy("scipy.linalg.pinv")
def pinv(a, *, atol=None, rtol=None, return_rank=False, check_finite=True):
    """SciPy's bound is max(shape) * eps; that of NumPy is another."""
    _only_default("pinv", atol is not None, return_rank)
    (raw,) = _matrices(a, check_finite=check_finite)
    bound = max(raw.shape) * np.finfo(raw.dtype).eps if rtol is None else rtol
    return _wrap(jnp.linalg.pinv(raw, bound))


def _factor_positive(a, lower, check_finite):
    (raw,) = _matrices(a, check_finite=check_finite, is_square=True)
    found = scipy.linalg.cholesky(raw, lower=lower)
    _fail_unless_finite(found, "the matrix is not positive definite")
    return found


@implements_scipy("scipy.linalg.cholesky")
def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    return _wrap(_factor_positive(a, lower, check_finite))


@implements_scipy("scipy.linalg.cho_solve")
def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    factor, lower = c_and_lower
    one, other = _matrices(factor, b, check_finite=check_finite, is_square=True)
    return _wrap(scipy.linalg.cho_solve((one, bool(lower)), other))


@implements_scipy("scipy.linalg.solve_triangular")
def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True):
    one, other = _matrices(a, b, check_finite=check_finite, is_square=True)
    if not unit_diagonal:
        _fail(jnp.any(jnp.diagonal(one) == 0), np.linalg.LinAlgError("singular matrix"))
    return _wrap(scipy.linalg.solve_triangular(one, other, trans, lower, unit_diagonal))


@implements_scipy("scipy.linalg.lu_factor")
def lu_factor(a, overwrite_a=False, check_finite=True):
    (raw,) = _matrices(a, check_finite=check_finite)
    factors, pivots = scipy.linalg.lu_factor(raw)
    return wrap_result(factors), wrap_result(cast_raw(pivots, dtypes.int32))


@implements_scipy("scipy.linalg.lu_solve")
def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    factors, pivots = lu_and_piv
    one, other = _matrices(factors, b, check_finite=check_finite, is_square=True)
    return _wrap(scipy.linalg.lu_solve((one, to_raw(as_operand(pivots))), other, trans))


@implements_scipy("scipy.linalg.lu")
def lu(a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False):
    _only_default("lu", p_indices)
    (raw,) = _matrices(a, check_finite=check_finite)
    return _wrap(scipy.linalg.lu(raw, permute_l))


@implements_scipy("scipy.linalg.qr")
def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    _only_default("qr", pivoting, mode not in ("full", "economic", "r"))
    (raw,) = _matrices(a, check_finite=check_finite)
    return _wrap(scipy.linalg.qr(raw, mode=mode))


@implements_scipy("scipy.linalg.svd")
def svd(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, lapack_driver="gesdd"):
    (raw,) = _matrices(a, check_finite=check_finite)
    found = jnp.linalg.svd(raw, full_matrices, compute_uv)
    return _wrap(tuple(found) if compute_uv else found)


@implements_scipy("scipy.linalg.svdvals")
def svdvals(a, overwrite_a=False, check_finite=True):
    return svd(a, compute_uv=False, check_finite=check_finite)


@implements_scipy("scipy.linalg.eigh")
def eigh(a, b=None, *, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, type=1,  # noqa: A002
         check_finite=True, subset_by_index=None, subset_by_value=None, driver=None):
    is_other = [x is not None for x in (b, subset_by_index, subset_by_value)]
    _only_default("eigh", *is_other)
    (raw,) = _matrices(a, check_finite=check_finite, is_square=True)
    return _wrap(scipy.linalg.eigh(_mirror(raw, lower), lower=lower, eigvals_only=eigvals_only))


def _mirror(raw, lower: bool):
    """The Hermitian matrix of one triangle, the only one that LAPACK reads."""
    kept = jnp.tril(raw) if lower else jnp.triu(raw)
    rest = jnp.tril(raw, -1) if lower else jnp.triu(raw, 1)
    is_complex = dtypes.is_complex(raw.dtype)
    if is_complex:  # of the diagonal the real part
        diagonal = jnp.eye(raw.shape[0], dtype=bool)
        kept = jnp.where(diagonal, cast_raw(kept.real, raw.dtype), kept)
    return kept + (rest.conj() if is_complex else rest).T


@implements_scipy("scipy.linalg.eigvalsh")
def eigvalsh(a, b=None, **options):
    return eigh(a, b, eigvals_only=True, **options)


@implements_scipy("scipy.linalg.det")
def det(a, overwrite_a=False, check_finite=True):
    """SciPy factors in the matrix's precision, and multiplies in double precision."""
    (raw,) = _matrices(a, check_finite=check_finite, is_square=True)
    factors, pivots = scipy.linalg.lu_factor(raw)
    swaps = jnp.sum(pivots != np.arange(raw.shape[0], dtype=pivots.dtype))
    sign = jnp.where(swaps % 2 == 0, 1.0, -1.0)
    values = cast_raw(jnp.diagonal(factors), np.result_type(raw.dtype, np.float64))
    return _wrap(cast_raw(jnp.prod(values) * sign, values.dtype))


@implements_scipy("scipy.linalg.expm")
def expm(A):  # noqa: N803  SciPy's name
    (raw,) = _matrices(A, check_finite=False, is_square=True)
    found = scipy.linalg.expm(raw)
    _fail_unless_finite(found, "a norm that is too large")
    return _wrap(found)


@implements_scipy("scipy.linalg.norm")
def norm(a, ord=None, axis=None, keepdims=False, check_finite=True):  # noqa: A002
    array = as_array(a)
    raw = to_inexact(array)
    if check_finite:
        _fail(~jnp.all(jnp.isfinite(raw)), ValueError("array must not contain infs or NaNs"))
    found = jnp.linalg.norm(raw, ord=ord, axis=axis, keepdims=keepdims)
    if axis is None and not keepdims and _is_python_norm(array, ord):
        return Number(float, cast_raw(found, dtypes.float64))
    return wrap_result(found)


def _is_python_norm(array: NDArray, ord: Any) -> bool:  # noqa: A002
    """Whether SciPy asks BLAS or LAPACK, which give Python's floats."""
    if dtype_of(array).char not in "fdFD" or not array.size:
        return False
    if array.ndim == 1:
        return ord in (None, 2)
    return array.ndim == 2 and ord in (1, np.inf) and (array.flags.fnc or array.T.flags.fnc)


@implements_scipy("scipy.linalg.block_diag")
def block_diag(*arrs):
    raws = to_common(*map(as_array, arrs))
    if any(raw.ndim > 2 for raw in raws):
        raise not_traceable("scipy.linalg.block_diag of several matrices")
    return _wrap(scipy.linalg.block_diag(*raws))


@implements_scipy("scipy.linalg.toeplitz")
def toeplitz(c, r=None):
    column = as_array(c)
    row = np.conjugate(column) if r is None else as_array(r)
    if column.ndim != 1 or row.ndim != 1:
        raise not_traceable("scipy.linalg.toeplitz of several matrices")
    one, other = to_common(column, row)
    values = jnp.concatenate([one[::-1], other[1:]])
    rows, columns = one.shape[0], other.shape[0]
    return new_array(values[rows - 1 - np.arange(rows)[:, None] + np.arange(columns)])


@implements_scipy("scipy.linalg.circulant")
def circulant(c):
    raw = to_raw(as_array(c))
    if raw.ndim != 1:
        raise not_traceable("scipy.linalg.circulant of several matrices")
    places = np.arange(raw.shape[0])
    return new_array(raw[(places[:, None] - places) % raw.shape[0]])


# -- fft ----------------------------------------------------------------------------------------------------
def _define_transform(name: str) -> None:
    """The transforms that NumPy has too, with the same dtypes."""
    function = getattr(np.fft, name)

    @implements_scipy(f"scipy.fft.{name}")
    def transform(x, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, *, plan=None):
        _check_half(x)
        return function(x, n, axis, norm)


def _define_transforms(name: str, axes: Any) -> None:
    function = getattr(np.fft, name)

    @implements_scipy(f"scipy.fft.{name}")
    def transform(x, s=None, axes=axes, norm=None, overwrite_x=False, workers=None, *, plan=None):
        _check_half(x)
        axes = axes if axes is not None or s is None else range(-len(s), 0)
        return function(x, s, axes, norm)


def _check_half(x: Any) -> None:
    if dtype_of(x) == dtypes.float16:
        raise not_traceable("scipy.fft of float16")


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _define_transform(_name)
for _name in ("fft2", "ifft2", "rfft2", "irfft2"):
    _define_transforms(_name, (-2, -1))
for _name in ("fftn", "ifftn", "rfftn", "irfftn"):
    _define_transforms(_name, None)
implements_scipy("scipy.fft.fftshift")(lambda x, axes=None: np.fft.fftshift(x, axes))
implements_scipy("scipy.fft.ifftshift")(lambda x, axes=None: np.fft.ifftshift(x, axes))


# -- integrate ----------------------------------------------------------------------------------------------
@implements_scipy("scipy.integrate.trapezoid")
def trapezoid(y, x=None, dx=1.0, axis=-1):
    return np.trapezoid(y, x, dx, axis)


@implements_scipy("scipy.integrate.cumulative_trapezoid")
def cumulative_trapezoid(y, x=None, dx=1.0, axis=-1, initial=None):
    if initial not in (None, 0):
        raise ValueError("`initial` must be `None` or `0`.")
    y = np.moveaxis(as_array(y), axis, -1)
    if not y.shape[-1]:
        raise ValueError("At least one point is required along `axis`.")
    steps = dx if x is None else _find_steps(x, y, axis)
    found = np.cumsum(steps * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)
    if initial is not None:
        first = np.full((*found.shape[:-1], 1), initial, found.dtype)
        found = np.concatenate([as_array(first), found], axis=-1)
    return np.moveaxis(found, -1, axis)


def _find_steps(x: Any, y: NDArray, axis: int) -> NDArray:
    """Differences of the places x along the last axis."""
    x = as_array(x)
    places = x if x.ndim == 1 else np.moveaxis(x, axis, -1)
    if x.ndim not in (1, y.ndim) or places.shape[-1] != y.shape[-1]:
        raise not_traceable("scipy.integrate with places of another shape")
    return np.diff(places, axis=-1)


@implements_scipy("scipy.integrate.simpson")
def simpson(y, x=None, *, dx=1.0, axis=-1):
    y = np.moveaxis(as_array(y), axis, -1)
    count = y.shape[-1]
    h = None if x is None else _find_steps(x, y, axis)
    if isinstance(dx, Handle) or count < 2 or dtype_of(y).kind not in "fiu":
        raise not_traceable("scipy.integrate.simpson of such an array")
    y = y if dtype_of(y).kind == "f" else y.astype(float)
    if count == 2:
        return 0.5 * (dx if h is None else h[..., 0]) * (y[..., 0] + y[..., 1])
    h = None if h is None else h.astype(float)
    if count % 2:
        return _sum_parabolas(y, h, dx)
    found = _sum_parabolas(y[..., :-1], None if h is None else h[..., :-1], dx)
    # The last interval by the parabola through the last three points. Source: Cartwright: Simpson's rule
    # cumulative integration with MS Excel and irregularly-spaced data (2017).
    h0, h1 = (np.float64(dx), np.float64(dx)) if h is None else (h[..., -2], h[..., -1])
    alpha = _divide(2 * h1**2 + 3 * h0 * h1, 6 * (h1 + h0))
    beta = _divide(h1**2 + 3.0 * h0 * h1, 6 * h0)
    eta = _divide(1 * h1**3, 6 * h0 * (h0 + h1))
    last = alpha * y[..., -1] + beta * y[..., -2] - eta * y[..., -3]
    return (found + last).astype(found.dtype) if np.ndim(found) else found + last


def _divide(one: Any, other: Any) -> Any:
    """0 where the divisor is."""
    if not isinstance(other, Handle):
        return one / other if other else 0.0
    is_zero = other == 0
    return np.where(is_zero, 0.0, one / np.where(is_zero, 1.0, other))


def _sum_parabolas(y: NDArray, h: NDArray | None, dx: float) -> Any:
    first, middle, last = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if h is None:
        return np.sum(first + 4.0 * middle + last, axis=-1) * (dx / 3.0)
    h0, h1 = h[..., ::2], h[..., 1::2]
    total, product = h0 + h1, h0 * h1
    quotient = _divide(h0, h1)
    parts = first * (2.0 - _divide(1.0, quotient)) + middle * (total * _divide(total, product))
    return np.sum(total / 6.0 * (parts + last * (2.0 - quotient)), axis=-1)


# -- stats and distances ------------------------------------------------------------------------------------
def _define_of_normal(name: str) -> None:
    compute = getattr(scipy.stats.norm, name)

    @implements_scipy(f"scipy.stats.norm.{name}")
    def evaluate(x, loc=0, scale=1):
        raws = [to_raw(as_operand(v), dtypes.float64) for v in (x, loc, scale)]
        if any(dtype_of(v).kind not in "fiu" or dtype_of(v) in _SHORT for v in (x, loc, scale)):
            raise not_traceable("scipy.stats.norm of such numbers")
        _fail(~jnp.all(raws[2] > 0), ValueError("a scale that is not positive"))
        return wrap_result(compute(*raws))


_SHORT = (dtypes.float16, dtypes.float32)
for _name in ("pdf", "cdf", "logpdf", "sf", "ppf", "logcdf"):
    _define_of_normal(_name)


@implements_scipy("scipy.stats.zscore")
def zscore(a, axis=0, ddof=0, nan_policy="propagate"):
    """Constant rows give NaN with a warning: SciPy itself."""
    if nan_policy != "propagate" or dtype_of(a) != dtypes.float64:
        raise not_traceable("scipy.stats.zscore of such an array")
    a = as_array(a)
    mean = np.mean(a, axis=axis, keepdims=True)
    deviation = np.std(a, axis=axis, ddof=ddof, keepdims=True)
    bound = np.abs(1e-12 * mean)
    _fail(~jnp.all(to_raw(deviation > bound)), ValueError("rows of nearly one value"))
    return (a - mean) / deviation


_MEASURES: dict[str, Callable] = {
    "euclidean": lambda u, v: jnp.sqrt(jnp.sum(jnp.square(u - v), axis=-1)),
    "sqeuclidean": lambda u, v: jnp.sum(jnp.square(u - v), axis=-1),
    "cityblock": lambda u, v: jnp.sum(jnp.abs(u - v), axis=-1),
}


def _define_distance(name: str) -> None:
    @implements_scipy(f"scipy.spatial.distance.{name}")
    def distance(u, v, w=None):
        one, other = map(as_array, (u, v))
        is_odd = any(dtype_of(x) != dtypes.float64 or x.ndim != 1 for x in (one, other))
        if w is not None or is_odd or one.shape != other.shape or not one.size:
            raise not_traceable(f"scipy.spatial.distance.{name} of such arrays")
        found = _MEASURES[name](to_raw(one), to_raw(other))
        if name != "euclidean":
            return wrap_result(found)
        _fail(~jnp.isfinite(found), ValueError("array must not contain infs or NaNs"))
        return Number(float, found)


for _name in _MEASURES:
    _define_distance(_name)


@implements_scipy("scipy.spatial.distance.cdist")
def cdist(XA, XB, metric="euclidean", *, out=None, **kwargs):  # noqa: N803  SciPy's names
    one, other = (to_raw(as_operand(x), dtypes.float64) for x in (XA, XB))
    is_known = isinstance(metric, str) and metric in _MEASURES
    if not is_known or out is not None or kwargs or one.ndim != 2 or other.ndim != 2:
        raise not_traceable("scipy.spatial.distance.cdist with such arguments")
    if one.shape[1] != other.shape[1] or dtype_of(XA).kind == "c" or dtype_of(XB).kind == "c":
        raise not_traceable("scipy.spatial.distance.cdist of such arrays")
    return wrap_result(_MEASURES[metric](one[:, None], other[None]))
