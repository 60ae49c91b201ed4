"""Small programs with every way in which kernels are mapped to threads: by name, (function, arguments)."""

from __future__ import annotations

import numpy as np

import jitcore
import jitcore.numpy as jnp
from jitcore import lax
from tests.backends.python.programs import PROGRAMS as OF_PYTHON, f32, f64, softmax, stencil

_RANDOM = np.random.default_rng(1)


def place_of_largest(x):
    return x.argmax(), x.max(), (x * x).sum()


def centred(x):
    return (x - x.mean()) / jnp.sqrt(((x - x.mean()) ** 2).mean() + 1e-5)


def count(i):
    return jnp.zeros((3, 7), jnp.int32).at[i % 3, i % 7].add(1)


def extremes(i, x):
    return jnp.zeros(7, jnp.int32).at[i].max(x), jnp.zeros(7, jnp.uint32).at[i].add(x.astype(jnp.uint32))


def triangle(x):
    """Each row up to its own place."""
    return jnp.where(jnp.arange(x.shape[1])[None, :] <= jnp.arange(x.shape[0])[:, None], x, 0).sum(axis=1)


def bits(n):
    return jitcore.random.bits(jitcore.random.key(3), (n,))


def switch_in_a_loop(x):
    def step(i, v):
        return lax.switch(i % 3, [lambda v: v + 1, lambda v: v * 2, lambda v: v[::-1]], v)

    return lax.fori_loop(0, 5, step, x)


def whole_numbers(x, y):
    return x // y, x % y, x * y - x, x << 3, x >> 2, x & y, x ^ y, ~x, jnp.minimum(x, y)


def rounded(x):
    return (jnp.floor(x), jnp.ceil(x), jnp.trunc(x), jnp.round(x), lax.round(x), jnp.sign(x), jnp.signbit(x), jnp.cbrt(x),
            jnp.logaddexp(x, 1 - x), lax.erf_inv(x / 9), jnp.isfinite(x), jnp.fmod(x, 0.7))


def fill(x, new, low, count):
    """Ranges of elements, known at run time, whose ends may be outside."""
    k = lax.iota(np.int64, x.size)

    def step(j, x):
        return jnp.where((k >= low + j) & (k < low + j + count), jnp.take(new, k - j, mode="clip"), x)

    return lax.fori_loop(0, 3, step, x)


def sparse_row(values, columns, x, low, high):
    k = lax.iota(np.int64, values.size)
    taken = jnp.take(values, low + k, mode="clip") * jnp.take(x, jnp.take(columns, low + k, mode="clip"))
    return jnp.where(k < high - low, taken, 0.0).sum()


def box_of(x, low, high, left, right):
    r, c = lax.iota(np.int64, x.shape[0])[:, None], lax.iota(np.int64, x.shape[1])[None, :]
    part = jnp.where((r >= low) & (r < high) & (c >= left) & (c < right), x, 0.0)
    return part.sum(), part.sum(axis=1), part.sum(axis=0)


def chosen_limits(x, is_first, n, low, high):
    k = lax.iota(np.int64, x.shape[1])
    first, end = (jnp.where(is_first, n, other).astype(np.int64) for other in (low, high))
    part = jnp.where((k >= first) & (k < end + 30), x, 0.0)
    return part.sum(), part.sum(axis=1), part[0], jnp.cumsum(jnp.where(k < end, x[1], 0))


OWN = {
    **{f"softmax of {n}": (softmax, (f32(3, n),)) for n in (1, 7, 33, 1000)},
    "full sum": (lambda x: x.sum(), (f32(40, 30),)),
    "full sum in pieces": (lambda x: x.sum(), (f32(66_000),)),
    "place in pieces": (place_of_largest, (f32(66_000),)),
    "centred": (centred, (f64(300),)),
    "mean of columns": (lambda x: x.mean(axis=0), (f32(100, 40),)),
    "mean of short columns": (lambda x: x.mean(axis=0), (f32(100, 3),)),
    "norms of matrices": (lambda x: jnp.sqrt((x * x).sum(axis=(1, 2))), (f32(4, 5, 30),)),
    "all, any": (lambda x: ((x > 0).all(axis=1), (x > 2).any(axis=1), (x > 0).sum()), (f32(5, 300),)),
    "places in rows": (lambda x: (x.argmax(axis=1), x.argmin(axis=1)), (f32(4, 200),)),
    "first of equals": (lambda x: (x.argmax(), x.argmin(), x.argmax(axis=1)), (_RANDOM.integers(0, 3, (4, 300)),)),
    "cumsum": (jnp.cumsum, (f32(300),)),
    "cumsum in rows": (lambda x: (jnp.cumsum(x, axis=1), lax.cummax(x, axis=1, reverse=True)), (f64(3, 100),)),
    "cumsum of whole numbers": (jnp.cumsum, (_RANDOM.integers(-9, 9, 70).astype(np.int32),)),
    "select": (lambda x, y: jnp.select([x > 1, y > 0], [x, y], 0.5), (f32(5, 40), f32(5, 40))),
    "whole numbers": (whole_numbers, tuple(_RANDOM.integers(1, 120, 90).astype(np.int8) * s for s in (1, -1))),
    "rounded": (rounded, (np.array([-8.5, -2.5, -0.5, -0.0, 0.3, 0.5, 1.5, 2.4999, 7.0, 8.9]),)),
    "rounded floats": (rounded, (np.array([-8.5, -2.5, -0.5, -0.0, 0.3, 0.5, 1.5, 2.49, 7, 8.9], np.float32),)),
    "complex rows": (lambda z: (z / abs(z).max(axis=1, keepdims=True)).sum(axis=1), (
        (f32(3, 70) + 1j * f32(3, 70)).astype(np.complex64),)),
    "complex functions": (lambda z: (jnp.exp(z), jnp.log(z), jnp.sqrt(z), jnp.sin(z), jnp.tanh(z), jnp.conj(z), z**2), (
        f64(20) + 1j * f64(20),)),
    "threefry": (lambda: bits(50), ()),
    "count": (count, (_RANDOM.integers(0, 40, 300),)),
    "extremes": (extremes, (_RANDOM.integers(0, 7, 200), _RANDOM.integers(0, 100, 200).astype(np.int32))),
    "add to rows": (lambda x, i, j: x.at[i, :].add(j), (
        _RANDOM.integers(0, 9, (20, 11)), _RANDOM.integers(0, 20, 35), _RANDOM.integers(0, 9, (35, 11)))),
    "triangle": (triangle, (f32(30, 40),)),
    "ranges": (fill, (f64(50), f64(50), 20, 13)),
    "ranges beyond the ends": (fill, (f64(50), f64(50), -5, 60)),
    "a row of a sparse matrix": (sparse_row, (f64(12), _RANDOM.integers(0, 9, 12), f64(9), 4, 11)),
    "boxes": (box_of, (f64(33, 130), 3, 29, 7, 120)),
    "chosen limits": (chosen_limits, (f64(9, 90), True, 20, 7, 80)),
    "limits of rows": (lambda x, n: jnp.where(lax.iota(np.int64, 90) < n[:, None], x, 0.0).sum(axis=1), (
        f64(9, 90), _RANDOM.integers(-2, 95, 9))),
    "switch in a loop": (switch_in_a_loop, (f32(40),)),
    "box": (lambda u: sum(u[i : 8 + i, j : 6 + j, k : 7 + k] for i, j, k in ((0, 1, 1), (2, 1, 1), (1, 0, 1), (1, 1, 2))),
            (f32(10, 8, 9),)),
    "scan of rows": (lambda x: lax.scan(lambda c, v: (0.5 * c + v, c.sum()), x[0], x), (f32(4, 40),)),
    "grad of softmax": (jitcore.grad(lambda x: (softmax(x) ** 2).sum()), (f32(4, 40),)),
    "two steps": (lambda u: stencil(stencil(u)), (f32(7, 9),)),
}

_WEIGHTS = f32(2, 3)


def newton(x):
    """A root, by as many steps as it takes."""
    return lax.while_loop(lambda r: abs(r * r - x) > 1e-5, lambda r: 0.5 * (r + x / r), x)


#: What one thread may do in somebody's kernel.
DEVICE_PROGRAMS = {
    "of a number": (lambda x: 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67), (np.float32(-0.5),)),
    "of numbers": (lambda x, n: (jnp.sqrt(x) * n, n // 3, x > 1), (2.5, np.int32(7))),
    "complex": (lambda z: (jnp.exp(z), abs(z)), (np.complex64(1 + 2j),)),
    "an array in and out": (lambda x: jnp.cumsum(x) / x.sum(), (f32(5),)),
    "captured": (lambda x: (jnp.tanh(_WEIGHTS @ x), (_WEIGHTS * 2).sum()), (f32(3),)),
    "unused": (lambda x, y, z: x + z, (1.0, f32(4), 2.0)),
    "a pytree": (lambda p: {"y": p["a"] * p["b"].sum(), "x": p["b"] + 1}, ({"a": 2.0, "b": f32(3)},)),
    "a loop": (newton, (2.0,)),
    "a loop with arrays": (lambda x: lax.fori_loop(0, 4, lambda i, v: v[::-1] * 0.5 + i, x), (f64(4),)),
    "a derivative": (jitcore.grad(lambda x: jnp.sin(x * x)), (0.7,)),
    "places": (lambda x: (x.argmax(), x[2:].argmin(), x.max()), (f32(6),)),
    "a small system": (lambda a, b: jnp.array([a[1, 1] * b[0] - a[0, 1] * b[1], a[0, 0] * b[1] - a[1, 0] * b[0]])
                       / (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]), (f64(2, 2), f64(2))),
}

#: What has functions that kernels of Numba do not.
REFUSED = {"special": "nextafter", "edges of functions": "digamma"}
PROGRAMS = OWN | {name: program for name, program in OF_PYTHON.items() if name not in REFUSED}
#: What takes the simulator a minute and more.
LONG = ("in blocks", "products")
