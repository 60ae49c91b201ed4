"""Derivatives where a convention decides, against JAX: ties, kinks, zeros, infinities, NaN, every floating dtype;
and gradients through selections that stay finite where JAX's do not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from jitcore import grad, hessian, jit, jvp, lax, nn, numpy as jnp, ops, vjp, vmap
from jitcore.scipy import special
from tests.jax_answers import jax

jax_lax = jax.lax

POINTS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 7.0, np.inf, -np.inf, np.nan)
PAIRS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, np.inf, -np.inf, np.nan)
COMPLEX_POINTS = (0, 1, -1, 0.5 + 0.25j, -0.5 + 0.25j, 0.3 - 2j, -2 - 0.7j, 1.5j, 2 + 0.1j)
UNARY = """
    neg sign abs square exp exp2 expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    sqrt rsqrt cbrt logistic erf erfc erf_inv lgamma digamma floor ceil bessel_i0e bessel_i1e reciprocal
""".split()
COMPLEX = """
    neg sign abs square exp expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh atanh sqrt rsqrt
    logistic real imag conj reciprocal
""".split()
BINARY = ("add", "sub", "mul", "div", "rem", "max", "min", "pow", "atan2")
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 2e-5}

# Points at which jitcore's derivative is another one, and why.
EXCEPTIONS = {
    # outside of the domain
    "acosh": (-1.0,),
    # NaN stays NaN
    "bessel_i1e": (np.nan,),
    # lgamma and its derivatives at poles and infinities are SciPy's
    "lgamma": (0.0, -1.0, -np.inf, np.inf), "digamma": (0.0, -1.0, -np.inf, np.inf),
}


def tangents(jvp_function, function, operands) -> list[np.ndarray]:
    """The derivatives of an elementwise function by each operand."""
    found = []
    for place in range(len(operands)):
        directions = [np.ones_like(x) if i == place else np.zeros_like(x) for i, x in enumerate(operands)]
        found.append(np.asarray(jvp_function(function, tuple(operands), tuple(directions))[1]))
    return found


def cotangents(vjp_function, function, operands) -> list[np.ndarray]:
    out, pull_back = vjp_function(function, *operands)
    return [np.asarray(x) for x in pull_back(np.ones(out.shape, out.dtype))]


def compare(name, operands, keep=slice(None)):
    ours, theirs = getattr(lax, name), getattr(jax_lax, name)
    tolerance = TOLERANCE[operands[0].dtype.name]
    with np.errstate(all="ignore"):
        for run, jax_run, of in ((jvp, jax.jvp, tangents), (vjp, jax.vjp, cotangents)):
            for got, want in zip(of(run, ours, operands), of(jax_run, theirs, operands), strict=True):
                assert got.dtype == want.dtype
                wide = np.complex128 if got.dtype.kind == "c" else np.float64
                np.testing.assert_allclose(
                    got.astype(wide)[keep], want.astype(wide)[keep], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name, dtype", [(name, dtype) for dtype in ("float32", "bfloat16") for name in UNARY]
                         + [(name, "float16") for name in ("exp", "tanh", "sqrt", "erf_inv", "digamma")])
def test_unary_at_special_points(name, dtype):
    points = np.array(POINTS)
    excepted = [(points == x) | (np.isnan(points) & np.isnan(x)) for x in EXCEPTIONS.get(name, ())]
    keep = ~np.any(excepted, axis=0) if excepted else slice(None)
    compare(name, [points.astype(np.dtype(dtype))], keep)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", BINARY)
def test_binary_at_special_points(name, dtype):
    x, y = (part.ravel().astype(np.dtype(dtype)) for part in np.meshgrid(PAIRS, PAIRS))
    compare(name, [x, y], (y != 0) | (name != "pow"))  # x ** 0 is constant at 0 and infinity too


@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name):
    compare(name, [np.array(COMPLEX_POINTS, np.complex64)])


# -- folds --------------------------------------------------------------------------------------------------
TIES = np.array([[3, 1, 3, 0], [3, 2, 3, 3], [-1, np.inf, np.inf, 2]], np.float32)
ZEROS = np.array([[2, 0, 3, -1], [0, 4, 0, 1], [1, 2, 3, 4], [0, 0, 0, 0]], np.float32)


def check_gradient(ours, theirs, *operands, tolerance=1e-5):
    """Tangents along ones and cotangents of ones, eager and compiled."""
    ones = tuple(map(np.ones_like, operands))
    want = jax.jvp(theirs, operands, ones)[1]
    out, pull_back = jax.vjp(theirs, *operands)
    cts = pull_back(np.ones(out.shape, out.dtype))
    for wrap in (lambda f: f, jit):
        got = wrap(lambda *xs: jvp(ours, xs, ones)[1])(*operands)
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tolerance, atol=tolerance)
        found = wrap(lambda *xs: vjp(ours, *xs)[1](np.ones(out.shape, out.dtype)))(*operands)
        for x, y in zip(found, cts, strict=True):
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


def weights(shape) -> np.ndarray:
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_prod", "reduce_sum"])
def test_reductions_of_ties_and_zeros(name, axes):
    for x in (TIES[:2], ZEROS):
        w = weights(getattr(jax_lax, name)(x, axes).shape)
        check_gradient(
            lambda v: getattr(lax, name)(v, axes) * w, lambda v: getattr(jax_lax, name)(v, axes) * w, x
        )


def test_extremum_of_infinities_and_nan():
    for x in (TIES[2], np.array([1, np.nan, 2], np.float32)):
        check_gradient(lambda v: lax.reduce_max(v, (0,)), lambda v: jax_lax.reduce_max(v, (0,)), x)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_running_folds_of_ties_and_zeros(name, reverse):
    for x in (TIES[:1], ZEROS[:2], np.array([[-np.inf, 2, 1, -np.inf]], np.float32)):
        if name == "cumprod" and np.isinf(x).any():
            continue
        if name == "cumlogsumexp" and np.isinf(x[0, -1 if reverse else 0]):
            continue  # the logarithm of an empty sum: JAX's derivative is NaN from there on
        w = weights(x.shape)
        check_gradient(lambda v: getattr(lax, name)(v, 1, reverse) * w,
                       lambda v: getattr(jax_lax, name)(v, 1, reverse) * w, x)


def test_running_extremum_of_many_ties():
    """A half at each step from one element to the next; JAX's parts depend on how it groups the elements."""
    last = jit(grad(lambda x: lax.cummax(x)[-1]))(np.ones(4, np.float32))
    assert list(last) == [0.125, 0.125, 0.25, 0.5]


def test_running_product_of_infinity_and_nan():
    x = np.array([np.inf, 2, np.nan, 3], np.float32)
    tangent = np.asarray(jvp(lax.cumprod, (x,), (np.ones(4, np.float32),))[1])
    assert list(tangent[:2]) == [1, np.inf] and np.isnan(tangent[2:]).all()


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("computation, initial", [("add", 0.0), ("max", -np.inf), ("min", np.inf)])
def test_pooling(computation, initial, padding):
    x = np.random.default_rng(0).integers(0, 4, (2, 7, 6, 3)).astype(np.float32)
    window, strides = (1, 3, 2, 1), (1, 2, 2, 1)
    shape = jax_lax.reduce_window(x, initial, getattr(jax_lax, computation), window, strides, padding).shape
    w = weights(shape)

    def pool(module):
        return lambda v: (
            module.reduce_window(
                v, np.float32(initial), getattr(module, computation), window, strides, padding
            )
            * w
        )

    check_gradient(pool(lax), pool(jax_lax), x)
    check_gradient(vmap(pool(lax)), jax.vmap(pool(jax_lax)), np.stack([x, x[:, ::-1]]))


def test_associative_scan():
    a, b = np.random.default_rng(1).standard_normal((2, 9)).astype(np.float32)

    def combine(first, second):
        return first[0] * second[0], first[1] * second[0] + second[1]

    check_gradient(lambda *ab: lax.associative_scan(combine, ab)[1],
                   lambda *ab: jax_lax.associative_scan(combine, ab)[1], a, b)


@pytest.mark.parametrize("low, high", [(0.0, 1.0), (0.5, 0.5)])
def test_clamp_at_its_bounds(low, high):
    x = np.array([-1, 0, 0.5, 1, 2, np.nan], np.float32)
    bounds = np.full_like(x, low), np.full_like(x, high)
    check_gradient(
        lambda a, v, b: lax.clamp(a, v, b), lambda a, v, b: jax_lax.clamp(a, v, b), bounds[0], x, bounds[1]
    )
    check_gradient(
        lambda v: lax.clamp(low, v, high), lambda v: jax_lax.clamp(np.float32(low), v, np.float32(high)), x
    )


@pytest.mark.parametrize("y", [-2, -1, 0, 1, 2, 3, 7])
def test_integer_powers(y):
    x = np.array([0, -0.0, 1, -2, 0.5, np.inf, np.nan], np.float32)
    check_gradient(lambda v: lax.integer_pow(v, y), lambda v: jax_lax.integer_pow(v, y), x)


def test_conversions():
    x = np.array([1.5, -2.25], np.float32)
    for dtype in (np.complex64, np.float16, ml_dtypes.bfloat16):
        check_gradient(
            lambda v: lax.convert_element_type(v, dtype), lambda v: jax_lax.convert_element_type(v, dtype), x
        )
    z = np.array([1.5 + 2j, -1j], np.complex64)
    check_gradient(lambda v: lax.convert_element_type(v, np.float32), jax_lax.real, z)
    assert jvp(lambda v: lax.convert_element_type(v, np.int32), (x,), (x,))[1].dtype.names == ("float0",)


@pytest.mark.parametrize("x", [2.0, -2.0, 0.0])
@pytest.mark.parametrize("y", [3.0, -3.0])
def test_copysign(x, y):
    assert float(grad(jnp.copysign)(x, y)) == float(jax.grad(jax.numpy.copysign)(x, y))


# -- selections ---------------------------------------------------------------------------------------------
def safe_sqrt(x):
    return jnp.where(x > 0, jnp.sqrt(x), 0.0)


def chain(x):
    return jnp.where(x > 0, 2 * jnp.log(x) * x + jnp.sqrt(3 * x) / x, x)


def nested(x):
    return jnp.where(x < 4, jnp.where(x > 0, x * jnp.log(x), 1 / (x - 4)), 0.0)


def both_cases(x):
    return jnp.where(x > 1, jnp.sqrt(x - 1), jnp.log(2 - x))


def norm(x):
    squares = jnp.sum(x * x)
    return jnp.where(squares > 0, jnp.sqrt(squares), 0.0)


@jit
def jitted_root(x):
    return jnp.sqrt(x) * 2


SELECTIONS = {
    # function, points, the derivative there
    "sqrt": (safe_sqrt, [0.0, -1.0, 4.0, -0.0, np.nan], [0, 0, 0.25, 0, 0]),
    "log": (lambda x: jnp.where(x > 0, jnp.log(x), 0.0), [0.0, -1.0, 2.0], [0, 0, 0.5]),
    "chain": (chain, [0.0, -3.0, 1.0], [1, 1, 2 - np.sqrt(3) / 2]),
    "nested": (nested, [0.0, 5.0, 4.0, 1.0], [-1 / 16, 0, 0, 1]),
    "both cases": (both_cases, [1.0, 2.0, 0.0], [-1, 0.5, -0.5]),
    "jitted case": (lambda x: jnp.where(x > 0, jitted_root(x), x), [0.0, -1.0, 4.0], [1, 1, 0.5]),
    "power": (lambda x: jnp.where(x > 0, x**-0.5, x), [0.0, 1.0], [1, -0.5]),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_gradient_of_a_selection_is_finite(name):
    """What is not selected has no part in the derivative, whatever its own derivative is."""
    function, points, expected = SELECTIONS[name]
    points = np.array(points)
    with np.errstate(all="ignore"):
        for derivative in (grad(function), jit(grad(function)), grad(jit(function))):
            np.testing.assert_allclose([float(derivative(x)) for x in points], expected, rtol=1e-12)
        total = lambda x: jnp.sum(function(x))  # noqa: E731
        for derivative in (grad(total), jit(grad(total)), vmap(grad(function))):
            np.testing.assert_allclose(np.asarray(derivative(points)), expected, rtol=1e-12)
        np.testing.assert_allclose(np.asarray(jvp(function, (points,), (np.ones_like(points),))[1]), expected)


POWERS = (0.0, -0.0, 2.0, -2.0, np.inf)


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_slopes_of_powers_at_zero(k):
    """The exponent is traced, an int or a float; that of x ** 0 is zero everywhere, of each order."""
    first, second = (lambda x: k * x ** (k - 1) if k else 0.0), lambda x: k * (k - 1) * x ** (k - 2) if k > 1 else 0.0
    power = lambda x, y: x**y  # noqa: E731
    for x in POWERS:
        for exponent in (k, float(k), np.int64(k)):
            np.testing.assert_allclose(float(jit(grad(power))(x, exponent)), first(x))
            if np.isfinite(x):
                np.testing.assert_allclose(float(jit(grad(grad(power)))(x, exponent)), second(x))
    assert float(grad(lambda x: (x ** jnp.arange(3)).sum())(0.0)) == 1
    assert float(grad(lambda x: lax.fori_loop(0, 4, lambda i, s: s + x**i, 0.0))(0.0)) == 1


def test_even_derivatives_of_removable_singularities():
    """At 0 and close to it: those of sinc are (-1)**n pi**2n / (2n + 1), those of the Bessel functions fractions."""
    sinc, i0, i1 = ([f] for f in (jnp.sinc, special.i0, special.i1))
    for functions in (sinc, i0, i1):
        for _ in range(4):
            functions.append(grad(functions[-1]))
    for x in (0.0, 1e-9, 1e-5, -1e-5):
        x = np.float64(x)
        np.testing.assert_allclose([float(f(x)) for f in sinc[::2]], [1, -np.pi**2 / 3, np.pi**4 / 5], rtol=1e-4)
        np.testing.assert_allclose([float(f(x)) for f in sinc[1::2]], [0, 0], atol=1e-2)
    np.testing.assert_allclose([float(f(np.float64(0))) for f in i0], [1, 0, 1 / 2, 0, 3 / 8], atol=1e-12)
    np.testing.assert_allclose([float(f(np.float64(0))) for f in i1], [0, 1 / 2, 0, 3 / 8, 0], atol=1e-12)
    np.testing.assert_allclose([float(grad(jnp.i0)(0.0)), float(grad(grad(jnp.i0))(0.0))], [0, 1 / 2])


def test_second_derivative_of_a_selection_is_finite():
    for function in (safe_sqrt, lambda x: jnp.where(x > 0, x * jnp.log(x), 0.0)):
        assert grad(grad(function))(0.0) == 0 == jit(grad(grad(function)))(-1.0)


def test_norm_at_zero():
    assert np.array_equal(grad(norm)(np.zeros(3)), np.zeros(3))
    np.testing.assert_allclose(np.asarray(grad(norm)(np.array([3.0, 4.0]))), [0.6, 0.8])


def test_selected_case_keeps_its_infinities():
    assert np.isinf(float(grad(lambda x: jnp.where(x >= 0, jnp.sqrt(x), 0.0))(0.0)))


def test_selection_by_a_single_number_needs_no_second_one():
    """The case is selected behind a sum, whose slope is infinite where it is not."""
    naive = lambda x: jnp.sum(jnp.where(x.sum() > 0, x / jnp.sqrt(x.sum()), 0.0))  # noqa: E731

    def double(x):
        total = jnp.where(x.sum() > 0, x.sum(), 1.0)
        return jnp.sum(jnp.where(x.sum() > 0, x / jnp.sqrt(total), 0.0))

    with np.errstate(all="ignore"):
        for function in (naive, double):
            assert np.array_equal(grad(function)(np.zeros(2)), np.zeros(2))


# At (0, 1, 4), of which the square root has an infinite slope at 0.
NOT_TAKEN = {
    "maximum": lambda r: jnp.maximum(r, 0.5), "clip": lambda r: jnp.clip(r, 0.5, 9.0),
    "minimum": lambda r: jnp.minimum(-r, -0.5), "relu": lambda r: nn.relu(r - 0.5),
    "largest": lambda r: r.max(), "smallest": lambda r: (-r).min(), "rows": lambda r: r.reshape(1, 3).max(1),
    "sort": lambda r: jnp.sort(r)[1:], "top_k": lambda r: lax.top_k(r, 2)[0], "median": jnp.median,
    "cummax": lambda r: lax.cummax(jnp.concatenate([jnp.array([9.0]), r])), "quantile": lambda r: jnp.quantile(r, 0.9),
    "pooling": lambda r: lax.reduce_window(r, -jnp.inf, lax.max, (2,), (1,), "VALID"),
    "index": lambda r: r[1] * r[2], "negative index": lambda r: r[-1], "slice": lambda r: r[1:],
    "places": lambda r: r[np.array([1, 2, 1])], "mask": lambda r: r[np.array([False, True, True])],
    "traced place": lambda r: lax.dynamic_slice(r, (jnp.argmax(r),), (1,)), "take": lambda r: jnp.take(r, 1),
    "set": lambda r: r.at[0].set(1.0), "set slice": lambda r: r.at[:1].set(2.0),
    "set mask": lambda r: r.at[r == 0].set(1.0), "set places": lambda r: r.at[np.array([0])].set(2.0),
    "at max": lambda r: r.at[0].max(1.0), "split": lambda r: jnp.split(r, [1])[1], "unpacked": lambda r: list(r)[1],
    "between": lambda r: (2 * jnp.exp(r) / 3)[1:], "reshape": lambda r: r.reshape(1, 3)[:, 1:],
    "transpose": lambda r: jnp.stack([r, r]).T[1:], "concatenate": lambda r: jnp.concatenate([r, r])[4:],
    "broadcast": lambda r: jnp.broadcast_to(r, (2, 3))[:, 1:], "sum": lambda r: jnp.maximum(r.reshape(3, 1).sum(1), 0.5),
    "reverse": lambda r: jnp.flip(r)[:2], "jit": lambda r: jit(lambda v: v[1:])(r), "diff": lambda r: jnp.diff(r)[1:],
    "two selections": lambda r: jnp.where(r > 0, r, 0.0) + jnp.where(r > 1, 2 * r, 0.0),
    "vmap": lambda r: vmap(lambda v: v[1:])(r.reshape(1, 3)), "segments": lambda r: ops.segment_max(r, np.zeros(3, int), 1),
}


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_infinite_slope_of_what_is_not_taken(name):
    """It has no part in the derivative, whatever leaves it out: the derivative is that beside the point."""
    total = lambda x: jnp.sum(NOT_TAKEN[name](jnp.sqrt(x)))  # noqa: E731
    x, close = np.array([0.0, 1.0, 4.0]), np.array([1e-12, 1.0, 4.0])
    expected = np.array(grad(total)(close))
    if name != "diff":
        expected[0] = 0
    with np.errstate(all="ignore"):
        for derivative in (grad(total), jit(grad(total))):
            np.testing.assert_allclose(np.asarray(derivative(x)), expected, rtol=1e-6)
        for direction, slope in zip(np.eye(3), expected):
            np.testing.assert_allclose(float(jvp(total, (x,), (direction,))[1]), slope, rtol=1e-6)


def test_second_derivative_where_the_first_is_zero():
    """A cotangent that is zero by its value alone still has a derivative, also behind what leaves elements out."""
    for take in (lambda v: v[1:], lambda v: v[np.array([1, 2])], lambda v: jnp.sort(v)[:2], lambda v: v.at[0].set(1.0)):
        total = lambda x: jnp.sum(take(jnp.sin(x)) ** 2)  # noqa: E731, B023
        found = np.asarray(jit(hessian(total))(np.zeros(3)))
        assert np.array_equal(found, np.diag(np.diag(found))) and np.diag(found).sum() == 4
    z = np.array([1 + 2j, 0, 2j])
    np.testing.assert_allclose(jit(grad(lambda v: jnp.sqrt(v)[::2].real.sum()))(z)[1], 0)


def test_products_keep_zeros_only_behind_what_leaves_elements_out():
    """And only where a factor may be infinite."""
    for function, count in ((lambda x: jnp.sum(2 * x[1:]), 0), (lambda x: jnp.sum(jnp.sqrt(x)[1:]), 1)):
        derivative = jit(grad(function))
        derivative(np.ones(10))
        assert derivative.inspect("optimized jaxpr").count("mul_sparse") == count


@pytest.mark.cpu
def test_gradient_of_two_cases_is_one_selection():
    selu = lambda x: jnp.sum(jnp.where(x > 0, x, 1.67 * (jnp.exp(x) - 1)))  # noqa: E731
    derivative = jit(grad(selu))
    derivative(np.linspace(-1, 1, 100))
    text = derivative.inspect("loop program")
    assert text.count("kernel") == 1 and text.count("select(") == 1


@pytest.mark.cpu
def test_backward_of_an_elementwise_chain_is_one_kernel():
    chain = lambda x: jnp.sum(jnp.tanh(x) * jnp.log(x + 2) / jnp.sqrt(1 + x * x))  # noqa: E731
    derivative = jit(grad(chain))
    derivative(np.linspace(-1, 1, 100))
    text = derivative.inspect("loop program")
    assert text.count("kernel") == 1 and "tmp" not in text
