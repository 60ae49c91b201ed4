"""Elementary functions: exponentials, logarithms, circular and hyperbolic functions, roots, powers.

In: floats or complex numbers of one dtype and one shape (scalars broadcast). Out: one array of that shape.
A derivative is a factor computed from operands and result, times the tangent: the linear part is one product.
"""

import math

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import aval_of
from jitcore.lax.bits import and_
from jitcore.lax.define import elementwise
from jitcore.lax.elementwise import (add, convert_element_type, div, eq, integer_pow, mul, neg, select_n,
                                     square, sub)
from jitcore.process.lazy import LazyFunctions

__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "exp", "exp2",
           "expm1", "log", "log10", "log1p", "log2", "logistic", "rsqrt", "sin", "sinh", "sqrt", "tan",
           "tanh"]

special = LazyFunctions("scipy.special")

_LN_2, _LN_10 = math.log(2), math.log(10)


@elementwise(impl=np.exp, hlo="exponential", domain=(-10, 10), cost=10, jvp=lambda t, ans, x: mul(t, ans))
def exp(x, *, accuracy=None):
    """e to the power x."""


@elementwise(impl=np.exp2, domain=(-10, 10), cost=9, jvp=lambda t, ans, x: mul(t, mul(ans, _LN_2)))
def exp2(x, *, accuracy=None):
    """2 to the power x."""


def _expm1(x):
    """NumPy's, which gives NaN for complex infinities where C99 says what they are: there exp(x) - 1."""
    out = np.expm1(x)
    if out.dtype.kind != "c" or np.isfinite(out).all():
        return out
    return np.where(np.isfinite(out), out, np.exp(x) - out.dtype.type(1))


@elementwise(impl=_expm1, hlo="exponential_minus_one", domain=(-2, 2), cost=14,
             jvp=lambda t, ans, x: mul(t, add(ans, 1.0)))
def expm1(x, *, accuracy=None):
    """exp(x) - 1, accurate near 0."""


@elementwise(impl=np.log, hlo="log", domain=(0.01, 10), cost=12, jvp=lambda t, ans, x: div(t, x))
def log(x, *, accuracy=None):
    """Natural logarithm."""


@elementwise(impl=np.log2, domain=(0.01, 10), cost=12, jvp=lambda t, ans, x: div(t, mul(x, _LN_2)))
def log2(x):
    """Logarithm to base 2."""


@elementwise(impl=np.log10, domain=(0.01, 10), cost=12, jvp=lambda t, ans, x: div(t, mul(x, _LN_10)))
def log10(x):
    """Logarithm to base 10."""


def _log1p(x):
    """SciPy's for complex numbers: NumPy's adds 1 first, and has no digit left near 0."""
    return special.log1p(x) if x.dtype.char in "FD" else np.log1p(x)


@elementwise(impl=_log1p, hlo="log_plus_one", domain=(-0.9, 3), cost=14,
             jvp=lambda t, ans, x: div(t, add(x, 1.0)))
def log1p(x, *, accuracy=None):
    """log(1 + x), accurate near 0."""


@elementwise(impl=np.sin, hlo="sine", domain=(-10, 10), cost=16, jvp=lambda t, ans, x: mul(t, cos(x)))
def sin(x, *, accuracy=None):
    """Sine of x in radians."""


@elementwise(impl=np.cos, hlo="cosine", domain=(-10, 10), cost=16, jvp=lambda t, ans, x: mul(t, neg(sin(x))))
def cos(x, *, accuracy=None):
    """Cosine of x in radians."""


@elementwise(impl=np.tan, hlo="tan", domain=(-1.4, 1.4), cost=20,
             jvp=lambda t, ans, x: mul(t, add(square(ans), 1.0)))
def tan(x, *, accuracy=None):
    """Tangent of x in radians."""


def _rsqrt_of_one_minus_square(x):
    # a product of sums keeps its digits where x is near 1
    return rsqrt(mul(sub(1.0, x), add(x, 1.0)))


@elementwise(impl=np.arcsin, domain=(-0.95, 0.95), cost=14,
             jvp=lambda t, ans, x: mul(t, _rsqrt_of_one_minus_square(x)))
def asin(x):
    """Inverse sine, in radians in [-pi/2, pi/2]."""


@elementwise(impl=np.arccos, domain=(-0.95, 0.95), cost=14,
             jvp=lambda t, ans, x: mul(t, neg(_rsqrt_of_one_minus_square(x))))
def acos(x):
    """Inverse cosine, in radians in [0, pi]."""


@elementwise(impl=np.arctan, domain=(-5, 5), cost=14, jvp=lambda t, ans, x: div(t, add(square(x), 1.0)))
def atan(x):
    """Inverse tangent, in radians in [-pi/2, pi/2]."""


@elementwise(impl=np.arctan2, hlo="atan2", accepts="f", domain=(-5, 5), cost=20,
             jvp=(lambda t, ans, x, y: mul(t, div(y, add(square(x), square(y)))),
                  lambda t, ans, x, y: mul(t, div(neg(x), add(square(x), square(y))))))
def atan2(x, y):
    """Angle of the point (y, x), in radians in [-pi, pi]."""


@elementwise(impl=np.sinh, domain=(-3, 3), cost=16, jvp=lambda t, ans, x: mul(t, cosh(x)))
def sinh(x):
    """Hyperbolic sine."""


@elementwise(impl=np.cosh, domain=(-3, 3), cost=16, jvp=lambda t, ans, x: mul(t, sinh(x)))
def cosh(x):
    """Hyperbolic cosine."""


@elementwise(impl=np.tanh, hlo="tanh", domain=(-3, 3), cost=14,
             jvp=lambda t, ans, x: mul(t, mul(add(ans, 1.0), sub(1.0, ans))))
def tanh(x, *, accuracy=None):
    """Hyperbolic tangent."""


@elementwise(impl=np.arcsinh, domain=(-5, 5), cost=20,
             jvp=lambda t, ans, x: mul(t, rsqrt(add(square(x), 1.0))))
def asinh(x):
    """Inverse hyperbolic sine."""


def _acosh_slope(x):
    if dtypes.is_complex(aval_of(x).dtype):  # the root of the product is on the wrong branch where x.real < 0
        return mul(rsqrt(sub(x, 1.0)), rsqrt(add(x, 1.0)))
    return rsqrt(mul(sub(x, 1.0), add(x, 1.0)))


@elementwise(impl=np.arccosh, domain=(1.1, 5), cost=20, jvp=lambda t, ans, x: mul(t, _acosh_slope(x)))
def acosh(x):
    """Inverse hyperbolic cosine."""


@elementwise(impl=np.arctanh, domain=(-0.95, 0.95), cost=18,
             jvp=lambda t, ans, x: div(t, mul(add(x, 1.0), sub(1.0, x))))
def atanh(x):
    """Inverse hyperbolic tangent."""


@elementwise(impl=np.sqrt, hlo="sqrt", domain=(0.01, 10), cost=4, jvp=lambda t, ans, x: mul(t, div(0.5, ans)))
def sqrt(x, *, accuracy=None):
    """Square root."""


@elementwise(impl=lambda x: np.reciprocal(np.sqrt(x)), hlo="rsqrt", domain=(0.01, 10), cost=5,
             jvp=lambda t, ans, x: mul(t, mul(div(ans, x), -0.5)))
def rsqrt(x, *, accuracy=None):
    """1 / sqrt(x)."""


@elementwise(impl=np.cbrt, hlo="cbrt", accepts="f", domain=(-10, 10), cost=14,
             jvp=lambda t, ans, x: mul(t, mul(integer_pow(ans, -2), 1 / 3)))
def cbrt(x, *, accuracy=None):
    """Real cube root."""


def _logistic(x):
    return special.expit(x) if not dtypes.is_complex(x.dtype) else 1 / (1 + np.exp(-x))


@elementwise(impl=_logistic, hlo="logistic", domain=(-10, 10), cost=14, scipy="expit",
             compute_half_in_float32=True,
             jvp=lambda t, ans, x: mul(t, mul(ans, sub(1.0, ans))))
def logistic(x, *, accuracy=None):
    """Sigmoid, 1 / (1 + exp(-x))."""


def _replace_zero(x):
    """x with 1 in the place of 0."""
    return select_n(eq(x, 0.0), x, 1.0)


def _slope_of_power(x, y):
    """The derivative by x. That of the constant x ** 0 is zero at 0 too, and has slopes by y elsewhere."""
    base = select_n(and_(eq(y, 0.0), eq(x, 0.0)), x, 1.0)
    return mul(y, pow_(base, sub(y, 1.0)))


@elementwise(impl=np.power, name="pow", hlo="power", domain=(0.1, 3), cost=30,
             lower=lambda builder, x, y: builder.pow(x, y),
             jvp=(lambda t, ans, x, y: mul(t, _slope_of_power(x, y)),
                  lambda t, ans, x, y: mul(t, mul(log(_replace_zero(x)), ans))))
def _power(x, y):
    """x to the power y, for floats of one dtype."""


def pow_(x, y):
    """x to the power y, of one float or complex dtype; y may be an integer, or integers too."""
    if isinstance(y, int) and not isinstance(y, bool):
        return integer_pow(x, y)
    if dtypes.is_integer(aval_of(y).dtype):
        y = convert_element_type(y, aval_of(x).dtype)
    return _power(x, y)


pow_.primitive = _power.primitive
