"""Whole programs on the CPU backend against eager execution: fusion, reductions, indexing, loops, sizes,
sharing of code."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import lax
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.native.libraries import code_cache


def normal(*shape, dtype=np.float32, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 3).astype(dtype)


def softmax(x, axis):
    e = jnp.exp(x - jnp.max(x, axis, keepdims=True))
    return e / jnp.sum(e, axis, keepdims=True)


def layernorm(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def collatz(n):
    def body(carry):
        n, steps = carry
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lax.while_loop(lambda carry: carry[0] != 1, body, (n, 0))


def newton(x):
    return lax.while_loop(lambda c: jnp.abs(c * c - x) > 1e-5, lambda c: 0.5 * (c + x / c), x)


def lorenz(state):
    def step(s, _):
        x, y, z = s
        new = jnp.stack([x + 0.1 * (y - x), y + 0.01 * (x * (28.0 - z) - y), z + 0.01 * (x * y - 8 / 3 * z)])
        return new, new

    return lax.scan(step, state, None, length=50)


def jacobi(x):
    def step(_, x):
        inner = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        return x.at[1:-1, 1:-1].set(inner)

    return lax.fori_loop(0, 10, step, x)


PROGRAMS = {
    "selu": (lambda x: 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67), [normal(1000)]),
    "softmax rows": (lambda x: softmax(x, 1), [normal(33, 70)]),
    "softmax columns": (lambda x: softmax(x, 0), [normal(33, 70)]),
    "softmax vector": (lambda x: softmax(x, 0), [normal(300_000)]),
    "layernorm": (layernorm, [normal(64, 100)]),
    "sum of much": (lambda x: x.sum(), [normal(700, 1001)]),
    "mean and maximum of much": (lambda x: (x.mean(), x.max(), (x * x).sum()), [normal(500_001)]),
    "sum rows": (lambda x: x.sum(1), [normal(999, 1001)]),
    "sum columns": (lambda x: x.sum(0), [normal(999, 1001)]),
    "sum outer and inner": (lambda x: x.sum((0, 2)), [normal(5, 77, 11)]),
    "sum middle": (lambda x: x.sum(1), [normal(5, 77, 11)]),
    "narrow rows": (lambda x: x.sum(1) + x.max(1), [normal(1000, 4)]),
    "narrow columns": (lambda x: x.sum(0), [normal(1000, 4)]),
    "variance": (lambda x: (x.var(), x.var(0), x.var(1)), [normal(100, 90)]),
    "argmax": (lambda x: (x.argmax(), x.argmax(0), x.argmin(1)), [normal(90, 101)]),
    "ties and nan": (lambda x: (x.argmax(), x.argmin(), x.max(), x.min()),
                     [np.array([1, 3, np.nan, 3, np.nan, 0], np.float32)]),
    "transpose add": (lambda x, y: x.T + y, [normal(130, 140), normal(140, 130)]),
    "reshape of transpose": (lambda x: x.T.reshape(30, 40) + 1, [normal(30, 40)]),
    "outer": (lambda x, y: jnp.exp(x)[:, None] * jnp.sin(y)[None, :], [normal(50), normal(60)]),
    "pairwise distance": (lambda p: jnp.sqrt(((p[:, None] - p[None]) ** 2).sum(-1)).sum(), [normal(300, 3)]),
    "stencil": (lambda x: x[1:-1, 1:-1] - 0.25 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]),
                [normal(100, 90)]),
    "cumsum": (lambda x: (jnp.cumsum(x, 0), jnp.cumsum(x, 1), jnp.cumsum(x)), [normal(30, 40)]),
    "concatenate": (lambda x, y: jnp.concatenate([x, y * 2, x], 1) + 1, [normal(3, 4), normal(3, 5)]),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=7) * 2, [normal(5, 4)]),
    "matmul small": (lambda x, y: jnp.tanh(x @ y), [normal(3, 4), normal(4, 5)]),
    "matmul": (lambda x, y, b: jnp.tanh(x @ y + b), [normal(64, 100), normal(100, 80), normal(80)]),
    "integer matmul": (lambda x, y: x @ y, [np.arange(12).reshape(3, 4), np.arange(8).reshape(4, 2)]),
    "gather": (lambda x, i: x[i] * 2, [normal(30, 5), np.array([1, 2, 40, -1], np.int32)]),
    "scatter add": (lambda x, i: x.at[i].add(1.0), [normal(30, 5), np.array([1, 2, 40, -1, 1], np.int32)]),
    "scatter set": (lambda x, i: x.at[i, 2].set(9.0), [normal(30, 5), np.array([1, 2, -1], np.int32)]),
    "dynamic slice": (lambda x, i: lax.dynamic_slice(x, (i, i), (2, 5)) + 1, [normal(30, 40), np.int32(37)]),
    "dynamic update": (lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 3)), [normal(9, 8), normal(2, 3), np.int32(8)]),
    "collatz": (collatz, [np.int32(27)]),
    "newton": (newton, [np.float32(2)]),
    "lorenz": (lorenz, [normal(3)]),
    "jacobi": (jacobi, [normal(20, 30)]),
    "fori with traced bound": (lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 0.5 + i, x), [normal(100), np.int32(7)]),
    "scan over rows reversed": (lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(3), x, reverse=True),
                                [normal(50, 3)]),
    "scan without iterations": (lambda x: lax.scan(lambda c, r: (c + r, c), 0.0, x), [normal(0)]),
    "cond": (lambda p, x: lax.cond(p, lambda x: x * 2, lambda x: jnp.sin(x), x), [np.bool_(True), normal(20)]),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), [np.int32(7), normal(20)]),
    "nested loops": (lambda x: lax.fori_loop(0, 4, lambda i, c: lax.fori_loop(0, i, lambda j, d: d + j * x, c), x),
                     [normal(5)]),
    "half": (lambda x: (jnp.exp(x).sum(0), x.mean(), x * 2), [normal(30, 40, dtype=np.float16)]),
    "float64": (lambda x: softmax(x, 1) + jnp.sin(x), [normal(30, 41, dtype=np.float64)]),
    "complex": (lambda x: (jnp.exp(1j * x) * x, jnp.abs(x + 1j)), [normal(100)]),
    "integers": (lambda x: (x // 3, x % 3, x >> 1, abs(x), x**3), [np.arange(-50, 50, dtype=np.int32)]),
    "bytes": (lambda x: (x + 200, x * 3, (x > 7).sum()), [np.arange(100, dtype=np.uint8)]),
    "empty": (lambda x: (x.sum(0), jnp.exp(x), x.sum(1)), [normal(0, 5)]),
    "scalars": (lambda x, y: (x * y + 2, jnp.sin(x)), [np.float32(3), np.float32(4)]),
    "an input returned": (lambda x: (x, x, x + 1), [normal(30)]),
    "a constant": (lambda x: (jnp.arange(5), jnp.float32(3), x), [normal(3)]),
    "a captured array": (lambda x: x + normal(7, seed=3), [normal(7)]),
    "no operation": (lambda x: x, [normal(7)]),
    "nothing": (lambda x: (), [normal(7)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    function, inputs = PROGRAMS[name]
    expected = jitcore.tree_util.tree_leaves(function(*map(jnp.asarray, inputs)))
    actual = jitcore.tree_util.tree_leaves(jitcore.jit(function, backend="cpu")(*inputs))
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected):
        a, e = np.asarray(a), np.asarray(e)
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        tolerance = {2: 5e-3, 4: 2e-5, 8: 1e-12}.get(a.dtype.itemsize, 1e-5) if a.dtype.kind in "fc" else 0
        if a.dtype.kind == "c":
            tolerance = 1e-5
        scale = (
            max(1.0, float(np.max(np.abs(e), initial=0, where=np.isfinite(e)))) if a.dtype.kind in "fc" else 1
        )
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(a.astype(wide), e.astype(wide), rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 1000])
def test_every_tail_length(size):
    x = normal(size)
    out = jitcore.jit(lambda x: (x * 2 + 1, x.sum(), jnp.max(x, initial=-9)))(x)
    np.testing.assert_allclose(np.asarray(out[0]), x * 2 + 1, rtol=1e-6)
    np.testing.assert_allclose(float(out[1]), x.astype(np.float64).sum(), rtol=1e-5, atol=1e-5)
    assert float(out[2]) == max(x.max(initial=-9), -9)


def test_another_shape_shares_the_code():
    code_cache.clear()
    f = jitcore.jit(lambda x: softmax(x, 1))
    f(normal(100, 200))
    compiled = f.cache_info().compiles
    for shape in ((300, 50), (64, 1000), (77, 99)):
        x = normal(*shape)
        np.testing.assert_allclose(
            np.asarray(f(x)), np.asarray(softmax(jnp.asarray(x), 1)), rtol=1e-5, atol=1e-7
        )
    assert f.cache_info().traces == 4
    # Where vectors are short, long rows are summed in more registers than short ones.
    assert compiled == 1 and f.cache_info().compiles <= (2 if host.native_vector_bytes() == 16 else 1)


def test_softmax_is_one_kernel():
    f = jitcore.jit(lambda x: softmax(x, 1))
    f(normal(64, 64))
    assert f.inspect("loop program").count("kernel") == 1


def test_selu_is_one_kernel_without_temporaries():
    f = jitcore.jit(PROGRAMS["selu"][0])
    f(normal(64))
    text = f.inspect("loop program")
    assert text.count("kernel") == 1
    assert "temp" not in text
    assert "call" not in text


def test_loops_of_single_numbers_are_loops():
    f = jitcore.jit(collatz)
    f(np.int32(27))
    text = f.inspect("loop program")
    assert text.count("while:") == 1 and "repeat" not in text and "call" not in text


def test_donated_memory_is_reused():
    f = jitcore.jit(lambda x, y: x * 2 + y, donate_argnums=0)
    x, y = jnp.array(normal(1000)), jnp.array(normal(1000, seed=1))
    address, expected = x.data.ctypes.data, np.asarray(x) * 2 + np.asarray(y)
    out = f(x, y)
    assert out.data.ctypes.data == address
    np.testing.assert_allclose(np.asarray(out), expected, rtol=1e-6)
    assert x.is_deleted()


def test_an_update_of_donated_memory_happens_in_place():
    f = jitcore.jit(lambda x, i: x.at[i].add(1.0), donate_argnums=0)
    x = jnp.array(normal(1000))
    address, expected = x.data.ctypes.data, np.asarray(x).copy()
    out = f(x, np.int32(7))
    expected[7] += 1
    np.testing.assert_array_equal(np.asarray(out), expected)
    assert out.data.ctypes.data == address
    assert "range(1000)" not in f.inspect("loop program")


@pytest.mark.parametrize("function", [lambda x: x[::-1] * 2, lambda x: x - x.mean(), lambda x: x + jnp.roll(x, 1)],
                         ids=["reversed", "minus mean", "rolled"])
def test_donation_never_changes_values(function):
    x = normal(1000)
    expected = np.asarray(function(jnp.asarray(x)))
    out = jitcore.jit(function, donate_argnums=0)(jnp.asarray(x.copy()))
    np.testing.assert_allclose(np.asarray(out), expected, rtol=1e-5, atol=1e-6)


def test_fastmath_is_an_option_and_close():
    x = normal(10_000)
    strict = jitcore.jit(lambda x: (jnp.exp(x) * 2 / 3).sum())(x)
    fast = jitcore.jit(lambda x: (jnp.exp(x) * 2 / 3).sum(), compiler_options={"fastmath": True})
    np.testing.assert_allclose(float(fast(x)), float(strict), rtol=1e-5)
    assert "reassoc" in fast.inspect("kernel")


def test_blocked_sums_are_as_accurate_as_numpys():
    x = np.random.default_rng(0).uniform(0, 1, 3_000_000).astype(np.float32)
    exact = x.astype(np.float64).sum()
    ours = abs(float(jitcore.jit(jnp.sum)(x)) - exact)
    assert ours <= max(abs(float(x.sum()) - exact), 1e-6 * exact)


def test_result_does_not_depend_on_threads():
    x = normal(1_000_003)
    parallel = jitcore.jit(lambda x: (x.sum(), jnp.sin(x)))(x)
    serial = jitcore.jit(lambda x: (x.sum(), jnp.sin(x)), compiler_options={"parallel": False})(x)
    for a, b in zip(parallel, serial):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_of_one_program(threads):
    x = normal(500_000)
    f = jitcore.jit(lambda x: (x * 2, x.sum()), compiler_options={"num_threads": threads})
    doubled, total = f(x)
    np.testing.assert_array_equal(np.asarray(doubled), x * 2)
    np.testing.assert_allclose(float(total), x.astype(np.float64).sum(), rtol=1e-4, atol=1e-2)
    assert ("jitcore_parallel_" in f.inspect("kernel")) == (threads > 1)


@pytest.mark.parametrize("read", [lambda x, i: x[i], lambda x, i: x[i[None]], lambda x, i: x.at[i].set(0.0),
                                  lambda x, i: lax.fori_loop(0, 2, lambda _, c: c + x[i], 0.0)])
def test_checked_bounds(read):
    x = normal(5)
    with jitcore.config.override(check_bounds=True):
        f = jitcore.jit(read)
        f(x, np.int32(4))
        with pytest.raises(IndexError, match="out of bounds"):
            f(x, np.int32(5))
        with pytest.raises(IndexError, match="out of bounds"):
            read(jnp.asarray(x), jnp.asarray(7))
    jitcore.jit(read)(x, np.int32(5))


def swap_rows(x, i):
    """Reads before and between updates; each sees the values of its own time."""
    first, last = x[0], x[-1]
    y = x.at[0].set(last * 2.0)
    middle = y[0] + x[1]
    y = y.at[-1].set(first)
    return y.at[i].add(middle), x * 0.5, y


def fibonacci(n):
    return lax.fori_loop(2, n.shape[0], lambda i, f: f.at[i].set(f[i - 1] + f[i - 2]), n)


def delayed_read(x):
    """The body's other result reads the carry as it was before the update."""

    def body(i, carry):
        values, total = carry
        late = values * 1.0
        values = values.at[i].set(100.0)
        return values.at[0].add(1.0), total + late.sum()

    return lax.fori_loop(1, 4, body, (x, 0.0))


def permuted_update(x):
    return lax.fori_loop(0, 3, lambda _, x: x.at[jnp.array([1, 2, 0])].set(x[:3]), x)


def two_carries(x):
    return lax.fori_loop(0, 3, lambda i, c: (c[1].at[i].set(7.0), c[0].at[i].add(1.0)), (x, x * 2))


@pytest.mark.parametrize("function, inputs", [
    (swap_rows, [normal(6, 4), np.int32(2)]), (fibonacci, [np.ones(20, np.float32)]), (delayed_read, [normal(9)]),
    (permuted_update, [normal(5)]), (two_carries, [normal(5)]), (jacobi, [normal(12, 13)]),
    (lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1].at[c[0]].set(c[1][c[0] + 1])), (0, x)),
     [normal(9)]),
], ids=lambda value: getattr(value, "__name__", None))
def test_updates_in_place_keep_the_meaning_of_copies(function, inputs):
    expected = jitcore.tree_util.tree_leaves(function(*map(jnp.asarray, inputs)))
    actual = jitcore.tree_util.tree_leaves(jitcore.jit(function)(*inputs))
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=1e-5, atol=1e-5)


def test_a_loop_that_fills_an_array_copies_nothing_per_step():
    f = jitcore.jit(fibonacci)
    f(np.ones(50, np.float32))
    loop = f.inspect("loop program").split("while:")[1].split("kernel (vector")[0]
    assert "range(" not in loop


@pytest.mark.parametrize("exponent", [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.5, 0.75])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_halves(exponent, dtype):
    x = np.array([-np.inf, -1.5, -0.0, 0.0, 1e-3, 0.3, 2, 17, 1e5, np.inf, np.nan], dtype)
    exponents = np.asarray(exponent, dtype)
    got = np.asarray(jitcore.jit(lambda x: lax.pow(x, exponents))(x))
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), np.full(x.shape, exponent))  # a scalar 0.5 is its square root
    np.testing.assert_allclose(got, expected.astype(dtype), rtol=4 * np.finfo(dtype).eps)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(expected)[known])


def test_what_an_inner_loop_reads_is_not_read_before_the_outer_one():
    """The sweep of the variance has run along the inner axis before."""
    x, y = (np.random.default_rng(seed).random(shape) for seed, shape in enumerate([(3, 2, 2), (2, 2)]))
    found = jitcore.jit(lambda x, y: (x.var(), jnp.tanh(x * x) + y))(x, y)
    for value, expected in zip(found, (x.var(), np.tanh(x * x) + y)):
        np.testing.assert_allclose(value, expected, rtol=1e-12)


@pytest.mark.parametrize("count", [20, 40, 200])
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_loops_may_carry_many_arrays(count, steps):
    """Their places stand in a table, which is copied where it is long."""

    def run(x, n, rows):
        return lax.fori_loop(0, n, lambda _, rows: [row[::-1] + x for row in rows], rows)

    def scan(x, rows):
        return lax.scan(lambda rows, v: ([row * v for row in rows[1:]] + rows[:1], rows[0].sum()), rows, x)

    rows, x = [np.arange(3.0) + k for k in range(count)], np.array([1.0, 2.0, 0.5])
    for function, args in ((run, (x, steps, rows)), (scan, (x[:steps], rows))):
        found, expected = jitcore.jit(function)(*args), jitcore.jit(function, backend="reference")(*args)
        for one, other in zip(jitcore.tree.leaves(found), jitcore.tree.leaves(expected)):
            np.testing.assert_allclose(one, other)
