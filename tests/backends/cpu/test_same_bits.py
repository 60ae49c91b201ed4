"""The same call gives the same bits: wherever threads begin, however many there are, and in whichever piece of a
kernel's code an element is computed."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import grad, jit, lax, vmap

THREADS, CALLS = (1, 2, 8), 25


def iterate(x):
    def step(carry):
        n, y = carry
        return n + 1, y * y * 0.3 + x * y - y * x * 0.1

    return lax.while_loop(lambda carry: carry[0] < 10, step, (0, x))[1]


def iterate_until(a):
    def goes_on(carry):
        return (carry[0] < 10) & (abs(carry[1]) < 4)

    return lax.while_loop(goes_on, lambda carry: (carry[0] + 1, carry[1] * carry[1] - a * carry[1] + a), (0, a))[1]


#: On a vector, on rows of 7, on rows of 100, and on 100 rows.
VECTORS = {
    "gradient": grad(lambda x: (jnp.sin(x) * jnp.exp(-x * x)).sum()),
    "polynomial": lambda x: ((x * x + x) * x - x * x * 0.5) * x + x * x * jnp.cos(x),
    "sum": lambda x: (jnp.tanh(x) * x * (x + 1)).sum(),
    "norm": jnp.linalg.norm,
    "variance": jnp.var,
    "running sum": lambda x: jnp.cumsum(x * (x + 1)),
    "stencil": lambda x: x[1:-1] * 0.5 + x[2:] * x[:-2] * 0.25 - x[1:-1] * x[1:-1],
    "loop": iterate,
    "loop of lanes": vmap(iterate_until),
    "scattered": lambda x: jnp.zeros(50, x.dtype).at[jnp.arange(x.size) * 7 % 50].add(x * x),
    "complex": lambda x: abs((x + 1j) * (x - 2j * x) + (x * 2j) * x),
}
ROWS = {
    "softmax": lambda m: jnp.exp(m - m.max(1, keepdims=True)) / jnp.exp(m - m.max(1, keepdims=True)).sum(1)[:, None],
    "rows": lambda m: (m * m + m).sum(1),
    "columns": lambda m: (m * m + m).mean(0),
    "deviations": lambda m: (m * m + m).std(1),
    "product": lambda m: m @ m[0],
}


@pytest.mark.parametrize("size, dtype", [(9001, "float64"), (20_000, "float32"), (100_003, "float32"), (100_003, "float64")])
def test_calls_and_threads_do_not_change_bits(size, dtype):
    x = np.random.default_rng(size).normal(size=size).astype(dtype)
    shapes = [x[: size // 7 * 7].reshape(-1, 7), x[: size // 100 * 100].reshape(-1, 100),
              x[: size // 100 * 100].reshape(100, -1)]
    programs = [(name, f, x) for name, f in VECTORS.items()]
    programs += [(name, f, rows) for name, f in ROWS.items() for rows in shapes]
    for name, function, argument in programs:
        seen = set()
        for threads in THREADS:
            run = jit(function, compiler_options={"num_threads": threads})
            seen |= {np.asarray(run(argument)).tobytes() for _ in range(CALLS)}
        assert len(seen) == 1, (name, argument.shape)


def test_an_element_has_the_same_bits_in_a_vector_and_in_what_vectors_leave():
    x = np.random.default_rng(0).normal(size=300)
    for name in ("gradient", "polynomial", "stencil", "loop", "loop of lanes", "complex"):
        run = jit(VECTORS[name])
        whole = np.asarray(run(x))
        for size in (17, 31, 33, 100, 299):
            part = np.asarray(run(x[:size]))
            same = len(part) - (name == "stencil")
            assert (part[:same] == whole[:same]).all(), (name, size)


def test_a_product_that_is_needed_for_itself_is_rounded():
    x = np.random.default_rng(1).normal(size=1000)

    def subtract(x):
        square = x * x
        return square - square.max() * 0 - jnp.roll(jnp.roll(square, 1), -1), square

    assert (np.asarray(jit(subtract)(x)[0]) == 0).all()
