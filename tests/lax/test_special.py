"""Special functions against JAX and mpmath."""

import math

import mpmath
import numpy as np
import pytest
from scipy import special

from jitcore import jit, lax
from jitcore.core.primitive import registry
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax

jax_lax = jax.lax

RNG = np.random.default_rng(9)


def differentiate_gammainc(a: float, x: float):
    with mpmath.workdps(40):
        return mpmath.diff(lambda s: mpmath.gammainc(s, 0, x, regularized=True), a)


# name, operands' intervals, mpmath's function
CASES = {
    "igamma": ([(0.1, 10), (0, 15)], lambda a, x: mpmath.gammainc(a, 0, x, regularized=True)),
    "igammac": ([(0.1, 10), (0, 15)], lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True)),
    "betainc": ([(0.1, 5), (0.1, 5), (0, 1)], lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True)),
    "bessel_i0e": ([(-20, 20)], lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x))),
    "bessel_i1e": ([(-20, 20)], lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x))),
    "zeta": ([(1.1, 10), (0.1, 10)], lambda x, q: mpmath.zeta(x, q)),
    "igamma_grad_a": ([(0.1, 10), (0, 15)], differentiate_gammainc),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_against_mpmath(name, dtype):
    intervals, reference = CASES[name]
    operands = [RNG.uniform(*interval, 40).astype(dtype) for interval in intervals]
    out = getattr(lax, name)(*operands)
    wanted = [float(reference(*map(float, values))) for values in zip(*operands)]
    tolerance = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 3e-6, "float64": 1e-12}[dtype]
    assert out.dtype.name == dtype
    np.testing.assert_allclose(np.asarray(out, np.float64), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [*CASES, "polygamma"])
def test_against_jax(name):
    intervals = CASES[name][0] if name in CASES else [(0, 0), (0.5, 10)]
    operands = [RNG.uniform(*interval, 20).astype(np.float32) for interval in intervals]
    check_against_jax(getattr(lax, name), getattr(jax_lax, name), *operands, tolerance=1e-4)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_polygamma(order):
    x = RNG.uniform(0.1, 10, 30)
    out = lax.polygamma(np.full(30, float(order)), x)
    np.testing.assert_allclose(out, [float(mpmath.polygamma(order, value)) for value in x], rtol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeta_left_of_zero(dtype):
    """Compiled programs reflect; the sum goes on from where its terms are positive."""
    q = np.array([-0.5, -1e-3, -0.25, -7.7, -30.3, -1000.9], dtype)
    for order in (2, 3, 4, 7):
        with mpmath.workdps(60):
            exact = [mpmath.fsum((mpmath.mpf(v) + n) ** -order for n in range(1001)) +
                     mpmath.zeta(order, mpmath.mpf(v) + 1001) for v in q.tolist()]
        tolerance = 1e-6 if dtype is np.float32 else 1e-14
        size = [2 / float(min(abs(v - round(v)), 0.5)) ** order for v in q.tolist()]
        out = np.asarray(jit(lax.zeta)(np.full(q.size, order, dtype), q), np.float64)
        assert np.all(abs(out - np.array(exact, float)) <= tolerance * np.array(size))
        slope = jit(lax.polygamma)(np.full(q.size, order - 1, dtype), q)
        wanted = (-1) ** order * math.factorial(order - 1) * out
        np.testing.assert_allclose(slope, wanted, rtol=tolerance, atol=tolerance)
    assert np.isnan(jit(lax.zeta)(np.full(1, 2.5, dtype), q[:1])).all()
    assert np.isinf(jit(lax.zeta)(np.full(3, 2, dtype), np.array([0, -1, -np.inf], dtype))).all()


def test_polygamma_of_a_broken_order_is_nan():
    assert np.isnan(float(lax.polygamma(1.5, 2.0))) and np.isnan(float(lax.polygamma(-1.0, 2.0)))


@pytest.mark.parametrize(
    "a, x", [(1e-3, 1e-4), (0.05, 5.0), (40.0, 39.0), (40.0, 41.0), (5e3, 5.1e3), (5e3, 4.9e3)]
)
def test_derivative_of_igamma_over_the_range(a, x):
    np.testing.assert_allclose(float(lax.igamma_grad_a(a, x)), float(differentiate_gammainc(a, x)), rtol=1e-6)
    slope = float(lax.igamma_grad_a(np.float64(a), np.float64(x)))
    np.testing.assert_allclose(slope, float(differentiate_gammainc(a, x)), rtol=1e-10)


def test_derivative_of_igamma_at_the_edges():
    a, x = np.array([1.0, 1.0, 0.0, -1.0, 2.0, np.nan]), np.array([0.0, np.inf, 1.0, 1.0, -1.0, 1.0])
    np.testing.assert_array_equal(lax.igamma_grad_a(a, x), [0, 0, *[np.nan] * 4])


@pytest.mark.cpu
@pytest.mark.parametrize("shapes", [((), ()), ((3, 40), (3, 40)), ((), (40,)), ((40,), ())])
def test_derivative_of_igamma_is_loops(shapes):
    a, x = (np.asarray(RNG.uniform(0.1, 30, shape)) for shape in shapes)
    compiled = jit(lax.igamma_grad_a)
    np.testing.assert_allclose(compiled(a, x), lax.igamma_grad_a(a, x), rtol=1e-11, atol=1e-14)
    assert "call" not in compiled.inspect("loop program")


EDGES = [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, -1.0), (1.0, np.inf), (np.nan, 1.0)]


@pytest.mark.parametrize("name", ["igamma", "igammac"])
@pytest.mark.parametrize("a, x", EDGES)
def test_edges(name, a, x):
    check_against_jax(getattr(lax, name), getattr(jax_lax, name), np.float32(a), np.float32(x))


def test_integers_are_not_accepted():
    with pytest.raises(TypeError, match="igamma does not accept dtype int32 at position 0"):
        lax.igamma(np.int32(1), np.int32(1))


def test_backends_call_the_implementation():
    assert registry["igamma"].lower is None and registry["regularized_incomplete_beta"].lower is None


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_log1p_of_complex_numbers_near_0(dtype):
    z = np.array([1e-20, 1e-5 + 1e-7j, -1e-8j, 1e-3, -0.5 + 1e-9j, 3 - 2j], dtype)
    expected = special.log1p(z.astype(np.complex128))
    for run in (lax.log1p, jit(lax.log1p)):
        np.testing.assert_allclose(run(z), expected, rtol=8 * np.finfo(dtype).eps)
