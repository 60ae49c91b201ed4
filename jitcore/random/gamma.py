"""The gamma distribution and its relatives, and Poisson counts: samples accepted or rejected in loops.

In: a key, shape parameters, a shape, a dtype. Out: samples. Each sample has a key of its own and is drawn
by the steps that JAX takes, so the numbers agree with JAX's but for the rounding of elementary functions.
"""

from __future__ import annotations

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.lax.control_flow.while_loop import while_loop
from jitcore.lax.random.keys import random_split
from jitcore.lax.reduce import reduce_or, reduce_sum
from jitcore.lax.shape import broadcast_in_dim, full, product, reshape
from jitcore.random.continuous import draw_exponential, draw_normal, draw_uniform
from jitcore.random.discrete import rademacher
from jitcore.random.keys import read_keys, split_keys
from jitcore.random.parameters import read_call, read_shape, spread_parameter, to_parameter
from jitcore.scipy.special import softmax
from jitcore.transforms.custom_derivatives import custom_jvp

__all__ = ["ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma",
           "poisson", "t"]


# -- gamma ------------------------------------------------------------------------------------------------
def gamma(key, a, shape=None, dtype=None) -> Array:
    """Gamma samples of shape parameter a and scale 1.

    For a that is tiny, `loggamma` keeps what underflows here."""
    key, shape, dtype = read_call("gamma", key, shape, dtype, parameters=(a,))
    return draw_gamma(key, spread_parameter(a, dtype, shape), log_space=False)


def loggamma(key, a, shape=None, dtype=None) -> Array:
    """Logarithms of gamma samples of shape parameter a."""
    key, shape, dtype = read_call("loggamma", key, shape, dtype, parameters=(a,))
    return draw_gamma(key, spread_parameter(a, dtype, shape), log_space=True)


def draw_gamma(key: Array, a: Array, *, log_space: bool) -> Array:
    """Gamma samples from a key, one for each element of a.

    The derivative by a is that of the quantile at the sample, as a step of the sampler is taken or not: those
    that are taken do not say how the distribution moves."""
    return _draw_gamma_log(key, a) if log_space else _draw_gamma(key, a)


@custom_jvp
def _draw_gamma(key: Array, a: Array) -> Array:
    return _draw_by_rejection(key, a, log_space=False)


@custom_jvp
def _draw_gamma_log(key: Array, a: Array) -> Array:
    return _draw_by_rejection(key, a, log_space=True)


def _log_slope(t: Array, log_sample: Array, key: Array, a: Array) -> Array:
    tiny = jnp.finfo(a.dtype).tiny
    sample = lax.max(lax.exp(log_sample), full(a.shape, tiny, a.dtype))
    return lax.mul(t, lax.div(lax.random_gamma_grad(a, sample), sample))


_draw_gamma.defjvps(None, lambda t, sample, key, a: lax.mul(t, lax.random_gamma_grad(a, sample)))
_draw_gamma_log.defjvps(None, _log_slope)


def _draw_by_rejection(key: Array, a: Array, *, log_space: bool) -> Array:
    """The method of Marsaglia and Tsang (2000). A sample below shape parameter 1 comes from one of a + 1,
    times u**(1/a)."""
    size, shape, dtype = product(a.shape), a.shape, a.dtype
    a = reshape(a, (size,))
    one = dtype.type(1)
    plain = lax.ge(a, one)
    d = lax.sub(lax.select(plain, a, lax.add(a, one)), dtype.type(1 / 3))
    c = lax.div(dtype.type(1 / 3), lax.sqrt(d))
    keys, boost_keys = split_keys(random_split(key, (size,)))
    cube = _draw_accepted_cube(keys, d, c)
    if log_space:
        log_u = lax.neg(draw_exponential(boost_keys, (), dtype))
        skip = lax.bitwise_or(plain, lax.eq(log_u, dtype.type(0)))
        boost = lax.select(skip, jnp.zeros_like(a), lax.mul(log_u, lax.div(one, a)))
        return reshape(lax.add(lax.add(lax.log(d), lax.log(cube)), boost), shape)
    u = lax.sub(one, draw_uniform(boost_keys, (), dtype))
    boost = lax.select(plain, jnp.ones_like(a), lax.pow(u, lax.div(one, a)))
    return reshape(lax.mul(lax.mul(d, cube), boost), shape)


def _draw_accepted_cube(keys: Array, d: Array, c: Array) -> Array:
    """(1 + c x)**3 for a normal x, drawn again for each element until Marsaglia and Tsang's test passes."""
    dtype, shape = d.dtype, d.shape

    def is_rejected(square, cube, u):
        bound = lax.sub(dtype.type(1), lax.mul(lax.mul(square, square), dtype.type(0.0331)))
        exact = lax.add(lax.mul(square, dtype.type(0.5)),
                        lax.mul(d, lax.add(lax.sub(dtype.type(1), cube), lax.log(cube))))
        return lax.bitwise_and(lax.ge(u, bound), lax.ge(lax.log(u), exact))

    def draw_again(state):
        keys, square, cube, u = state
        rejected = is_rejected(square, cube, u)
        new_keys, normal_keys, uniform_keys = split_keys(keys, 3)
        x, v = _draw_positive(normal_keys, c)
        drawn = (new_keys, lax.mul(x, x), lax.mul(lax.mul(v, v), v), draw_uniform(uniform_keys, (), dtype))
        return tuple(lax.select(rejected, new, old) for new, old in zip(drawn, state))

    start = (keys, full(shape, 0, dtype), full(shape, 1, dtype), full(shape, 2, dtype))
    return while_loop(lambda state: _any(is_rejected(*state[1:])), draw_again, start)[2]


def _draw_positive(keys: Array, c: Array) -> tuple[Array, Array]:
    """(x, 1 + c x) for a normal x, drawn again for each element until the second is positive."""
    dtype = c.dtype

    def is_open(v):
        return lax.le(v, dtype.type(0))

    def draw_again(state):
        keys, _, v = state
        new_keys, normal_keys = split_keys(keys)
        x = draw_normal(normal_keys, (), dtype)
        drawn = (new_keys, x, lax.add(lax.mul(x, c), dtype.type(1)))
        return tuple(lax.select(is_open(v), new, old) for new, old in zip(drawn, state))

    start = (keys, jnp.zeros_like(c), full(c.shape, -1, dtype))
    return while_loop(lambda state: _any(is_open(state[2])), draw_again, start)[1:]


def _any(flags: Array) -> Array:
    return reduce_or(flags, range(len(flags.shape)))


# -- of gamma samples -------------------------------------------------------------------------------------
def beta(key, a, b, shape=None, dtype=None) -> Array:
    """Beta samples of shape parameters a and b."""
    key, shape, dtype = read_call("beta", key, shape, dtype, parameters=(a, b))
    logs = [draw_gamma(part, spread_parameter(value, dtype, shape), log_space=True)
            for part, value in zip(split_keys(key), (a, b))]
    largest = lax.max(*logs)
    scaled_a, scaled_b = (lax.exp(lax.sub(value, largest)) for value in logs)
    return lax.div(scaled_a, lax.add(scaled_a, scaled_b))


def dirichlet(key, alpha, shape=None, dtype=None) -> Array:
    """Dirichlet samples. alpha: float[..., n]; shape replaces its leading extents.

    Raises: ValueError for a scalar alpha."""
    if not aval_of(alpha).ndim:
        raise ValueError("dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0")
    alpha = jnp.asarray(alpha)
    batch, length = alpha.shape[:-1], alpha.shape[-1]
    whole = None if shape is None else (*read_shape("dirichlet", shape), length)
    key, whole, dtype = read_call("dirichlet", key, (*batch, length) if whole is None else whole, dtype,
                                    parameters=(alpha,))
    return softmax(draw_gamma(key, spread_parameter(alpha, dtype, whole), log_space=True), axis=-1)


def chisquare(key, df, shape=None, dtype=None) -> Array:
    """Chi-square samples of df degrees of freedom."""
    key, shape, dtype = read_call("chisquare", key, shape, dtype, parameters=(df,))
    return _draw_chisquare(key, spread_parameter(df, dtype, shape))


def _draw_chisquare(key: Array, df: Array) -> Array:
    two = df.dtype.type(2)
    return lax.mul(lax.exp(draw_gamma(key, lax.div(df, two), log_space=True)), two)


def f(key, dfnum, dfden, shape=None, dtype=None) -> Array:
    """Samples of the F distribution with dfnum and dfden degrees of freedom."""
    key, shape, dtype = read_call("f", key, shape, dtype, parameters=(dfnum, dfden))
    denominator_key, numerator_key = split_keys(key)
    dfnum, dfden = (spread_parameter(df, dtype, shape) for df in (dfnum, dfden))
    numerator = lax.div(_draw_chisquare(numerator_key, dfnum), dfnum)
    return lax.div(numerator, lax.div(_draw_chisquare(denominator_key, dfden), dfden))


def t(key, df, shape=None, dtype=None) -> Array:
    """Samples of Student's t distribution with df degrees of freedom."""
    key, shape, dtype = read_call("t", key, shape, dtype, parameters=(df,))
    normal_key, gamma_key = split_keys(key)
    half = lax.div(spread_parameter(df, dtype, shape), dtype.type(2))
    sample = draw_gamma(gamma_key, half, log_space=False)
    return lax.mul(draw_normal(normal_key, shape, dtype), lax.sqrt(lax.div(half, sample)))


def generalized_normal(key, p, shape=(), dtype=None) -> Array:
    """Samples whose density falls as exp(-|x|**p)."""
    key, shape, dtype = read_call("generalized_normal", key, shape, dtype)
    gamma_key, sign_key = split_keys(key)
    power = spread_parameter(to_parameter(1 / p, dtype), dtype, shape)
    magnitude = draw_gamma(gamma_key, power, log_space=False)
    sign = rademacher(sign_key, shape, dtype)
    return lax.mul(sign, lax.pow(magnitude, power))


def ball(key, d: int, p=2, shape=(), dtype=None) -> Array:
    """Uniform points of the unit ball of the p-norm in d dimensions. Returns: array of shape shape + (d,)."""
    key, shape, dtype = read_call("ball", key, shape, dtype)
    direction_key, radius_key = split_keys(key)
    g = generalized_normal(direction_key, p, (*shape, d), dtype)
    length = reduce_sum(jnp.power(lax.abs(g), to_parameter(p, dtype)), (len(shape),))
    total = lax.add(length, draw_exponential(radius_key, shape, dtype))
    radius = jnp.power(total, to_parameter(1 / p, dtype))
    return lax.div(g, broadcast_in_dim(radius, (*shape, d), range(len(shape))))


# -- Poisson ----------------------------------------------------------------------------------------------
_SMALL_RATE = 10


def poisson(key, lam, shape=None, dtype=None) -> Array:
    """Poisson counts of rate lam, as default integers.

    Raises: ValueError for a dtype that is no integer."""
    key = read_keys("poisson", key)
    dtype = dtypes.canonicalize(int if dtype is None else dtype)
    if not dtypes.is_integer(dtype):
        raise ValueError(f"dtype argument to `poisson` must be an integer dtype, got {dtype.name}")
    shape = read_shape("poisson", shape, lam)
    rate_dtype = dtypes.inexact_dtype(aval_of(lam).dtype)
    lam = spread_parameter(lam, rate_dtype, shape)
    zero = rate_dtype.type(0)
    is_small = lax.bitwise_or(lax.ne(lam, lam), lax.lt(lam, rate_dtype.type(_SMALL_RATE)))
    small = _count_arrivals(key, lax.select(is_small, lam, jnp.zeros_like(lam)), dtype)
    large = _draw_transformed(key, lax.select(is_small, full(shape, 1e5, rate_dtype), lam), dtype)
    counts = lax.select(is_small, small, large)
    return lax.select(lax.eq(lam, zero), jnp.zeros_like(counts), counts)


def _count_arrivals(key: Array, lam: Array, dtype) -> Array:
    """Knuth's method: how many uniform factors a product takes to fall below exp(-lam)."""
    limit = lax.neg(lax.convert_element_type(lam, dtypes.float32))

    def draw_factor(state):
        count, key, log_product = state
        key, uniform_key = split_keys(key)
        count = lax.add(count, lax.convert_element_type(lax.gt(log_product, limit), dtype))
        factor = draw_uniform(uniform_key, lam.shape, dtypes.float32)
        return count, key, lax.add(log_product, lax.log(factor))

    start = full(lam.shape, 0, dtype), key, full(lam.shape, 0, dtypes.float32)
    count = while_loop(lambda state: _any(lax.gt(state[2], limit)), draw_factor, start)[0]
    return lax.sub(count, dtype.type(1))


def _draw_transformed(key: Array, lam: Array, dtype) -> Array:
    """Hoermann's transformed rejection (1993), for large rates."""
    shape, real = lam.shape, lam.dtype
    log_lam = lax.log(lam)
    b = 0.931 + 2.53 * lax.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def draw_again(state):
        counts, accepted, key = state
        key, u_key, v_key = split_keys(key, 3)
        u = draw_uniform(u_key, shape, real) - 0.5
        v = draw_uniform(v_key, shape, real)
        distance = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / distance + b) * u + lam + 0.43)
        log_hat = lax.log(v * inverse_alpha / (a / (distance * distance) + b))
        log_density = -lam + k * log_lam - lax.lgamma(k + 1)
        inside = (distance >= 0.07) & (v <= v_r)
        outside = (k < 0) | ((distance < 0.013) & (v > distance))
        accept = inside | (~outside & (log_hat <= log_density))
        return lax.select(accept, k, counts), lax.bitwise_or(accepted, accept), key

    start = full(shape, -1, real), full(shape, False, dtypes.bool_), key
    counts = while_loop(lambda state: _any(lax.bitwise_not(state[1])), draw_again, start)[0]
    return lax.convert_element_type(counts, dtype)
