"""Elementwise primitives: arithmetic, comparison, complex parts, conversion, selection.

In: operands of one dtype and one shape (scalars broadcast). Out: one array of that shape.
Integer corner cases follow XLA: `x / 0 == -1`, `x % 0 == x`; float-to-integer
conversion saturates with NaN giving 0.
"""

from __future__ import annotations

import functools
import operator

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.trace import own_ndarray
from jitcore.lax.bits import and_
from jitcore.lax.define import LINEAR, ZERO_DERIVATIVE, cast, define, elementwise, join_shapes, to_operands
from jitcore.lax.rounding import trunc
from jitcore.transforms.batch_rules import batch_elementwise
from jitcore.transforms.derivative_rules import (broadcast_to, jvp_elementwise, transpose_elementwise,
                                                 unbroadcast)
from jitcore.transforms.tangents import has_tangent, is_zero, mask, zero_like
from jitcore.transforms.transpose import is_linear

__all__ = ["add", "clamp", "conj", "convert_element_type", "copysign", "div", "eq", "ge", "gt",
           "imag", "integer_pow", "is_finite", "le", "lt", "mul", "ne", "neg", "nextafter",
           "real", "reciprocal", "rem", "select", "select_n", "sign", "signbit", "square", "sub"]

_TO_BOOL = dtypes.bool_


def _constant(value: float, like):
    """A number in the dtype of an operand."""
    aval = aval_of(like)
    return cast(value, aval_of(value), aval.dtype, aval.weak_type)


# -- arithmetic -------------------------------------------------------------------------------------------
@elementwise(impl=np.negative, hlo="negate", accepts="iufc", domain=(-10, 10), is_cheap=True,
             jvp=lambda t, ans, x: neg(t), transpose=lambda ct, x: neg(ct))
def neg(x):
    """`-x` of each element."""


@elementwise(impl=np.sign, hlo="sign", accepts="iufc", domain=(-10, 10), jvp=ZERO_DERIVATIVE)
def sign(x):
    """-1, 0 or 1 by the sign of x; NaN stays NaN; x/|x| for complex x."""


def _jvp_abs(t, ans, x):
    if not dtypes.is_complex(aval_of(x).dtype):
        return mul(t, select_n(ge(x, _constant(0.0, x)), _constant(-1.0, x), _constant(1.0, x)))
    size = select_n(eq(ans, 0.0), ans, 1.0)
    return real(mul(t, complex_(div(real(x), size), neg(div(imag(x), size)))))


@elementwise(impl=np.abs, hlo="abs", accepts="iufc", result=dtypes.real_dtype, name="abs", domain=(-10, 10),
             is_cheap=True, jvp=_jvp_abs)
def abs_(x):
    """Magnitude of each element; real for complex x."""


@elementwise(impl=np.add, hlo="add", accepts="biufc", domain=(-10, 10), is_cheap=True,
             jvp=(lambda t, ans, x, y: t, lambda t, ans, x, y: t),
             transpose=(lambda ct, x, y: ct, lambda ct, x, y: ct))
def add(x, y):
    """`x + y`; logical or for bools."""


@elementwise(impl=np.add, scalar_op="add", hlo="add", accepts="fc", domain=(-10, 10),
             jvp=(lambda t, ans, x, y: t, lambda t, ans, x, y: t),
             transpose=(lambda ct, x, y: ct, lambda ct, x, y: ct))
def add_any(x, y):
    """The sum of two derivatives, of which zeros have no sign: adding zero changes nothing."""


@elementwise(impl=np.subtract, hlo="subtract", accepts="iufc", domain=(-10, 10), is_cheap=True,
             jvp=(lambda t, ans, x, y: t, lambda t, ans, x, y: neg(t)),
             transpose=(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)))
def sub(x, y):
    """`x - y`."""


@elementwise(impl=np.multiply, hlo="multiply", accepts="biufc", domain=(-10, 10), is_cheap=True,
             jvp=(lambda t, ans, x, y: mul(t, y), lambda t, ans, x, y: mul(x, t)),
             transpose=(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
             transpose_sparse=(lambda ct, x, y: mul_sparse(ct, y),
                               lambda ct, x, y: mul_sparse(ct, x)))
def mul(x, y, *, out_dtype=None):
    """`x * y`; logical and for bools.

    Args:
        out_dtype: of the product, to which the operands are converted; theirs by default."""


@elementwise(impl=lambda x, y: np.where(x == 0, x.dtype.type(0), x * y), scalar_op="mul", accepts="fc",
             domain=(0.5, 3), lower=lambda builder, x, y: builder.select(
                 builder.map("eq", x, builder.constant(0, x.dtype)), builder.map("mul", x, y),
                 builder.constant(0, x.dtype)),
             jvp=(lambda t, ans, x, y: mul_sparse(t, y), lambda t, ans, x, y: mul_sparse(x, t)),
             transpose=(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul_sparse(x, ct)),
             transpose_sparse=(lambda ct, x, y: mul_sparse(ct, y),
                               lambda ct, x, y: mul_sparse(x, ct)))
def mul_sparse(x, y):
    """`x * y`, and 0 where x is 0, whatever y is: the product of a derivative with a slope, where zeros say
    that the element was not taken."""


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


@elementwise(impl=_divide, hlo="divide", accepts="iufc", domain=(-10, 10), cost=4, is_cheap=True,
             jvp=(lambda t, ans, x, y: div(t, y), lambda t, ans, x, y: mul(t, neg(div(ans, y)))),
             transpose=(lambda ct, x, y: div(ct, y), None),
             transpose_sparse=(lambda ct, x, y: mul_sparse(ct, div(_constant(1.0, y), y)), None))
def div(x, y):
    """`x / y`; integers divide towards zero."""


@elementwise(impl=_remainder, hlo="remainder", accepts="iuf", domain=(-10, 10), cost=8,
             jvp=(lambda t, ans, x, y: t, lambda t, ans, x, y: mul(t, neg(trunc(div(x, y))))))
def rem(x, y):
    """Remainder of the division towards zero; it has the sign of x (C's `fmod`)."""


def _take_extreme(t, x, holds, y):
    """The part of x in the tangent of an extremum of x and y: a half of t where they are equal, nothing (also
    of an infinite t) where x is not the extremum."""
    part = mul(t, select_n(eq(x, y), _constant(1.0, x), _constant(0.5, x)))
    return select_n(holds(x, y), _constant(0.0, x), part)


@elementwise(impl=np.maximum, hlo="maximum", accepts="biuf", domain=(-10, 10), is_cheap=True,
             jvp=(lambda t, ans, x, y: _take_extreme(t, x, ge, y),
                  lambda t, ans, x, y: _take_extreme(t, y, ge, x)))
def max_(x, y):
    """Larger of x and y; NaN if either is NaN."""


@elementwise(impl=np.minimum, hlo="minimum", accepts="biuf", domain=(-10, 10), is_cheap=True,
             jvp=(lambda t, ans, x, y: _take_extreme(t, x, le, y),
                  lambda t, ans, x, y: _take_extreme(t, y, le, x)))
def min_(x, y):
    """Smaller of x and y; NaN if either is NaN."""


@elementwise(impl=np.square, accepts="iufc", domain=(-10, 10), is_cheap=True,
             jvp=lambda t, ans, x: mul(t, mul(x, 2.0)))
def square(x):
    """`x * x`."""


def _lower_nextafter(builder, x, y):
    """In half precision by the bits, as operations in float32 have other neighbours."""
    if x.dtype.itemsize != 2:
        return builder.map("nextafter", x, y)
    zero, one = builder.constant(0, x.dtype), builder.constant(1, dtypes.int16)
    away = builder.map("xor", builder.map("gt", y, x), builder.map("lt", x, zero))
    step = builder.select(away, builder.constant(-1, dtypes.int16), one)
    stepped = builder.bitcast(builder.map("add", builder.bitcast(x, dtypes.int16), step), x.dtype)
    least = builder.constant(np.asarray(1, np.int16).view(np.float16) if x.dtype == dtypes.float16
                             else 2.0**-133, x.dtype)
    found = builder.select(builder.map("eq", x, zero), stepped, builder.map("copysign", least, y))
    found = builder.select(builder.map("eq", x, y), found, y)
    found = builder.select(builder.map("ne", x, x), found, x)
    return builder.select(builder.map("ne", y, y), found, y)


@elementwise(impl=np.nextafter, accepts="f", domain=(-10, 10), lower=_lower_nextafter)
def nextafter(x, y):
    """The next representable value after x in the direction of y."""


def reciprocal(x):
    """1 / x."""
    return integer_pow(x, -1)


# -- predicates and comparison ------------------------------------------------------------------------------
@elementwise(impl=np.isfinite, hlo="is_finite", accepts="f", result=_TO_BOOL, domain=(-10, 10),
             jvp=ZERO_DERIVATIVE)
def is_finite(x):
    """Whether x is neither infinite nor NaN."""


@elementwise(impl=np.signbit, accepts="f", result=_TO_BOOL, domain=(-10, 10), jvp=ZERO_DERIVATIVE)
def signbit(x):
    """Whether the sign bit is set."""


def _copysign_slope(x, y):
    flips = eq(ge(x, _constant(0.0, x)), signbit(y))
    return select_n(flips, _constant(1.0, x), _constant(-1.0, x))


@elementwise(impl=np.copysign, accepts="f", domain=(-10, 10),
             jvp=(lambda t, ans, x, y: mul(t, _copysign_slope(x, y)), None))
def copysign(x, y):
    """|x| with the sign of y."""


_comparison = functools.partial(elementwise, hlo="compare", result=_TO_BOOL, domain=(-2, 2),
                                jvp=ZERO_DERIVATIVE)


@_comparison(impl=operator.eq, accepts="biufck")  # the ufunc takes no keys
def eq(x, y):
    """`x == y`."""


@_comparison(impl=operator.ne, accepts="biufck")
def ne(x, y):
    """`x != y`."""


@_comparison(impl=np.less, accepts="biuf")
def lt(x, y):
    """`x < y`."""


@_comparison(impl=np.less_equal, accepts="biuf")
def le(x, y):
    """`x <= y`."""


@_comparison(impl=np.greater, accepts="biuf")
def gt(x, y):
    """`x > y`."""


@_comparison(impl=np.greater_equal, accepts="biuf")
def ge(x, y):
    """`x >= y`."""


# -- complex ----------------------------------------------------------------------------------------------
@elementwise(impl=lambda x: x.real.copy(), hlo="real", accepts="c", result=dtypes.real_dtype,
             domain=(-10, 10), jvp=LINEAR, transpose=lambda ct, x: complex_(ct, 0.0))
def real(x):
    """Real part."""


@elementwise(impl=lambda x: x.imag.copy(), hlo="imag", accepts="c", result=dtypes.real_dtype,
             domain=(-10, 10), jvp=LINEAR, transpose=lambda ct, x: complex_(0.0, neg(ct)))
def imag(x):
    """Imaginary part."""


@elementwise(impl=np.conj, name="conj", accepts="c", domain=(-10, 10), jvp=LINEAR,
             transpose=lambda ct, x: conj(ct))
def _conjugate(x):
    """Complex conjugate."""


def conj(x):
    """Complex conjugate; real numbers become complex ones."""
    return _conjugate(x) if dtypes.is_complex(aval_of(x).dtype) else complex_(x, 0.0)


conj.primitive = _conjugate.primitive


def _complex_of(dtype):
    if dtype.itemsize == 2:
        raise TypeError(f"complex does not accept dtype {dtype.name}. Accepted dtypes are float32, float64.")
    return dtypes.complex_dtype(dtype)


def _join_parts(x, y):
    return np.stack(np.broadcast_arrays(x, y), -1).view(dtypes.complex_dtype(x.dtype))[..., 0]


@elementwise(impl=_join_parts, accepts="f", result=_complex_of, name="complex", hlo="complex", jvp=LINEAR,
             domain=(-10, 10), transpose=(lambda ct, x, y: real(ct), lambda ct, x, y: neg(imag(ct))))
def complex_(x, y):
    """The complex number x + i y."""


# -- with static parameters ---------------------------------------------------------------------------------
def _integer_pow(x, *, y: int):
    if y < 0:
        return np.reciprocal(_integer_pow(x, y=-y))
    largest = np.iinfo(x.dtype).max if x.dtype.kind in "iu" else 2 / float(dtypes.finfo(x.dtype).eps)
    if y <= largest:  # else the exponent is another one as a number of that dtype
        return np.power(x, np.array(y).astype(x.dtype))
    result = np.ones_like(x)
    for bit in bin(y)[2:]:
        result = result * result * (x if bit == "1" else np.ones_like(x))
    return result


def _jvp_integer_pow(t, ans, x, *, y: int):
    if y == 0:
        return zero_like(ans)
    return t if y == 1 else mul(t, mul(x if y == 2 else integer_pow(x, y - 1), float(y)))


def _integer_pow_aval(x: ShapedArray, *, y: int) -> ShapedArray:
    dtypes.reject_narrow("integer_pow", x.dtype)
    return x


@define("integer_pow", impl=_integer_pow, scalar_op="integer_pow", accepts="iufc", domain=(0.5, 3), arity=1,
        family="elementwise", is_cheap=True, aval=_integer_pow_aval, jvp=jvp_elementwise(_jvp_integer_pow),
        lower=lambda builder, x, *, y: builder.integer_pow(x, y), batch=batch_elementwise)
def integer_pow(x, y: int):
    """x to a static integer power, by repeated multiplication."""
    if y < 0 and dtypes.is_integer(aval_of(x).dtype):
        raise TypeError("Integers cannot be raised to negative powers, got integer_pow(x, {y})".format(y=y))
    return integer_pow.primitive.bind(x, y=int(y))


def convert_dtype(x: np.ndarray, new_dtype) -> np.ndarray:
    """astype with saturating float-to-integer conversion (NaN gives 0); complex to real drops the imaginary
    part. Narrow integers wrap around as others do. Raises: ValueError from or to keys."""
    if x.dtype.names or dtypes.is_key(new_dtype):
        dtypes.reject_conversion(dtypes.of_ndarray(x.dtype), new_dtype)
        return x
    if dtypes.is_narrow(x.dtype):
        with np.errstate(invalid="ignore"):
            x = x.astype(np.float32 if dtypes.is_narrow_float(x.dtype) else np.int8)
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(new_dtype):
        x = x.real if new_dtype != np.bool_ else x != 0
    if dtypes.is_narrow(np.dtype(new_dtype)):
        return _narrow(x, new_dtype)
    if dtypes.is_floating(x.dtype) and dtypes.is_integer(new_dtype):
        info = np.iinfo(new_dtype)
        wide = np.trunc(x.astype(np.float64))
        inside = (wide > float(info.min) - 1) & (wide < float(info.max) + 1)
        limits = np.where(wide > 0, np.asarray(info.max, new_dtype), np.asarray(info.min, new_dtype))
        converted = np.where(inside, wide, 0).astype(new_dtype)
        return np.where(np.isnan(wide), np.zeros_like(converted), np.where(inside, converted, limits))
    return x.astype(new_dtype)


def _narrow(x: np.ndarray, new_dtype) -> np.ndarray:
    if dtypes.is_floating(x.dtype) and not dtypes.is_narrow_float(new_dtype):
        info = dtypes.iinfo(new_dtype)
        x = np.clip(convert_dtype(x, np.int32), int(info.min), int(info.max))
    with np.errstate(invalid="ignore", over="ignore"):
        return x.astype(np.float32 if dtypes.is_narrow_float(new_dtype) else np.int8).astype(new_dtype)


def _jvp_convert(t, ans, x, **params):
    return convert_element_type.primitive.bind(t, **params) if has_tangent(ans) else zero_like(ans)


def _transpose_convert(ct, x, **_):
    return convert_element_type.primitive.bind(ct, new_dtype=x.aval.dtype, weak_type=x.aval.weak_type)


def _convert_aval(x: ShapedArray, *, new_dtype, weak_type: bool) -> ShapedArray:
    dtypes.reject_conversion(x.dtype, new_dtype)
    return ShapedArray(x.shape, new_dtype, weak_type)


@define("convert_element_type", impl=lambda x, *, new_dtype, weak_type: convert_dtype(x, new_dtype),
        aval=_convert_aval,
        jvp=jvp_elementwise(_jvp_convert), transpose=transpose_elementwise(_transpose_convert),
        takes_masks=True,
        lower=lambda builder, x, *, new_dtype, weak_type: builder.convert(x, new_dtype), hlo="convert",
        batch=batch_elementwise, family="elementwise", arity=1)
def convert_element_type(x, new_dtype):
    """x with another dtype. Float to integer truncates and saturates."""
    if new_dtype is None:
        raise ValueError("convert_element_type needs a dtype, got None")
    weak = dtypes.is_python_type(new_dtype)
    new_dtype = dtypes.canonicalize(new_dtype)
    aval = aval_of(x)
    if aval.dtype == new_dtype and aval.weak_type == weak and not isinstance(x, (int, float, complex)):
        return own_ndarray(x) if isinstance(x, np.ndarray) else x
    return convert_element_type.primitive.bind(x, new_dtype=new_dtype, weak_type=weak)


def _cast(x: np.ndarray, new_dtype) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return x.astype(new_dtype)


@define("cast", impl=lambda x, *, new_dtype: _cast(x, new_dtype),
        aval=lambda x, *, new_dtype: ShapedArray(x.shape, new_dtype),
        jvp=jvp_elementwise(lambda t, ans, x, **_: zero_like(ans)),
        lower=lambda builder, x, *, new_dtype: builder.cast(x, new_dtype), hlo="convert",
        batch=batch_elementwise, family="elementwise", arity=1)
def cast_to_integer(x, new_dtype):
    """Floats as int32 or int64, as x86 converts them: what the type does not hold, NaN included, is its least
    number. NumPy's `astype` gives this there."""
    return cast_to_integer.primitive.bind(x, new_dtype=np.dtype(new_dtype))


# -- selection --------------------------------------------------------------------------------------------
def _select_aval(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    if not cases or any(case.dtype != cases[0].dtype for case in cases):
        raise TypeError(
            f"select cases must have the same dtypes, got {', '.join(c.dtype.name for c in cases)}.")
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


def _jvp_select(primitive, primals, tangents):
    ans, cases = primitive.bind(*primals), tangents[1:]
    if all(map(is_zero, cases)):
        return ans, zero_like(ans)
    zero = np.zeros((), aval_of(ans).dtype)[()]
    t = primitive.bind(primals[0], *(zero if is_zero(case) else case for case in cases))
    return ans, broadcast_to(t, aval_of(ans))


def _transpose_select(primitive, ct, operands):
    """The mask stays symbolic: it is applied behind the elementwise operations before this one."""
    which, *cases = operands
    return [None, *[unbroadcast(mask(ct, which, place, len(cases)), case.aval) if is_linear(case) else None
                    for place, case in enumerate(cases)]]


@define("select_n", impl=_select, aval=_select_aval, jvp=_jvp_select, transpose=_transpose_select,
        hlo="select", family="elementwise", in_step=(0, 1, 2),
        takes_masks=True,
        lower=lambda builder, which, *cases: builder.select(which, *cases),
        batch=batch_elementwise)
def select_n(which, *cases):
    """`cases[which]` of each element: the first case where a bool `which` is False."""
    return select_n.primitive.bind(which, *to_operands("select_n", cases))


def select(pred, on_true, on_false):
    """on_true where pred, else on_false."""
    return select_n(pred, on_false, on_true)


def _clamp_aval(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
    return x.update(shape=join_shapes("clamp", join_shapes("clamp", low.shape, x.shape), high.shape))


def _where(pred, t):
    return select_n(pred, _constant(0.0, t), t)


# No bound has a part in the derivative at the other one, and none there has x.
@define("clamp", impl=lambda low, x, high: np.minimum(np.maximum(x, low), high), aval=_clamp_aval,
        jvp=jvp_elementwise(lambda t, ans, low, x, high: _where(and_(gt(low, x), lt(low, high)), t),
                            lambda t, ans, low, x, high: _where(and_(gt(x, low), lt(x, high)), t),
                            lambda t, ans, low, x, high: _where(lt(high, max_(x, low)), t)),
        lower=lambda builder, low, x, high: builder.map("min", builder.map("max", x, low), high),
        batch=batch_elementwise, hlo="clamp", family="elementwise", arity=3, accepts="f",
        domain=(-10, 10))
def clamp(low, x, high):
    """x limited to [low, high]; the bounds are scalars or have x's shape. Derivatives at a bound are zero."""
    aval = aval_of(x)
    low, high = (cast(bound, aval_of(bound), aval.dtype, aval.weak_type) for bound in (low, high))
    if dtypes.is_floating(aval.dtype):
        return clamp.primitive.bind(low, x, high)
    return min_(max_(x, low), high)
