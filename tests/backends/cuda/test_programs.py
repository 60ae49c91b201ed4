"""Programs as kernels on the CUDA device in software, against the reference: values, dtypes, mappings."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.tree_util import tree_leaves

DEVICE = "cuda:emulated"
RNG = np.random.default_rng(7)


def softmax(x):
    e = jnp.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def jacobi(x):
    return lax.fori_loop(0, 5, lambda _, u: u.at[1:-1].set((u[2:] + u[:-2]) / 2), x)


def lorenz(x):
    def step(state, _):
        a, b, c = state
        new = jnp.stack([a + 0.01 * 10 * (b - a), b + 0.01 * (a * (28 - c) - b), c + 0.01 * (a * b - 8 / 3 * c)])
        return new, new

    return lax.scan(step, x, None, length=20)


def collatz(x):
    def run(carry):
        n, count = carry
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return jitcore.vmap(lambda n: lax.while_loop(lambda c: c[0] > 1, run, (n, 0))[1])(x)


def mandelbrot(c):
    step = lambda _, z: jnp.where(jnp.abs(z) < 2, z * z + c, z)  # noqa: E731
    return lax.fori_loop(0, 30, step, jnp.zeros_like(c))


def draw(*shape, dtype="float64", scale=1.0):
    return (RNG.standard_normal(shape) * scale).astype(dtype)


#: (function, arguments, mappings of its kernels).
PROGRAMS = {
    "selu": (selu, [draw(1003, dtype="float32")], "flat"),
    "selu f64": (selu, [draw(64, 30)], "flat"),
    "selu f16": (selu, [draw(1000, dtype="float16")], "flat"),
    "broadcast": (lambda x, y: x[:, None] * y + 1, [draw(40), draw(28)], "flat"),
    "transposed": (lambda x: x + x.T, [draw(33, 33)], "turned"),
    "transposed batch": (lambda x: jnp.swapaxes(x, 1, 2) * 2 + jnp.sin(x), [draw(2, 70, 70)], "turned"),
    "transposed complex": (lambda x: x.T.conj(), [draw(40, 50) * 1j], "turned"),
    "strided": (lambda x: x[::2] - x[::-2], [draw(101)], "flat"),
    "complex": (lambda x: jnp.exp(1j * x) * (2 + x), [draw(300)], "flat"),
    "bool": (lambda x: (x > 0) ^ (x < 1), [draw(99)], "flat"),
    "softmax of 7": (softmax, [draw(50, 7)], "flat"),
    "softmax of 20": (softmax, [draw(30, 20)], "rows"),
    "softmax of 200": (softmax, [draw(9, 200, dtype="float32")], "rows"),
    "softmax of 1000": (softmax, [draw(5, 1000, dtype="float32")], "rows"),
    "softmax of 5000": (softmax, [draw(5000, dtype="float32")], "rows rows flat"),
    "sum": (lambda x: x.sum(), [draw(100_000, dtype="float32")], "rows rows"),
    "sum of integers": (lambda x: x.sum(), [RNG.integers(-9, 9, 70_000)], "rows rows"),
    "sum of columns": (lambda x: x.sum(0), [draw(300, 70)], "columns"),
    "sum of parts of columns": (lambda x: x.sum(0), [draw(6000, 16, dtype="float32", scale=0.1)], "columns columns"),
    "sum of rows": (lambda x: x.sum(1), [draw(70, 300)], "rows"),
    "all of rows": (lambda x: (x > -3).all(1), [draw(20, 300)], "rows"),
    "product": (lambda x: jnp.prod(1 + x * 1e-3), [draw(50, 50)], "rows"),
    "complex sum": (lambda x: (x * 1j).sum(0), [draw(300, 40)], "columns"),
    "argmax": (jnp.argmax, [draw(100_000)], "rows rows"),
    "argmax of rows": (lambda x: jnp.argmax(x, 1), [RNG.integers(0, 9, (30, 500))], "rows"),
    "argmin of columns": (lambda x: jnp.argmin(x, 0), [RNG.integers(0, 9, (500, 30))], "columns"),
    "variance": (lambda x: x.var(1), [draw(20, 300)], "rows"),
    "no elements": (lambda x: (x.reshape(-1) + 1, jnp.cumsum(x), lax.sin(x).reshape(0, 5).T, x.sum(0)), [draw(0, 3)], None),
    "cumsum": (jnp.cumsum, [draw(70_000)], "pieces finish pieces"),
    "cumsum backwards": (lambda x: lax.cumsum(x, reverse=True), [draw(70_000)], "pieces finish pieces"),
    "cumsum of rows": (lambda x: jnp.cumsum(x, 1), [draw(20, 300)], "rows"),
    "cumsum of columns": (lambda x: jnp.cumsum(x, 0), [draw(300, 20)], "rows"),
    "cumulative maximum": (lambda x: lax.cummax(x, 1), [draw(5, 100)], "rows"),
    "compress": (lambda x: jnp.compress(x > 0, x, size=500), [draw(700)], None),
    "product of matrices": (lambda x, y: jnp.tanh(x @ y), [draw(100, 70), draw(70, 90)], "tiles"),
    "of small matrices": (lambda x, y: x @ y, [draw(5, 3), draw(3, 4)], "flat"),
    "transposed product": (lambda x, y: x.T @ y.T, [draw(40, 33), draw(50, 40)], "turned tiles"),
    "batch of products": (lambda x, y: x @ y, [draw(3, 20, 16), draw(3, 16, 24)], "tiles"),
    "product of halves": (lambda x, y: jnp.tanh(x @ y), [draw(50, 70, dtype="float16"), draw(70, 40, dtype="float16")], "tiles"),
    "integer product": (lambda x, y: x @ y, [RNG.integers(-9, 9, (20, 30)), RNG.integers(-9, 9, (30, 20))], "tiles"),
    "matrix times vector": (lambda x, y: x @ y, [draw(100, 200), draw(200)], "rows"),
    "convolution": (lambda x: jnp.convolve(x, x[:31], "same"), [draw(500)], None),
    "gather": (lambda x, i: x[i], [draw(100), RNG.integers(0, 100, 50)], "flat"),
    "counts": (lambda i: jnp.zeros(10, int).at[i].add(1), [RNG.integers(0, 10, 1000)], "flat flat"),
    "many counts": (lambda i: jnp.zeros(10, int).at[i].add(1), [RNG.integers(0, 10, 3000)], "flat private"),
    "many sums": (lambda x, i: jnp.zeros(10).at[i].add(x), [draw(3000), RNG.integers(0, 10, 3000)], "flat private flat flat"),
    "histogram": (lambda x: jnp.histogram(x, bins=11, range=(-2, 2))[0], [draw(3000)], None),
    "scatter-add": (lambda x, i: jnp.zeros(10).at[i].add(x), [draw(200), RNG.integers(0, 10, 200)], None),
    "scatter-add of rows": (lambda x, i: jnp.zeros((10, 7)).at[i].add(x), [draw(50, 7), RNG.integers(-3, 14, 50)], None),
    "scatter-max": (lambda x, i: jnp.zeros(10).at[i].max(x), [draw(200), RNG.integers(0, 10, 200)], None),
    "last one wins": (lambda x, i: jnp.zeros(10).at[i].set(x), [draw(200), RNG.integers(0, 10, 200)], None),
    "sort": (jnp.sort, [draw(3, 3000)], "sort"),
    "sort by digits": (jnp.sort, [RNG.integers(-99, 99, 9000).astype("i1")], "sort sort sort sort"),
    "argsort by digits": (jnp.argsort, [RNG.integers(-9, 9, 9000).astype("i1")], "sort sort sort sort flat"),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 1.5 + 1), (0, x)),
              [draw(100)], None),
    "loop of scalars": (lambda x: lax.fori_loop(0, 50, lambda i, c: c * 0.9 + i, x), [np.float64(2.0)], "loop"),
    "Lorenz": (lorenz, [np.ones(3)], None),
    "Jacobi": (jacobi, [draw(64)], None),
    "Collatz": (collatz, [np.arange(1, 60)], None),
    "Mandelbrot": (mandelbrot, [draw(12, 15) + 1j * draw(12, 15)], None),
    "large while": (lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] @ c[1]), (0, x)),
                    [draw(40, 40, scale=0.1)], None),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), [draw(100)], None),
    "random": (lambda x: jitcore.random.uniform(jitcore.random.key(0), (500,)) + x, [draw(1)], None),
    "derivative": (jitcore.grad(lambda x: selu(x).sum()), [draw(500)], None),
}


def compute(function, args, backend):
    return tree_leaves(jit(function, backend=backend)(*args))


@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_the_reference(name):
    function, args, kinds = PROGRAMS[name]
    found, expected = (compute(function, args, backend) for backend in (DEVICE, "reference"))
    for one, other in zip(found, expected, strict=True):
        assert (one.shape, one.dtype, one.weak_type) == (other.shape, other.dtype, other.weak_type)
        one, other = np.asarray(one), np.asarray(other)
        tolerance = {2: 1e-3, 4: 2e-6}.get(one.dtype.itemsize, 1e-12) if one.dtype.kind in "fc" else 0
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=10 * tolerance)
    if kinds is not None:
        text = jit(function, backend=DEVICE).lower(*args).compile().runtime_executable().texts()["mapping"]()
        assert [line.split(": ")[1].split(",")[0] for line in text.splitlines()] == kinds.split()


def test_donated_memory_is_reused():
    x = jitcore.device_put(np.ones(100), jitcore.devices(DEVICE)[0])
    address = x.buffer.address
    y = jit(lambda x: x + 1, donate_argnums=0)(x)
    assert y.buffer.address == address and x.is_deleted() and np.all(np.asarray(y) == 2)


def test_no_elements():
    for shape in ((0,), (0, 3), (3, 0)):
        x = np.ones(shape)
        assert np.asarray(jit(lambda x: jnp.exp(x), backend=DEVICE)(x)).shape == shape
        np.testing.assert_array_equal(jit(lambda x: x.sum(0), backend=DEVICE)(x), x.sum(0))
        np.testing.assert_array_equal(jit(lambda x: x.sum(-1), backend=DEVICE)(x), x.sum(-1))


def test_symbolic_sizes():
    f = jit(lambda x: x * 2 + x.sum(), abstracted_axes=({0: "n"},), backend=DEVICE)
    for size in (3, 50):
        np.testing.assert_allclose(f(np.arange(float(size))), np.arange(size) * 2 + size * (size - 1) / 2)
