"""NumPy's products and `numpy.linalg` over handles."""

from __future__ import annotations

import functools
import string
from collections.abc import Callable
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import (as_operands, finish, is_given, to_common,
                                                     to_common_inexact, to_inexact, to_inexacts)
from jitcore.numpy_semantics.functions.rows import adapts, rows
from jitcore.numpy_semantics.functions.tables import implements
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray
from jitcore.numpy_semantics.values.promotion import cast_raw
from jitcore.numpy_semantics.values.views import Diagonal

# -- products -----------------------------------------------------------------------------------------------
rows("dot vdot inner kron outer linalg.vecdot", count=2, convert=to_common)
rows("tensordot linalg.tensordot cross", count=2, convert=to_common, is_scalar=False)
adapts(np.linalg.outer, count=2, convert=to_common)(jnp.outer)
adapts(np.linalg.cross, count=2, convert=to_common, is_scalar=False)(jnp.cross)
adapts(np.linalg.matmul, count=2, convert=as_operands)(np.matmul)


def _view_by_einsum(operands: tuple) -> NDArray | None:
    """The view that `einsum` gives for one array of which nothing is summed: its axes in another order, and
    diagonals; None for what it computes."""
    array, names, wanted = _spell(operands)
    if array is None or len(names) != array.ndim or sorted(set(names)) != sorted(wanted):
        return None
    for name in set(names):
        while names.count(name) > 1:
            first, second = names.index(name), names.rindex(name)
            if array.shape[first] != array.shape[second]:
                return None
            rest = [i for i in range(array.ndim) if i not in (first, second)]
            moved = array.transpose([*rest, first, second])
            array = moved.add_view(Diagonal(moved.shape, is_read_only=False))
            names = "".join(names[i] for i in rest) + name
    return array.transpose([names.index(name) for name in wanted])


def _spell(operands: tuple) -> tuple[NDArray | None, str, str]:
    """The array of an `einsum` of one array, and its axes and those of the result as letters."""
    if isinstance(operands[0], str):
        array, text = operands[1] if len(operands) == 2 else None, operands[0].replace(" ", "")
    else:
        array = operands[0] if len(operands) in (2, 3) else None
        text = "->".join(map(_spell_axes, operands[1:3]))
    if not isinstance(array, NDArray):
        return None, "", ""
    names, arrow, wanted = text.partition("->")
    if not arrow:
        wanted = "".join(sorted(name for name in names if name != "." and names.count(name) == 1))
        wanted = "..." * ("..." in names) + wanted
    others = [letter for letter in string.ascii_letters if letter not in text]
    ellipsis = "".join(others[: max(array.ndim - len(names.replace("...", "")), 0)])
    return array, names.replace("...", ellipsis), wanted.replace("...", ellipsis)


def _spell_axes(axes: Any) -> str:
    return "".join("..." if axis is Ellipsis else string.ascii_letters[axis] for axis in axes)


@implements(np.einsum)
def einsum(*operands, out=None, optimize=False, dtype=None, order="K", casting="safe"):
    view = None if is_given(out) or is_given(dtype) or order != "K" else _view_by_einsum(operands)
    if view is not None:
        return view
    if not isinstance(operands[0], str):
        arrays = list(operands[:-1:2] if len(operands) % 2 else operands[::2])
        raws = to_common(*arrays)
        converted = list(operands)
        converted[: 2 * len(raws) : 2] = raws
        return finish(jnp.einsum(*converted), out)
    raws = to_common(*operands[1:])
    if is_given(dtype):
        raws = [cast_raw(raw, dtype) for raw in raws]
    return finish(jnp.einsum(operands[0], *raws), out)


@adapts(np.trace)
def trace(raw, dtype=None, **options):
    found = np.trace(np.ones((1, 1), raw.dtype)).dtype if dtype is None else np.dtype(dtype)
    return jnp.trace(cast_raw(raw, found), **options)


adapts(np.linalg.trace)(functools.partial(trace.compute, axis1=-2, axis2=-1))


def _are_whole(one: Array, other: Array) -> bool:
    """Whether these are vectors of integers or bools."""
    return one.dtype.kind in "biu" and one.ndim == other.ndim == 1 and bool(one.size and other.size)


@adapts(np.convolve, count=2, convert=to_common)
def convolve(one, other, mode="full"):
    if _are_whole(one, other):
        return _correlate_whole(one, other[::-1], mode)
    _check_window(one, other, mode)
    return jnp.convolve(one, other, mode=mode)


@adapts(np.correlate, count=2, convert=to_common)
def correlate(one, other, mode="valid"):
    if not _are_whole(one, other):
        _check_window(one, other, mode)
        return jnp.correlate(one, other, mode=mode)
    if one.size < other.size:
        return _correlate_whole(other, one, mode)[::-1]
    return _correlate_whole(one, other, mode)


def _check_window(one: Array, other: Array, mode: Any) -> None:
    """Leaves a window that is not finite to Python: zeros around the longer operand would meet it."""
    if mode not in ("valid", 0):
        window = other if other.size <= one.size else one
        fail(~jnp.all(jnp.isfinite(window)), ValueError("a window that is not finite"))


def _correlate_whole(one: Array, other: Array, mode: Any) -> Array:
    """A correlation of integers or bools in their own dtype: sums wrap around, those of bools are `or`."""
    if one.size < other.size:  # a convolution commutes
        one, other = other[::-1], one[::-1]
    count, width = one.size, other.size
    kind = {0: "valid", 1: "same", 2: "full"}.get(mode, mode)
    before = {"valid": 0, "same": width // 2, "full": width - 1}[kind]
    length = {"valid": count - width + 1, "same": count, "full": count + width - 1}[kind]
    padded = jnp.pad(one, (before, length + width - 1 - before - count))
    places = np.arange(length)[:, None] + np.arange(width)
    if one.dtype == np.bool_:
        return jnp.any(padded[places] & other, axis=1)
    return jnp.sum(padded[places] * other, axis=1, dtype=one.dtype)


# -- linalg -------------------------------------------------------------------------------------------------
def _check_square(raw: Array) -> Array:
    if raw.ndim < 2:
        raise np.linalg.LinAlgError(f"{raw.ndim}-dimensional array given. "
                                    "Array must be at least two-dimensional")
    if raw.shape[-1] != raw.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return raw


def _squares(*operands: Any) -> list[Array]:
    return [_check_square(to_inexact(x)) for x in operands]


def _check_finite(raw, source, text: str) -> None:
    """Where a factorization of finite numbers gave NaN, NumPy raises LinAlgError."""
    is_bad = jnp.any(jnp.isnan(raw)) & ~jnp.any(jnp.isnan(source))
    fail(is_bad, np.linalg.LinAlgError(text))


@adapts(np.linalg.inv, convert=_squares)
def inv(raw):
    found = jnp.linalg.inv(raw)
    _check_solution(found, raw)
    return found


@adapts(np.linalg.solve, count=2, convert=to_common_inexact)
def solve(one, other):
    found = jnp.linalg.solve(_check_square(one), other)
    _check_solution(found, one, other)
    return found


def _check_solution(found, *operands) -> None:
    """A singular matrix divides by a zero pivot: the result is not finite although its operands are."""
    is_bad = ~jnp.all(jnp.isfinite(found))
    for operand in operands:
        is_bad = is_bad & jnp.all(jnp.isfinite(operand))
    fail(is_bad, np.linalg.LinAlgError("Singular matrix"))


@adapts(np.linalg.cholesky, convert=_squares)
def cholesky(raw, upper=False):
    found = jnp.linalg.cholesky(raw, upper=upper, symmetrize_input=False)
    _check_finite(found, raw, "Matrix is not positive definite")
    return found


def _read_triangle(compute: Callable) -> Callable:
    return functools.partial(compute, symmetrize_input=False)


#: Rows up to which LAPACK finds one eigenvalue after the other; of larger matrices it finds many at a time.
_FEW_ROWS = 75


def _check_real(compute: Callable) -> Callable:
    """Of a real matrix the results are real where all eigenvalues are: other calls are Python's."""

    def decompose(raw):
        if raw.shape[-1] > _FEW_ROWS:
            raise not_traceable("eigenvalues of so large a matrix, whose order depends on rounding")
        found = compute(raw)
        if raw.dtype.kind == "c":
            return found
        values = found[0] if isinstance(found, tuple) else found
        fail(jnp.any(lax.imag(values) != 0), ValueError("complex eigenvalues of a real matrix"))
        return type(found)(*map(lax.real, found)) if isinstance(found, tuple) else lax.real(found)

    return decompose


def check_moderate(raw: Array) -> None:
    """Leaves a matrix to Python that is not finite, or whose numbers are so large or small that their squares
    leave the dtype: LAPACK does not converge for the one, and scales the other."""
    limits, highest = np.finfo(raw.dtype), jnp.max(jnp.abs(raw), initial=0)
    is_moderate = (highest > float(limits.tiny) ** _MODERATE) & (highest < float(limits.max) ** _MODERATE)
    fail(~(is_moderate | (highest == 0)), np.linalg.LinAlgError("SVD did not converge"))


#: The power of the largest number of a dtype, and of the smallest, up to which numbers are moderate.
_MODERATE = 0.4


def _of_moderate(compute: Callable) -> Callable:
    @functools.wraps(compute)
    def decompose(raw, *args, **options):
        check_moderate(raw)
        return compute(raw, *args, **options)

    return decompose


def _norm(compute: Callable) -> Callable:
    """Norms that are made of singular values are those of moderate matrices."""

    @functools.wraps(compute)
    def measure(raw, ord=None, **options):  # noqa: A002
        if ord == "nuc" or ord in (2, -2) and raw.ndim > 1 and not isinstance(options.get("axis"), int):
            check_moderate(raw)
        return compute(raw, **options) if ord is None else compute(raw, ord=ord, **options)

    return measure


def _cond(raw, p=None):
    """NumPy's are infinite where ours divide by zero."""
    check_moderate(raw)
    found = jnp.linalg.cond(raw, p)
    fail(~jnp.all(jnp.isfinite(found)), np.linalg.LinAlgError("Singular matrix"))
    return found


rows("linalg.det", convert=_squares)
rows("linalg.slogdet", _of_moderate, convert=_squares)
rows("linalg.qr linalg.tensorinv", convert=to_inexacts)
rows("linalg.svd linalg.svdvals", _of_moderate, convert=to_inexacts)
adapts(np.linalg.cond, convert=to_inexacts)(_cond)
rows("linalg.eigh linalg.eigvalsh", lambda compute: _of_moderate(_read_triangle(compute)), convert=_squares)
rows("linalg.eig linalg.eigvals", lambda compute: _of_moderate(_check_real(compute)), convert=_squares)
rows("linalg.norm linalg.matrix_norm", _norm, convert=to_inexacts)
rows("linalg.vector_norm", convert=to_inexacts)
rows("linalg.multi_dot", count=0, convert=to_common)


@adapts(np.linalg.lstsq, count=2, convert=to_common_inexact)
def lstsq(one, other, rcond=None):
    """The residuals are empty where the columns depend on each other: with more rows than columns such calls
    are Python's."""
    if one.ndim != 2:
        raise np.linalg.LinAlgError(f"{one.ndim}-dimensional array given. Array must be two-dimensional")
    if other.ndim not in (1, 2):
        raise np.linalg.LinAlgError(f"{other.ndim}-dimensional array given. Array must be two-dimensional")
    if one.shape[0] != other.shape[0]:
        raise np.linalg.LinAlgError("Incompatible dimensions")
    if 0 in (*one.shape, *other.shape):
        raise not_traceable("np.linalg.lstsq of empty arrays")
    check_moderate(one)
    check_moderate(other)
    x, residuals, rank, values = jnp.linalg.lstsq(one, other, rcond)
    height, width = one.shape
    if height <= width:
        return x, residuals[:0], cast_raw(rank, dtypes.int32), values
    fail(~(rank == width), np.linalg.LinAlgError("columns that depend on each other"))
    return x, residuals, np.int32(width), values


@adapts(np.linalg.tensorsolve, count=2, convert=to_common_inexact)
def tensorsolve(one, other, axes=None):
    found = jnp.linalg.tensorsolve(one, other, axes)
    _check_solution(found, one, other)
    return found


@adapts(np.linalg.pinv, convert=to_inexacts)
def pinv(raw, rcond=None, hermitian=False, rtol=1e-15):
    check_moderate(raw)
    bound = rtol if rcond is None else rcond
    return jnp.linalg.pinv(raw, max(raw.shape[-2:]) * np.finfo(raw.dtype).eps if bound is None else bound)


@adapts(np.linalg.matrix_power)
def matrix_power(raw, n):
    raw = _check_square(to_inexact(raw)) if n < 0 else raw
    found = jnp.linalg.matrix_power(raw, n)
    if n < 0:
        _check_solution(found, raw)
    return found


rows("linalg.matrix_rank", _of_moderate, convert=to_inexacts, dtype=dtypes.int64,
     only={"tol": (None,), "hermitian": (False,)})


# -- transforms ---------------------------------------------------------------------------------------------
rows("fft.fftshift fft.ifftshift")
rows("fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft", convert=to_inexacts)
rows("fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.fftn fft.ifftn fft.rfftn fft.irfftn", convert=to_inexacts)
