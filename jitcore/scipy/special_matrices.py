"""Matrices of a known form, under SciPy's names (`jitcore.scipy.linalg`).

In: extents, or the vectors that the entries are made of. Out: matrices, of the default float where only
extents are given. Source: scipy.linalg, "Special matrices".
"""

from __future__ import annotations

import math
import operator

import numpy as np

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import ensure_array, promote_arrays

__all__ = ["circulant", "companion", "convolution_matrix", "dft", "fiedler", "fiedler_companion", "hadamard",
           "hankel", "helmert",
           "hilbert", "invhilbert", "invpascal", "leslie", "pascal", "toeplitz"]


def _vector(name: str, x) -> Array:
    x = ensure_array(name, np.asarray(x) if isinstance(x, (list, tuple)) else x)
    if not x.ndim:
        x = x[None]
    return x


def _floats(values) -> Array:
    return jnp.asarray(values, dtypes.default_dtype("f"))


def toeplitz(c, r=None) -> Array:
    """Matrices with c as first column and r as first row, whose diagonals are constant.

    Args:
        c: [..., n]. r: [..., m], of which the first element is not read; the conjugate of c by default.

    Returns: [..., n, m]. Example: `toeplitz(jnp.array([1, 2]), jnp.array([0, 3]))` is `[[1, 3], [2, 1]]`."""
    c = _vector("toeplitz", c)
    r = jnp.conjugate(c) if r is None else _vector("toeplitz", r)
    c, r = promote_arrays("toeplitz", c, r)
    n, m = c.shape[-1], r.shape[-1]
    shape = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = jnp.broadcast_to(c, (*shape, n)), jnp.broadcast_to(r, (*shape, m))
    values = jnp.concatenate([c[..., ::-1], r[..., 1:]], -1)
    return values[..., n - 1 - np.arange(n)[:, None] + np.arange(m)]


def circulant(c) -> Array:
    """Matrices whose columns are c, turned on by one place each. c: [..., n]; returns [..., n, n]."""
    c = _vector("circulant", c)
    n = c.shape[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)) % max(n, 1)]


def hankel(c, r=None) -> Array:
    """Matrices with c as first column and r as last row, whose rising diagonals are constant.

    c: [..., n]. r: [..., m], zeros by default; its first element is not read. Returns: [..., n, m]."""
    c = _vector("hankel", c)
    r = jnp.zeros_like(c) if r is None else _vector("hankel", r)
    c, r = promote_arrays("hankel", c, r)
    n, m = c.shape[-1], r.shape[-1]
    shape = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    values = jnp.concatenate([jnp.broadcast_to(c, (*shape, n)), jnp.broadcast_to(r, (*shape, m))[..., 1:]],
                             -1)
    return values[..., np.arange(n)[:, None] + np.arange(m)]


def companion(a) -> Array:
    """The matrix whose characteristic polynomial has the coefficients a, [..., n], the highest first:
    [..., n - 1, n - 1].

    Raises: ValueError for fewer than two coefficients."""
    (a,) = promote_arrays("companion", a, to=dtypes.inexact_dtype)
    if a.ndim > 1:
        return jnp.vectorize(companion, signature="(n)->(m,m)")(a)
    if a.ndim != 1 or a.shape[0] < 2:
        raise ValueError(f"companion needs a vector of at least two coefficients, got shape {a.shape}")
    n = a.shape[0] - 1
    return jnp.concatenate([(-a[1:] / a[0])[None], jnp.eye(n - 1, n, dtype=a.dtype)])


def fiedler(a) -> Array:
    """|a[i] - a[j]|. a: [..., n]; returns [..., n, n]."""
    a = _vector("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a) -> Array:
    """A pentadiagonal matrix whose eigenvalues are the roots of the polynomials of coefficients a, the
    highest first.

    Args:
        a: [..., n], n at least 1, of which the first is not 0.

    Returns: float[..., n - 1, n - 1]. Raises: ValueError for no coefficients.
    Example: `fiedler_companion(jnp.array([1.0, -3.0, 2.0]))` is `[[3, -2], [1, 0]]`.
    Source: scipy.linalg.fiedler_companion."""
    (a,) = promote_arrays("fiedler_companion", a, to=dtypes.inexact_dtype)
    a = jnp.atleast_1d(a)
    if not a.shape[-1]:
        raise ValueError(f"fiedler_companion needs a last axis of nonzero length, got {a.shape}.")
    n = a.shape[-1] - 1
    scaled = a / a[..., :1]
    c = jnp.zeros((*a.shape[:-1], n, n), a.dtype)
    if not n:
        return c
    c = c.at[..., 0, 0].set(-scaled[..., 1])
    if n > 1:
        c = c.at[..., 1, 0].set(1)
    even, odd = np.arange(0, n, 2), np.arange(1, n, 2)
    c = c.at[..., even[even < n - 2], even[1:]].set(1)
    c = c.at[..., even[even < n - 1], odd].set(-scaled[..., 2::2])
    c = c.at[..., odd[1:], odd[odd < n - 2]].set(1)
    c = c.at[..., even[1:], odd[odd < n - 1]].set(-scaled[..., 3::2])
    return c


def leslie(f, s) -> Array:
    """The matrix of a population by age: births f, [..., n], in the first row, survival s, [..., n - 1],
    below the diagonal.

    Raises: ValueError for other shapes."""
    f, s = promote_arrays("leslie", f, s)
    if f.ndim > 1 or s.ndim > 1:
        return jnp.vectorize(leslie, signature="(n),(m)->(n,n)")(f, s)
    if f.ndim != 1 or s.ndim != 1 or f.shape[0] != s.shape[0] + 1 or not s.shape[0]:
        raise ValueError("leslie: f needs one element more than s, and s at least one, got shapes "
                         f"{f.shape} and {s.shape}")
    return jnp.diag(s, -1).at[0].set(f)


def convolution_matrix(a, n: int, mode: str = "full") -> Array:
    """The matrix by whose product a vector of n elements is convolved with a.

    Args:
        a: [..., m]. mode: "full", "same", or "valid", as of `numpy.convolve`.

    Raises: ValueError for n below 1, an empty a, and another mode."""
    a = _vector("convolution_matrix", a)
    n = operator.index(n)
    if a.ndim > 1:
        return jnp.vectorize(lambda a: convolution_matrix(a, n, mode), signature="(m)->(r,n)")(a)
    if n < 1 or a.ndim != 1 or not a.shape[0]:
        raise ValueError(f"convolution_matrix needs a vector that is not empty and n >= 1, got {a.shape} "
                         f"and {n}")
    m = a.shape[0]
    row = jnp.zeros(n, a.dtype)
    full = toeplitz(jnp.concatenate([a, row[1:]]), row.at[0].set(a[0]))
    if mode == "full":
        return full
    if mode not in ("same", "valid"):
        raise ValueError("'mode' argument must be one of ('full', 'valid', 'same')")
    rows = max(m, n) if mode == "same" else max(m, n) - min(m, n) + 1
    start = (full.shape[0] - rows) // 2 if mode == "same" else min(m, n) - 1
    return full[start : start + rows]


def dft(n: int, scale: str | None = None, *, dtype=None) -> Array:
    """The matrix of the discrete Fourier transform of n elements.

    Args:
        scale: None, "sqrtn" (the matrix is unitary) or "n". dtype: complex, the default one by default.

    Raises: ValueError for another scale."""
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; {scale!r} is not valid.")
    n = operator.index(n)
    out = np.exp(-2j * np.pi * (np.outer(np.arange(n), np.arange(n)) % max(n, 1)) / max(n, 1))
    out = out / {None: 1, "sqrtn": math.sqrt(n), "n": n}[scale]
    return jnp.asarray(out, dtypes.default_dtype("c") if dtype is None else dtype)


def hadamard(n: int, dtype=int) -> Array:
    """The matrix of Hadamard, by Sylvester's construction, of ones and minus ones. Raises: ValueError unless
    n is a power of 2."""
    n = operator.index(n)
    if n < 1 or n & (n - 1):
        raise ValueError("n must be an positive integer, and n must be a power of 2")
    out = np.ones((1, 1), np.int8)
    while len(out) < n:
        out = np.block([[out, out], [out, -out]])
    return jnp.asarray(out, dtypes.default_dtype("i") if dtype is int else dtype)


def helmert(n: int, full: bool = False) -> Array:
    """The orthogonal matrix of Helmert, [n - 1, n], with the row of equal elements before it where `full`."""
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"helmert needs n >= 1, got {n}")
    out = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    out[0] = 1
    scale = np.sqrt(np.append(n, np.arange(1, n) * np.arange(2, n + 1)))
    return _floats((out / scale[:, None])[0 if full else 1 :])


def hilbert(n: int) -> Array:
    """1 / (i + j + 1)."""
    place = np.arange(operator.index(n))
    return _floats(1.0 / (place[:, None] + place + 1))


def invhilbert(n: int) -> Array:
    """The inverse of `hilbert`, computed with integers."""
    n, c = operator.index(n), math.comb
    return _floats(np.array([[float((-1) ** (i + j) * (i + j + 1) * c(n + i, n - j - 1) * c(n + j, n - i - 1)
                                    * c(i + j, i) ** 2) for j in range(n)] for i in range(n)]).reshape(n, n))


def _lower_pascal(n: int, alternate: bool) -> np.ndarray:
    return np.array([[float(math.comb(i, j) * (-1) ** (i + j if alternate else 0)) for j in range(n)]
                     for i in range(n)]).reshape(n, n)


def pascal(n: int, kind: str | None = None) -> Array:
    """Binomial coefficients: "lower", the triangle of Pascal; "upper", its transpose; "symmetric", their
    product, which is the default. Raises: ValueError for another kind."""
    return _pascal("pascal", operator.index(n), kind, False)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal` of the same kind. Raises: as there."""
    return _pascal("invpascal", operator.index(n), kind, True)


def _pascal(name: str, n: int, kind: str | None, is_inverse: bool) -> Array:
    lower = _lower_pascal(n, is_inverse)
    kinds = {None: lambda: lower.T @ lower if is_inverse else lower @ lower.T, "lower": lambda: lower,
             "upper": lambda: lower.T}
    kind = None if kind == "symmetric" else kind
    if kind not in kinds:
        raise ValueError(f"{name}: kind must be 'symmetric', 'lower', or 'upper', got {kind!r}")
    return _floats(kinds[kind]())
