"""Universal functions: arithmetic, elementary functions, bits, rounding, complex parts.

In: arrays and scalars that broadcast. Out: one array in the dtype where they meet (a float one for elementary
functions). Most are one line: a name, the primitive, and how the dtype is chosen.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray
from jitcore.core.source import api_boundary
from jitcore.core.trace import context, eval_trace
from jitcore.numpy.arrays.promotion import (apply_elementwise, apply_select, convert_dtype, ensure_array,
                                            operand_type, promote, promote_arrays, promote_typed, to_numeric)


class Ufunc:
    """A broadcasting function of two operands, such as `jnp.add`; its methods stand in `methods.py`.

    Args:
        function: `function(x, y, /)`.
        identity: what `reduce` gives for an empty axis; None where there is none."""

    nin = 2

    def __init__(self, function, identity=None):
        functools.update_wrapper(self, function)
        self.__name__ = self.__qualname__ = function.__name__.rstrip("_")
        self.__signature__ = inspect.signature(function)
        self._function, self.identity = function, identity
        self.nout = 2 if self.__name__ == "divmod" else 1

    nargs = property(lambda self: self.nin)

    @api_boundary
    def __call__(self, x, y, /):
        return self._function(x, y)

    def __reduce__(self):
        return self.__qualname__  # found there by name

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"


_UNARY = inspect.Signature([inspect.Parameter("x", inspect.Parameter.POSITIONAL_ONLY)])


def define_unary(name: str, function, to, doc: str):
    """The NumPy-style function of a unary primitive. `to`: maps the operand's dtype to the primitive's."""
    primitive = function.primitive

    def ufunc(x, /):
        if x.__class__ is ConcreteArray and context.trace is eval_trace and x.dtype.kind == "f":
            return apply_elementwise(primitive, (x,))
        return apply_elementwise(primitive, promote(name, x, to=to))

    ufunc.__name__ = ufunc.__qualname__ = name
    ufunc.__doc__ = f"{doc}\n\nSame as: `numpy.{name}`; shape of x."
    ufunc.__signature__ = _UNARY
    return ufunc


_INEXACT = dtypes.inexact_dtype
exp = define_unary("exp", lax.exp, _INEXACT, "e to the power x.")
exp2 = define_unary("exp2", lax.exp2, _INEXACT, "2 to the power x.")
expm1 = define_unary("expm1", lax.expm1, _INEXACT, "exp(x) - 1, accurate near 0.")
log = define_unary("log", lax.log, _INEXACT, "Natural logarithm.")
log2 = define_unary("log2", lax.log2, _INEXACT, "Logarithm to base 2.")
log10 = define_unary("log10", lax.log10, _INEXACT, "Logarithm to base 10.")
log1p = define_unary("log1p", lax.log1p, _INEXACT, "log(1 + x), accurate near 0.")
sin = define_unary("sin", lax.sin, _INEXACT, "Sine of x in radians.")
cos = define_unary("cos", lax.cos, _INEXACT, "Cosine of x in radians.")
tan = define_unary("tan", lax.tan, _INEXACT, "Tangent of x in radians.")
arcsin = define_unary("arcsin", lax.asin, _INEXACT, "Inverse sine in radians, in [-pi/2, pi/2].")
arccos = define_unary("arccos", lax.acos, _INEXACT, "Inverse cosine in radians, in [0, pi].")
arctan = define_unary("arctan", lax.atan, _INEXACT, "Inverse tangent in radians, in [-pi/2, pi/2].")
sinh = define_unary("sinh", lax.sinh, _INEXACT, "Hyperbolic sine.")
cosh = define_unary("cosh", lax.cosh, _INEXACT, "Hyperbolic cosine.")
tanh = define_unary("tanh", lax.tanh, _INEXACT, "Hyperbolic tangent.")
arcsinh = define_unary("arcsinh", lax.asinh, _INEXACT, "Inverse hyperbolic sine.")
arccosh = define_unary("arccosh", lax.acosh, _INEXACT, "Inverse hyperbolic cosine.")
arctanh = define_unary("arctanh", lax.atanh, _INEXACT, "Inverse hyperbolic tangent.")
sqrt = define_unary("sqrt", lax.sqrt, _INEXACT, "Square root; NaN for negative reals.")
cbrt = define_unary("cbrt", lax.cbrt, _INEXACT, "Real cube root.")
square = define_unary("square", lax.square, to_numeric, "x * x.")
negative = define_unary("negative", lax.neg, None, "-x.")
sign = define_unary("sign", lax.sign, None, "-1, 0 or 1 by the sign of x; NaN stays NaN.")
bitwise_not = define_unary("bitwise_not", lax.bitwise_not, None, "Bitwise (for bools logical) complement.")


def define_binary(name: str, function, to, doc: str, identity=None) -> Ufunc:
    """The NumPy-style function of a binary primitive, with `reduce`, `outer` and their like."""
    primitive = function.primitive

    def ufunc(x, y, /):
        return apply_elementwise(primitive, promote(name, x, y, to=to))

    ufunc.__name__ = ufunc.__qualname__ = name
    ufunc.__doc__ = f"{doc}\n\nSame as: `numpy.{name}`; the shapes of x and y broadcast."
    return Ufunc(ufunc, identity)


add = define_binary("add", lax.add, None, "x + y; logical or for bools.", 0)
subtract = define_binary("subtract", lax.sub, None, "x - y.")
multiply = define_binary("multiply", lax.mul, None, "x * y; logical and for bools.", 1)
true_divide = define_binary("true_divide", lax.div, _INEXACT, "x / y, as a float.")
arctan2 = define_binary("arctan2", lax.atan2, _INEXACT, "Angle of the point (y, x) in radians, in [-pi, pi].")
nextafter = define_binary("nextafter", lax.nextafter, _INEXACT,
                          "The next representable value after x in the direction of y.")
copysign = define_binary("copysign", lax.copysign, _INEXACT, "|x| with the sign of y.")
bitwise_and = define_binary("bitwise_and", lax.bitwise_and, None, "x & y.", -1)
bitwise_or = define_binary("bitwise_or", lax.bitwise_or, None, "x | y.", 0)
bitwise_xor = define_binary("bitwise_xor", lax.bitwise_xor, None, "x ^ y.", 0)
left_shift = define_binary("left_shift", lax.shift_left, to_numeric, "x << y; 0 when y is the width or more.")


def ufunc(identity=None):
    """Decorator: a function of two operands becomes a `Ufunc`."""
    return lambda function: Ufunc(function, identity)


# -- arithmetic ---------------------------------------------------------------------------------------------
def positive(x, /):
    """+x: x itself. Same as: `numpy.positive`."""
    return ensure_array("positive", x)


def absolute(x, /):
    """Magnitude of each element; real for complex x. Same as: `numpy.absolute`."""
    (x,), dtype, _ = promote_typed("absolute", (x,))
    if dtypes.kind_of(dtype) in "bu":
        return ensure_array("absolute", x)
    return apply_elementwise(lax.abs.primitive, (x,))


def reject_complex(name: str, error: type[Exception], *operands):
    """The operands. Raises: error where they are complex."""
    if dtypes.is_complex(operands[0].dtype):
        raise error(f"{name} is not defined for complex numbers, got {operands[0].dtype.name}")
    return operands


def fabs(x, /):
    """Magnitude, as a float. Same as: `numpy.fabs`. Raises: TypeError for complex x."""
    (x,) = reject_complex("fabs", TypeError, *promote_arrays("fabs", x, to=_INEXACT))
    return apply_elementwise(lax.abs.primitive, (x,))


@ufunc()
def floor_divide(x, y, /):
    """Largest integer not above x / y, in the dtype where x and y meet. Same as: `numpy.floor_divide`.

    Integers: division by 0 gives -1 adjusted as for other quotients, as XLA does."""
    (x, y), dtype, _ = promote_typed("floor_divide", (x, y), to_numeric)
    kind = dtypes.kind_of(dtype)
    if kind == "u":
        return apply_elementwise(lax.div.primitive, (x, y))
    if kind == "i":
        if _is_power_of_two(y):
            places = y.__class__(int(y).bit_length() - 1)
            return apply_elementwise(lax.shift_right_arithmetic.primitive, (x, places))
        quotient = apply_elementwise(lax.div.primitive, (x, y))
        remainder = apply_elementwise(lax.rem.primitive, (x, y))
        inexact = has_mixed_signs(remainder, y)
        return apply_select(inexact, subtract(quotient, 1), quotient)
    if kind == "c":
        raise TypeError("floor_divide does not support complex-valued inputs")
    return _float_divmod(x, y)[0]


def _is_power_of_two(y) -> bool:
    """Whether a divisor is known to be 1, 2, 4, ...: then bits are moved or masked and nothing is divided."""
    return not isinstance(y, (Array, np.ndarray)) and int(y) > 0 and int(y).bit_count() == 1


def has_mixed_signs(remainder, y):
    """Whether the remainder is not 0 and its sign is not y's: where truncation and floor differ."""
    nonzero = apply_elementwise(lax.ne.primitive, promote("remainder", remainder, 0))
    differ = apply_elementwise(
        lax.ne.primitive, (apply_elementwise(lax.lt.primitive, promote("remainder", remainder, 0)),
                           apply_elementwise(lax.lt.primitive, promote("remainder", y, 0))))
    return apply_elementwise(lax.bitwise_and.primitive, (nonzero, differ))


def _float_divmod(x, y):
    """Quotient and remainder of floats with the remainder's sign that of y; x / 0 is the float quotient."""
    truncated = apply_elementwise(lax.rem.primitive, (x, y))
    mixed = has_mixed_signs(truncated, y)
    remainder = apply_select(mixed, add(truncated, y), truncated)
    is_zero = apply_elementwise(lax.eq.primitive, promote("floor_divide", y, 0))
    whole = apply_select(is_zero, x, subtract(x, truncated))
    quotient = apply_elementwise(lax.div.primitive, (whole, y))
    quotient = apply_elementwise(lax.round_half_even.primitive, (quotient,))
    return apply_select(mixed, subtract(quotient, 1), quotient), remainder


@ufunc()
def remainder(x, y, /):
    """x modulo y with the sign of y. Same as: `numpy.remainder`; integers modulo 0 give 0."""
    (x, y), dtype, _ = promote_typed("remainder", (x, y), to_numeric)
    y = _replace_zero(y, dtype)
    if not dtypes.is_inexact(dtype) and _is_power_of_two(y):
        return apply_elementwise(lax.bitwise_and.primitive, (x, y.__class__(int(y) - 1)))
    truncated = apply_elementwise(lax.rem.primitive, (x, y))
    if dtypes.kind_of(dtype) == "u":
        return truncated
    return apply_select(has_mixed_signs(truncated, y), add(truncated, y), truncated)


def _replace_zero(y, dtype):
    """An integer divisor with 1 for 0, so that the remainder is 0. A constant needs no equations for it."""
    if dtypes.is_inexact(dtype):
        return y
    if not isinstance(y, (Array, np.ndarray)):
        return y if y else y.__class__(1)
    is_zero = apply_elementwise(lax.eq.primitive, (y, np.zeros((), dtype)[()]))
    return apply_select(is_zero, lax.full_like(y, 1, shape=()), y)


@ufunc()
def fmod(x, y, /):
    """Remainder of the division towards zero; it has the sign of x. Same as: `numpy.fmod`.

    Integers modulo 0 give 0."""
    (x, y), dtype, _ = promote_typed("fmod", (x, y), to_numeric)
    return apply_elementwise(lax.rem.primitive, (x, _replace_zero(y, dtype)))


@ufunc()
def divmod_(x, y, /):
    """`(x // y, x % y)`. Same as: `numpy.divmod`."""
    operands, dtype, _ = promote_typed("divmod", (x, y), to_numeric)
    if dtypes.is_floating(dtype):
        return _float_divmod(*operands)
    return floor_divide(*operands), remainder(*operands)


# -- powers and exponentials --------------------------------------------------------------------------------
@ufunc()
def power(x, y, /):
    """x to the power y. Same as: `numpy.power`.

    An integer y that is known, a Python int or an array without axes, becomes `integer_pow` (repeated
    multiplication) in the dtype of x. Integers wrap around; the bits of a negative exponent in an array count
    as those of an unsigned one; a negative known integer raises TypeError for integers x."""
    y = _read_exponent(y)
    if isinstance(y, int) and not isinstance(y, (bool, np.generic)):
        (x,), dtype, _ = promote_typed("power", (x,), to_numeric)
        return lax.integer_pow(ensure_array("power", x), y)
    # An exponent array is strongly typed whatever it is converted to, also where x is a Python number.
    if isinstance(y, Array) and y.dtype == dtypes.bool_ and isinstance(x, int):
        y = convert_dtype(y, dtypes.default_dtype("i"))
    if isinstance(y, Array) and dtypes.is_integer(y.dtype):
        base = operand_type("power", 0, x)[0]
        y = convert_dtype(y, dtypes.result_type(x, y)) if dtypes.is_inexact(base) else y
    (x, y), dtype, _ = promote_typed("power", (x, y), to_numeric)
    if dtypes.is_inexact(dtype):
        return apply_elementwise(lax.pow.primitive, (x, y))
    return _integer_power(x, y, dtype)


def _read_exponent(y):
    """A known integer as a Python int. One of more bits than integers have by default stays: it widens x."""
    if not isinstance(y, (ConcreteArray, np.ndarray, np.integer)) or y.ndim or not dtypes.is_integer(y.dtype):
        return y
    return int(y) if y.dtype.itemsize <= dtypes.default_dtype("i").itemsize else y


def _integer_power(base, exponent, dtype):
    """Binary exponentiation by the low six bits of the exponent, then the 64th power to the rest of it."""
    one = 1 if not hasattr(base, "dtype") else base.dtype.type(1)
    is_odd, rest = _bit_is_set(base), _shift_right(exponent, 6)
    result = apply_select(_bit_is_set(exponent), base, one)
    for _ in range(5):
        base, exponent = multiply(base, base), _shift_right(exponent, 1)
        result = apply_select(_bit_is_set(exponent), multiply(result, base), result)
    of_odd = multiply(result, _power_of_one_more(subtract(multiply(base, base), one), rest, dtype))
    of_even = apply_select(_is_zero(rest), result, multiply(result, 0))
    return apply_select(is_odd, of_odd, of_even)


def _power_of_one_more(u, n, dtype):
    """(1 + u) ** n by the binomial series, for multiples u of 256: 64th powers of odd numbers are one more.

    Terms from the one with 256 to the number of bytes on wrap to 0. Each is made of the one before; the bits
    that a quotient of u lacks at the top do not matter, as that one is a multiple of 256."""
    total, term = 1, 1
    for k in range(dtype.itemsize - 1):
        twos = ((k + 1) & -(k + 1)).bit_length() - 1
        inverse = builtins.pow((k + 1) >> twos, -1, 2 ** (8 * dtype.itemsize))
        factor = _shift_right(u, twos) if twos else u
        if inverse != 1:
            factor = multiply(factor, int(np.array(inverse, np.uint64).astype(dtype)))
        term = multiply(multiply(term, subtract(n, k) if k else n), factor)
        total = add(total, term)
    return total


def _shift_right(x, bits: int):
    return apply_elementwise(lax.shift_right_logical.primitive, promote("power", x, bits))


def _is_zero(x):
    return apply_elementwise(lax.eq.primitive, promote("power", x, 0))


def _bit_is_set(exponent):
    low = apply_elementwise(lax.bitwise_and.primitive, promote("power", exponent, 1))
    return apply_elementwise(lax.ne.primitive, promote("power", low, 0))


@ufunc()
def float_power(x, y, /):
    """x to the power y, always in floating point. Same as: `numpy.float_power`."""
    return apply_elementwise(lax.pow.primitive, promote("float_power", x, y, to=_INEXACT))


def reciprocal(x, /):
    """1 / x, as a float. Same as: `numpy.reciprocal`."""
    (x,) = promote("reciprocal", x, to=_INEXACT)
    return true_divide(1, x)


# -- extrema ------------------------------------------------------------------------------------------------
def compare_complex(primitive, x, y):
    """An ordering of complex numbers: by their real, then imaginary parts."""
    same_real = apply_elementwise(lax.eq.primitive, (real(x), real(y)))
    by_imag = apply_elementwise(primitive, (imag(x), imag(y)))
    by_real = apply_elementwise(primitive, (real(x), real(y)))
    return apply_select(same_real, by_imag, by_real)


def _define_extremum(name: str, function, compare, doc: str) -> Ufunc:
    def extremum(x, y, /):
        (x, y), dtype, _ = promote_typed(name, (x, y))
        if dtypes.is_complex(dtype):
            return apply_select(compare_complex(compare.primitive, x, y), x, y)
        return apply_elementwise(function.primitive, (x, y))

    extremum.__name__ = extremum.__qualname__ = name
    order = "complex numbers are ordered by their real, then imaginary parts."
    extremum.__doc__ = f"{doc} Same as: `numpy.{name}`; {order}"
    return Ufunc(extremum)


maximum = _define_extremum("maximum", lax.max, lax.gt, "Larger of x and y; NaN if either is NaN.")
minimum = _define_extremum("minimum", lax.min, lax.lt, "Smaller of x and y; NaN if either is NaN.")


def _ignore_nan(name: str, extremum, comparison, x, y):
    x, y = promote_arrays(name, x, y)
    if not dtypes.is_inexact(x.dtype):
        return extremum(x, y)
    x_is_nan, y_is_nan = (apply_elementwise(lax.ne.primitive, (v, v)) for v in (x, y))
    if dtypes.is_complex(x.dtype):
        return apply_select(x_is_nan, y, apply_select(y_is_nan, x, extremum(x, y)))
    is_first = apply_elementwise(comparison.primitive, (x, y))
    return apply_select(apply_elementwise(lax.bitwise_or.primitive, (is_first, y_is_nan)), x, y)


@ufunc()
def fmax(x, y, /):
    """Larger of x and y; the other one where one is NaN. Same as: `numpy.fmax`."""
    return _ignore_nan("fmax", maximum, lax.gt, x, y)


@ufunc()
def fmin(x, y, /):
    """Smaller of x and y; the other one where one is NaN. Same as: `numpy.fmin`."""
    return _ignore_nan("fmin", minimum, lax.lt, x, y)


@ufunc()
def right_shift(x, y, /):
    """x >> y, filling with the sign bit. Same as: `numpy.right_shift`."""
    operands, dtype, _ = promote_typed("right_shift", (x, y), to_numeric)
    shift = lax.shift_right_logical if dtypes.kind_of(dtype) == "u" else lax.shift_right_arithmetic
    return apply_elementwise(shift.primitive, operands)


def bitwise_count(x, /):
    """Number of set bits of |x|, as uint8. Same as: `numpy.bitwise_count`."""
    x = absolute(ensure_array("bitwise_count", x))
    if x.dtype == dtypes.bool_:
        return convert_dtype(x, dtypes.uint8)
    return convert_dtype(apply_elementwise(lax.population_count.primitive, (x,)), dtypes.uint8)


# -- angles -------------------------------------------------------------------------------------------------
def deg2rad(x, /):
    """Degrees to radians. Same as: `numpy.deg2rad`."""
    return multiply(*promote("deg2rad", x, to=_INEXACT), np.pi / 180)


def rad2deg(x, /):
    """Radians to degrees. Same as: `numpy.rad2deg`."""
    return multiply(*promote("rad2deg", x, to=_INEXACT), 180 / np.pi)


def sinc(x, /):
    """sin(pi x) / (pi x), 1 at 0. Same as: `numpy.sinc`."""
    (x,) = promote_arrays("sinc", x, to=_INEXACT)
    angle = multiply(x, np.pi)
    is_small = apply_elementwise(lax.lt.primitive, promote("sinc", absolute(angle), 0.0625))
    safe = apply_select(is_small, angle.dtype.type(1), angle)
    ratio = apply_select(is_small, _sinc_near_zero(angle), true_divide(sin(safe), safe))
    return convert_dtype(ratio, x.dtype, x.weak_type)


def _sinc_near_zero(angle):
    """The series of sin(a) / a in a**2: so that derivatives of each order are right at 0 and beside it."""
    square_of_angle, total = square(angle), 0.0
    for k in reversed(range(6)):
        total = add(multiply(total, square_of_angle), (-1.0) ** k / math.factorial(2 * k + 1))
    return total


# -- complex parts ------------------------------------------------------------------------------------------
def real(val, /):
    """Real part; val itself where it is real. Same as: `numpy.real`."""
    val = ensure_array("real", val)
    return apply_elementwise(lax.real.primitive, (val,)) if dtypes.is_complex(val.dtype) else val


def imag(val, /):
    """Imaginary part; zeros for real val. Same as: `numpy.imag`."""
    val = ensure_array("imag", val)
    is_complex = dtypes.is_complex(val.dtype)
    return apply_elementwise(lax.imag.primitive, (val,)) if is_complex else lax.full_like(val, 0)


def conjugate(x, /):
    """Complex conjugate; x itself where it is real. Same as: `numpy.conjugate`."""
    x = ensure_array("conjugate", x)
    return apply_elementwise(lax.conj.primitive, (x,)) if dtypes.is_complex(x.dtype) else x


def angle(z, deg: bool = False):
    """Argument of a complex number, in radians or degrees. Same as: `numpy.angle`."""
    z = ensure_array("angle", z)
    if not dtypes.is_inexact(z.dtype):
        dtypes.reject_narrow("angle", z.dtype)
        z = convert_dtype(z, dtypes.canonicalize_for(float, z.dtype))
    result = arctan2(imag(z), real(z))
    return rad2deg(result) if deg else result


divide = true_divide
pow = power
mod = remainder
divmod = divmod_
conj = conjugate
abs = absolute
radians, degrees = deg2rad, rad2deg
invert = bitwise_invert = bitwise_not
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift
asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh

__all__ = ["abs", "absolute", "acos", "acosh", "add", "angle", "arccos", "arccosh", "arcsin", "arcsinh",
           "arctan", "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
           "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
           "bitwise_right_shift", "bitwise_xor", "cbrt", "conj", "conjugate", "copysign", "cos", "cosh",
           "deg2rad", "degrees", "divide", "divmod", "exp", "exp2", "expm1", "fabs", "float_power",
           "floor_divide", "fmax", "fmin", "fmod", "imag", "invert", "left_shift", "log", "log10",
           "log1p", "log2", "maximum", "minimum", "mod", "multiply", "negative",
           "nextafter", "positive", "pow", "power", "rad2deg", "radians", "real", "reciprocal", "remainder",
           "right_shift", "sign", "sin", "sinc", "sinh", "sqrt", "square", "subtract", "tan", "tanh",
           "true_divide"]
