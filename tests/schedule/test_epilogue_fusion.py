"""Epilogues of products and convolutions: what joins them, and that no bit depends on it."""

import jax
import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import config, debug, grad, jit, lax
from jitcore.backends.cpu.runtime import threads

RNG = np.random.default_rng(31)
JOINED = "and of what is finished:"

# Name -> what is done to a product p[m, n], with a bias[n], a column[m, 1], and a residual[m, n].
EPILOGUES = {
    "activation": lambda p, bias, column, residual: jnp.tanh(p),
    "bias and activation": lambda p, bias, column, residual: jnp.tanh(p + bias),
    "residual": lambda p, bias, column, residual: p + residual,
    "scaled rows": lambda p, bias, column, residual: p * column - bias,
    "cast": lambda p, bias, column, residual: (2 * p).astype(np.float16),
    "comparison": lambda p, bias, column, residual: p > bias,
    "two results": lambda p, bias, column, residual: (jnp.maximum(p, 0), p > 0),
    "result and product": lambda p, bias, column, residual: (p, jnp.exp(-p * p) + residual),
}


def draw(*shape, dtype=np.float64) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def flat(results) -> list[np.ndarray]:
    return [np.asarray(x) for x in (results if isinstance(results, (tuple, list)) else [results])]


def check(multiply, epilogue, operands, others, joins: bool = True) -> None:
    """What one program gives has the bits of two programs, the product and what is done to it."""
    function = jit(lambda operands, others: epilogue(multiply(*operands), *others))
    with config.override(check_jaxprs=True):
        got = flat(function(operands, others))
    assert (JOINED in function.inspect("loop program")) == joins
    product = np.asarray(jit(lambda operands: multiply(*operands))(operands))
    apart = flat(jit(lambda p, others: epilogue(p, *others))(product, others))
    for x, expected in zip(got, apart, strict=True):
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EPILOGUES)
def test_bits_are_those_of_a_separate_sweep(name, dtype):
    for m, k, n in [(40, 30, 64), (37, 90, 300), (3, 6000, 96), (300, 1100, 70)]:
        operands = draw(m, k, dtype=dtype), draw(k, n, dtype=dtype)
        others = draw(n, dtype=dtype), draw(m, 1, dtype=dtype), draw(m, n, dtype=dtype)
        if n == 70:  # rows that do not fill lanes: where nothing differs between rows, one loop is better
            check(lambda x, w: x @ w, EPILOGUES["bias and activation"], operands, others)
        else:
            check(lambda x, w: x @ w, EPILOGUES[name], operands, others)


@pytest.mark.parametrize("transposed", [(False, True), (True, False), (True, True)])
def test_packed_operands(transposed):
    m, k, n = 150, 1300, 1030
    shapes = (k, m) if transposed[0] else (m, k), (n, k) if transposed[1] else (k, n)

    def multiply(x, w):
        return (x.T if transposed[0] else x) @ (w.T if transposed[1] else w)

    operands = tuple(draw(*shape) for shape in shapes)
    check(multiply, EPILOGUES["bias and activation"], operands, (draw(n), None, None))


def test_batches():
    x, w, bias = draw(5, 30, 40), draw(5, 40, 64), draw(64)
    check(jnp.matmul, lambda p, bias: jnp.tanh(p + bias), (x, w), (bias,))
    check(jnp.matmul, lambda p, bias: jnp.tanh(p + bias), (x, w[0]), (bias,))
    check(jnp.matmul, lambda p, r: p * r, (x, w), (draw(5, 30, 1),))
    check(jnp.matmul, lambda p, r: p + r, (x, w), (draw(5, 30, 64),))
    check(jnp.matmul, lambda p, r: jnp.tanh(p + r), (x, w), (draw(5, 1, 64),))
    contract = lambda x, w: jnp.einsum("abc,cde->abde", x, w)  # noqa: E731
    check(contract, lambda p, r: jnp.maximum(p + r, 0), (draw(6, 7, 40), draw(40, 8, 16)), (draw(8, 16),))


@pytest.mark.parametrize(("numbers", "shapes", "bias"), [
    (("NHWC", "HWIO", "NHWC"), ((2, 15, 17, 16), (3, 3, 16, 64)), (64,)),
    (("NHWC", "HWIO", "NHWC"), ((1, 9, 9, 64), (3, 3, 64, 96)), (96,)),
    (("NCHW", "OIHW", "NCHW"), ((2, 16, 20, 64), (20, 16, 3, 3)), (20, 1, 1)),
])
def test_convolutions(numbers, shapes, bias):
    def convolve(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)

    operands = tuple(draw(*shape, dtype=np.float32) for shape in shapes)
    check(convolve, lambda p, bias: jnp.maximum(p + bias, 0), operands, (draw(*bias, dtype=np.float32),))


def test_what_stays_apart():
    x, w = draw(70, 50), draw(50, 96)
    sweeps = {
        "a sum over all": lambda p: p * p.sum(),
        "rows' sums": lambda p: p.sum(1),
        "softmax": lambda p: jnp.exp(p - p.max(1, keepdims=True)),
        "transposed": lambda p: p.T + 1,
        "shifted": lambda p: p[1:] - p[:-1],
        "reversed": lambda p: p[:, ::-1] * 2,
        "gathered": lambda p: p[jnp.arange(70)[::-1]] + 1,
    }
    for sweep in sweeps.values():
        check(lambda x, w: x @ w, sweep, (x, w), (), joins=False)
    check(lambda x, w: x @ w, lambda p: p + 1, (draw(70, 50), draw(50, 40)), (), joins=False)  # short rows


def test_the_result_takes_the_place_of_the_product():
    x, w, b = draw(80, 50), draw(50, 96), draw(96)
    one = jit(lambda x, w, b: jnp.tanh(x @ w + b))
    one(x, w, b)
    text = one.inspect("loop program")
    assert "out0 = product_f64(in0, in1" in text and ": temp f64" not in text
    two = jit(lambda x, w: (lambda p: (jnp.tanh(p), jnp.sin(p)))(x @ w))
    two(x, w)
    assert "tmp0 = product_f64(in0, in1" in two.inspect("loop program")


def test_a_result_that_python_reads_too_stays():
    x, w, seen = draw(80, 50), draw(50, 96), []
    function = jit(lambda x, w: (lambda p: (debug.callback(seen.append, p), jnp.tanh(p))[1])(x @ w))
    np.testing.assert_allclose(function(x, w), np.tanh(x @ w), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(np.asarray(seen[0]), x @ w, rtol=1e-12, atol=1e-12)


def test_other_statements_between():
    x, w = draw(80, 80), draw(80, 96)
    function = jit(lambda x, w: x @ w + jnp.tanh(x) @ w)
    np.testing.assert_allclose(function(x, w), x @ w + np.tanh(x) @ w, rtol=1e-12, atol=1e-12)
    assert function.inspect("loop program").count(JOINED) == 1
    function = jit(lambda x, w: (x @ w) * jnp.sum(x @ w, 1, keepdims=True))
    expected = (x @ w) * (x @ w).sum(1, keepdims=True)
    np.testing.assert_allclose(function(x, w), expected, rtol=1e-11, atol=1e-11)


def test_loops_and_memory_that_is_reused():
    a = draw(96, 96) / 12
    expected = held = a
    for _ in range(5):
        expected, held = np.tanh(expected @ a + 1), held + held @ a
    chain = jit(lambda a: lax.fori_loop(0, 5, lambda i, x: jnp.tanh(x @ a + 1), a))
    np.testing.assert_allclose(chain(a), expected, rtol=1e-12, atol=1e-13)
    assert JOINED in chain.inspect("loop program")
    grown = jit(lambda a: lax.fori_loop(0, 5, lambda i, x: x + x @ a, a))
    np.testing.assert_allclose(grown(a), held, rtol=1e-11, atol=1e-12)
    total = jit(lambda c, a: lax.fori_loop(0, 5, lambda i, c: c + a @ a, c))
    np.testing.assert_allclose(total(a, a), a + 5 * (a @ a), rtol=1e-12, atol=1e-12)
    given = a.copy()
    donated = jit(lambda x, w: jnp.tanh(x @ w), donate_argnums=0)
    np.testing.assert_allclose(donated(given, a), np.tanh(a @ a), rtol=1e-12, atol=1e-13)


@pytest.mark.machine_code
def test_threads_do_not_change_bits():
    x, w, b = draw(500, 90), draw(90, 600), draw(600)
    layer, before, results = jit(lambda x, w, b: jnp.tanh(x @ w + b)), threads.get_num_threads(), []
    try:
        for count in (1, 2, 7):
            threads.set_num_threads(count)
            results.append(np.asarray(layer(x, w, b)))
    finally:
        threads.set_num_threads(before)
    assert all(np.array_equal(results[0], other) for other in results[1:])
    assert JOINED in layer.inspect("loop program")
    np.testing.assert_allclose(results[0], np.tanh(x @ w + b), rtol=1e-12, atol=1e-13)


def test_gradients_of_layers():
    x, w, b = draw(64, 96), draw(96, 128) / 10, draw(128)

    def loss(w, b, x, tanh):
        return (tanh(x @ w + b) ** 2).sum()

    got = jit(grad(lambda w, b, x: loss(w, b, x, jnp.tanh), (0, 1)))(w, b, x)
    with jax.enable_x64(True):
        expected = jax.grad(lambda w, b, x: loss(w, b, x, jax.numpy.tanh), (0, 1))(w, b, x)
    for mine, theirs in zip(got, expected):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
