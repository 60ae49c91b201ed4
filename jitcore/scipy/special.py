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
from jitcore.lax import special
from jitcore.numpy.arrays.promotion import apply_elementwise, ensure_array, promote
from jitcore.transforms.custom_derivatives import custom_jvp

__all__ = ["bernoulli", "beta", "betaln", "boxcox", "boxcox1p", "comb", "entr", "factorial", "gamma",
           "gammasgn", "i0", "i1", "kl_div", "log_ndtr", "log_softmax", "logit", "logsumexp", "multigammaln",
           "ndtr", "poch", "polygamma", "rel_entr", "softmax", "xlog1py", "xlogy", "zeta"]


def _apply(name: str, function, *args) -> Array:
    """An elementwise function of `lax` on operands that are promoted to floats and broadcast."""
    return apply_elementwise(function.primitive, promote(name, *args, to=dtypes.inexact_dtype))


def _to_floats(name: str, *args) -> list[Array]:
    return [ensure_array(name, arg) for arg in promote(name, *args, to=dtypes.inexact_dtype)]


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
        total = total + taken - 1
    is_possible = (taken >= 0) & (total >= taken) & (total >= 0)
    total, taken = jnp.where(is_possible, total, 1), jnp.where(is_possible, taken, 0)
    count = jnp.exp(lax.lgamma(total + 1) - lax.lgamma(taken + 1) - lax.lgamma(total - taken + 1))
    return jnp.where(is_possible, count, 0)


def poch(z, m) -> Array:
    """The rising factorial gamma(z + m) / gamma(z). Source: scipy.special.poch."""
    z, m = _to_floats("poch", z, m)
    sign = gammasgn(z + m) * gammasgn(z)
    return jnp.where(m == 0, 1, sign * jnp.exp(lax.lgamma(z + m) - lax.lgamma(z)))


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
    """Sign of the gamma function: NaN at the poles below 0, the sign of x at 0."""
    (x,) = _to_floats("gammasgn", x)
    below = jnp.floor(x)
    negative = jnp.where(below == x, np.nan, jnp.where(below % 2 == 0, 1.0, -1.0))
    at_zero = jnp.copysign(1.0, x)
    return jnp.asarray(jnp.where(x == 0, at_zero, jnp.where(x > 0, 1.0, negative)), x.dtype)


def gamma(x) -> Array:
    """Gamma function."""
    (x,) = _to_floats("gamma", x)
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
    return lax.lgamma(a) + lax.lgamma(b) - lax.lgamma(a + b)


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
    (x,) = _to_floats("entr", x)
    return jnp.where(x < 0, -np.inf, -_xlogx(x))


@custom_jvp
def _xlogx(x):
    return jnp.where((x != 0) | jnp.isnan(x), x * jnp.log(x), 0.0)


_xlogx.defjvps(lambda t, ans, x: t * (jnp.log(x) + 1))


def rel_entr(p, q) -> Array:
    """p log(p / q); 0 where p is 0, inf outside the domain."""
    p, q = _to_floats("rel_entr", p, q)
    inside = (p > 0) & (q > 0)
    safe_p, safe_q = jnp.where(inside, p, 1.0), jnp.where(inside, q, 1.0)
    edge = jnp.where((p == 0) & (q >= 0), 0.0, np.inf)
    return jnp.where(inside, xlogy(safe_p, safe_p) - xlogy(safe_p, safe_q), edge)


def kl_div(p, q) -> Array:
    """p log(p / q) - p + q."""
    p, q = _to_floats("kl_div", p, q)
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
PRIMITIVES = {name: _publish(name, function) for function in vars(lax).values()
              if (name := getattr(function, "primitive", None) and function.primitive.traits.get("scipy"))
              and name not in __all__}
globals().update(PRIMITIVES)
__all__ += sorted(PRIMITIVES)
