"""Counts of successes: the binomial distribution, and the multinomial one, which draws it once for each
outcome.

In: a key, numbers of tries, probabilities. Out: counts, as floats; the numbers that JAX draws from the same
key, but for the rounding of elementary functions.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.lax.control_flow.scan import scan
from jitcore.lax.control_flow.while_loop import while_loop
from jitcore.lax.random.keys import random_split
from jitcore.random.continuous import draw_uniform
from jitcore.random.keys import read_keys, split_keys
from jitcore.random.parameters import drawn_dtype, read_call, spread_parameter

__all__ = ["binomial", "multinomial"]


def binomial(key, n, p, shape=None, dtype=None) -> Array:
    """Number of successes in n tries of probability p.

    Args:
        key: of `jitcore.random`. n: tries, not negative; p: probabilities; both broadcast to shape.
        shape: of the result; None takes the common one of n and p. dtype: the default float when None.

    Returns: floats of this shape; NaN for n or p that are NaN or negative. Raises: ValueError for another
    dtype.
    Example: `binomial(key(0), 10, 0.5, (3,))` is `[4, 5, 6]` or the like. Source: jax.random.binomial;
    Hoermann: The generation of binomial random variates (1993)."""
    key, shape, dtype = read_call("binomial", key, shape, dtype, parameters=(n, p))
    return draw_binomial(key, n, p, shape, dtype)


def draw_binomial(key: Array, n, p, shape: tuple, dtype) -> Array:
    real = drawn_dtype(p)
    p, count = spread_parameter(p, real, shape), jnp.floor(spread_parameter(n, real, shape))
    is_low = p < 0.5
    q = jnp.where(is_low, p, 1 - p)
    bad_count, bad_chance = jnp.isnan(count) | (count < 0), jnp.isnan(q)
    invalid, endless = bad_count | bad_chance | (q < 0), jnp.isinf(count)
    q = jnp.where(bad_chance | (q < 0), 0.01, q)
    is_small = invalid | (count * q <= 10)
    small = _add_up_waits(key, jnp.where(is_small & ~invalid, count, 0), q, dtype)
    large = _draw_transformed(key, jnp.where(is_small | endless, 1e4, count),
                              jnp.where(is_small | endless, 0.5, q), dtype)
    found = jnp.where(invalid, np.nan, jnp.where(is_small, small, large))
    found = jnp.where(endless & ~invalid, np.inf, found)
    keeps = is_low | bad_count | bad_chance | endless
    return jnp.asarray(jnp.where(keeps, found, jnp.asarray(count, dtype) - found), dtype)


def _add_up_waits(key: Array, count: Array, q: Array, dtype) -> Array:
    """How many geometric waits fit into the tries, for few successes."""
    log_failure = jnp.log1p(-q)

    def wait(state):
        found, total, key = state
        uniform_key, key = split_keys(key)
        found = jnp.where(total <= count, found + 1, found)
        u = draw_uniform(uniform_key, count.shape, count.dtype)
        return found, total + jnp.ceil(jnp.log(u) / log_failure), key

    zero = jnp.zeros_like(count)
    found = while_loop(lambda state: jnp.any(state[1] <= count), wait, (zero, zero, key))[0]
    return jnp.asarray(found - 1, dtype)


def _draw_transformed(key: Array, count: Array, q: Array, dtype) -> Array:
    """Hoermann's transformed rejection with squeeze, for many successes."""
    deviation = jnp.sqrt(count * q * (1 - q))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * q
    c, v_r, r = count * q + 0.5, 0.92 - 4.2 / b, q / (1 - q)
    alpha, m = (2.83 + 5.1 / b) * deviation, jnp.floor((count + 1) * q)

    def draw_again(state):
        counts, accepted, key = state
        key, u_key, v_key = split_keys(key, 3)
        u = draw_uniform(u_key, q.shape, q.dtype) - 0.5
        v = draw_uniform(v_key, q.shape, q.dtype)
        distance = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / distance + b) * u + c)
        inside = (distance >= 0.07) & (v <= v_r)
        outside = (k < 0) | (k > count)
        hat = jnp.log(v * alpha / (a / (distance * distance) + b))
        bound = ((m + 0.5) * jnp.log((m + 1) / (r * (count - m + 1)))
                 + (count + 1) * jnp.log((count - m + 1) / (count - k + 1))
                 + (k + 0.5) * jnp.log(r * (count - k + 1) / (k + 1))
                 + _stirling_rest(m) + _stirling_rest(count - m)
                 - _stirling_rest(k) - _stirling_rest(count - k))
        accept = inside | (~outside & (hat <= bound))
        return jnp.where(accept, k, counts), accepted | accept, key

    start = jnp.full_like(q, -1), jnp.zeros(q.shape, bool), key
    return jnp.asarray(while_loop(lambda state: jnp.any(~state[1]), draw_again, start)[0], dtype)


#: log(k!) minus Stirling's formula, for k from 0 to 9.
_RESTS = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
          0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273,
          0.00833056343336287)


def _stirling_rest(k: Array) -> Array:
    """As in JAX, whose draws these are, that of 9 above 9: it cancels where all four are large."""
    inside = jnp.clip(k, 0, 9)
    square = jnp.square(inside + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (inside + 1)
    whole = jnp.floor(k)
    for i, rest in enumerate(_RESTS):
        series = jnp.where(whole == i, k.dtype.type(rest), series)
    return series


def multinomial(key, n, p, *, shape=None, dtype=None, unroll: int | bool = 1) -> Array:
    """How often each outcome comes in n tries.

    Args:
        key: of `jitcore.random`. n: tries, which broadcast to p.shape[:-1]. p: probabilities of outcomes
            along the last axis. shape: of the result, whose last extent is the number of outcomes; that of p
            when None.
        dtype: the default float when None. unroll: accepted for JAX's signature, without effect.

    Returns: floats of this shape, which add up to n along the last axis. Raises: ValueError for another
    dtype.
    Example: `multinomial(key(0), 6, jnp.array([0.5, 0.5]))` is `[3, 3]` or the like. Source:
    jax.random.multinomial."""
    key = read_keys("multinomial", key)
    dtype = dtypes.canonicalize(float if dtype is None else dtype)
    if not dtypes.is_floating(dtype):
        raise ValueError(f"dtype argument to `multinomial` must be a float dtype, got {dtype.name}")
    kind = drawn_dtype(n, p)
    n, p = jnp.asarray(n, kind), jnp.asarray(p, kind)
    shape = p.shape if shape is None else tuple(shape)
    n, p = jnp.broadcast_to(n, shape[:-1]), jnp.moveaxis(jnp.broadcast_to(p, shape), -1, 0)
    left = lax.cumsum(p, 0, reverse=True)
    ratios = p / jnp.where(left == 0, 1, left)

    def draw(rest, entry):
        ratio, key = entry
        count = draw_binomial(key, rest, jnp.clip(ratio, 0, 1), rest.shape, kind)
        return rest - count, count

    _, counts = scan(draw, n, (ratios, random_split(key, (ratios.shape[0],))))
    return jnp.asarray(jnp.moveaxis(counts, 0, -1), dtype)
