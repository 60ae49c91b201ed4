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
from jitcore.numpy_semantics.functions.calls import finish, given, is_given, to_common, to_inexact
from jitcore.numpy_semantics.functions.tables import implements
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray, wrap_result
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import as_operand, cast_raw, to_raw
from jitcore.numpy_semantics.values.views import Diagonal


# -- products -----------------------------------------------------------------------------------------------
@implements(np.dot, method="dot")
def dot(a, b, out=None):
    one, other = to_common(a, b)
    return finish(jnp.dot(one, other), out)


@implements(np.linalg.matmul)
def matmul(x1, x2, /):
    return np.matmul(as_operand(x1), as_operand(x2))


def _define_product(function: Callable, compute: Callable) -> None:
    def multiply(a, b, /):
        return wrap_result(compute(*to_common(a, b)))

    implements(function)(multiply)


_define_product(np.vdot, jnp.vdot)
_define_product(np.inner, jnp.inner)
_define_product(np.kron, jnp.kron)


@implements(np.outer)
def outer(a, b, out=None):
    one, other = to_common(a, b)
    return finish(one.reshape(-1)[:, None] * other.reshape(-1)[None, :], out)


@implements(np.linalg.outer)
def linalg_outer(x1, x2, /):
    return outer(x1, x2)


@implements(np.tensordot, np.linalg.tensordot)
def tensordot(a, b, axes=2):
    return wrap_result(jnp.tensordot(*to_common(a, b), axes=axes), is_scalar=False)


@implements(np.linalg.vecdot)
def linalg_vecdot(x1, x2, /, *, axis=-1):
    return wrap_result(jnp.linalg.vecdot(*to_common(x1, x2), axis=axis))


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


@implements(np.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    found = jnp.cross(*to_common(a, b), axisa=axisa, axisb=axisb, axisc=axisc, axis=axis)
    return wrap_result(found, is_scalar=False)


@implements(np.trace, method="trace")
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    raw = to_raw(as_operand(a))
    found = np.dtype(dtype) if is_given(dtype) else np.trace(np.ones((1, 1), raw.dtype)).dtype
    return finish(jnp.trace(cast_raw(raw, found), offset, axis1, axis2), out)


@implements(np.convolve)
def convolve(a, v, mode="full"):
    one, other = to_common(a, v)
    if one.dtype.kind not in "biu" or one.ndim != 1 or other.ndim != 1 or not (one.size and other.size):
        _check_window(one, other, mode)
        return wrap_result(jnp.convolve(one, other, mode=mode))
    return wrap_result(_correlate_whole(one, other[::-1], mode))


@implements(np.correlate)
def correlate(a, v, mode="valid"):
    one, other = to_common(a, v)
    if one.dtype.kind not in "biu" or one.ndim != 1 or other.ndim != 1 or not (one.size and other.size):
        _check_window(one, other, mode)
        return wrap_result(jnp.correlate(one, other, mode=mode))
    if one.size < other.size:
        return wrap_result(_correlate_whole(other, one, mode)[::-1])
    return wrap_result(_correlate_whole(one, other, mode))


def _check_window(one: Array, other: Array, mode: Any) -> None:
    """Leaves a window that is not finite to Python: zeros around the longer operand would meet it."""
    if mode not in ("valid", 0):
        window = other if other.size <= one.size else one
        fail(Number(bool, ~jnp.all(jnp.isfinite(window))), ValueError("a window that is not finite"))


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
def _square(a: Any):
    raw = to_inexact(a)
    if raw.ndim < 2:
        raise np.linalg.LinAlgError(f"{raw.ndim}-dimensional array given. "
                                    "Array must be at least two-dimensional")
    if raw.shape[-1] != raw.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return raw


def _check_finite(raw, source, text: str) -> None:
    """Where a factorization of finite numbers gave NaN, NumPy raises LinAlgError."""
    is_bad = jnp.any(jnp.isnan(raw)) & ~jnp.any(jnp.isnan(source))
    fail(Number(bool, is_bad), np.linalg.LinAlgError(text))


@implements(np.linalg.inv)
def inv(a):
    raw = _square(a)
    found = jnp.linalg.inv(raw)
    _check_solution(found, raw)
    return wrap_result(found)


@implements(np.linalg.solve)
def solve(a, b):
    one, other = to_common(a, b, inexact=True)
    found = jnp.linalg.solve(_square(wrap_result(one)), other)
    _check_solution(found, one, other)
    return wrap_result(found)


def _check_solution(found, *operands) -> None:
    """A singular matrix divides by a zero pivot: the result is not finite although its operands are."""
    is_bad = ~jnp.all(jnp.isfinite(found))
    for operand in operands:
        is_bad = is_bad & jnp.all(jnp.isfinite(operand))
    fail(Number(bool, is_bad), np.linalg.LinAlgError("Singular matrix"))


@implements(np.linalg.cholesky)
def cholesky(a, /, *, upper=False):
    raw = _square(a)
    found = jnp.linalg.cholesky(raw, upper=upper, symmetrize_input=False)
    _check_finite(found, raw, "Matrix is not positive definite")
    return wrap_result(found)


def _define_decomposition(function: Callable, compute: Callable, *, is_square: bool = True) -> None:
    """A function of one matrix that gives an array, or a tuple of NumPy's type with arrays."""

    @functools.wraps(function)
    def decompose(a, *args, **options):
        raw = _square(a) if is_square else to_inexact(a)
        found = compute(raw, *args, **options)
        if not isinstance(found, tuple):
            return wrap_result(found)
        results = tuple(map(wrap_result, found))
        kind = type(function(np.eye(2, dtype=raw.dtype), *args, **options))
        return kind(*results) if hasattr(kind, "_fields") else results

    implements(function)(decompose)


_define_decomposition(np.linalg.det, jnp.linalg.det)
_define_decomposition(np.linalg.slogdet, jnp.linalg.slogdet)
_define_decomposition(np.linalg.qr, jnp.linalg.qr, is_square=False)
_define_decomposition(np.linalg.svd, jnp.linalg.svd, is_square=False)
_define_decomposition(np.linalg.svdvals, jnp.linalg.svdvals, is_square=False)
_define_decomposition(np.linalg.pinv, jnp.linalg.pinv, is_square=False)


def _define_hermitian(function: Callable, compute: Callable) -> None:
    def decompose(a, UPLO="L"):  # noqa: N803  NumPy's name
        found = compute(_square(a), UPLO=UPLO, symmetrize_input=False)
        if not isinstance(found, tuple):
            return wrap_result(found)
        return type(function(np.eye(2)))(*map(wrap_result, found))

    implements(function)(decompose)


_define_hermitian(np.linalg.eigh, jnp.linalg.eigh)


@implements(np.linalg.eigvalsh)
def eigvalsh(a, UPLO="L"):  # noqa: N803  NumPy's name
    return wrap_result(jnp.linalg.eigvalsh(_square(a), UPLO=UPLO, symmetrize_input=False))


def _define_general(function: Callable, compute: Callable) -> None:
    """Of a real matrix the results are real where all eigenvalues are: other calls are Python's."""

    def decompose(a):
        raw = _square(a)
        found = compute(raw)
        if raw.dtype.kind != "c":
            values = found[0] if isinstance(found, tuple) else found
            error = ValueError("complex eigenvalues of a real matrix")
            fail(Number(bool, jnp.any(lax.imag(values) != 0)), error)
            found = tuple(map(lax.real, found)) if isinstance(found, tuple) else lax.real(found)
        if not isinstance(found, tuple):
            return wrap_result(found)
        return type(function(np.eye(2)))(*map(wrap_result, found))

    implements(function)(decompose)


_define_general(np.linalg.eig, jnp.linalg.eig)
_define_general(np.linalg.eigvals, jnp.linalg.eigvals)


@implements(np.linalg.lstsq)
def lstsq(a, b, rcond=None):
    """The residuals are empty where the columns depend on each other: with more rows than columns such calls
    are Python's."""
    one, other = to_common(a, b, inexact=True)
    if one.ndim != 2:
        raise np.linalg.LinAlgError(f"{one.ndim}-dimensional array given. Array must be two-dimensional")
    if other.ndim not in (1, 2):
        raise np.linalg.LinAlgError(f"{other.ndim}-dimensional array given. Array must be two-dimensional")
    if one.shape[0] != other.shape[0]:
        raise np.linalg.LinAlgError("Incompatible dimensions")
    if 0 in (*one.shape, *other.shape):
        raise not_traceable("np.linalg.lstsq of empty arrays")
    x, residuals, rank, values = jnp.linalg.lstsq(one, other, rcond)
    rows, columns = one.shape
    _check_finite(x, jnp.concatenate([one.reshape(-1), other.reshape(-1)]),
                  "SVD did not converge in Linear Least Squares")
    if rows <= columns:
        found_rank = wrap_result(cast_raw(rank, dtypes.int32))
        return wrap_result(x), wrap_result(residuals[:0]), found_rank, wrap_result(values)
    error = np.linalg.LinAlgError("columns that depend on each other")
    fail(Number(bool, ~(rank == columns)), error)
    return wrap_result(x), wrap_result(residuals), np.int32(columns), wrap_result(values)


@implements(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):  # noqa: A002  NumPy's name
    raw = to_inexact(x)
    return wrap_result(jnp.linalg.norm(raw, ord=ord, axis=axis, keepdims=keepdims))


@implements(np.linalg.matrix_norm)
def matrix_norm(x, /, *, keepdims=False, ord="fro"):  # noqa: A002
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.vector_norm)
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):  # noqa: A002
    return wrap_result(jnp.linalg.vector_norm(to_inexact(x), axis=axis, keepdims=keepdims, ord=ord))


@implements(np.linalg.matrix_power)
def matrix_power(a, n):
    raw = _square(a) if n < 0 else to_raw(as_operand(a))
    found = jnp.linalg.matrix_power(raw, n)
    if n < 0:
        _check_solution(found, raw)
    return wrap_result(found)


@implements(np.linalg.matrix_rank)
def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):  # noqa: N803
    options = given(tol=tol, rtol=rtol, hermitian=hermitian or None)
    names = {"tol": "rtol"} if "tol" in options else {}
    if names:
        raise not_traceable("np.linalg.matrix_rank() with an absolute tolerance")
    return wrap_result(cast_raw(jnp.linalg.matrix_rank(to_inexact(A), **options), dtypes.int64))


@implements(np.linalg.cond)
def cond(x, p=None):
    return wrap_result(jnp.linalg.cond(to_inexact(x), p))


@implements(np.linalg.multi_dot)
def multi_dot(arrays, *, out=None):
    return finish(jnp.linalg.multi_dot(to_common(*arrays)), out)


@implements(np.linalg.tensorinv)
def tensorinv(a, ind=2):
    return wrap_result(jnp.linalg.tensorinv(to_inexact(a), ind))


@implements(np.linalg.tensorsolve)
def tensorsolve(a, b, axes=None):
    return wrap_result(jnp.linalg.tensorsolve(*to_common(a, b, inexact=True), axes=axes))


@implements(np.linalg.trace)
def linalg_trace(x, /, *, offset=0, dtype=None):
    return trace(x, offset, -2, -1, dtype)


@implements(np.linalg.cross)
def linalg_cross(x1, x2, /, *, axis=-1):
    return cross(x1, x2, axis=axis)


# -- transforms ---------------------------------------------------------------------------------------------
def _define_transform(function: Callable, compute: Callable) -> None:
    def transform(a, n=None, axis=-1, norm=None, out=None):
        return finish(compute(to_inexact(a), n, axis, norm), out)

    implements(function)(transform)


def _define_transforms(function: Callable, compute: Callable, axes: Any) -> None:
    def transform(a, s=None, axes=axes, norm=None, out=None):
        return finish(compute(to_inexact(a), s, axes, norm), out)

    implements(function)(transform)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _define_transform(getattr(np.fft, _name), getattr(jnp.fft, _name))
for _name in ("fft2", "ifft2", "rfft2", "irfft2"):
    _define_transforms(getattr(np.fft, _name), getattr(jnp.fft, _name), (-2, -1))
for _name in ("fftn", "ifftn", "rfftn", "irfftn"):
    _define_transforms(getattr(np.fft, _name), getattr(jnp.fft, _name), None)


@implements(np.fft.fftshift)
def fftshift(x, axes=None):
    return wrap_result(jnp.fft.fftshift(to_raw(as_operand(x)), axes))


@implements(np.fft.ifftshift)
def ifftshift(x, axes=None):
    return wrap_result(jnp.fft.ifftshift(to_raw(as_operand(x)), axes))
