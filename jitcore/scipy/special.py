"""Special functions with NumPy's broadcasting and promotion (`jitcore.scipy.special`).

In: arrays and numbers; integers become floats. Out: floats. Names and arguments are SciPy's.
What is one primitive of `lax` is made of the block of that primitive, which says SciPy's name.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.lax import integrals, special
from jitcore.numpy.arrays.promotion import apply_elementwise, ensure_array, promote
from jitcore.scipy import gamma_ratios
from jitcore.transforms.custom_derivatives import custom_jvp

__all__ = ["bernoulli", "bessel_jn", "beta", "betaln", "boxcox", "boxcox1p", "comb", "entr", "erfcx",
           "factorial", "fresnel", "gamma", "gammasgn", "i0", "i1", "kl_div", "log_ndtr", "log_softmax",
           "loggamma", "logit", "logsumexp", "multigammaln", "ndtr", "poch", "polygamma", "rel_entr", "sici",
           "softmax", "sph_harm_y", "wofz", "xlog1py", "xlogy", "zeta"]


def _apply(name: str, function, *args) -> Array:
    """An elementwise function of `lax` on operands that are promoted to floats and broadcast."""
    return apply_elementwise(function.primitive, promote(name, *args, to=dtypes.inexact_dtype))


def _to_floats(name: str, *args) -> list[Array]:
    return [ensure_array(name, arg) for arg in promote(name, *args, to=dtypes.inexact_dtype)]


def _to_reals(name: str, *args) -> list[Array]:
    floats = _to_floats(name, *args)
    if dtypes.is_complex(floats[0].dtype):
        raise ValueError(f"{name} does not support complex-valued inputs")
    return floats


def __getattr__(name: str) -> Callable[..., Array]:
    """Nothing: it tells type checkers of the functions that are made at the end."""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# -- error function and normal distribution ---------------------------------------------------------------
def ndtr(x) -> Array:
    """Probability that a standard normal number is below x."""
    (x,) = _to_floats("ndtr", x)
    return 0.5 * lax.erfc(x * x.dtype.type(-math.sqrt(0.5)))


def log_ndtr(x, series_order: int = 3) -> Array:
    """Logarithm of `ndtr(x)`, accurate in both tails.

    series_order: accepted for JAX's signature, not needed."""
    operator.index(series_order)
    (x,) = _to_floats("log_ndtr", x)
    return special.log_ndtr(jnp.asarray(x, x.dtype))


# -- powers and their logarithms --------------------------------------------------------------------------
def boxcox(x, lmbda) -> Array:
    """(x ** lmbda - 1) / lmbda, and log(x) for lmbda 0. Source: scipy.special.boxcox."""
    x, lmbda = _to_floats("boxcox", x, lmbda)
    return _boxcox_of_log(jnp.log(x), lmbda)


def boxcox1p(x, lmbda) -> Array:
    """`boxcox(1 + x, lmbda)`, accurate for small x. Source: scipy.special.boxcox1p."""
    x, lmbda = _to_floats("boxcox1p", x, lmbda)
    return _boxcox_of_log(jnp.log1p(x), lmbda)


def _boxcox_of_log(logarithm, lmbda) -> Array:
    is_zero = lmbda == 0
    power = jnp.expm1(lmbda * logarithm) / jnp.where(is_zero, 1, lmbda)
    return jnp.where(is_zero, logarithm, power)


# -- logistic ---------------------------------------------------------------------------------------------
def logit(x) -> Array:
    """log(x / (1 - x)), the inverse of `expit`."""
    (x,) = _to_floats("logit", x)
    return _logit(x)


@custom_jvp
def _logit(x):
    return jnp.log(x / (1 - x))


_logit.defjvps(lambda t, ans, x: t / (x * (1 - x)))


# -- combinations -----------------------------------------------------------------------------------------
def comb(N, k, exact: bool = False, repetition: bool = False) -> Array:  # noqa: N803  SciPy's name
    """How many ways there are to take k of N things; with repetition, each any number of times.

    Raises: NotImplementedError for `exact`, of which whole numbers would be without bound.
    Source: scipy.special.comb."""
    if exact:
        raise NotImplementedError("comb(exact=True) is `math.comb`, outside of traced functions")
    total, taken = _to_floats("comb", N, k)
    if repetition:
        total = jnp.where(taken == 0, jnp.minimum(total, 0), total + taken - 1)  # no thing of none: one way
    is_possible = (taken >= 0) & (total >= taken) & (total >= 0)
    total, taken = jnp.where(is_possible, total, 1), jnp.where(is_possible, taken, 0)
    count = jnp.exp(-jnp.log1p(total) - gamma_ratios.betaln(total - taken + 1, taken + 1))
    return jnp.where(is_possible, count, 0)


def poch(z, m) -> Array:
    """The rising factorial gamma(z + m) / gamma(z). Source: scipy.special.poch."""
    z, m = _to_floats("poch", z, m)
    sign = gammasgn(z + m) * gammasgn(z)
    ratio = sign * jnp.exp(gamma_ratios.log_gamma_ratio(z, m))
    return jnp.where((m == 0) & jnp.isnan(ratio), 1, ratio)  # of two poles


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B[0] to B[n], of which B[1] is -1/2: [n + 1].

    Raises: ValueError for a negative n. Source: scipy.special.bernoulli."""
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"n must be a non-negative integer, got {n}")
    numbers = [Fraction(1)]
    for i in range(1, n + 1):
        numbers.append(-sum((math.comb(i + 1, j) * numbers[j] for j in range(i)), Fraction(0)) / (i + 1))
    return jnp.asarray([float(number) for number in numbers], dtypes.default_dtype("f"))


# -- gamma and beta ---------------------------------------------------------------------------------------
def gammasgn(x) -> Array:
    """Sign of the gamma function: NaN at the poles below 0 and for NaN, the sign of x at 0."""
    (x,) = _to_floats("gammasgn", x)
    below = jnp.floor(x)
    negative = jnp.where((below == x) | (x != x), np.nan, jnp.where(below % 2 == 0, 1.0, -1.0))
    at_zero = jnp.copysign(1.0, x)
    return jnp.asarray(jnp.where(x == 0, at_zero, jnp.where(x > 0, 1.0, negative)), x.dtype)


def loggamma(x) -> Array:
    """Principal branch of the logarithm of the gamma function.

    Args:
        x: real or complex array; below 0 a real one gives NaN.

    Returns: float or complex [x.shape]; real results within 4 ulp, complex ones within 1e-13.
    Example: `loggamma(5.0)` is 3.1780539, log(24). Source: scipy.special.loggamma."""
    (x,) = _to_floats("loggamma", x)
    if dtypes.is_complex(x.dtype):
        return integrals.complex_loggamma(x)
    return jnp.where(x < 0, np.nan, lax.lgamma(x))


def gamma(x) -> Array:
    """Gamma function of real or complex numbers."""
    (x,) = _to_floats("gamma", x)
    if dtypes.is_complex(x.dtype):
        return jnp.exp(integrals.complex_loggamma(x))
    return gammasgn(x) * jnp.exp(lax.lgamma(x))


def factorial(n, exact: bool = False) -> Array:
    """n! as a float; 0 for negative n. Raises: NotImplementedError for exact=True."""
    if exact:
        raise NotImplementedError("factorial with exact=True")
    (n,) = _to_floats("factorial", n)
    return jnp.where(n < 0, 0.0, jnp.exp(lax.lgamma(n + 1)))


def betaln(a, b) -> Array:
    """Logarithm of the magnitude of the beta function."""
    a, b = _to_floats("betaln", a, b)
    return gamma_ratios.betaln(a, b)


def beta(a, b) -> Array:
    """Beta function."""
    a, b = _to_floats("beta", a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * jnp.exp(betaln(a, b))


def polygamma(n, x) -> Array:
    """n-th derivative of `digamma`. Raises: ValueError for an n that is no integer."""
    if not dtypes.is_integer(aval_of(n).dtype):
        raise ValueError(f"Argument `n` to polygamma must be of integer type. Got dtype {aval_of(n).dtype}.")
    return _apply("polygamma", special.polygamma, n, x)


def zeta(x, q=None) -> Array:
    """Hurwitz zeta function; the Riemann one (q = 1) by default."""
    return _apply("zeta", special.zeta, x, 1 if q is None else q)


def multigammaln(a, d: int) -> Array:
    """Logarithm of the multivariate gamma function of dimension d, a static integer."""
    d = operator.index(d)
    (a,) = _to_floats("multigammaln", a)
    terms = lax.lgamma(a[..., None] - jnp.asarray(np.arange(d) / 2, a.dtype))
    return jnp.sum(terms, axis=-1) + 0.25 * d * (d - 1) * math.log(math.pi)


# -- Bessel -----------------------------------------------------------------------------------------------
def i0(x) -> Array:
    """Modified Bessel function of order 0."""
    (x,) = _to_floats("i0", x)
    return jnp.exp(_magnitude(x)) * special.bessel_i0e(x)


def _magnitude(x) -> Array:
    """|x|, whose derivative at 0 is 0, as those of the scaled functions take it to be."""
    return x * jnp.sign(x)


def i1(x) -> Array:
    """Modified Bessel function of order 1."""
    (x,) = _to_floats("i1", x)
    return jnp.exp(_magnitude(x)) * special.bessel_i1e(x)


def bessel_jn(z, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind of the orders 0 to v at real points.

    Args:
        z: real array. v: the highest order, a static integer.
        n_iter: accepted for JAX's signature, not needed.

    Returns: float[v + 1, *z.shape], within 10 ulp of the amplitude. Raises: ValueError for a negative v.
    Example: `bessel_jn(1.0, v=1)` is `[0.7651977, 0.44005057]`. Source: jax.scipy.special.bessel_jn,
    scipy.special.jv."""
    operator.index(n_iter)
    (z,) = _to_floats("bessel_jn", z)
    v = operator.index(v)
    if v < 0:
        raise ValueError(f"v must be a non-negative integer, got {v}")
    orders = jnp.reshape(jnp.arange(v + 1, dtype=z.dtype), (v + 1, *[1] * z.ndim))
    return _apply("bessel_jn", integrals.jv, orders, z[None])


# -- integrals --------------------------------------------------------------------------------------------
def sici(x) -> tuple[Array, Array]:
    """(sine integral, cosine integral): of sin(t) / t from 0 to x, and Euler's constant plus log(x) plus that
    of (cos(t) - 1) / t.

    Args:
        x: real array; below 0 the second is NaN.

    Returns: two floats[x.shape], within 4 ulp of their largest part. Example: `sici(1.0)` is
    `(0.94608307, 0.33740392)`. Source: scipy.special.sici."""
    (x,) = _to_floats("sici", x)
    return integrals.sine_integral(x), integrals.cosine_integral(x)


def fresnel(x) -> tuple[Array, Array]:
    """(S, C), Fresnel's integrals of sin(pi t**2 / 2) and cos(pi t**2 / 2) from 0 to x.

    Args:
        x: real array.

    Returns: two floats[x.shape], within 4 ulp. Example: `fresnel(1.0)` is `(0.43825915, 0.7798934)`.
    Source: scipy.special.fresnel."""
    (x,) = _to_floats("fresnel", x)
    return integrals.fresnel_sine(x), integrals.fresnel_cosine(x)


def _to_complex(name: str, z) -> Array:
    (z,) = _to_floats(name, z)
    return jnp.asarray(z, dtypes.complex_dtype(z.dtype))


def wofz(z) -> Array:
    """Faddeeva's function, exp(-z**2) erfc(-i z).

    Args:
        z: real or complex array.

    Returns: complex[z.shape], each part within 1e-13. Example: `wofz(1 + 1j)` is `0.30474422+0.20821893j`.
    Source: scipy.special.wofz."""
    return integrals.wofz(_to_complex("wofz", z))


def erfcx(x) -> Array:
    """exp(x**2) erfc(x), accurate where erfc(x) vanishes; for complex x it is `wofz(1j * x)`.

    Source: scipy.special.erfcx."""
    (x,) = _to_floats("erfcx", x)
    return integrals.wofz(1j * x) if dtypes.is_complex(x.dtype) else lax.erfcx(x)


def sph_harm_y(n, m, theta, phi, diff_n=None, n_max: int | None = None) -> Array:
    """Spherical harmonics with the phase of Condon and Shortley.

    Args:
        n, m: integer arrays, degree and order; 0 where |m| > n.
        theta: polar angle in [0, pi]; phi: azimuth in [0, 2 pi]; real arrays, in radians. All broadcast.
        diff_n: not there. n_max: the highest degree, where it is known; it need not be given.

    Returns: complex of the shape they broadcast to, within 1e-13 for degrees up to 50.
    Raises: NotImplementedError for diff_n; TypeError for n or m that are no integers.
    Example: `sph_harm_y(1, 0, 0.0, 0.0)` is `0.48860252+0j`. Source: scipy.special.sph_harm_y; the recurrence
    by degree is DLMF 14.10.3."""
    if diff_n is not None:
        raise NotImplementedError("The 'diff_n' argument to sph_harm_y is not supported: use grad or jvp")
    if not all(dtypes.is_integer(aval_of(number).dtype) for number in (n, m)):
        raise TypeError("sph_harm_y needs integers n and m")
    n, m = ensure_array("sph_harm_y", n), ensure_array("sph_harm_y", m)
    theta, phi = _to_floats("sph_harm_y", theta, phi)
    n, m, theta, phi = jnp.broadcast_arrays(n, m, theta, phi)
    order = jnp.abs(m)
    size = _normalized_legendre(n, order, theta, jnp.max(n, initial=0) if n_max is None else n_max)
    size = jnp.where((m < 0) & (order % 2 == 1), -size, size)
    return lax.complex(size * jnp.cos(m * phi), size * jnp.sin(m * phi))


def _normalized_legendre(n, order, theta, n_max) -> Array:
    """Associated Legendre functions of cos(theta), so scaled that their harmonics have norm 1."""
    x, s, dtype = jnp.cos(theta), jnp.abs(jnp.sin(theta)), theta.dtype  # the root of 1 - x x
    l2 = jnp.square(jnp.asarray(order, dtype))

    def rise(k, state):
        before, last, found = state
        degree = jnp.asarray(k, dtype)
        # the first of an order, from that of the order before
        first = -s * jnp.sqrt((2 * degree + 1) / (2 * degree)) * last
        scale = jnp.sqrt((4 * degree * degree - 1) / jnp.where(k > order, degree * degree - l2, 1))
        far = jnp.where(k > order + 1, (degree - 1) ** 2 - l2, 0)
        step = scale * (x * last - jnp.sqrt(far / jnp.maximum(4 * (degree - 1) ** 2 - 1, 1)) * before)
        here = jnp.where(k <= order, first, step)
        return jnp.where(k <= order, 0, last), here, jnp.where(k == n, here, found)

    start = jnp.full(theta.shape, math.sqrt(0.25 / math.pi), dtype)
    zero = jnp.zeros(theta.shape, dtype)
    found = lax.fori_loop(1, jnp.asarray(n_max) + 1, rise, (zero, start, start))[2]
    return jnp.where((n < order) | (n < 0), 0, found)


# -- entropy ----------------------------------------------------------------------------------------------
def xlogy(x, y) -> Array:
    """x log(y), 0 where x is 0 (and y not NaN)."""
    x, y = _to_floats("xlogy", x, y)
    return _xlogy(x, y)


@custom_jvp
def _xlogy(x, y):
    return jnp.where((x != 0) | jnp.isnan(y), x * jnp.log(y), 0.0)


_xlogy.defjvps(lambda t, ans, x, y: t * jnp.log(y), lambda t, ans, x, y: t * (x / y))


def xlog1py(x, y) -> Array:
    """x log(1 + y), 0 where x is 0 (and y not NaN)."""
    x, y = _to_floats("xlog1py", x, y)
    return _xlog1py(x, y)


@custom_jvp
def _xlog1py(x, y):
    return jnp.where((x != 0) | jnp.isnan(y), x * jnp.log1p(y), 0.0)


_xlog1py.defjvps(lambda t, ans, x, y: t * jnp.log1p(y), lambda t, ans, x, y: t * (x / (1 + y)))


def entr(x) -> Array:
    """-x log(x); 0 at 0, -inf below."""
    (x,) = _to_reals("entr", x)
    return jnp.where(x < 0, -np.inf, -_xlogx(x))


@custom_jvp
def _xlogx(x):
    return jnp.where((x != 0) | jnp.isnan(x), x * jnp.log(x), 0.0)


_xlogx.defjvps(lambda t, ans, x: t * (jnp.log(x) + 1))


def rel_entr(p, q) -> Array:
    """p log(p / q); 0 where p is 0, inf outside the domain."""
    p, q = _to_reals("rel_entr", p, q)
    inside = (p > 0) & (q > 0)
    safe_p, safe_q = jnp.where(inside, p, 1.0), jnp.where(inside, q, 1.0)
    edge = jnp.where((p == 0) & (q >= 0), 0.0, np.inf)
    return jnp.where(inside, _xlogx(safe_p) - xlogy(safe_p, safe_q), edge)


def kl_div(p, q) -> Array:
    """p log(p / q) - p + q."""
    p, q = _to_reals("kl_div", p, q)
    return rel_entr(p, q) - p + q


# -- sums of exponentials ---------------------------------------------------------------------------------
def logsumexp(a, axis=None, b=None, keepdims: bool = False, return_sign: bool = False, where=None):
    """log(sum(b exp(a))) without overflow.

    Args:
        axis: int, tuple of ints, or None for all axes.
        b: weights that broadcast against a; 1 by default.
        return_sign: whether to return (log of the sum's magnitude, its sign); else a negative sum gives NaN.
        where: which elements count."""
    operands = _to_floats("logsumexp", *((a,) if b is None else (a, b)))
    if b is not None:
        operands = jnp.broadcast_arrays(*operands)
        operands[0] = jnp.where(operands[1] != 0, operands[0], -np.inf)
    a = operands[0]
    largest = jnp.max(jnp.real(a), axis=axis, keepdims=True, where=where, initial=-np.inf)
    # An infinite maximum cannot be subtracted from itself.
    shift = jnp.where(jnp.isfinite(largest), largest, 0.0)
    terms = jnp.exp(a - shift)
    if b is not None:
        terms = operands[1] * terms
    total = jnp.sum(terms, axis=axis, keepdims=keepdims, where=where)
    sign = jnp.sign(total)
    if return_sign or not dtypes.is_complex(total.dtype):
        magnitude = jnp.abs(total) if return_sign or b is not None else total
        result = jnp.log(magnitude) + (shift if keepdims else jnp.reshape(shift, magnitude.shape))
    else:
        result = jnp.log(total) + (shift if keepdims else jnp.reshape(shift, total.shape))
    if return_sign:
        return result, sign
    if b is not None and not dtypes.is_complex(total.dtype):
        return jnp.where(sign < 0, np.nan, result)
    return result


def softmax(x, /, *, axis=None) -> Array:
    """exp(x) divided by its sum along the axes, all of them by default."""
    (x,) = _to_floats("softmax", x)
    weights = jnp.exp(x - jnp.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return weights / jnp.sum(weights, axis=axis, keepdims=True)


def log_softmax(x, /, *, axis=None) -> Array:
    """Logarithm of `softmax`."""
    (x,) = _to_floats("log_softmax", x)
    return x - logsumexp(x, axis=axis, keepdims=True)


# -- primitives of `lax` that are a function of SciPy's -----------------------------------------------------
def _publish(name: str, function: Callable) -> Callable[..., Array]:
    signature = inspect.signature(function)

    def public(*args, **kwargs):
        return _apply(name, function, *signature.bind(*args, **kwargs).args)

    public.__name__ = public.__qualname__ = name
    public.__doc__, public.__signature__ = function.__doc__, signature
    return public


#: Made of the blocks of primitives that name SciPy's function; those above have more to say.
PRIMITIVES = {name: _publish(name, function) for function in [*vars(lax).values(),
                                                              *(getattr(integrals,
                                                                        name) for name in integrals.__all__)]
              if (name := getattr(function, "primitive", None) and function.primitive.traits.get("scipy"))
              and name not in __all__}
globals().update(PRIMITIVES)
__all__ += sorted(PRIMITIVES)
