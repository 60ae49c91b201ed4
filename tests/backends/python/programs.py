"""Small programs of every kind of statement and mark of the loop program: by name, (function, arguments)."""

from __future__ import annotations

import numpy as np

import jitcore
import jitcore.numpy as jnp
from jitcore import lax
from jitcore.lax.compress import compress

_RANDOM = np.random.default_rng(0)


def f32(*shape):
    return _RANDOM.standard_normal(shape).astype(np.float32)


def f64(*shape):
    return _RANDOM.standard_normal(shape)


def selu(x):
    return 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)


def softmax(x):
    e = jnp.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x):
    d = x - x.mean(axis=-1, keepdims=True)
    return d / jnp.sqrt((d * d).mean(axis=-1, keepdims=True) + 1e-5)


def stencil(u):
    return u.at[1:-1, 1:-1].set(0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]))


def square_root(a):
    return lax.while_loop(lambda x: abs(x * x - a) > 1e-6, lambda x: 0.5 * (x + a / x), a)


def running_mean(x):
    def step(carry, value):
        total = 0.9 * carry + 0.1 * value
        return total, total * 2

    return lax.scan(step, jnp.float32(0), x)


def rows(x, a):
    return lax.scan(lambda h, v: (jnp.tanh(h @ a + v), h.sum()), jnp.zeros(a.shape[0], jnp.float32), x)


def collatz(n):
    def body(carry):
        n, steps = carry
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lax.while_loop(lambda carry: carry[0] != 1, body, (n, 0))


def mandelbrot(x, y):
    def count(re, im):
        def step(s):
            return s[0] + 1, s[1] * s[1] - s[2] * s[2] + re, 2 * s[1] * s[2] + im

        return lax.while_loop(
            lambda s: (s[0] < 50) & (s[1] ** 2 + s[2] ** 2 < 4), step, (jnp.int32(0), 0 * re, 0 * im)
        )[0]

    return jitcore.vmap(count)(x, y)


def words(x):
    y = x * jnp.uint32(2654435761) + jnp.uint32(12345)
    y = (y << 13) ^ (y >> 17)
    s = y.astype(jnp.int32)
    return (s * s, s // 7, s % 7, lax.div(s, jnp.int32(-7)), lax.rem(s, jnp.int32(-7)), s.astype(jnp.int8), abs(s), -y, ~s, s >> 3,
            lax.population_count(y), lax.clz(y), (s.astype(jnp.float32) * 1e3).astype(jnp.int32), y // 7, y % 7)


def edges(x, y):
    """Integers where their operations end: by zero, by -1, beyond the width."""
    return (lax.div(x, y), lax.rem(x, y), lax.shift_left(x, y), lax.shift_right_arithmetic(x, y),
            lax.shift_right_logical(x, y), x * y, x - y, jnp.sign(x), jnp.maximum(x, y))


def conversions(x):
    return tuple(x.astype(dtype) for dtype in (
        jnp.int8, jnp.uint8, jnp.int32, jnp.uint32, jnp.int64, jnp.uint64, jnp.float16, jnp.bfloat16, jnp.float32, jnp.bool_))


def halves(x, y):
    return (
        jnp.exp(x) * x + 1,
        x.sum(),
        x.max(axis=0),
        x > 0.5,
        jnp.tanh(y) + 1,
        y.sum(axis=1),
        x.astype(y.dtype),
        x.at[2].set(0),
    )


def branches(k, x):
    return lax.switch(k, [lambda v: v + 1, lambda v: jnp.sin(v).sum() * v, lambda v: v[::-1]], x)


def nonzero(x):
    return jnp.nonzero(x > 0.3, size=x.size, fill_value=-1)[0], (x > 0.3).sum()


def packed(x):
    """What follows the elements is not specified."""
    return jnp.where(jnp.arange(x.size) < (x > 0).sum(), compress(x, x > 0), 0)


def called_in_a_loop(x):
    return lax.fori_loop(0, 3, lambda i, v: jnp.linalg.eigvals(v + 0.1 * i).real[:, None] * v, x)


def mlp(x, w, b, v):
    return jnp.maximum(x @ w + b, 0) @ v


PROGRAMS = {
    "selu": (selu, (f32(200),)),
    "softmax": (softmax, (f32(12, 35),)),
    "layernorm": (layernorm, (f32(10, 30),)),
    "logsumexp": (lambda x: jitcore.scipy.special.logsumexp(x, axis=0), (f64(30, 12),)),
    "stencil": (stencil, (f32(12, 17),)),
    "jacobi": (lambda u: lax.fori_loop(0, 7, lambda _, v: stencil(v), u), (f32(9, 14),)),
    "running sums": (lambda x: (jnp.cumsum(x), lax.cummax(x, reverse=True), lax.cumprod(x)), (f64(60),)),
    "sums of columns": (lambda x: jnp.cumsum(x, axis=0), (f32(12, 20),)),
    "in blocks": (lambda x: (x.sum(), x.argmax(), jnp.sqrt((x * x).mean()), jnp.cumsum(x)), (abs(f32(70_000)),)),
    "scan": (running_mean, (f32(50),)),
    "scan of matrices": (rows, (f32(5, 16), f32(16, 16))),
    "while_loop": (square_root, (np.float32(2),)),
    "collatz": (collatz, (27,)),
    "exchange": (lambda a, b, n: lax.fori_loop(0, n, lambda _, s: (s[1], s[0] + s[1], s[0]), (a, b, a)), (f64(9), f64(9), 4)),
    "fibonacci": (lambda n: lax.fori_loop(0, n, lambda _, s: (s[1], s[0] + s[1]), (jnp.int32(0), jnp.int32(1))), (20,)),
    "cond": (lambda p, x: lax.cond(p, lambda v: v * 2, lambda v: v - 1, x), (True, f32(50))),
    "switch": (branches, (1, f32(50))),
    "scatter-add": (lambda x, i, v: x.at[i].add(v), (f32(20), _RANDOM.integers(0, 20, 100), f32(100))),
    "scatter, some outside": (lambda x, i, v: x.at[i].set(v, mode="drop"), (f32(20), np.array([3, 50, 7, -1, -40]), f32(5))),
    "histogram": (lambda i: jnp.zeros(10).at[i].add(1.0), (_RANDOM.integers(0, 10, 20_000),)),
    "gather": (lambda x, i: x[i], (f32(30, 5), _RANDOM.integers(-30, 30, 70))),
    "gather in rows": (lambda x, i: jnp.take_along_axis(x, i, axis=1), (f32(30, 9), _RANDOM.integers(0, 9, (30, 4)))),
    "positions": (lambda x: (x.argmax(), x.argmin(axis=1), x.argmax(axis=0)), (f32(20, 15),)),
    "positions of NaN": (lambda x: (x.argmax(), x.argmin(), x.max(), x.min()), (np.array([1, np.nan, 3, np.nan, -2]),)),
    "sort": (lambda x: (jnp.sort(x, axis=0), jnp.argsort(x)), (f32(15, 12),)),
    "products": (mlp, (f32(70, 80), f32(80, 96), f32(96), f32(96, 3))),
    "complex products": (lambda a, b: a @ b, ((f32(40, 50) + 1j * f32(40, 50)).astype(np.complex64), (f32(50, 60) + 0j).astype(np.complex64))),
    "solve": (lambda a, b: jnp.linalg.solve(a @ a.T + jnp.eye(12), b), (f64(12, 12), f64(12))),
    "complex": (lambda z: (z * z + 1, jnp.exp(z), abs(z), z / (z + 1), jnp.sum(z), jnp.cumsum(z), jnp.sqrt(z), z == z), (
        (f32(30) + 1j * f32(30)).astype(np.complex64),)),
    "mandelbrot": (mandelbrot, (f32(60), f32(60))),
    "words": (words, (_RANDOM.integers(0, 2**32, 50, dtype=np.uint32),)),
    "edges of int32": (edges, (np.array([5, -5, -(2**31), 2**31 - 1, 0, 7], np.int32), np.array([0, 3, -1, 40, -2, 31], np.int32))),
    "edges of int64": (edges, (np.array([5, -5, -(2**63), 2**63 - 1, 0, 7]), np.array([0, 3, -1, 70, -2, 63]))),
    "edges of uint8": (edges, (np.array([5, 250, 0, 255, 7], np.uint8), np.array([0, 3, 9, 2, 7], np.uint8))),
    "edges of uint64": (edges, (np.array([5, 2**64 - 1, 0, 2**63 + 1, 7], np.uint64), np.array([0, 3, 70, 2, 7], np.uint64))),
    "conversions": (conversions, (np.array([0.4, -1.5, 300.7, -1e10, 3e20, np.inf, np.nan, 65504.0, 1e-7]),)),
    "conversions of integers": (conversions, (np.array([0, -1, 300, -(2**40), 2**63 - 1]),)),
    "halves": (halves, (f32(6, 9).astype(np.float16), f32(6, 9).astype(jnp.bfloat16))),
    "masked": (lambda x, n: jnp.where(jnp.arange(x.size) < n, x, 0).sum(), (abs(f32(300)), 77)),
    "packed": (packed, (f32(90),)),
    "compressed": (lambda x: jnp.compress(x > 0, x, size=x.size, fill_value=0), (f32(90),)),
    "nonzero": (nonzero, (f32(90),)),
    "joined": (lambda x, y: jnp.concatenate([x, y[::-1], x + y])[5:-5], (f32(40), f32(40))),
    "padded": (lambda x: jnp.pad(x, 3) + jnp.roll(jnp.pad(x, 3), 5), (f32(60),)),
    "transposed": (lambda x: x.T + x.reshape(15, 10), (f32(10, 15),)),
    "long rows, short columns": (lambda x: (x.sum(0), x.max(0)), (f32(200, 3),)),
    "special": (lambda x: (jitcore.scipy.special.erf(x), jitcore.scipy.special.expit(x), lax.erf_inv(jnp.tanh(x)), lax.lgamma(abs(x)),
                           lax.round(x), lax.nextafter(x, 0 * x), lax.sign(x), lax.is_finite(x)), (f64(40),)),
    "random": (lambda: jitcore.random.normal(jitcore.random.key(0), (50,)), ()),
    "grad": (jitcore.grad(lambda x: (selu(x) ** 2).sum()), (f32(90),)),
    "grad of a loop": (jitcore.grad(lambda x: lax.scan(lambda c, v: (jnp.sin(c * v), c), x, jnp.arange(1.0, 5.0))[0]), (0.4,)),
    "called in a loop": (called_in_a_loop, (f64(4, 4),)),
    "nothing": (lambda x: (x, jnp.zeros((0, 3)), x[:0]), (f32(3),)),
    "no elements": (lambda x: (x.reshape(-1) + 1, jnp.cumsum(x), lax.sin(x).reshape(0, 5).T, x.sum(0)), (np.zeros((0, 3)),)),
    "edges of functions": (lambda x: (lax.lgamma(x), lax.digamma(x), lax.erf_inv(x)), (
        np.array([0, -1, -2.5, -0.0, 1, np.inf, np.nan, 1e308]),)),
    "complex constants": (lambda z: (jnp.where(z.real > 0, z, np.complex128(complex(np.nan, -np.inf))), z * (2 - 3j)), (
        np.array([1 + 2j, -1, 3j - 0.5]),)),
    "scalars": (lambda a, b: (a + b, a * b, jnp.where(a > b, a, b)), (1.5, np.float32(2))),
}
