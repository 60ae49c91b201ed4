"""Distributions over integers and choices from arrays.

In: a key, a shape, parameters or an array. Out: integers, bools, or elements of the array; the same ones
that JAX draws from the same key.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.lax.indexing.slices import index_in_dim, slice_in_dim
from jitcore.lax.random.implementations import UNSIGNED_DTYPES
from jitcore.lax.random.keys import random_bits
from jitcore.lax.reduce import argmax
from jitcore.lax.shape import canonicalize_axis, expand_dims, iota, product, reshape
from jitcore.lax.sort import sort_key_val, top_k
from jitcore.random.continuous import draw_gumbel, draw_uniform
from jitcore.random.keys import read_keys, split_keys
from jitcore.random.parameters import drawn_dtype, read_shape, to_parameter

__all__ = ["bernoulli", "categorical", "choice", "geometric", "permutation", "rademacher", "randint"]


# -- integers ---------------------------------------------------------------------------------------------
def randint(key, shape, minval, maxval, dtype=None) -> Array:
    """Integers in [minval, maxval), each nearly equally likely; minval where the interval is empty.

    Args:
        minval, maxval: integers that broadcast against shape. A maxval above the dtype's largest number
            includes that number.
        dtype: the default integer when None.
    Raises: TypeError for a dtype that is no integer; ValueError for bounds that do not fit the shape."""
    key = read_keys("randint", key)
    dtype = dtypes.canonicalize(int if dtype is None else dtype)
    if not dtypes.is_integer(dtype):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype.name}")
    shape = read_shape("randint", shape, minval, maxval)
    info = np.iinfo(dtype)
    if dtype.itemsize >= 4:
        return _draw_integers(key, shape, minval, maxval, dtype)
    # A byte's worth of bits would make the remainders visibly uneven.
    low, high = (_clip_integer(value, info.min, info.max + extra, dtypes.int32)[0]
                 for value, extra in ((minval, 0), (maxval, 1)))
    return lax.convert_element_type(_draw_integers(key, shape, low, high, dtypes.int32), dtype)


def _draw_integers(key: Array, shape: tuple, minval, maxval, dtype) -> Array:
    """Two random numbers of the dtype's width for each integer, as a number modulo maxval - minval."""
    info = np.iinfo(dtype)
    low, _ = _clip_integer(minval, info.min, info.max, dtype)
    high, is_beyond = _clip_integer(maxval, info.min, info.max, dtype)
    width = dtype.itemsize * 8
    unsigned = UNSIGNED_DTYPES[width]
    if isinstance(low, np.generic) and isinstance(high, np.generic):
        # Modulo 2**width, as subtraction wraps; 0 stands for all of the dtype's numbers.
        span = unsigned.type((int(high) - int(low) + int(is_beyond)) % 2**width if high > low else 1)
    else:
        one = unsigned.type(1)
        span = jnp.asarray(jnp.subtract(high, low), unsigned)
        span = jnp.where(jnp.less_equal(high, low), one, span)
        if is_beyond is not False:
            span = jnp.where(jnp.logical_and(is_beyond, jnp.less(low, high)), jnp.add(span, one), span)
    # 2**width modulo span, the weight of the upper word; the square wraps for a span above 2**(width/2).
    factor = _remainder(unsigned.type(2 ** (width // 2)), span)
    factor = _remainder(jnp.multiply(factor, factor), span)
    upper, lower = (random_bits(part, width, shape) for part in split_keys(key))
    offset = jnp.add(jnp.multiply(_remainder(upper, span), factor), _remainder(lower, span))
    return jnp.add(low, lax.convert_element_type(_remainder(offset, span), dtype))


def _clip_integer(value, low: int, high: int, dtype) -> tuple:
    """(value clipped to [low, high] in this dtype, whether it was above); NumPy scalars for known numbers."""
    if isinstance(value, (int, float, np.number)):
        return dtype.type(min(max(int(value), low), high)), int(value) > high
    value = jnp.asarray(value)
    if not dtypes.is_integer(value.dtype):
        value = jnp.asarray(value, dtypes.default_dtype("i"))
    own = np.iinfo(value.dtype)
    bounds = (value.dtype.type(max(low, own.min)), value.dtype.type(min(high, own.max)))
    is_beyond = jnp.greater(value, bounds[1]) if own.max > high else False
    return jnp.asarray(jnp.clip(value, *bounds), dtype), is_beyond


def _remainder(x, y):
    """Remainder of unsigned integers; x where y is 0."""
    return lax.rem(*_broadcast_pair(x, y))


def _broadcast_pair(x, y) -> tuple:
    shapes = aval_of(x).shape, aval_of(y).shape
    if () in shapes or shapes[0] == shapes[1]:
        return x, y
    return tuple(jnp.broadcast_arrays(x, y))


def bernoulli(key, p=0.5, shape=None, mode: str = "low") -> Array:
    """True with probability p.

    Args:
        p: float; its shape is the result's by default.
        mode: "low", or "high" to draw twice as many bits, for p that is tiny.
    Raises: TypeError for a p that is no float; ValueError for another mode."""
    if mode not in ("high", "low"):
        raise ValueError(f"got {mode=}, expected 'high' or 'low'")
    key = read_keys("bernoulli", key)
    dtype = aval_of(p).dtype
    if not dtypes.is_floating(dtype):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {dtype.name}.")
    shape, dtype = read_shape("bernoulli", shape, p), drawn_dtype(p)
    p = to_parameter(p, dtype)
    if mode == "low":
        return jnp.less(draw_uniform(key, shape, dtype), p)
    both = draw_uniform(key, (2, *shape), dtype)
    coarse, fine = (index_in_dim(both, i, 0, keepdims=False) for i in range(2))
    step = np.array(2.0 ** -int(jnp.finfo(dtype).nmant), dtype)[()]
    return jnp.less(lax.mul(fine, step), jnp.subtract(p, coarse))


def rademacher(key, shape=(), dtype=None) -> Array:
    """-1 or 1, each with probability 1/2, in any numeric dtype (the default integer when None)."""
    dtype = dtypes.canonicalize(int if dtype is None else dtype)
    coin = lax.convert_element_type(bernoulli(key, 0.5, read_shape("rademacher", shape)), dtype)
    return lax.sub(lax.mul(coin, dtype.type(2)), dtype.type(1))


def geometric(key, p, shape=None, dtype=None) -> Array:
    """Number of trials of success probability p up to the first success."""
    key = read_keys("geometric", key)
    dtype = dtypes.canonicalize(int if dtype is None else dtype)
    shape = read_shape("geometric", shape, p)
    float_dtype = drawn_dtype(p)
    u = draw_uniform(key, shape, float_dtype)
    u = lax.select_n(lax.eq(u, float_dtype.type(0)), u, float_dtype.type(1))
    log_failure = jnp.log1p(jnp.negative(to_parameter(p, float_dtype)))
    trials = lax.add(lax.floor(jnp.divide(lax.log(u), log_failure)), float_dtype.type(1))
    return lax.convert_element_type(trials, dtype)


# -- choices ----------------------------------------------------------------------------------------------
def permutation(key, x, axis: int = 0, independent: bool = False) -> Array:
    """The slices of x along an axis in random order; `arange(x)` for an integer x.

    Args:
        independent: whether every vector along the axis gets an order of its own.
    Raises: TypeError for a scalar that is no integer; ValueError for an axis that is not there."""
    key = read_keys("permutation", key)
    if not aval_of(x).ndim:
        if not dtypes.is_integer(aval_of(x).dtype):
            raise TypeError("x must be an integer or at least 1-dimensional")
        canonicalize_axis(axis, 1)
        return _shuffle(key, jnp.arange(x), 0)
    x = jnp.asarray(x)
    axis = canonicalize_axis(axis, len(x.shape))
    if independent or len(x.shape) == 1:
        return _shuffle(key, x, axis)
    order = _shuffle(key, iota(dtypes.int32, x.shape[axis]), 0)
    return jnp.take(x, order, axis)


def _shuffle(key: Array, x: Array, axis: int) -> Array:
    """Sorts by random keys, so often that equal 32-bit keys leave no trace: the chance is below size**-3."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, sort_key = split_keys(key)
        _, x = sort_key_val(random_bits(sort_key, 32, x.shape), x, axis)
    return x


def choice(key, a, shape=(), replace: bool = True, p=None, axis: int = 0, mode: str | None = None) -> Array:
    """Slices of `a` along an axis, drawn with or without replacement; of `arange(a)` for an integer.

    Args:
        p: probabilities of the slices, one for each; uniform by default.
        mode: as in `gumbel`, for draws without replacement by p.
    Returns: array of shape a.shape[:axis] + shape + a.shape[axis+1:].
    Raises: TypeError for a shape that is no sequence; ValueError for an empty population, one smaller than a
        sample without replacement, or a p of another size."""
    key = read_keys("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(f"shape argument of jitcore.random.choice must be a sequence, got {shape}")
    shape = read_shape("choice", shape)
    population = None if not aval_of(a).ndim else jnp.asarray(a)
    axis = 0 if population is None else canonicalize_axis(axis, len(population.shape))
    size = int(a) if population is None else population.shape[axis]
    rest = ((), ()) if population is None else (population.shape[:axis], population.shape[axis + 1 :])
    count = product(shape)
    if count == 0:
        return jnp.zeros(shape, int if population is None else population.dtype)
    if size <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and count > size:
        raise ValueError(f"Cannot take a larger sample (size {count}) than population (size {size}) "
                         "when 'replace=False'")
    if p is None and not replace:
        order = permutation(key, a if population is None else population, axis)
        drawn = slice_in_dim(order, 0, count, axis=axis)
    else:
        indices = _choose_indices(key, size, shape, replace, p, mode)
        drawn = indices if population is None else jnp.take(population, indices, axis)
    return reshape(drawn, (*rest[0], *shape, *rest[1]))


def _choose_indices(key: Array, size: int, shape: tuple, replace: bool, p, mode) -> Array:
    """Indices in [0, size): of this shape with replacement, as many of them in a vector without."""
    if p is None:
        return randint(key, shape, 0, size)
    p = jnp.asarray(p, drawn_dtype(p))
    if p.shape != (size,):
        raise ValueError("p must be None or a 1D vector with the same size as a.shape[axis]. "
                         f"p has shape {p.shape} and a.shape[axis] is {size}.")
    index_dtype = dtypes.default_dtype("i")
    if replace:
        cumulative = jnp.cumsum(p)
        total = index_in_dim(cumulative, size - 1, 0, keepdims=False)
        left = lax.sub(p.dtype.type(1), draw_uniform(key, shape, p.dtype))
        return jnp.asarray(jnp.searchsorted(cumulative, lax.mul(left, total)), index_dtype)
    noise = draw_gumbel(key, (size,), p.dtype, mode)
    return jnp.asarray(top_k(lax.add(noise, lax.log(p)), product(shape))[1], index_dtype)


def categorical(key, logits, axis: int = -1, shape=None, replace: bool = True,
                mode: str | None = None) -> Array:
    """Categories drawn by their unnormalised log probabilities, by adding Gumbel noise.

    Args:
        logits: float; the categories lie along `axis`.
        shape: what logits without that axis broadcast to; leading extents count draws from one distribution.
        mode: as in `gumbel`.
    Returns: default integers of that shape.
    Raises: ValueError for more draws without replacement than categories."""
    key = read_keys("categorical", key)
    logits = jnp.asarray(logits)
    if dtypes.is_floating(logits.dtype):
        logits = jnp.asarray(logits, drawn_dtype(logits))
    axis = canonicalize_axis(axis, len(logits.shape))
    batch_shape = (*logits.shape[:axis], *logits.shape[axis + 1 :])
    if shape is None:
        shape = batch_shape
    shape = read_shape("categorical", shape)
    if np.broadcast_shapes(shape, batch_shape) != shape:
        raise ValueError("categorical parameter shapes must be broadcast-compatible with shape argument, got "
                         f"logits of batch shape {batch_shape} for shape argument {shape}.")
    n_leading = len(shape) - len(batch_shape)
    leading, batch = shape[:n_leading], shape[n_leading:]
    index_dtype = dtypes.default_dtype("i")
    if replace:
        noise_shape = (*leading, *batch[:axis], logits.shape[axis], *batch[axis:])
        noise = draw_gumbel(key, noise_shape, logits.dtype, mode)
        return argmax(jnp.add(noise, expand_dims(logits, range(n_leading))), n_leading + axis, index_dtype)
    count, categories = product(leading), logits.shape[axis]
    if count > categories:
        raise ValueError(f"Number of samples without replacement ({count}) cannot exceed number of "
                         f"categories ({categories}).")
    noisy = lax.add(logits, draw_gumbel(key, logits.shape, logits.dtype, mode))
    indices = top_k(jnp.moveaxis(noisy, axis, -1), count)[1]
    return jnp.asarray(reshape(jnp.moveaxis(indices, -1, 0), shape), index_dtype)
