"""Real-valued distributions that map one uniform or normal number to one sample.

In: a key, a shape, a dtype, parameters. Out: samples of that shape and dtype, the numbers that JAX draws
from the same key. `uniform` turns random bits into a float's mantissa; the others follow it through a
quantile function.
"""

from __future__ import annotations

import math

import numpy as np

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.lax.indexing.slices import index_in_dim
from jitcore.lax.random.implementations import UNSIGNED_DTYPES
from jitcore.lax.random.keys import random_bits
from jitcore.lax.reduce import reduce_sum
from jitcore.lax.shape import broadcast_shapes
from jitcore.random.keys import read_keys, split_keys
from jitcore.random.parameters import read_call, read_shape, spread_parameter, to_parameter

__all__ = ["bits", "cauchy", "double_sided_maxwell", "exponential", "gumbel", "laplace", "logistic",
           "lognormal", "maxwell", "normal", "pareto", "rayleigh", "triangular", "truncated_normal",
           "uniform", "wald", "weibull_min"]


def bits(key, shape=(), dtype=None) -> Array:
    """Random bits as unsigned integers; `dtype` is uint32 by default (uint64 under `enable_x64`).

    Raises: ValueError for a dtype that is not unsigned."""
    key = read_keys("bits", key)
    dtype = dtypes.default_dtype("u") if dtype is None else dtypes.canonicalize(dtype)
    if dtypes.kind_of(dtype) != "u":
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {dtype.name}")
    return random_bits(key, dtype.itemsize * 8, read_shape("bits", shape))


# -- uniform ----------------------------------------------------------------------------------------------
def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0) -> Array:
    """Uniform floats in [minval, maxval); the bounds broadcast against shape.

    Raises: ValueError for a dtype that is not a float, or bounds that do not fit the shape."""
    key, shape, dtype = read_call("uniform", key, shape, dtype, parameters=(minval, maxval))
    return draw_uniform(key, shape, dtype, minval, maxval)


def draw_uniform(key: Array, shape: tuple, dtype, low=0.0, high=1.0) -> Array:
    """Uniform floats from a raw key: a random mantissa makes a number in [1, 2), moved and scaled."""
    unit = _draw_unit(key, shape, dtype)
    low, high = to_parameter(low, dtype), to_parameter(high, dtype)
    known = isinstance(low, np.generic) and isinstance(high, np.generic)
    if known and low == 0 and high == 1:
        return unit
    with np.errstate(all="ignore"):
        span = np.subtract(high, low) if known else jnp.subtract(high, low)
    # Rounding may carry a sample below low, never so the other way.
    return jnp.maximum(low, jnp.add(jnp.multiply(unit, span), low))


def _draw_unit(key: Array, shape: tuple, dtype) -> Array:
    """Floats in [0, 1): multiples of the dtype's spacing below 2."""
    width, mantissa_bits = dtype.itemsize * 8, int(jnp.finfo(dtype).nmant)
    # bfloat16 has 7 random bits: a byte holds them.
    drawn_width = 8 if mantissa_bits < 8 else width
    drawn = random_bits(key, drawn_width, shape)
    unsigned = UNSIGNED_DTYPES[width]
    if drawn_width != width:
        drawn = lax.convert_element_type(drawn, unsigned)
    mantissa = lax.shift_right_logical(drawn, unsigned.type(drawn_width - mantissa_bits))
    one = np.ones((), dtype)
    return lax.sub(lax.bitcast_convert_type(lax.bitwise_or(mantissa, one.view(unsigned)[()]), dtype), one[()])


# -- normal -----------------------------------------------------------------------------------------------
def normal(key, shape=(), dtype=None) -> Array:
    """Standard normal samples; complex ones have variance 1 in total.

    Raises: ValueError for a dtype that is neither float nor complex."""
    key, shape, dtype = read_call("normal", key, shape, dtype, accepts="fc")
    if not dtypes.is_complex(dtype):
        return draw_normal(key, shape, dtype)
    real, imag = (draw_normal(part, shape, dtypes.real_dtype(dtype)) for part in split_keys(key))
    return lax.div(lax.complex(real, imag), np.array(math.sqrt(2), dtype)[()])


def draw_normal(key: Array, shape: tuple, dtype) -> Array:
    """Standard normal floats from a raw key: sqrt(2) erf_inv(u) for u uniform in (-1, 1)."""
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype))[()]
    quantile = _invert_erf_single if dtype == dtypes.float32 else lax.erf_inv
    return lax.mul(quantile(draw_uniform(key, shape, dtype, low, 1.0)), _root_of_two(dtype))


# Polynomials, highest power first, in w - 2.5 and in sqrt(w) - 3 for w = -log(1 - x**2) below 5 and above.
_CENTRE = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
           -0.00417768164, 0.246640727, 1.50140941)
_TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
         0.00943887047, 1.00167406, 2.83297682)


def _invert_erf_single(x: Array) -> Array:
    """erf_inv of float32 by the formula that XLA uses, so that equal keys give the samples JAX gives (to
    three spacings; nearly all to two). `lax.erf_inv` is closer to the exact value in the tails.

    Source: M. Giles, Approximating the erfinv function, 2010 (single precision)."""
    w = lax.neg(lax.log1p(lax.neg(lax.mul(x, x))))
    is_central = lax.lt(w, 5.0)
    t = lax.select_n(is_central, lax.sub(lax.sqrt(w), 3.0), lax.sub(w, 2.5))
    value = None
    for central, outer in zip(map(np.float32, _CENTRE), map(np.float32, _TAIL)):
        coefficient = lax.select_n(is_central, outer, central)
        value = coefficient if value is None else lax.add(lax.mul(value, t), coefficient)
    return lax.mul(value, x)


def _root_of_two(dtype):
    return np.array(math.sqrt(2), dtype)[()]


def truncated_normal(key, lower, upper, shape=None, dtype=None) -> Array:
    """Standard normal samples in the open interval (lower, upper); shape is that of the bounds by default."""
    key, shape, dtype = read_call("truncated_normal", key, shape, dtype, parameters=(lower, upper))
    lower, upper = to_parameter(lower, dtype), to_parameter(upper, dtype)
    root = _root_of_two(dtype)
    low, high = (lax.erf(jnp.divide(bound, root)) for bound in (lower, upper))
    sample = lax.mul(lax.erf_inv(draw_uniform(key, shape, dtype, low, high)), root)
    infinity = np.array(np.inf, dtype)[()]
    above, below = jnp.nextafter(lower, infinity), jnp.nextafter(upper, -infinity)
    return jnp.minimum(jnp.maximum(sample, above), below)


def lognormal(key, sigma=1.0, shape=None, dtype=None) -> Array:
    """exp of normal samples with standard deviation sigma."""
    key, shape, dtype = read_call("lognormal", key, shape, dtype, parameters=(sigma,))
    return lax.exp(jnp.multiply(draw_normal(key, shape, dtype), to_parameter(sigma, dtype)))


def maxwell(key, shape=(), dtype=None) -> Array:
    """Lengths of three-dimensional standard normal vectors."""
    key, shape, dtype = read_call("maxwell", key, shape, dtype)
    vectors = draw_normal(key, (*shape, 3), dtype)
    return lax.sqrt(reduce_sum(lax.mul(vectors, vectors), (len(shape),)))


def wald(key, mean, shape=None, dtype=None) -> Array:
    """Inverse Gaussian samples of this mean and scale 1."""
    key, shape, dtype = read_call("wald", key, shape, dtype, parameters=(mean,))
    normal_key, uniform_key = split_keys(key)
    mean = spread_parameter(mean, dtype, shape)
    squared = lax.integer_pow(draw_normal(normal_key, shape, dtype), 2)
    z = draw_uniform(uniform_key, shape, dtype)
    mean_squared = lax.integer_pow(mean, 2)
    root = lax.sqrt(4 * mean * squared + mean_squared * lax.integer_pow(squared, 2))
    x = mean + mean_squared * squared / 2 - mean / 2 * root
    return lax.select(z <= mean / (mean + x), x, mean_squared / x)


# -- by quantile functions --------------------------------------------------------------------------------
def exponential(key, shape=(), dtype=None) -> Array:
    """Exponential samples of rate 1."""
    key, shape, dtype = read_call("exponential", key, shape, dtype)
    return draw_exponential(key, shape, dtype)


def draw_exponential(key: Array, shape: tuple, dtype) -> Array:
    """Exponential floats from a raw key."""
    return lax.neg(lax.log1p(lax.neg(draw_uniform(key, shape, dtype))))


def gumbel(key, shape=(), dtype=None, mode: str | None = None) -> Array:
    """Standard Gumbel samples, -log(-log(u)).

    Args:
        mode: "low" (default), "high" or "highest". The others draw twice as many bits, so that the upper
            tail is finer; "highest" is exact to the last place in both, in float32.
    Raises: ValueError for another mode."""
    key, shape, dtype = read_call("gumbel", key, shape, dtype)
    return draw_gumbel(key, shape, dtype, mode)


def draw_gumbel(key: Array, shape: tuple, dtype, mode: str | None = None) -> Array:
    """Gumbel floats from a raw key; `mode` as in `gumbel`."""
    if mode not in (None, "low", "high", "highest"):
        raise ValueError(f"got {mode=}, expected 'highest', 'high' or 'low'")
    if mode == "highest" and dtype == dtypes.float32:
        return _draw_finest_gumbel(key, shape)
    tiny = dtype.type(jnp.finfo(dtype).tiny)
    if mode not in ("high", "highest"):
        return lax.neg(lax.log(lax.neg(lax.log(draw_uniform(key, shape, dtype, tiny, 1.0)))))
    both = draw_uniform(key, (2, *shape), dtype)
    upper, lower = (index_in_dim(both, i, 0, keepdims=False) for i in range(2))
    step = np.array(2.0 ** -int(jnp.finfo(dtype).nmant), dtype)[()]
    fine = lax.add(lax.add(upper, lax.mul(lower, step)), tiny)
    x = lax.select(lax.ge(upper, dtype.type(0.5)), upper, fine)
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(x)))))


def _draw_finest_gumbel(key: Array, shape: tuple) -> Array:
    """float32 Gumbel samples of 64 random bits: of u below 1/2, and else of 1 - u, with a full mantissa."""
    both = random_bits(key, 32, (2, *shape))
    upper, lower = (index_in_dim(both, i, 0, keepdims=False) for i in range(2))
    is_low = upper < 2**31
    rest_upper = jnp.where(lower == 0, ~upper + 1, ~upper)
    u = _to_fraction(jnp.where(is_low, upper, rest_upper), jnp.where(is_low, lower, ~lower + 1))
    return -lax.log(-jnp.where(is_low, lax.log1p(-u), lax.log(u)))


def _to_fraction(upper: Array, lower: Array) -> Array:
    """(upper 2**32 + lower) / 2**64 in float32, of the 24 bits from the first one that is set."""
    zeros = lax.clz(upper)
    is_short = zeros == 32
    shifted = jnp.where(zeros == 0, upper, (upper << zeros) | (lower >> (32 - zeros)))
    first = jnp.where(is_short, lower << lax.clz(lower), shifted) >> 8
    exponent = 24 + jnp.where(is_short, 32 + lax.clz(lower), zeros)
    return jnp.ldexp(lax.convert_element_type(first, dtypes.float32), -exponent.astype(dtypes.int32))


def laplace(key, shape=(), dtype=None) -> Array:
    """Standard Laplace samples."""
    key, shape, dtype = read_call("laplace", key, shape, dtype)
    u = draw_uniform(key, shape, dtype, -1.0 + float(jnp.finfo(dtype).epsneg), 1.0)
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


def logistic(key, shape=(), dtype=None) -> Array:
    """Standard logistic samples, log(u / (1 - u))."""
    key, shape, dtype = read_call("logistic", key, shape, dtype)
    u = draw_uniform(key, shape, dtype, float(jnp.finfo(dtype).tiny), 1.0)
    return lax.sub(lax.log(u), lax.log1p(lax.neg(u)))


def cauchy(key, shape=(), dtype=None) -> Array:
    """Standard Cauchy samples."""
    key, shape, dtype = read_call("cauchy", key, shape, dtype)
    u = draw_uniform(key, shape, dtype, float(jnp.finfo(dtype).eps), 1.0)
    return lax.tan(lax.mul(lax.sub(u, dtype.type(0.5)), np.array(math.pi, dtype)[()]))


def pareto(key, b, shape=None, dtype=None) -> Array:
    """Pareto samples of shape parameter b and scale 1."""
    key, shape, dtype = read_call("pareto", key, shape, dtype, parameters=(b,))
    return lax.exp(jnp.divide(draw_exponential(key, shape, dtype), to_parameter(b, dtype)))


def rayleigh(key, scale, shape=None, dtype=None) -> Array:
    """Rayleigh samples of this scale."""
    key, shape, dtype = read_call("rayleigh", key, shape, dtype, parameters=(scale,))
    root = lax.sqrt(lax.mul(lax.log(draw_uniform(key, shape, dtype)), dtype.type(-2)))
    return jnp.multiply(to_parameter(scale, dtype), root)


def weibull_min(key, scale, concentration, shape=(), dtype=None) -> Array:
    """Weibull samples of this scale and shape parameter (`concentration`).

    shape: of what is drawn, which is broadcast against the parameters; None takes their common shape."""
    parameters = scale, concentration
    read_shape("weibull_min", None, *parameters)
    key, shape, dtype = read_call("weibull_min", key, shape, dtype,
                                  parameters=parameters if shape is None else ())
    scale, concentration = (to_parameter(value, dtype) for value in parameters)
    exponent = jnp.divide(dtype.type(1), concentration)
    return jnp.multiply(jnp.power(draw_exponential(key, shape, dtype), exponent), scale)


def triangular(key, left, mode, right, shape=None, dtype=None) -> Array:
    """Samples of the triangular density on [left, right] with its peak at mode."""
    parameters = left, mode, right
    key, shape, dtype = read_call("triangular", key, shape, dtype, parameters=parameters)
    left, mode, right = (spread_parameter(value, dtype, shape) for value in parameters)
    u = draw_uniform(key, shape, dtype)
    width, rise, fall = lax.sub(right, left), lax.sub(mode, left), lax.sub(right, mode)
    rising = lax.add(left, lax.sqrt(lax.mul(lax.mul(u, width), rise)))
    falling = lax.sub(right, lax.sqrt(lax.mul(lax.mul(lax.sub(dtype.type(1), u), width), fall)))
    return lax.select(lax.lt(u, lax.div(rise, width)), rising, falling)


def double_sided_maxwell(key, loc, scale, shape=(), dtype=None) -> Array:
    """Maxwell samples with a random sign, scaled and moved.

    Returns: array of shape `shape` + that of the parameters, the parameters' alone where shape is ()."""
    key, shape, dtype = read_call("double_sided_maxwell", key, shape, dtype)
    common = broadcast_shapes(aval_of(loc).shape, aval_of(scale).shape)
    shape = (*(shape or common), *common)
    length_key, sign_key = split_keys(key)
    coin = lax.lt(draw_uniform(sign_key, shape, dtypes.default_dtype("f")), np.float32(0.5))
    sign = lax.sub(lax.mul(lax.convert_element_type(coin, dtype), dtype.type(2)), dtype.type(1))
    signed = lax.mul(sign, maxwell(length_key, shape, dtype))
    return jnp.add(jnp.multiply(signed, to_parameter(scale, dtype)), to_parameter(loc, dtype))
