"""SciPy's functions over handles: `special`, `linalg`, `fft`, `integrate`, `stats`, `spatial.distance`.

Dtypes, kinds of results and errors are SciPy's. Its warnings (an ill-conditioned matrix) are not given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, scipy
from jitcore.array import Array
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import (as_arrays, as_given, as_operands, dtype_of,
                                                     require_finite, to_common, to_common_inexact, to_inexact,
                                                     to_own)
from jitcore.numpy_semantics.functions.products import check_moderate
from jitcore.numpy_semantics.functions.rows import adapts_scipy
from jitcore.numpy_semantics.functions.scipy_table import UFUNCS, implements_scipy
from jitcore.numpy_semantics.functions.shaping import as_array
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray, wrap_result
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


def _rel_entr(x, y):
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), np.nan, scipy.special.rel_entr(x, y))


def _kl_div(x, y):
    found = _rel_entr(x, y)
    return jnp.where(jnp.isposinf(found), found, found - x + y)


for _name in "ndtr log_ndtr i0 i1 xlogy xlog1py entr erfcx".split():
    UFUNCS[_name] = getattr(scipy.special, _name)
UFUNCS |= scipy.special.PRIMITIVES | {
    "psi": scipy.special.digamma, "logit": _logit, "exp2": jnp.exp2, "rel_entr": _rel_entr, "kl_div": _kl_div,
    "expm1": jnp.expm1, "log1p": jnp.log1p, "cbrt": jnp.cbrt, "sinc": jnp.sinc}


# -- special: functions -------------------------------------------------------------------------------------
def _refuse_small(operands: Sequence[Any]) -> None:
    """Bools and ints of few bits are numbers of half or single precision for some functions of SciPy."""
    dtypes_of = [dtype_of(x) for x in operands if not isinstance(x, (int, float, complex))]
    if any(dtype.kind in "biu" and np.result_type(dtype, np.float32) == np.float32 for dtype in dtypes_of):
        raise not_traceable("a function of scipy.special or scipy.linalg of bools or of ints of few bits")


def _to_reals(*operands: Any) -> list[Array]:
    _refuse_small(operands)
    raws = to_common_inexact(*operands)
    if any(raw.dtype.kind == "c" or 0 in raw.shape for raw in raws):
        raise not_traceable("scipy.special of complex numbers or of no numbers")
    return raws


for _name in ("softmax", "log_softmax"):
    adapts_scipy(f"special.{_name}", convert=_to_reals)(getattr(scipy.special, _name))


@adapts_scipy("special.logsumexp", convert=_to_reals, also=["b"])
def logsumexp(raw, **options):
    return scipy.special.logsumexp(raw, **options)


# -- linalg -------------------------------------------------------------------------------------------------
def _check_matrices(raws: Sequence[Array], check_finite: bool, is_square: bool = True) -> None:
    if any(0 in raw.shape for raw in raws) or raws[0].dtype == dtypes.float16:
        raise not_traceable("scipy.linalg of empty arrays or of float16")
    if raws[0].ndim != 2 or any(raw.ndim > 2 for raw in raws):
        raise not_traceable("scipy.linalg of several matrices, or of no matrix")
    if is_square and raws[0].shape[0] != raws[0].shape[1]:
        raise not_traceable("scipy.linalg of a matrix that has to be square and is not")
    if len(raws) > 1 and raws[0].shape[0] != raws[1].shape[0]:
        raise not_traceable("scipy.linalg of shapes that do not fit")
    if check_finite:
        require_finite(*raws)


def _to_matrices(*operands: Any) -> list[Array]:
    _refuse_small(operands)
    return to_common_inexact(*operands)


def _of_matrices(name: str, compute: Callable, count: int = 1, *, is_square: bool = False, error: str = "",
                 checks_finite: bool = True, **only: Sequence) -> None:
    """Makes a row. error: that SciPy raises where the result is not finite. only: as `Row` has it."""

    def call(*raws, check_finite=checks_finite, **options):
        _check_matrices(raws, check_finite, is_square)
        found = compute(*raws, **options)
        if error:
            fail(~jnp.all(jnp.isfinite(found)), np.linalg.LinAlgError(error))
        return found

    adapts_scipy(f"linalg.{name}", count=count, convert=_to_matrices, only=only)(call)


def _solve(a, b, lower=False, assume_a=None):
    if assume_a in ("pos", "positive definite"):
        return scipy.linalg.solve(a, b, lower=lower, assume_a="pos")
    return jnp.linalg.solve(a, b)


def _solve_triangular(a, b, unit_diagonal=False, **options):
    if not unit_diagonal:
        fail(jnp.any(jnp.diagonal(a) == 0), np.linalg.LinAlgError("singular matrix"))
    return scipy.linalg.solve_triangular(a, b, unit_diagonal=unit_diagonal, **options)


def _pinv(a, rtol=None):
    """SciPy's bound is max(shape) * eps; that of NumPy is another."""
    return jnp.linalg.pinv(a, max(a.shape) * np.finfo(a.dtype).eps if rtol is None else rtol)


def _lu_factor(a):
    factors, pivots = scipy.linalg.lu_factor(a)
    return factors, cast_raw(pivots, dtypes.int32)


def _eigh(a, lower=True, eigvals_only=False, type=1, driver=None):
    """Of one triangle, the only one that LAPACK reads. Signs of eigenvectors are those of one driver."""
    if driver != "evd" and not eigvals_only:
        raise not_traceable("scipy.linalg.eigh without driver='evd', with eigenvectors")
    kept, rest = (jnp.tril(a), jnp.tril(a, -1)) if lower else (jnp.triu(a), jnp.triu(a, 1))
    is_complex = dtypes.is_complex(a.dtype)
    if is_complex:  # of the diagonal the real part
        kept = jnp.where(jnp.eye(a.shape[0], dtype=bool), cast_raw(kept.real, a.dtype), kept)
    whole = kept + (rest.conj() if is_complex else rest).T
    return scipy.linalg.eigh(whole, lower=lower, eigvals_only=eigvals_only)


def _det(a):
    """SciPy factors in the matrix's precision, and multiplies in double precision."""
    factors, pivots = scipy.linalg.lu_factor(a)
    swaps = jnp.sum(pivots != np.arange(a.shape[0], dtype=pivots.dtype))
    sign = jnp.where(swaps % 2 == 0, 1.0, -1.0)
    values = cast_raw(jnp.diagonal(factors), np.result_type(a.dtype, np.float64))
    return cast_raw(jnp.prod(values) * sign, values.dtype)


_ANY = (None, "gen", "general")
_ONE_MATRIX = {"b": (None,), "subset_by_index": (None,), "subset_by_value": (None,)}
_of_matrices("solve", _solve, 2, is_square=True, error="A singular matrix detected.", transposed=(False,),
             assume_a=(*_ANY, "pos", "positive definite"))
_of_matrices("inv", lambda a, assume_a=None: jnp.linalg.inv(a), is_square=True, error="singular matrix",
             assume_a=_ANY, lower=(False,))
_of_matrices("pinv", _pinv, atol=(None,), return_rank=(False,))
_of_matrices("cholesky", scipy.linalg.cholesky, is_square=True, error="the matrix is not positive definite")
_of_matrices("solve_triangular", _solve_triangular, 2, is_square=True)
_of_matrices("lu_factor", _lu_factor)
_of_matrices("lu", scipy.linalg.lu, p_indices=(False,))
_of_matrices("qr", scipy.linalg.qr, pivoting=(False,), mode=("full", "economic", "r"))
_of_matrices("svd", jnp.linalg.svd, lapack_driver=("gesdd",))
_of_matrices("svdvals", functools.partial(jnp.linalg.svd, compute_uv=False))
_of_matrices("eigh", _eigh, is_square=True, **_ONE_MATRIX)
_of_matrices("eigvalsh", functools.partial(_eigh, eigvals_only=True), is_square=True, **_ONE_MATRIX)
_of_matrices("det", _det, is_square=True)
_of_matrices("expm", scipy.linalg.expm, is_square=True, error="a norm that is too large", checks_finite=False)


@adapts_scipy("linalg.cho_solve", count=2, convert=as_given)
def cho_solve(c_and_lower, b, check_finite=True):
    raws = to_common_inexact(c_and_lower[0], b)
    _check_matrices(raws, check_finite)
    return scipy.linalg.cho_solve((raws[0], bool(c_and_lower[1])), raws[1])


@adapts_scipy("linalg.lu_solve", count=2, convert=as_given)
def lu_solve(lu_and_piv, b, trans=0, check_finite=True):
    raws = to_common_inexact(lu_and_piv[0], b)
    _check_matrices(raws, check_finite)
    return scipy.linalg.lu_solve((raws[0], to_raw(as_operand(lu_and_piv[1]))), raws[1], trans)


@adapts_scipy("linalg.norm", convert=as_arrays)
def norm(array, ord=None, axis=None, keepdims=False, check_finite=True):
    raw = to_inexact(array)
    if check_finite:
        require_finite(raw)
    if array.size:  # BLAS scales others
        check_moderate(raw)
    found = jnp.linalg.norm(raw, ord=ord, axis=axis, keepdims=keepdims)
    if axis is None and not keepdims and _is_python_norm(array, ord):
        return Number(float, cast_raw(found, dtypes.float64))
    return found


def _is_python_norm(array: NDArray, ord: Any) -> bool:
    """Whether SciPy asks BLAS or LAPACK, which give Python's floats."""
    if dtype_of(array).char not in "fdFD" or not array.size:
        return False
    if array.ndim == 1:
        return ord in (None, 2)
    return array.ndim == 2 and ord in (1, np.inf) and (array.flags.fnc or array.T.flags.fnc)


@implements_scipy("scipy.linalg.block_diag")
def block_diag(*arrs):
    raws = to_common(*as_arrays(*arrs))
    if any(raw.ndim > 2 for raw in raws):
        raise not_traceable("scipy.linalg.block_diag of several matrices")
    return wrap_result(scipy.linalg.block_diag(*raws))


@adapts_scipy("linalg.toeplitz", convert=to_common, also=["r"])
def toeplitz(column, r=None):
    row = jnp.conj(column) if r is None else r
    if column.ndim != 1 or row.ndim != 1:
        raise not_traceable("scipy.linalg.toeplitz of several matrices")
    values = jnp.concatenate([column[::-1], row[1:]])
    return values[column.shape[0] - 1 - np.arange(column.shape[0])[:, None] + np.arange(row.shape[0])]


@adapts_scipy("linalg.circulant")
def circulant(raw):
    if raw.ndim != 1:
        raise not_traceable("scipy.linalg.circulant of several matrices")
    places = np.arange(raw.shape[0])
    return raw[(places[:, None] - places) % raw.shape[0]]


# -- fft ----------------------------------------------------------------------------------------------------
def _to_long(x: Any) -> list[Array]:
    raw = to_inexact(x)
    if dtype_of(x) == dtypes.float16 or 0 in raw.shape:
        raise not_traceable("scipy.fft of float16 or of no numbers")
    return [raw]


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn",
              "ifftn", "rfftn", "irfftn"):
    adapts_scipy(f"fft.{_name}", convert=_to_long)(getattr(jnp.fft, _name))
adapts_scipy("fft.fftshift")(jnp.fft.fftshift)
adapts_scipy("fft.ifftshift")(jnp.fft.ifftshift)


# -- integrate ----------------------------------------------------------------------------------------------
@adapts_scipy("integrate.trapezoid", convert=as_given)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    if x is not None and dtype_of(x) == np.bool_:
        raise not_traceable("scipy.integrate.trapezoid at places that are bools")
    return np.trapezoid(y, x, dx, axis)


@adapts_scipy("integrate.cumulative_trapezoid", convert=as_arrays, only={"initial": (None, 0)})
def cumulative_trapezoid(y, x=None, dx=1.0, axis=-1, initial=None):
    y = np.moveaxis(y, axis, -1)
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


@adapts_scipy("integrate.simpson", convert=as_arrays)
def simpson(y, x=None, dx=1.0, axis=-1):
    y = np.moveaxis(y, axis, -1)
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
def _of_normal(compute: Callable) -> Callable:
    def evaluate(x, loc=0, scale=1):
        raws = to_own(x, loc, scale, dtype=dtypes.float64)
        if any(dtype_of(v).kind not in "fiu" or dtype_of(v) in _SHORT for v in (x, loc, scale)):
            raise not_traceable("scipy.stats.norm of such numbers")
        fail(~jnp.all(raws[2] > 0), ValueError("a scale that is not positive"))
        return wrap_result(compute(*raws))

    return evaluate


_SHORT = (dtypes.float16, dtypes.float32)
for _name in ("pdf", "cdf", "logpdf", "sf", "ppf", "logcdf"):
    implements_scipy(f"scipy.stats.norm.{_name}")(_of_normal(getattr(scipy.stats.norm, _name)))


@adapts_scipy("stats.zscore", convert=as_arrays, only={"nan_policy": ("propagate",)})
def zscore(a, axis=0, ddof=0):
    """Constant rows give NaN with a warning: SciPy itself."""
    if dtype_of(a) != dtypes.float64:
        raise not_traceable("scipy.stats.zscore of such an array")
    mean = np.mean(a, axis=axis, keepdims=True)
    deviation = np.std(a, axis=axis, ddof=ddof, keepdims=True)
    bound = np.abs(1e-12 * mean)
    fail(~jnp.all(to_raw(deviation > bound)), ValueError("rows of nearly one value"))
    return (a - mean) / deviation


_MEASURES: dict[str, Callable] = {
    "euclidean": lambda u, v: jnp.sqrt(jnp.sum(jnp.square(u - v), axis=-1)),
    "sqeuclidean": lambda u, v: jnp.sum(jnp.square(u - v), axis=-1),
    "cityblock": lambda u, v: jnp.sum(jnp.abs(u - v), axis=-1)}


def _between_vectors(name: str) -> Callable:
    def measure(u, v):
        is_odd = any(dtype_of(x) != dtypes.float64 or x.ndim != 1 for x in (u, v))
        if is_odd or u.shape != v.shape or not u.size:
            raise not_traceable(f"scipy.spatial.distance.{name} of such arrays")
        found = _MEASURES[name](to_raw(u), to_raw(v))
        if name != "euclidean":
            return found
        require_finite(found)
        return Number(float, found)

    return measure


for _name in _MEASURES:
    adapts_scipy(f"spatial.distance.{_name}", count=2, convert=as_arrays, only={"w": (None,)})(
        _between_vectors(_name))


@adapts_scipy("spatial.distance.cdist", count=2, convert=as_operands, only={"metric": tuple(_MEASURES)})
def cdist(XA, XB, metric="euclidean"):
    one, other = to_own(XA, XB, dtype=dtypes.float64)
    if one.ndim != 2 or other.ndim != 2:
        raise not_traceable("scipy.spatial.distance.cdist with such arguments")
    if one.shape[1] != other.shape[1] or dtype_of(XA).kind == "c" or dtype_of(XB).kind == "c":
        raise not_traceable("scipy.spatial.distance.cdist of such arrays")
    return _MEASURES[metric](one[:, None], other[None])
