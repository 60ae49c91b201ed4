"""Elementwise primitives: arithmetic, comparison, elementary functions, dtype conversion, selection.

In: operands of one dtype and one shape (scalars broadcast). Out: one array of that shape.
Integer corner cases follow XLA: `x / 0 == -1`, `x % 0 == x`; float-to-integer
conversion saturates with NaN giving 0.
"""

from __future__ import annotations

import enum
import functools

import numpy as np

from jitcore import dtypes
from jitcore.core.aval import ShapedArray, aval_of
from jitcore.lax.define import ZERO_DERIVATIVE, cast, define, elementwise, join_shapes, to_operands
from jitcore.lax.lazy import LazyModule
from jitcore.transforms.batch_rules import batch_elementwise

special = LazyModule("scipy.special")

_TO_BOOL = dtypes.bool_


# -- arithmetic -------------------------------------------------------------------------------------------
@elementwise(impl=np.negative, hlo="negate", accepts="iufc", domain=(-10, 10),
             jvp=lambda t, ans, x: neg(t), transpose=lambda ct, x: neg(ct))  # fmt: skip
def neg(x):
    """`-x` of each element."""


@elementwise(impl=np.sign, hlo="sign", accepts="iufc", domain=(-10, 10))
def sign(x):
    """-1, 0 or 1 by the sign of x; NaN stays NaN; x/|x| for complex x."""


@elementwise(impl=np.abs, hlo="abs", accepts="iufc", result=dtypes.real_dtype, name="abs", domain=(-10, 10))
def abs_(x):
    """Magnitude of each element; real for complex x."""


@elementwise(impl=np.add, hlo="add", accepts="biufc", domain=(-10, 10),
             jvp=(lambda t, ans, x, y: t, lambda t, ans, x, y: t),
             transpose=(lambda ct, x, y: ct, lambda ct, x, y: ct))  # fmt: skip
def add(x, y):
    """`x + y`; logical or for bools."""


@elementwise(impl=np.subtract, hlo="subtract", accepts="iufc", domain=(-10, 10),
             jvp=(lambda t, ans, x, y: t, lambda t, ans, x, y: neg(t)),
             transpose=(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)))  # fmt: skip
def sub(x, y):
    """`x - y`."""


@elementwise(impl=np.multiply, hlo="multiply", accepts="biufc", domain=(-10, 10),
             jvp=(lambda t, ans, x, y: mul(t, y), lambda t, ans, x, y: mul(x, t)),
             transpose=(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)))  # fmt: skip
def mul(x, y):
    """`x * y`; logical and for bools."""


def _divide(x, y):
    if not dtypes.is_integer(x.dtype):
        return np.divide(x, y)
    quotient, remainder = np.floor_divide(x, y), np.remainder(x, y)
    toward_zero = quotient + ((remainder != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return np.where(y == 0, np.array(-1).astype(x.dtype), toward_zero).astype(x.dtype)


def _remainder(x, y):
    if not dtypes.is_integer(x.dtype):
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, y)).astype(x.dtype)


@elementwise(impl=_divide, hlo="divide", accepts="iufc", domain=(-10, 10),
             jvp=(lambda t, ans, x, y: div(t, y), lambda t, ans, x, y: mul(neg(t), div(ans, y))),
             transpose=(lambda ct, x, y: div(ct, y), None))  # fmt: skip
def div(x, y):
    """`x / y`; integers divide towards zero."""


@elementwise(impl=_remainder, hlo="remainder", accepts="iuf", domain=(-10, 10))
def rem(x, y):
    """Remainder of the division towards zero; it has the sign of x (C's `fmod`)."""


@elementwise(impl=np.maximum, hlo="maximum", accepts="biuf", domain=(-10, 10))
def max_(x, y):
    """Larger of x and y; NaN if either is NaN."""


@elementwise(impl=np.minimum, hlo="minimum", accepts="biuf", domain=(-10, 10))
def min_(x, y):
    """Smaller of x and y; NaN if either is NaN."""


@elementwise(impl=np.square, accepts="iufc", domain=(-10, 10))
def square(x):
    """`x * x`."""


@elementwise(impl=np.nextafter, accepts="f", domain=(-10, 10), compute_half_in_float32=False)
def nextafter(x, y):
    """The next representable value after x in the direction of y."""


# -- elementary functions -----------------------------------------------------------------------------------
@elementwise(impl=np.exp, hlo="exponential", domain=(-10, 10), jvp=lambda t, ans, x: mul(t, ans))
def exp(x):
    """e to the power x."""


@elementwise(impl=np.exp2, domain=(-10, 10))
def exp2(x):
    """2 to the power x."""


@elementwise(impl=np.expm1, hlo="exponential_minus_one", domain=(-2, 2))
def expm1(x):
    """exp(x) - 1, accurate near 0."""


@elementwise(impl=np.log, hlo="log", domain=(0.01, 10))
def log(x):
    """Natural logarithm."""


@elementwise(impl=np.log2, domain=(0.01, 10))
def log2(x):
    """Logarithm to base 2."""


@elementwise(impl=np.log10, domain=(0.01, 10))
def log10(x):
    """Logarithm to base 10."""


@elementwise(impl=np.log1p, hlo="log_plus_one", domain=(-0.9, 3))
def log1p(x):
    """log(1 + x), accurate near 0."""


@elementwise(impl=np.sin, hlo="sine", domain=(-10, 10), jvp=lambda t, ans, x: mul(t, cos(x)))
def sin(x):
    """Sine of x in radians."""


@elementwise(impl=np.cos, hlo="cosine", domain=(-10, 10), jvp=lambda t, ans, x: mul(t, neg(sin(x))))
def cos(x):
    """Cosine of x in radians."""


@elementwise(impl=np.tan, hlo="tan", domain=(-1.4, 1.4))
def tan(x):
    """Tangent of x in radians."""


@elementwise(impl=np.arcsin, domain=(-0.95, 0.95))
def asin(x):
    """Inverse sine, in radians in [-pi/2, pi/2]."""


@elementwise(impl=np.arccos, domain=(-0.95, 0.95))
def acos(x):
    """Inverse cosine, in radians in [0, pi]."""


@elementwise(impl=np.arctan, domain=(-5, 5))
def atan(x):
    """Inverse tangent, in radians in [-pi/2, pi/2]."""


@elementwise(impl=np.arctan2, hlo="atan2", accepts="f", domain=(-5, 5))
def atan2(x, y):
    """Angle of the point (y, x), in radians in [-pi, pi]."""


@elementwise(impl=np.sinh, domain=(-3, 3))
def sinh(x):
    """Hyperbolic sine."""


@elementwise(impl=np.cosh, domain=(-3, 3))
def cosh(x):
    """Hyperbolic cosine."""


@elementwise(impl=np.tanh, hlo="tanh", domain=(-3, 3))
def tanh(x):
    """Hyperbolic tangent."""


@elementwise(impl=np.arcsinh, domain=(-5, 5))
def asinh(x):
    """Inverse hyperbolic sine."""


@elementwise(impl=np.arccosh, domain=(1.1, 5))
def acosh(x):
    """Inverse hyperbolic cosine."""


@elementwise(impl=np.arctanh, domain=(-0.95, 0.95))
def atanh(x):
    """Inverse hyperbolic tangent."""


@elementwise(impl=np.sqrt, hlo="sqrt", domain=(0.01, 10))
def sqrt(x):
    """Square root."""


@elementwise(impl=lambda x: np.reciprocal(np.sqrt(x)), hlo="rsqrt", domain=(0.01, 10))
def rsqrt(x):
    """1 / sqrt(x)."""


@elementwise(impl=np.cbrt, hlo="cbrt", accepts="f", domain=(-10, 10))
def cbrt(x):
    """Real cube root."""


def _logistic(x):
    return special.expit(x) if not dtypes.is_complex(x.dtype) else 1 / (1 + np.exp(-x))


@elementwise(impl=_logistic, hlo="logistic", domain=(-10, 10), compute_half_in_float32=True)
def logistic(x):
    """Sigmoid, 1 / (1 + exp(-x))."""


@elementwise(impl=special.erf, accepts="f", domain=(-3, 3), compute_half_in_float32=True)
def erf(x):
    """Error function."""


@elementwise(impl=special.erfc, accepts="f", domain=(-3, 3), compute_half_in_float32=True)
def erfc(x):
    """1 - erf(x), accurate for large x."""


@elementwise(impl=special.erfinv, accepts="f", domain=(-0.95, 0.95), compute_half_in_float32=True)
def erf_inv(x):
    """Inverse of the error function."""


@elementwise(impl=special.gammaln, accepts="f", domain=(0.1, 10), compute_half_in_float32=True)
def lgamma(x):
    """Logarithm of the magnitude of the gamma function."""


@elementwise(impl=special.digamma, accepts="f", domain=(0.1, 10), compute_half_in_float32=True)
def digamma(x):
    """Derivative of lgamma."""


@elementwise(impl=np.power, hlo="power", domain=(0.1, 3), lower=lambda builder, x, y: builder.pow(x, y))
def pow_(x, y):
    """x to the power y, for floats of one dtype (`integer_pow` takes a static integer)."""


# -- rounding ---------------------------------------------------------------------------------------------
@elementwise(impl=np.floor, hlo="floor", accepts="f", domain=(-10, 10))
def floor(x):
    """Largest integer not above x, as a float."""


@elementwise(impl=np.ceil, hlo="ceil", accepts="f", domain=(-10, 10))
def ceil(x):
    """Smallest integer not below x, as a float."""


@elementwise(impl=np.trunc, accepts="f", domain=(-10, 10))
def trunc(x):
    """x without its fraction."""


@elementwise(impl=np.rint, hlo="round_nearest_even", accepts="f", domain=(-10, 10))
def round_half_even(x):
    """Nearest integer; halves go to the even one."""


@elementwise(impl=lambda x: np.copysign(np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= 0.5), x),
             hlo="round_nearest_afz", accepts="f", domain=(-10, 10))  # fmt: skip
def round_half_away(x):
    """Nearest integer; halves go away from zero."""


class RoundingMethod(enum.IntEnum):
    """Where halves go."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO):  # noqa: A001
    """Nearest integer, as a float; halves go where rounding_method says."""
    away = RoundingMethod(rounding_method) is RoundingMethod.AWAY_FROM_ZERO
    return (round_half_away if away else round_half_even)(x)


def reciprocal(x):
    """1 / x."""
    return integer_pow(x, -1)


# -- predicates and comparison
# --------------------------------------------------------------------------------
@elementwise(impl=np.isfinite, hlo="is_finite", accepts="f", result=_TO_BOOL, domain=(-10, 10))
def is_finite(x):
    """Whether x is neither infinite nor NaN."""


@elementwise(impl=np.signbit, accepts="f", result=_TO_BOOL, domain=(-10, 10))
def signbit(x):
    """Whether the sign bit is set."""


@elementwise(impl=np.copysign, accepts="f", domain=(-10, 10))
def copysign(x, y):
    """|x| with the sign of y."""


@elementwise(impl=np.equal, hlo="compare", accepts="biufc", result=_TO_BOOL, domain=(-2, 2),
             jvp=ZERO_DERIVATIVE)  # fmt: skip
def eq(x, y):
    """`x == y`."""


@elementwise(impl=np.not_equal, hlo="compare", accepts="biufc", result=_TO_BOOL, domain=(-2, 2),
             jvp=ZERO_DERIVATIVE)  # fmt: skip
def ne(x, y):
    """`x != y`."""


@elementwise(impl=np.less, hlo="compare", accepts="biuf", result=_TO_BOOL, domain=(-2, 2),
             jvp=ZERO_DERIVATIVE)  # fmt: skip
def lt(x, y):
    """`x < y`."""


@elementwise(impl=np.less_equal, hlo="compare", accepts="biuf", result=_TO_BOOL, domain=(-2, 2),
             jvp=ZERO_DERIVATIVE)  # fmt: skip
def le(x, y):
    """`x <= y`."""


@elementwise(impl=np.greater, hlo="compare", accepts="biuf", result=_TO_BOOL, domain=(-2, 2),
             jvp=ZERO_DERIVATIVE)  # fmt: skip
def gt(x, y):
    """`x > y`."""


@elementwise(impl=np.greater_equal, hlo="compare", accepts="biuf", result=_TO_BOOL, domain=(-2, 2),
             jvp=ZERO_DERIVATIVE)  # fmt: skip
def ge(x, y):
    """`x >= y`."""


# -- complex ----------------------------------------------------------------------------------------------
@elementwise(
    impl=lambda x: x.real.copy(), hlo="real", accepts="c", result=dtypes.real_dtype, domain=(-10, 10)
)
def real(x):
    """Real part."""


@elementwise(
    impl=lambda x: x.imag.copy(), hlo="imag", accepts="c", result=dtypes.real_dtype, domain=(-10, 10)
)
def imag(x):
    """Imaginary part."""


@elementwise(impl=np.conj, accepts="c", domain=(-10, 10))
def conj(x):
    """Complex conjugate."""


def _complex_of(dtype):
    if dtype.itemsize == 2:
        raise TypeError(f"complex does not accept dtype {dtype.name}. Accepted dtypes are float32, float64.")
    return dtypes.complex_dtype(dtype)


@elementwise(
    impl=lambda x, y: x + np.array(1j, dtypes.complex_dtype(x.dtype)) * y,
    hlo="complex",
    accepts="f",
    result=_complex_of,
    name="complex",
    domain=(-10, 10),
)
def complex_(x, y):
    """The complex number x + i y."""


# -- with static parameters
# -----------------------------------------------------------------------------------
def _integer_pow(x, *, y: int):
    return (
        np.power(x, np.array(y).astype(x.dtype))
        if y >= 0
        else np.reciprocal(np.power(x, np.array(-y, x.dtype)))
    )


@define("integer_pow", impl=_integer_pow, scalar_op="integer_pow", accepts="iufc", domain=(0.5, 3), arity=1,
        family="elementwise", aval=lambda x, *, y: x,
        lower=lambda builder, x, *, y: builder.integer_pow(x, y), batch=batch_elementwise)  # fmt: skip
def integer_pow(x, y: int):
    """x to a static integer power, by repeated multiplication."""
    if y < 0 and dtypes.is_integer(aval_of(x).dtype):
        raise TypeError("Integers cannot be raised to negative powers, got integer_pow(x, {y})".format(y=y))
    return integer_pow.primitive.bind(x, y=int(y))


def convert_dtype(x: np.ndarray, new_dtype) -> np.ndarray:
    """astype with saturating float-to-integer conversion (NaN gives 0); complex to real drops the imaginary
    part."""
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(new_dtype):
        x = x.real if new_dtype != np.bool_ else x != 0
    if dtypes.is_floating(x.dtype) and dtypes.is_integer(new_dtype):
        info = np.iinfo(new_dtype)
        wide = np.trunc(x.astype(np.float64))
        inside = (wide > float(info.min) - 1) & (wide < float(info.max) + 1)
        limits = np.where(wide > 0, np.asarray(info.max, new_dtype), np.asarray(info.min, new_dtype))
        converted = np.where(inside, wide, 0).astype(new_dtype)
        return np.where(np.isnan(wide), np.zeros_like(converted), np.where(inside, converted, limits))
    return x.astype(new_dtype)


@define("convert_element_type", impl=lambda x, *, new_dtype, weak_type: convert_dtype(x, new_dtype),
        aval=lambda x, *, new_dtype, weak_type: ShapedArray(x.shape, new_dtype, weak_type),
        lower=lambda builder, x, *, new_dtype, weak_type: builder.convert(x, new_dtype), hlo="convert",
        batch=batch_elementwise, family="elementwise", arity=1)  # fmt: skip
def convert_element_type(x, new_dtype):
    """x with another dtype. Float to integer truncates and saturates."""
    weak = dtypes.is_python_type(new_dtype)
    new_dtype = dtypes.canonicalize(new_dtype)
    aval = aval_of(x)
    if aval.dtype == new_dtype and aval.weak_type == weak and not isinstance(x, (int, float, complex)):
        return x
    return convert_element_type.primitive.bind(x, new_dtype=new_dtype, weak_type=weak)


def _bitcast_aval(x, *, new_dtype):
    if x.dtype.itemsize != np.dtype(new_dtype).itemsize:
        raise TypeError(f"bitcast_convert_type needs dtypes of one width, got {x.dtype.name} and {new_dtype}")
    return ShapedArray(x.shape, new_dtype)


@define(
    "bitcast_convert_type",
    impl=lambda x, *, new_dtype: np.ascontiguousarray(x).view(new_dtype).reshape(x.shape),
    aval=_bitcast_aval,
    lower=lambda builder, x, *, new_dtype: builder.bitcast(x, new_dtype),
    batch=batch_elementwise,
    hlo="bitcast_convert",
    family="elementwise",
    arity=1,
)
def bitcast_convert_type(x, new_dtype):
    """The same bits read as another dtype of the same width."""
    return bitcast_convert_type.primitive.bind(x, new_dtype=dtypes.canonicalize(new_dtype))


# -- selection --------------------------------------------------------------------------------------------
def _select_aval(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    if not cases or any(case.dtype != cases[0].dtype for case in cases):
        raise TypeError(
            f"select cases must have the same dtypes, got {', '.join(c.dtype.name for c in cases)}."
        )
    if which.dtype not in (dtypes.bool_, dtypes.int32):
        raise TypeError(f"select `which` must be boolean or int32 type, got {which.dtype.name}.")
    if which.dtype == dtypes.bool_ and len(cases) > 2:
        raise TypeError(f"select with boolean `which` takes at most two cases, got {len(cases)}.")
    shape = functools.reduce(functools.partial(join_shapes, "select"), [case.shape for case in cases])
    shape = join_shapes("select", shape, which.shape)
    return ShapedArray(shape, cases[0].dtype, all(case.weak_type for case in cases))


def _select(which, *cases):
    if len(cases) == 2:
        return np.where(which.astype(bool), cases[1], cases[0])
    return np.choose(np.clip(which, 0, len(cases) - 1), cases)


@define("select_n", impl=_select, aval=_select_aval, hlo="select", family="elementwise",
        lower=lambda builder, which, *cases: builder.select(which, *cases),
        batch=batch_elementwise)  # fmt: skip
def select_n(which, *cases):
    """`cases[which]` of each element: the first case where a bool `which` is False."""
    return select_n.primitive.bind(which, *to_operands("select_n", cases))


def select(pred, on_true, on_false):
    """on_true where pred, else on_false."""
    return select_n(pred, on_false, on_true)


def clamp(low, x, high):
    """x limited to [low, high]; the bounds are scalars or have x's shape."""
    aval = aval_of(x)
    low, high = (cast(bound, aval_of(bound), aval.dtype, aval.weak_type) for bound in (low, high))
    return min_(max_(x, low), high)
