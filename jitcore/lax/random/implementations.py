"""Implementations of keys: how words give keys and bits.

In: words of keys, a tuple of uint32 arrays of the keys' shape. Out: words of other keys, and unsigned
integers. The numbers are JAX's, bit for bit. `config.threefry_partitionable` chooses between two ways to
count, whose numbers differ: the partitionable one hashes each element's own 64-bit position, the original
one, JAX's until 0.5, hashes the counters 0 .. n-1 in pairs (the first half of them with the second half).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.config import config
from jitcore.core.jaxpr import aval_of
from jitcore.lax.bits import shift_right_logical, xor
from jitcore.lax.define import product
from jitcore.lax.elementwise import add, convert_element_type, lt, mul, select_n
from jitcore.lax.indexing.slices import slice_in_dim
from jitcore.lax.joining import concatenate
from jitcore.lax.random.bit_generator import generate_bits, join_64_bits
from jitcore.lax.random.threefry import threefry2x32
from jitcore.lax.shape import broadcast_in_dim, broadcasted_iota, full, iota, reshape, squeeze

UNSIGNED_DTYPES = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}
_ZERO = np.uint32(0)

#: Of keys: a uint32 array for each word.
Words = tuple[Array, ...]


class Implementation(NamedTuple):
    """seed: of an array of integers, words of its shape. split, bits: of keys of a shape b, words of shape
    b + shape, and integers of a width. fold: of keys and uint32 of one shape, or scalars, words."""

    seed: Callable[[Array], Words]
    split: Callable[[Words, tuple], Words]
    fold: Callable[[Words, Array], Words]
    bits: Callable[[Words, int, tuple], Array]


# -- Threefry -----------------------------------------------------------------------------------------------
def _seed_threefry(seed: Array) -> Words:
    """The upper and the lower 32 bits."""
    low, dtype = convert_element_type(seed, dtypes.uint32), aval_of(seed).dtype
    if dtype.itemsize < 8:
        return full(aval_of(seed).shape, 0, dtypes.uint32), low
    return convert_element_type(shift_right_logical(seed, dtype.type(32)), dtypes.uint32), low


def _split_threefry(key: Words, shape: tuple) -> Words:
    if config.threefry_partitionable:
        return tuple(_hash_positions(key, shape))
    batch = aval_of(key[0]).shape
    pairs = reshape(_hash_counters(key, 2 * product(shape)), (*batch, product(shape), 2))
    parts = [slice_in_dim(pairs, i, i + 1, axis=len(batch) + 1) for i in range(2)]
    return tuple(reshape(part, (*batch, *shape)) for part in parts)


def _fold_threefry(key: Words, data: Array) -> Words:
    return tuple(threefry2x32(*key, _ZERO, data))


def _draw_threefry(key: Words, bit_width: int, shape: tuple) -> Array:
    draw = _draw_by_position if config.threefry_partitionable else _draw_by_counter
    return draw(key, bit_width, shape)


def _draw_by_position(key: Words, bit_width: int, shape: tuple) -> Array:
    high, low = _hash_positions(key, shape)
    if bit_width == 64:
        return join_64_bits(low, high)
    return convert_element_type(xor(high, low), UNSIGNED_DTYPES[bit_width])


def _draw_by_counter(key: Words, bit_width: int, shape: tuple) -> Array:
    batch, size = aval_of(key[0]).shape, product(shape)
    if bit_width == 64:
        high, low = _hash_halves(key, 2 * size)
        return reshape(join_64_bits(low, high), (*batch, *shape))
    per_word = 32 // bit_width
    n_words = (size + per_word - 1) // per_word
    words = _hash_counters(key, n_words)
    if per_word == 1:
        return reshape(words, (*batch, *shape))
    grid, axis = (*batch, n_words, per_word), len(batch)
    shifts = mul(broadcasted_iota(dtypes.uint32, grid, axis + 1), np.uint32(bit_width))
    pieces = shift_right_logical(broadcast_in_dim(words, grid, range(axis + 1)), shifts)
    pieces = convert_element_type(pieces, UNSIGNED_DTYPES[bit_width])
    pieces = reshape(pieces, (*batch, n_words * per_word))
    return reshape(slice_in_dim(pieces, 0, size, axis=axis), (*batch, *shape))


def _hash_positions(key: Words, shape: tuple) -> list[Array]:
    """Hashes of each element's position in an array of this shape."""
    size = product(shape)
    if isinstance(size, int) and size > 2**32:
        position = reshape(iota(dtypes.uint64, size), shape)
        high = convert_element_type(shift_right_logical(position, np.uint64(32)), dtypes.uint32)
        return _hash(key, high, convert_element_type(position, dtypes.uint32))
    return _hash(key, _ZERO, reshape(iota(dtypes.uint32, size), shape) if shape else _ZERO)


def _hash_counters(key: Words, size) -> Array:
    """Hashes of the counters 0 .. size-1, uint32[*batch, size]."""
    batch = aval_of(key[0]).shape
    if isinstance(size, int) and size == 0:
        return full((*batch, 0), 0, dtypes.uint32)
    both = concatenate(_hash_halves(key, size), len(batch))
    return slice_in_dim(both, 0, size, axis=len(batch)) if size % 2 else both


def _hash_halves(key: Words, size) -> list[Array]:
    """Hashes of the counters' first half, each paired with one of the second half, which 0 fills up."""
    half = (size + 1) // 2
    first = iota(dtypes.uint32, half)
    second = add(first, np.uint32(half))
    if size % 2:
        second = select_n(lt(second, np.uint32(size)), full((half,), 0, dtypes.uint32), second)
    return _hash(key, first, second)


def _hash(key: Words, first, second) -> list[Array]:
    """Hashes of counters under every key of a batch: uint32[*batch, *counters].

    first: an array or a scalar."""
    batch, counters = aval_of(key[0]).shape, aval_of(second).shape
    if batch and counters:
        shape = (*batch, *counters)
        key = tuple(broadcast_in_dim(word, shape, range(len(batch))) for word in key)
        inner = range(len(batch), len(shape))
        first, second = (broadcast_in_dim(x, shape, inner) if aval_of(x).shape else x
                         for x in (first, second))
    return threefry2x32(*key, first, second)


# -- XLA's generator ----------------------------------------------------------------------------------------
# Blocks of a generator between two numbers that serve as hashes.
_APART = 10


def _seed_twice(seed: Array) -> Words:
    return _seed_threefry(seed) * 2


def _split_halves(key: Words, shape: tuple) -> Words:
    return _split_threefry(key[:2], shape) + _split_threefry(key[2:], shape)


def _fold_halves(key: Words, data: Array) -> Words:
    return _fold_threefry(key[:2], data) + _fold_threefry(key[2:], data)


def _draw_generator(key: Words, bit_width: int, shape: tuple) -> Array:
    """The first key of an array draws for all, as it does in JAX."""
    batch = aval_of(key[0]).shape
    if product(batch) == 0:
        return full((*batch, *shape), 0, UNSIGNED_DTYPES[bit_width])
    first = [reshape(slice_in_dim(reshape(word, (product(batch),)), 0, 1), ()) for word in key]
    return generate_bits(first, (*batch, *shape), UNSIGNED_DTYPES[bit_width])[1]


def _split_by_bits(key: Words, shape: tuple) -> Words:
    batch = aval_of(key[0]).shape
    drawn = _draw_generator(key, 32, (_APART * product(shape), 4))
    rows = slice_in_dim(drawn, 0, None, _APART, axis=len(batch))
    return tuple(reshape(word, (*batch, *shape)) for word in take_last(rows))


def _fold_by_bits(key: Words, data: Array) -> Words:
    drawn = _draw_generator(_seed_twice(data), 32, (_APART, 4))
    last = slice_in_dim(drawn, _APART - 1, _APART, axis=len(aval_of(data).shape))
    folded = [reshape(word, aval_of(data).shape) for word in take_last(last)]
    return tuple(map(xor, key, folded))


def take_last(words: Array) -> list[Array]:
    """The arrays along the last axis."""
    *batch, count = aval_of(words).shape
    axis = len(batch)
    return [squeeze(slice_in_dim(words, i, i + 1, axis=axis), (axis,)) for i in range(count)]


#: By name.
IMPLEMENTATIONS = {
    "threefry2x32": Implementation(_seed_threefry, _split_threefry, _fold_threefry, _draw_threefry),
    "rbg": Implementation(_seed_twice, _split_halves, _fold_halves, _draw_generator),
    "unsafe_rbg": Implementation(_seed_twice, _split_by_bits, _fold_by_bits, _draw_generator),
}
