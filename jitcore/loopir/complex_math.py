"""Complex arithmetic in terms of real arithmetic: the formulas that all backends share.

In: an operation's name and numbers as (real, imaginary) pairs over a backend's own real arithmetic (`Reals`).
Out: a pair, or one number for operations whose result is no complex number. Stage: rendering.

Formulas have no branches, so they serve lanes. Infinities, NaN, zeros and branch cuts follow C99's Annex G
where NumPy does. Results are accurate as a whole: a part that is far smaller than the other one has few
right digits after a cancellation. Sources: C99 Annex G; W. Kahan, "Branch cuts for complex elementary
functions" (1987); R. Smith, "Algorithm 116: complex division" (1962).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jitcore import dtypes


class Reals:
    """A backend's arithmetic on real numbers of one dtype, scalars or lanes. Calling it applies an operation
    of the loop program (and `hypot`) to `Real`s, of which one at least is no plain number."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)

    def apply(self, name: str, operand_dtype, result_dtype, operands: list):
        """The backend's operation on its own values. Plain numbers among the operands are constants."""
        raise NotImplementedError

    def __call__(self, name: str, *operands) -> Real:
        kind = next(operand.dtype for operand in operands if isinstance(operand, Real))
        result = dtypes.bool_ if name in _PREDICATES else kind
        values = [operand.value if isinstance(operand, Real) else operand for operand in operands]
        return Real(self, self.apply(name, kind, result, values), result)

    def where(self, condition: Real, x, y) -> Real:
        """x where the condition holds, else y."""
        values = [operand.value if isinstance(operand, Real) else operand for operand in (condition, x, y)]
        return Real(self, self.apply("select", self.dtype, self.dtype, values), self.dtype)

    def is_infinite(self, x: Real) -> Real:
        return abs(x) == math.inf


_PREDICATES = {"eq", "ne", "lt", "le", "gt", "ge", "is_finite", "signbit"}


class Real:
    """A value of a backend with Python's operators; comparisons give truth values, which have & | ^ ~."""

    __slots__ = ("reals", "value", "dtype")

    def __init__(self, reals: Reals, value, dtype):
        self.reals, self.value, self.dtype = reals, value, dtype

    __hash__ = None

    def __neg__(self):
        return self.reals("neg", self)

    def __abs__(self):
        return self.reals("abs", self)

    def __invert__(self):
        return self.reals("not", self)


def _operator(name: str, swapped: bool = False):
    if swapped:
        return lambda x, y: x.reals(name, y, x)
    return lambda x, y: x.reals(name, x, y)


for _name in ("add", "sub", "mul", "and", "or", "xor", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Real, f"__{_name}__", _operator(_name))
for _name in ("add", "sub", "mul"):
    setattr(Real, f"__r{_name}__", _operator(_name, swapped=True))
Real.__truediv__, Real.__rtruediv__ = _operator("div"), _operator("div", swapped=True)


class Complex(NamedTuple):
    """A complex number as two reals."""

    re: Real
    im: Real


class Format(NamedTuple):
    """Facts of a floating dtype: numbers from `small` to `big` may be squared and added; `up` and `down`
    bring the others there (even powers of two). exp(x) is finite up to `limit`, and again after `shift` was
    subtracted. sinh(x)**2 is finite, and tan(y)**2 times it, up to `clamp`."""

    small: float
    big: float
    up: float
    down: float
    limit: float
    shift: float
    clamp: float


_FORMATS = {
    dtypes.float32: Format(2.0**-32, 2.0**62, 2.0**100, 2.0**-66, 88.0, 80.0, 22.0),
    dtypes.float64: Format(2.0**-480, 2.0**510, 2.0**594, 2.0**-514, 709.0, 700.0, 300.0),
}


_ONE = Complex(1.0, 0.0)


# -- arithmetic -------------------------------------------------------------------------------------------
def _add(f, x, y):
    return Complex(x.re + y.re, x.im + y.im)


def _sub(f, x, y):
    return Complex(x.re - y.re, x.im - y.im)


def _neg(f, z):
    return Complex(-z.re, -z.im)


def _conj(f, z):
    return Complex(z.re, -z.im)


def _mul(f, x, y):
    return Complex(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


def _square(f, z):
    return _mul(f, z, z)


def _div(f, x, y):
    """Smith's method: no overflow for large divisors. A quotient by zero is that of each part."""
    swap = abs(y.re) < abs(y.im)
    big, small = f.where(swap, y.im, y.re), f.where(swap, y.re, y.im)
    is_zero = big == 0.0
    ratio = f.where(is_zero, 0.0, small / big)
    scale = 1.0 / (f.where(is_zero, abs(big), big) + small * ratio)
    first, second = f.where(swap, x.im, x.re), f.where(swap, -x.re, x.im)
    third, fourth = f.where(swap, x.re, x.im), f.where(swap, -x.im, x.re)
    re = f.where(is_zero, first, first + third * ratio)
    im = f.where(is_zero, second, second - fourth * ratio)
    return Complex(re * scale, im * scale)


def _reciprocal(f, z):
    return _div(f, _ONE, z)


def _abs(f, z):
    return f("hypot", z.re, z.im)


def _sign(f, z):
    z = _select(f, f.is_infinite(z.re) ^ f.is_infinite(z.im), _direction(f, z), z)
    size = _abs(f, z)
    is_zero = size == 0.0
    return Complex(f.where(is_zero, z.re, z.re / size), f.where(is_zero, z.im, z.im / size))


def _eq(f, x, y):
    return (x.re == y.re) & (x.im == y.im)


def _ne(f, x, y):
    return (x.re != y.re) | (x.im != y.im)


def _extreme(sign: str):
    """The greater (lesser) one by real parts, then by imaginary parts; NaN wins."""

    def choose(f, x, y):
        wins = f(sign, x.re, y.re) | ((x.re == y.re) & f(sign, x.im, y.im))
        wins = wins | (x.re != x.re) | (x.im != x.im)
        return Complex(f.where(wins, x.re, y.re), f.where(wins, x.im, y.im))

    return choose


# -- exponential, logarithm, powers -----------------------------------------------------------------------
def _exp(f, z):
    x, y = z
    facts = _FORMATS[f.dtype]
    is_large = x > facts.limit  # its product with cos(y) may be finite
    size = f("exp", x - f.where(is_large, facts.shift, 0.0))
    scale = f.where(is_large, math.exp(facts.shift), 1.0)
    is_limit = f.is_infinite(x) & ~f("is_finite", y)
    re = size * f.where(is_limit, 1.0, f("cos", y)) * scale
    im = size * f.where(is_limit & (x < 0.0), 0.0, f("sin", y)) * scale
    return Complex(re, f.where(y == 0.0, y, im))


def _exp2(f, z):
    return _exp(f, _times(z, math.log(2)))


def _expm1(f, z):
    x, y = z
    half = f("sin", 0.5 * y)
    grown = f("expm1", x)
    im = (grown + 1.0) * f("sin", y)
    return Complex(grown * f("cos", y) - 2.0 * half * half, f.where(y == 0.0, y, im))


def _times(z, factor):
    return Complex(z.re * factor, z.im * factor)


def _bring_near(f, x, y):
    """(x, y, scale): both times the power of two `scale`, so that they may be squared and added."""
    facts = _FORMATS[f.dtype]
    largest = f("max", abs(x), abs(y))
    scale = f.where(largest > facts.big, facts.down, f.where(largest < facts.small, facts.up, 1.0))
    return x * scale, y * scale, scale


def _of_scale(f, scale, function):
    """A function of what `_bring_near` multiplied by."""
    facts = _FORMATS[f.dtype]
    grown = f.where(scale > 1.0, function(facts.up), function(1.0))
    return f.where(scale < 1.0, function(facts.down), grown)


def _log_modulus(f, x, y, excess):
    """log|x + iy|; excess: |x + iy|**2 - 1, exact where that is close to 0."""
    near_x, near_y, scale = _bring_near(f, x, y)
    is_near = (excess > -0.5) & (excess < 1.0)
    whole = 1.0 + excess
    rest = (excess - (whole - 1.0)) / whole
    squared = f.where(is_near, whole, near_x * near_x + near_y * near_y)
    result = 0.5 * (f("log", squared) + f.where(is_near, rest, 0.0)) - _of_scale(f, scale, math.log)
    return f.where(f.is_infinite(x) | f.is_infinite(y), math.inf, result)


def _log(f, z):
    x, y = z
    is_flat = abs(x) > abs(y)
    large, small = abs(f.where(is_flat, x, y)), abs(f.where(is_flat, y, x))
    excess = (large - 1.0) * (large + 1.0) + small * small
    return Complex(_log_modulus(f, x, y, excess), f("atan2", y, x))


def _log1p(f, z):
    x, y = z
    whole = x + 1.0
    return Complex(_log_modulus(f, whole, y, x * (x + 2.0) + y * y), f("atan2", y, whole))


def _log2(f, z):
    return _times(_log(f, z), 1 / math.log(2))


def _log10(f, z):
    return _times(_log(f, z), 1 / math.log(10))


def _logistic(f, z):
    grown = _exp(f, _neg(f, z))
    return _reciprocal(f, Complex(grown.re + 1.0, grown.im))


def _sqrt(f, z):
    x, y, scale = _bring_near(f, *z)
    root = _of_scale(f, scale, lambda number: number**-0.5)
    size = f("sqrt", 0.5 * (abs(x) + f("sqrt", x * x + y * y)))
    other = 0.5 * abs(y) / f.where(size == 0.0, 1.0, size)
    is_right = x >= 0.0
    re = f.where(is_right, size, other) * root
    im = f.where(is_right, other, size) * root
    is_high = f.is_infinite(y)
    re = f.where(is_high | (x == math.inf), math.inf, re)
    im = f.where(is_high | (x == -math.inf), math.inf, im)
    return Complex(re, f("copysign", im, y))


def _rsqrt(f, z):
    return _reciprocal(f, _sqrt(f, z))


def _pow(f, x, y):
    size, angle = _abs(f, x), f("atan2", x.im, x.re)
    grown = f("pow", size, y.re) * f("exp", -y.im * angle)
    turned = y.re * angle + f.where(y.im == 0.0, 0.0, y.im * f("log", size))
    result = Complex(grown * f("cos", turned), grown * f("sin", turned))
    is_one, is_zero = (y.re == 0.0) & (y.im == 0.0), (size == 0.0) & (y.re > 0.0)
    re = f.where(is_one, 1.0, f.where(is_zero, 0.0, result.re))
    return Complex(re, f.where(is_one | is_zero, 0.0, result.im))


# -- hyperbolic and trigonometric functions ----------------------------------------------------------------
def _cosh_sinh(f, x):
    """(cosh x, sinh x, scale), of which the first two are to be multiplied by the third in the end."""
    facts = _FORMATS[f.dtype]
    size = abs(x)
    is_large = size > facts.limit
    grown = f("expm1", size - f.where(is_large, facts.shift, 0.0))
    whole = grown + 1.0
    rest, half = grown / whole, 0.5 * whole
    cosh = f.where(is_large, half, 1.0 + 0.5 * grown * rest)
    sinh = f.where(is_large, half, 0.5 * (grown + rest))
    return cosh, f("copysign", sinh, x), f.where(is_large, math.exp(facts.shift), 1.0)


def _cosh(f, z):
    x, y = z
    cosh, sinh, scale = _cosh_sinh(f, x)
    re, im = cosh * f("cos", y) * scale, sinh * f("sin", y) * scale
    is_far = ~f("is_finite", y)
    im = f.where(y == 0.0, y * f("copysign", 1.0, x), f.where((x == 0.0) & is_far, x, im))
    return Complex(f.where(f.is_infinite(x) & is_far, math.inf, re), im)


def _sinh(f, z):
    x, y = z
    cosh, sinh, scale = _cosh_sinh(f, x)
    re, im = sinh * f("cos", y) * scale, cosh * f("sin", y) * scale
    stays = ((x == 0.0) | f.is_infinite(x)) & ~f("is_finite", y)
    return Complex(f.where(stays, x, re), f.where(y == 0.0, y, im))


def _tanh(f, z):
    """Kahan's formula, with sinh of an argument that may be squared."""
    x, y = z
    clamp = _FORMATS[f.dtype].clamp
    size, slope = abs(x), f("tan", y)
    is_large = size > clamp
    near = f.where(is_large, clamp, size)
    sinh = f("sinh", near)
    steep = 1.0 + slope * slope
    whole = 1.0 + steep * sinh * sinh
    re = f.where(is_large, slope * 0.0 + 1.0, steep * f("sqrt", 1.0 + sinh * sinh) * sinh / whole)
    im = slope / whole * f("exp", 2.0 * (near - size))
    is_limit = f.is_infinite(x) & ~f("is_finite", y)
    re = f.where(x == 0.0, x, f("copysign", f.where(is_limit, 1.0, re), x))
    return Complex(re, f.where(y == 0.0, y, f.where(is_limit, f("copysign", 0.0, y), im)))


def _turn(f, z):
    """iz."""
    return Complex(-z.im, z.re)


def _turn_back(f, z):
    """-iz."""
    return Complex(z.im, -z.re)


def _turned(function):
    """z -> -i function(iz): what makes sin of sinh, tan of tanh, and their inverses."""
    return lambda f, z: _turn_back(f, function(f, _turn(f, z)))


# -- inverse functions --------------------------------------------------------------------------------------
def _roots(f, z):
    """sqrt(1 - z), sqrt(1 + z)."""
    return _sqrt(f, Complex(1.0 - z.re, -z.im)), _sqrt(f, Complex(1.0 + z.re, z.im))


def _is_far(f, z):
    return f.is_infinite(z.re) | f.is_infinite(z.im)


def _direction(f, z):
    """The direction of an infinite number, as a finite one."""
    return Complex(*(f("copysign", f.where(f.is_infinite(part), 1.0, part * 0.0), part) for part in z))


def _select(f, condition, x, y):
    return Complex(f.where(condition, x.re, y.re), f.where(condition, x.im, y.im))


def _sum_products(x, y, sign):
    """(x[0] * x[1] + sign * y[0] * y[1], half of it, which is a number where that is beyond all numbers)."""
    return (x[0] * x[1] + sign * (y[0] * y[1]), 0.5 * x[0] * x[1] + sign * (0.5 * y[0] * y[1]))


def _asinh_of_sum(f, whole, half):
    far = f("copysign", f("log", abs(half)) + math.log(4.0), half)
    return f.where(f.is_infinite(whole), far, f("asinh", whole))


def _asin(f, z):
    minus, plus = _roots(f, z)
    whole, half = _sum_products((minus.re, plus.re), (minus.im, plus.im), -1.0)
    is_large = f.is_infinite(whole)
    re = f("atan2", f.where(is_large, 0.5 * z.re, z.re), f.where(is_large, half, whole))
    im = _asinh_of_sum(f, *_sum_products((minus.re, plus.im), (minus.im, plus.re), -1.0))
    to = _direction(f, z)
    limit = Complex(f("atan2", to.re, abs(to.im)), f("copysign", math.inf, z.im))
    return _select(f, _is_far(f, z), limit, Complex(f.where(z.re == 0.0, z.re, re), im))


def _acos(f, z):
    minus, plus = _roots(f, z)
    re = 2.0 * f("atan2", minus.re, plus.re)
    im = _asinh_of_sum(f, *_sum_products((plus.re, minus.im), (plus.im, minus.re), -1.0))
    to = _direction(f, z)
    limit = Complex(f("atan2", abs(to.im), to.re), f("copysign", math.inf, -z.im))
    return _select(f, _is_far(f, z), limit, Complex(f.where(z.re == 0.0, math.pi / 2, re), im))


def _acosh(f, z):
    minus, plus = _sqrt(f, Complex(z.re - 1.0, z.im)), _sqrt(f, Complex(z.re + 1.0, z.im))
    re = _asinh_of_sum(f, *_sum_products((minus.re, plus.re), (minus.im, plus.im), 1.0))
    im = 2.0 * f("atan2", minus.im, plus.re)
    to = _direction(f, z)
    im = f.where(z.re == 0.0, f("copysign", math.pi / 2, z.im), im)
    limit = Complex(math.inf, f("atan2", to.im, to.re))
    return _select(f, _is_far(f, z), limit, Complex(re, im))


def _atanh(f, z):
    x, y = abs(z.re), z.im
    near = 1.0 - x
    ratio = 2.0 * f("sqrt", x) / f("hypot", near, y)
    size = f.where(ratio > 2.0**30, 2.0 * f("log", ratio), f("log1p", ratio * ratio))
    re = f.where(x == 0.0, x, 0.25 * size)
    im = 0.5 * f("atan2", y, 0.5 * (near * (1.0 + x) - y * y))
    limit = Complex(0.0, f.where(y == y, f("copysign", math.pi / 2, y), y))
    result = _select(f, _is_far(f, z), limit, Complex(re, im))
    return Complex(f("copysign", result.re, z.re), result.im)


# The scalar operations that take complex numbers, and `complex`, which makes them.
OPERATIONS = {
    "complex": lambda f, re, im: Complex(re, im), "real": lambda f, z: z.re, "imag": lambda f, z: z.im,
    "conj": _conj, "neg": _neg, "abs": _abs, "sign": _sign, "add": _add, "sub": _sub, "mul": _mul,
    "div": _div, "square": _square, "eq": _eq, "ne": _ne, "max": _extreme("gt"), "min": _extreme("lt"),
    "exp": _exp, "exp2": _exp2, "expm1": _expm1, "log": _log, "log2": _log2, "log10": _log10, "log1p": _log1p,
    "logistic": _logistic, "sqrt": _sqrt, "rsqrt": _rsqrt, "pow": _pow, "cosh": _cosh, "sinh": _sinh,
    "tanh": _tanh, "cos": lambda f, z: _cosh(f, _turn(f, z)), "sin": _turned(_sinh), "tan": _turned(_tanh),
    "asin": _asin, "acos": _acos, "atan": _turned(_atanh), "asinh": _turned(_asin), "acosh": _acosh,
    "atanh": _atanh}
