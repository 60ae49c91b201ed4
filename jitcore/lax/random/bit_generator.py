"""XLA's generator of bits: `rng_bit_generator`, by Philox-4x32 or Threefry-2x32.

In: a state of 128 bits, a shape, a dtype. Out: the next state and unsigned integers, those of XLA on CPUs.
The lower half of the state is the key; the upper half is the counter of the first block, and goes on with
each.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes
from jitcore.array import Array, ConcreteArray
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, aval_of
from jitcore.core.trace import ensure_compile_time_eval, trace_to_jaxpr
from jitcore.lax.bits import or_, shift_left, shift_right_logical, xor
from jitcore.lax.define import canonicalize_shape, define, product
from jitcore.lax.elementwise import add, convert_element_type, lt, mul
from jitcore.lax.indexing.slices import dynamic_update_slice_in_dim, slice_in_dim
from jitcore.lax.joining import concatenate
from jitcore.lax.random.threefry import threefry2x32
from jitcore.lax.shape import expand_dims, iota, reshape, squeeze
from jitcore.transforms.derivative_rules import jvp_zero


class RandomAlgorithm(enum.IntEnum):
    """How `rng_bit_generator` makes bits; the default is what XLA takes on CPUs, Philox."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


def split_64_bits(value) -> tuple[Array, Array]:
    """The lower and the upper halves of 64-bit integers."""
    upper = shift_right_logical(value, np.uint64(32))
    return convert_element_type(value, dtypes.uint32), convert_element_type(upper, dtypes.uint32)


def join_64_bits(low, high) -> Array:
    """64-bit integers of their halves."""
    low, high = (convert_element_type(word, dtypes.uint64) for word in (low, high))
    return or_(low, shift_left(high, np.uint64(32)))


def generate_bits(words: Sequence, shape: tuple, dtype: np.dtype,
                  algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT) -> tuple[tuple, Array]:
    """The words of the next state, and unsigned integers of this dtype.

    words: of the state, four uint32 scalars, lowest first."""
    draw = _draw_threefry if algorithm == RandomAlgorithm.RNG_THREE_FRY else _draw_philox
    counter = join_64_bits(*words[2:])
    bits, n_blocks = draw(words, counter, shape, dtype)
    return (*words[:2], *split_64_bits(add(counter, np.uint64(n_blocks)))), bits


# -- Philox -------------------------------------------------------------------------------------------------
# Multipliers of a round, and what is added to the key for the next one.
_FACTORS, _STEPS, _ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10


def _hash_philox(key: Sequence, counter: Sequence) -> list:
    """Four hashed words of each counter of four. Source: Salmon, Moraes, Dror, Shaw: Parallel random
    numbers: as easy as 1, 2, 3 (SC11)."""
    (a, b), (x0, x1, x2, x3) = key, counter
    for number in range(_ROUNDS):
        if number:
            a, b = add(a, np.uint32(_STEPS[0])), add(b, np.uint32(_STEPS[1]))
        (low0, high0), (low1, high1) = (
            split_64_bits(mul(convert_element_type(x, dtypes.uint64), np.uint64(factor)))
            for x, factor in zip((x0, x2), _FACTORS))
        x0, x1, x2, x3 = xor(xor(high1, x1), a), low1, xor(xor(high0, x3), b), low0
    return [x0, x1, x2, x3]


def _draw_philox(words: Sequence, counter: Array, shape: tuple, dtype: np.dtype) -> tuple[Array, int]:
    size, is_wide = product(shape), dtype.itemsize == 8
    n_blocks = -(-size // (2 if is_wide else 4))
    low = add(iota(dtypes.uint64, n_blocks), counter)
    high = add(convert_element_type(lt(low, counter), dtypes.uint64), join_64_bits(*words[:2]))
    found = _hash_philox(words[:2], (*split_64_bits(low), *split_64_bits(high)))
    if is_wide:
        found = [join_64_bits(*found[:2]), join_64_bits(*found[2:])]
    every = [expand_dims(convert_element_type(part, dtype), (1,)) for part in found]
    row = reshape(concatenate(every, 1), (n_blocks * len(every),))
    return reshape(slice_in_dim(row, 0, size), shape), n_blocks


# -- Threefry -----------------------------------------------------------------------------------------------
def _draw_threefry(words: Sequence, counter: Array, shape: tuple, dtype: np.dtype) -> tuple[Array, int]:
    if dtype.itemsize == 8:
        count, (first, second) = product(shape), _hash_threefry(words, counter, product(shape))
        return reshape(join_64_bits(first, second), shape), count
    # Both words of a hash are neighbours along the first even axis, else along the longest.
    whole = shape or (1,)
    axis = next((i for i, extent in enumerate(whole) if extent % 2 == 0), int(np.argmax(whole)))
    half = (*whole[:axis], -(-whole[axis] // 2), *whole[axis + 1 :])
    count = product(half)
    hashed = _hash_threefry(words, counter, count)
    parts = [expand_dims(reshape(word, half), (axis + 1,)) for word in hashed]
    pairs = reshape(concatenate(parts, axis + 1), (*half[:axis], 2 * half[axis], *half[axis + 1 :]))
    found = slice_in_dim(pairs, 0, whole[axis], axis=axis)
    return convert_element_type(reshape(found, shape), dtype), count


def _hash_threefry(words: Sequence, counter: Array, count: int) -> list[Array]:
    return threefry2x32(*words[:2], *split_64_bits(add(iota(dtypes.uint64, count), counter)))


# -- the primitive ------------------------------------------------------------------------------------------
def _aval(key: ShapedArray, *, shape: tuple, dtype: np.dtype, algorithm) -> list[ShapedArray]:
    if (key.dtype, key.shape) not in ((dtypes.uint32, (4,)), (dtypes.uint64, (2,))):
        raise TypeError(f"rng_bit_generator takes a key of uint32[4] or uint64[2], got {key.long()}")
    return [key, ShapedArray(shape, dtype)]


def _generate(key: Array, *, shape: tuple, dtype: np.dtype, algorithm: RandomAlgorithm) -> list[Array]:
    aval = aval_of(key)
    words = [squeeze(slice_in_dim(key, i, i + 1), (0,)) for i in range(aval.shape[0])]
    if aval.dtype == dtypes.uint64:
        words = [half for word in words for half in split_64_bits(word)]
    state, bits = generate_bits(words, shape, dtype, algorithm)
    if aval.dtype == dtypes.uint64:
        state = join_64_bits(*state[:2]), join_64_bits(*state[2:])
    return [concatenate([expand_dims(word, (0,)) for word in state], 0), bits]


def _run(key: np.ndarray, **params) -> list[np.ndarray]:
    with ensure_compile_time_eval():
        return [out.data for out in _generate(ConcreteArray(key), **params)]


def _expand(avals: Sequence[ShapedArray], params: dict) -> ClosedJaxpr:
    return ClosedJaxpr(*trace_to_jaxpr(lambda key: _generate(key, **params), avals))


def _batch(primitive, axis, values, batched, *, shape: tuple, **params) -> list[Array]:
    """As XLA's arrays of keys do: the first key draws for all, and it alone goes on."""
    (keys,) = values
    first = squeeze(slice_in_dim(keys, 0, 1), (0,))
    state, bits = primitive.bind(first, shape=(axis.size, *shape), **params)
    return [dynamic_update_slice_in_dim(keys, expand_dims(state, (0,)), 0, 0), bits]


@define("rng_bit_generator", impl=_run, aval=_aval, jvp=jvp_zero, batch=_batch, expand=_expand,
        multiple_results=True)
def rng_bit_generator(key, shape, dtype=np.uint32, algorithm=RandomAlgorithm.RNG_DEFAULT, *,
                      out_sharding=None) -> tuple[Array, Array]:
    """The next state of XLA's generator, and random bits.

    Args:
        key: the state, uint32[4] or uint64[2].
        shape: of the bits. dtype: of them, an unsigned one of 8 to 64 bits.
        algorithm: a `RandomAlgorithm`. The bits are those of XLA on CPUs on every backend.
        out_sharding: None.
    Returns: the state for more bits, as key; the bits.
    Raises: TypeError for another key or dtype; NotImplementedError for an `out_sharding`.
    Source: XLA's RngBitGenerator, jax.lax.rng_bit_generator."""
    if out_sharding is not None:
        raise NotImplementedError("rng_bit_generator takes no out_sharding: use lax.with_sharding_constraint")
    dtype = dtypes.canonicalize(dtype)
    if dtypes.kind_of(dtype) != "u":
        raise TypeError(f"rng_bit_generator: unsupported dtype {dtype.name}")
    found = rng_bit_generator.primitive.bind(key, shape=canonicalize_shape(shape), dtype=dtype,
                                             algorithm=RandomAlgorithm(algorithm))
    return tuple(found)
