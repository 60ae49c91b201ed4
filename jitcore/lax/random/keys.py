"""The primitives of keys: `random_seed`, `random_split`, `random_fold_in`, `random_bits`, and the two between
keys and their words.

In: arrays of keys, of a `KeyDtype`. Out: keys and unsigned integers. A primitive here has the trait
`on_words`, a function `on_words(dtype, *operands, **params)` written with `lax`, in which keys are tuples of
words: eager calls run it, and `passes.keys` puts it in the place of the equation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jitcore import dtypes
from jitcore.array import Array, ConcreteArray
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.trace import ensure_compile_time_eval
from jitcore.dtypes import KeyDtype
from jitcore.lax.define import define, join_shapes
from jitcore.lax.joining import concatenate
from jitcore.lax.random.implementations import (IMPLEMENTATIONS, UNSIGNED_DTYPES, Implementation, Words,
                                                take_last)
from jitcore.lax.shape import expand_dims
from jitcore.transforms.batch_rules import batch_elementwise, rebind
from jitcore.transforms.derivative_rules import jvp_zero


def find_implementation(dtype: KeyDtype) -> Implementation:
    return IMPLEMENTATIONS[dtype.implementation]


def read_words(keys: np.ndarray) -> tuple[np.ndarray, ...]:
    """The words of keys in memory."""
    (tag,) = keys.dtype.names
    return tuple(keys[tag][..., i].copy() for i in range(keys[tag].shape[-1]))


def write_words(words: tuple, dtype: KeyDtype) -> np.ndarray:
    """The inverse of `read_words`."""
    return np.stack(np.broadcast_arrays(*words), -1).view(dtype.dtype)[..., 0]


def _key_primitive(name: str, *, aval: Callable, on_words: Callable, **rules) -> Callable:
    """A primitive with keys among its operands, or as its result."""

    def run(*values, **params):
        kinds = [dtypes.of_ndarray(value.dtype) for value in values]
        kind = params.get("impl") or kinds[0]
        operands = [tuple(map(ConcreteArray, read_words(value))) if dtypes.is_key(own)
                    else ConcreteArray(value) for value, own in zip(values, kinds)]
        with ensure_compile_time_eval():
            out = on_words(kind, *operands, **params)
        if isinstance(out, tuple):
            return write_words(tuple(np.asarray(word) for word in out), kind)
        return out.data

    return define(name, impl=run, aval=aval, jvp=jvp_zero, on_words=on_words, **rules)


def _check_keys(name: str, aval: ShapedArray) -> None:
    if not dtypes.is_key(aval.dtype):
        raise TypeError(f"{name} takes keys, got {aval.long()}")


# -- seeds, keys of keys ------------------------------------------------------------------------------------
def _seed_aval(seeds: ShapedArray, *, impl: KeyDtype) -> ShapedArray:
    if not dtypes.is_integer(seeds.dtype):
        raise TypeError(f"PRNG key seed must be an integer; got {seeds.long()}")
    return ShapedArray(seeds.shape, impl)


@_key_primitive("random_seed", aval=_seed_aval, batch=batch_elementwise,
                on_words=lambda kind, seeds, *, impl: find_implementation(kind).seed(seeds))
def random_seed(seeds, impl: KeyDtype) -> Array:
    """Keys of integers, of their shape."""
    return random_seed.primitive.bind(seeds, impl=impl)


def _split_aval(keys: ShapedArray, *, shape: tuple) -> ShapedArray:
    _check_keys("random_split", keys)
    return ShapedArray((*keys.shape, *shape), keys.dtype)


@_key_primitive("random_split", aval=_split_aval, batch=rebind(),
                on_words=lambda kind, keys, *, shape: find_implementation(kind).split(keys, shape))
def random_split(keys, shape: tuple) -> Array:
    """New keys of each key: of the keys' shape and `shape` behind it."""
    return random_split.primitive.bind(keys, shape=shape)


def _fold_aval(keys: ShapedArray, data: ShapedArray) -> ShapedArray:
    _check_keys("random_fold_in", keys)
    if data.dtype != dtypes.uint32:
        raise TypeError(f"random_fold_in takes uint32, got {data.long()}")
    return ShapedArray(join_shapes("random_fold_in", keys.shape, data.shape), keys.dtype)


@_key_primitive("random_fold_in", aval=_fold_aval, batch=batch_elementwise,
                on_words=lambda kind, keys, data: find_implementation(kind).fold(keys, data))
def random_fold_in(keys, data) -> Array:
    """Keys of keys and uint32 numbers, of one shape or scalars."""
    return random_fold_in.primitive.bind(keys, data)


def _clone_aval(keys: ShapedArray) -> ShapedArray:
    _check_keys("random_clone", keys)
    return keys


@_key_primitive("random_clone", aval=_clone_aval, batch=batch_elementwise, on_words=lambda kind, keys: keys)
def random_clone(keys) -> Array:
    """The same keys."""
    return random_clone.primitive.bind(keys)


# -- bits ---------------------------------------------------------------------------------------------------
def _bits_aval(keys: ShapedArray, *, bit_width: int, shape: tuple) -> ShapedArray:
    _check_keys("random_bits", keys)
    return ShapedArray((*keys.shape, *shape), UNSIGNED_DTYPES[bit_width])


@_key_primitive("random_bits", aval=_bits_aval, batch=rebind(),
                on_words=lambda kind, keys, *, bit_width, shape: find_implementation(kind).bits(
                    keys, bit_width, shape))
def random_bits(keys, bit_width: int, shape: tuple) -> Array:
    """Unsigned integers of 8, 16, 32 or 64 random bits: of the keys' shape and `shape` behind it."""
    return random_bits.primitive.bind(keys, bit_width=bit_width, shape=shape)


# -- words --------------------------------------------------------------------------------------------------
def _wrap_aval(words: ShapedArray, *, impl: KeyDtype) -> ShapedArray:
    if words.dtype != dtypes.uint32 or words.shape[-1:] != (impl.n_words,):
        raise TypeError(f"random_wrap takes words of {impl}, got {words.long()}")
    return ShapedArray(words.shape[:-1], impl)


def _take_words(kind: KeyDtype, words: Array, *, impl: KeyDtype) -> Words:
    return tuple(take_last(words))


@_key_primitive("random_wrap", aval=_wrap_aval, batch=rebind(), on_words=_take_words)
def random_wrap(words, impl: KeyDtype) -> Array:
    """The keys that have these words, uint32[..., n]."""
    return random_wrap.primitive.bind(words, impl=impl)


def _unwrap_aval(keys: ShapedArray) -> ShapedArray:
    _check_keys("random_unwrap", keys)
    return ShapedArray((*keys.shape, keys.dtype.n_words), dtypes.uint32)


def stack_words(keys: Words) -> Array:
    """The words in a last axis."""
    axis = len(aval_of(keys[0]).shape)
    return concatenate([expand_dims(word, (axis,)) for word in keys], axis)


@_key_primitive("random_unwrap", aval=_unwrap_aval, batch=rebind(),
                on_words=lambda kind, keys: stack_words(keys))
def random_unwrap(keys) -> Array:
    """The words of keys, uint32[..., n]."""
    return random_unwrap.primitive.bind(keys)
