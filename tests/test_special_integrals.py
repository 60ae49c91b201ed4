"""Special functions that are integrals or series, against SciPy, mpmath and differences."""

import mpmath
import numpy as np
import pytest
import scipy.special as theirs

import jitcore.numpy as jnp
from jitcore import grad, jit
from jitcore.scipy import special as ours
from jitcore.test_util import check_grads

X = np.linspace(0.1, 3, 7)
CASES = [("dawsn", (X,)), ("exp1", (X,)), ("expi", (X,)), ("hyp1f1", (X, X + 1, X - 2)), ("spence", (X,)), ("sici", (X,)),
         ("hyp2f1", (X, X + 1, X + 2, X / 4 - 0.2)), ("hyp2f1", (X, X + 1, X + 2, -X)), ("loggamma", (X,)), ("fresnel", (X,)),
         ("loggamma", (X - 1 + 1j * X,)), ("owens_t", (X, X - 1)), ("wofz", (X + 1j,)), ("gamma", (X - 2 + 1j,))]


@pytest.mark.parametrize("name, args", CASES)
def test_values_and_slopes(name, args):
    function, expected = getattr(ours, name), getattr(theirs, name)(*args)
    for found in (function(*args), jit(function)(*args)):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
    if np.iscomplexobj(args[0]):
        check_grads(lambda *args: jnp.abs(function(*args)), args, order=2, rtol=1e-3)
    else:
        check_grads(function, args, order=1, rtol=1e-4)
        half = function(*[arg.astype(np.float16) for arg in args])
        assert all(part.dtype == np.float16 for part in (half if isinstance(half, tuple) else (half,)))
    empty = function(*[arg[:0] for arg in args])
    assert (empty[0] if isinstance(empty, tuple) else empty).size == 0


def test_slopes_by_parameters_of_series():
    for function, exact, args in ((ours.hyp1f1, mpmath.hyp1f1, (0.7, 1.9, -2.5)), (ours.hyp2f1, mpmath.hyp2f1, (0.7, 1.9, 2.4, -1.5))):
        for i in range(len(args)):
            wanted = mpmath.diff(lambda v: exact(*args[:i], v, *args[i + 1:]), args[i])
            np.testing.assert_allclose(float(grad(function, i)(*map(np.float64, args))), float(wanted), rtol=1e-10)


def test_bessel_functions_and_orders():
    np.testing.assert_allclose(jit(lambda x: ours.bessel_jn(x, v=3))(X), [theirs.jv(i, X) for i in range(4)], rtol=1e-12)
    check_grads(lambda x: ours.bessel_jn(x, v=3), (X,), order=2, rtol=1e-3)
    for n in (0, 2):
        np.testing.assert_allclose(ours.expn(n, X), theirs.expn(n, X), rtol=1e-12)
        check_grads(lambda x: ours.expn(n, x), (X,), order=2, rtol=1e-3)


def test_spherical_harmonics():
    n, m = np.meshgrid(np.arange(6), np.arange(-5, 6))
    theta, phi = np.float64(0.7), np.float64(1.3)
    expected = np.vectorize(lambda n, m: complex(mpmath.spherharm(int(n), int(m), theta, phi)))(n, m) * (abs(m) <= n)
    np.testing.assert_allclose(jit(ours.sph_harm_y)(n, m, theta, phi), expected, atol=1e-13)
    check_grads(lambda t: jnp.real(ours.sph_harm_y(n, m, t, phi)), (theta,), order=1, rtol=1e-4)


FAR = [1e-3, 0.5, 1.0, 7.9, 8.0, 30.0, 1e3, 1e5, 1e7]


def log_beta(a, b):
    return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(mpmath.mpf(a) + b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name, exact", [
    ("betaln", log_beta), ("beta", lambda a, b: mpmath.exp(log_beta(a, b))),
    ("poch", lambda a, b: mpmath.exp(mpmath.loggamma(mpmath.mpf(a) + b) - mpmath.loggamma(a))),
    ("comb", lambda a, b: mpmath.exp(-log_beta(a - b + 1, b + 1)) / (mpmath.mpf(a) + 1) if b <= a else 0)])
def test_ratios_of_gamma_functions_do_not_cancel(name, exact, dtype):
    for a in map(dtype, FAR):
        for b in map(dtype, FAR):
            with mpmath.workdps(40):
                want = exact(float(a), float(b))
                least, most = np.finfo(dtype).tiny, np.finfo(dtype).max
                if name != "betaln" and not least < want < most:
                    continue
                size = 1 if name == "betaln" else max(1, abs(mpmath.log(want)))
            np.testing.assert_allclose(float(getattr(ours, name)(a, b)), float(want), rtol=float(32 * size * np.finfo(dtype).eps),
                                       err_msg=f"{a} {b}")


def test_derivatives_of_ratios_and_of_zeta():
    check_grads(ours.betaln, (np.float64(9.5), np.float64(3e4)), order=2, rtol=1e-3)
    check_grads(ours.betaln, (np.float64(0.5), np.float64(12.0)), order=2, rtol=1e-3)
    for x, q in [(1.1, 2.0), (3.0, 0.5), (8.0, 30.0)]:
        want = mpmath.diff(lambda x: mpmath.zeta(x, q), x)
        np.testing.assert_allclose(float(grad(ours.zeta)(np.float64(x), np.float64(q))), float(want), rtol=1e-10)
        np.testing.assert_allclose(float(grad(ours.zeta)(np.float32(x), np.float32(q))), float(want), rtol=1e-5)
    check_grads(ours.zeta, (np.float64(2.5), np.float64(1.5)), order=2, rtol=1e-3)


@pytest.mark.parametrize("z", [0.3 + 2j, -1 - 0.5j, 5 - 3j, 30 + 1j])
def test_erfcx_of_complex_numbers(z):
    np.testing.assert_allclose(complex(ours.erfcx(np.complex128(z))), theirs.erfcx(z), rtol=1e-12)


@pytest.mark.parametrize("name", ["entr", "rel_entr", "kl_div"])
def test_entropies_are_of_real_numbers(name):
    with pytest.raises(ValueError, match="complex"):
        getattr(ours, name)(*[np.complex64(1j)] * (1 if name == "entr" else 2))


def test_signs_and_ways_at_the_edge():
    np.testing.assert_array_equal(ours.gammasgn(np.array([np.nan, -np.inf, np.inf, -1.5])), [np.nan, np.nan, 1, 1])
    np.testing.assert_array_equal(ours.comb(np.array([0.0, 3.0]), 0.0, repetition=True), [1, 1])


@pytest.mark.parametrize("theta", [-2.0, -0.5, 0.7, 4.0, 8.0])
@pytest.mark.parametrize("n, m", [(3, -3), (3, 3), (2, 1), (5, -4), (4, 0)])
def test_harmonics_of_any_angle(theta, n, m):
    """An angle outside of [0, pi] is that of its cosine."""
    np.testing.assert_allclose(ours.sph_harm_y(n, m, np.float64(theta), 0.3), theirs.sph_harm_y(n, m, theta, 0.3), atol=1e-13)
