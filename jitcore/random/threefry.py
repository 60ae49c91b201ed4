"""Raw keys to raw bits: seeding, splitting, folding and bits of every width, by the Threefry-2x32 hash.

In: a raw key, uint32[2]. Out: raw keys and unsigned integers. `config.threefry_partitionable` chooses
between two ways to count, whose numbers differ: the original one hashes the counters 0 .. n-1 in pairs (the
first half of them with the second half), the partitionable one hashes each element's own 64-bit position.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.config import config
from jitcore.core.jaxpr import aval_of
from jitcore.lax.indexing.slices import slice_in_dim
from jitcore.lax.joining import concatenate, split
from jitcore.lax.random import threefry2x32
from jitcore.lax.shape import (broadcast_in_dim, broadcasted_iota, expand_dims, full, iota, product, reshape,
                               squeeze)

UNSIGNED_DTYPES = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}
_ZERO = np.uint32(0)


def seed_words(seed) -> Array:
    """The raw key of a seed: its upper and its lower 32 bits.

    Args:
        seed: integer scalar; a Python int has the default integer's width, at most 64 bits.
    Raises: OverflowError for a Python int of more than 64 bits; TypeError for what is not an integer."""
    if isinstance(seed, int):
        if not -(2**63) <= seed < 2**63:
            raise OverflowError("Python int too large to convert to a 64-bit seed")
        high = seed >> 32 & 0xFFFFFFFF if config.enable_x64 else 0
        return concatenate([np.array([word], np.uint32) for word in (high, seed & 0xFFFFFFFF)], 0)
    aval = aval_of(seed)
    if aval.shape or not dtypes.is_integer(aval.dtype):
        raise TypeError(f"PRNG key seed must be an integer; got {aval.long()}")
    low = lax.convert_element_type(seed, dtypes.uint32)
    if aval.dtype.itemsize == 8:
        shift = np.array(32, aval.dtype)[()]
        high = lax.convert_element_type(lax.shift_right_logical(seed, shift), dtypes.uint32)
    else:
        high = _ZERO
    return _join_words(high, low)


def split_words(key: Array, shape: tuple) -> Array:
    """Raw keys, uint32[*batch, *shape, 2], of raw keys uint32[*batch, 2]."""
    if config.threefry_partitionable:
        return _stack_words(*_hash_positions(key, shape))
    return reshape(_hash_counters(key, 2 * product(shape)), (*key.shape[:-1], *shape, 2))


def fold_words(key: Array, data: Array) -> Array:
    """The raw key of (key, data). data: uint32 scalar."""
    return _join_words(*_hash(key, _ZERO, data))


def draw_bits(key: Array, bit_width: int, shape: tuple) -> Array:
    """Random unsigned integers of 8, 16, 32 or 64 bits, [*batch, *shape] for keys uint32[*batch, 2]."""
    draw = _draw_by_position if config.threefry_partitionable else _draw_by_counter
    return draw(key, bit_width, shape)


def _draw_by_position(key: Array, bit_width: int, shape: tuple) -> Array:
    high, low = _hash_positions(key, shape)
    if bit_width == 64:
        return _join_64_bits(high, low)
    return lax.convert_element_type(lax.bitwise_xor(high, low), UNSIGNED_DTYPES[bit_width])


def _draw_by_counter(key: Array, bit_width: int, shape: tuple) -> Array:
    batch, size = key.shape[:-1], product(shape)
    if bit_width == 64:
        return reshape(_join_64_bits(*_hash_halves(key, 2 * size)), (*batch, *shape))
    per_word = 32 // bit_width
    n_words = (size + per_word - 1) // per_word
    words = _hash_counters(key, n_words)
    if per_word == 1:
        return reshape(words, (*batch, *shape))
    grid, axis = (*batch, n_words, per_word), len(batch)
    shifts = lax.mul(broadcasted_iota(dtypes.uint32, grid, axis + 1), np.uint32(bit_width))
    pieces = lax.shift_right_logical(broadcast_in_dim(words, grid, range(axis + 1)), shifts)
    pieces = lax.convert_element_type(pieces, UNSIGNED_DTYPES[bit_width])
    pieces = reshape(pieces, (*batch, n_words * per_word))
    return reshape(slice_in_dim(pieces, 0, size, axis=axis), (*batch, *shape))


def _hash_positions(key: Array, shape: tuple) -> list[Array]:
    """Hashes of each element's position; its upper 32 bits are 0 in every array that fits in memory."""
    return _hash(key, _ZERO, reshape(iota(dtypes.uint32, product(shape)), shape))


def _hash_counters(key: Array, size) -> Array:
    """Hashes of the counters 0 .. size-1, uint32[*batch, size]."""
    batch = key.shape[:-1]
    if isinstance(size, int) and size == 0:
        return full((*batch, 0), 0, dtypes.uint32)
    both = concatenate(_hash_halves(key, size), len(batch))
    return slice_in_dim(both, 0, size, axis=len(batch)) if size % 2 else both


def _hash_halves(key: Array, size) -> list[Array]:
    """Hashes of the counters' first half, each paired with one of the second half, which 0 fills up."""
    half = (size + 1) // 2
    first = iota(dtypes.uint32, half)
    second = lax.add(first, np.uint32(half))
    if size % 2:
        second = lax.select_n(lax.lt(second, np.uint32(size)), _ZERO, second)
    return _hash(key, first, second)


def _hash(key: Array, first, second) -> list[Array]:
    """Hashes of counters under every key of a batch: uint32[*batch, *counters].

    first: an array or a scalar."""
    batch = key.shape[:-1]
    words = [squeeze(word, (len(batch),)) for word in split(key, (1, 1), axis=len(batch))]
    if batch and second.shape:
        shape = (*batch, *second.shape)
        words = [broadcast_in_dim(word, shape, range(len(batch))) for word in words]
        first, second = (x if not x.shape else broadcast_in_dim(x, shape, range(len(batch), len(shape)))
                         for x in (first, second))
    return threefry2x32(*words, first, second)


def _join_words(high, low) -> Array:
    return concatenate([broadcast_in_dim(word, (1,), ()) for word in (high, low)], 0)


def _stack_words(first: Array, second: Array) -> Array:
    axis = len(first.shape)
    return concatenate([expand_dims(word, (axis,)) for word in (first, second)], axis)


def _join_64_bits(high: Array, low: Array) -> Array:
    high, low = (lax.convert_element_type(word, dtypes.uint64) for word in (high, low))
    return lax.bitwise_or(lax.shift_left(high, np.uint64(32)), low)
