"""Keys: typed keys (`key`), raw uint32 keys (`PRNGKey`), and how new keys are made of old ones.

In: integer seeds and keys. Out: keys. A typed key is an Array of a `KeyDtype`; every function of
`jitcore.random` takes raw keys as well, words in a last axis, and gives raw keys for them.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.config import config
from jitcore.core.jaxpr import aval_of
from jitcore.dtypes import KEY_DTYPES, KeyDtype
from jitcore.lax.define import canonicalize_shape
from jitcore.lax.joining import split as split_axis
from jitcore.lax.random.keys import (random_clone, random_fold_in, random_seed, random_split, random_unwrap,
                                     random_wrap)
from jitcore.lax.shape import squeeze

__all__ = ["PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split",
           "wrap_key_data"]


# -- implementations ----------------------------------------------------------------------------------------
def _find_dtype(impl) -> KeyDtype:
    """The dtype of keys of an implementation: its name, its dtype, or None for the default one."""
    if isinstance(impl, KeyDtype):
        return impl
    name = config.default_prng_impl if impl is None else impl
    if name not in KEY_DTYPES:
        known = ", ".join(f'"{known}"' for known in KEY_DTYPES)
        raise ValueError(f'unrecognized PRNG implementation "{name}". Did you mean one of: {known}?')
    return KEY_DTYPES[name]


def key_dtype(impl_spec: str | None = None) -> KeyDtype:
    """The dtype of typed keys of an implementation, `impl_spec`; by default of that which the flag names."""
    return _find_dtype(impl_spec)


def key_impl(keys) -> str:
    """Name of the keys' implementation."""
    return read_keys("key_impl", keys, allow_batched=True).dtype.implementation


# -- keys of seeds and words --------------------------------------------------------------------------------
def key(seed, *, impl: str | None = None, dtype: str | KeyDtype | None = None) -> Array:
    """A typed key of an integer seed.

    Args:
        seed: integer scalar of at most 64 bits. A Python int counts as one of the default width: its lower
            32 bits are used, all 64 under `enable_x64`.
        impl, dtype: name or dtype of an implementation, at most one of the two; `config.default_prng_impl` by
            default.
    Raises: TypeError for a seed that is no integer scalar; OverflowError; ValueError for another `impl`."""
    if impl is not None and dtype is not None:
        raise ValueError("Cannot specify both `impl` and `dtype` arguments to jitcore.random.key")
    return _seed("key", seed, dtype if impl is None else impl)


def PRNGKey(seed, *, impl: str | None = None) -> Array:  # noqa: N802  JAX's name
    """A raw key of an integer seed, uint32[2], or a typed one under `enable_custom_prng`; otherwise as
    `key`."""
    made = _seed("PRNGKey", seed, impl)
    return made if config.enable_custom_prng else random_unwrap(made)


def _seed(name: str, seed, impl) -> Array:
    aval, dtype = aval_of(seed), _find_dtype(impl)
    if dtypes.is_key(aval.dtype):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if aval.ndim:
        raise TypeError(f"{name} accepts a scalar seed, but was given an array of shape {aval.shape} != ().")
    if isinstance(seed, int) and not isinstance(seed, bool):
        if not -(2**63) <= seed < 2**63:
            raise OverflowError("Python int too large to convert to a 64-bit seed")
        seed = np.int64(seed) if config.enable_x64 else np.array(seed, np.int64).astype(np.int32)[()]
    elif aval.dtype == dtypes.bool_:
        seed = int(seed) if isinstance(seed, bool) else jnp.asarray(seed, dtypes.int32)
    return random_seed(seed, dtype)


def key_data(keys) -> Array:
    """The words of keys, uint32[..., 2]."""
    return random_unwrap(read_keys("key_data", keys, allow_batched=True))


def wrap_key_data(key_bits_array, *, impl: str | None = None, dtype=None) -> Array:
    """Typed keys of words, uint32[..., 2].

    Raises: TypeError for another shape or dtype; ValueError for both `impl` and `dtype`."""
    if impl is not None and dtype is not None:
        raise ValueError("Cannot specify both `impl` and `dtype` arguments to wrap_key_data")
    return _wrap(key_bits_array, _find_dtype(dtype if impl is None else impl))


def _wrap(words, dtype: KeyDtype) -> Array:
    if not isinstance(words, (Array, np.ndarray)):
        raise TypeError(f"unexpected PRNG key type {type(words)}")
    shape = aval_of(words).shape
    if not shape:
        raise TypeError("invalid PRNG key data: expected key_data.ndim >= 1; got ndim=0")
    if shape[-1] != dtype.n_words:
        raise TypeError(f"invalid PRNG key data: expected the shape to end with ({dtype.n_words},); "
                        f"got {shape}")
    if words.dtype != dtypes.uint32:
        raise TypeError(f"invalid PRNG key data: expected dtype uint32; got dtype={words.dtype}")
    return random_wrap(words, dtype)


def read_keys(name: str, keys, *, allow_batched: bool = False) -> Array:
    """Typed or raw keys as typed ones: one, or several where that is allowed.

    Raises: TypeError for what is not a key; ValueError for several keys given to `name`."""
    if not _is_typed(keys):
        keys = _wrap(keys, _find_dtype(None))
    if not allow_batched and keys.shape:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape "
                         f"{keys.shape} != (). Use jitcore.vmap for batching.")
    return keys


def _is_typed(keys) -> bool:
    return isinstance(keys, Array) and dtypes.is_key(keys.dtype)


# -- new keys ---------------------------------------------------------------------------------------------
def clone(key):
    """The same key."""
    cloned = random_clone(read_keys("clone", key, allow_batched=True))
    return _as_given(cloned, key)


def split(key, num: int | tuple[int, ...] = 2):
    """New keys of one key: an array of keys of shape (num,), or of shape num; raw keys for a raw key.

    Raises: ValueError for several keys."""
    return _as_given(random_split(read_keys("split", key), canonicalize_shape(num)), key)


def fold_in(key, data):
    """The key of a key and a number.

    Args:
        data: scalar; taken as uint32.
    Raises: OverflowError for a Python int that is no uint32; ValueError for several keys."""
    one = read_keys("fold_in", key)
    if aval_of(data).ndim:
        shape = aval_of(data).shape
        raise TypeError(f"fold_in accepts a scalar, but was given an array of shape {shape} != ().")
    if isinstance(data, int):
        dtypes.check_integer_fits(data, dtypes.uint32)
        data = np.uint32(data)
    return _as_given(random_fold_in(one, jnp.asarray(data, dtypes.uint32)), key)


def _as_given(keys: Array, like) -> Array:
    """Raw keys where a raw one was given."""
    return keys if _is_typed(like) else random_unwrap(keys)


def split_keys(keys: Array, count: int = 2) -> list[Array]:
    """`count` keys of each key in an array, for the inside of a distribution."""
    axis = len(keys.shape)
    parts = split_axis(random_split(keys, (count,)), (1,) * count, axis=axis)
    return [squeeze(part, (axis,)) for part in parts]
