"""Keys: typed key arrays (`key`), raw uint32 keys (`PRNGKey`), and how new keys are made of old ones.

In: integer seeds and keys. Out: keys. A `PRNGKeyArray` is a pytree node over its uint32[..., 2] words, so
that tracing, jit and vmap see that array only; every function of `jitcore.random` takes raw keys as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.config import config
from jitcore.core.jaxpr import aval_of
from jitcore.dtypes import KeyDtype
from jitcore.lax.joining import split as split_axis
from jitcore.lax.reduce import reduce_and
from jitcore.lax.shape import canonicalize_axis, canonicalize_shape, reshape, squeeze, transpose
from jitcore.random import threefry
from jitcore.tree_util import register_pytree_node

__all__ = ["PRNGKey", "PRNGKeyArray", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split",
           "wrap_key_data"]

IMPLEMENTATION = "threefry2x32"


KEY_DTYPE = KeyDtype()


class PRNGKeyArray:
    """An array of keys. Indexing and reshaping act on the keys; `key_data` gives their words.

    Args:
        words: uint32[*shape, 2], concrete or traced."""

    __slots__ = ("_words", "__weakref__")
    __hash__ = None
    # The words of a key: axes that `vmap` counts are those of the keys.
    hidden_axes = 1
    # Keeps NumPy's operators from taking a key array apart.
    __array_ufunc__ = None

    def __init__(self, words):
        self._words = words

    @property
    def shape(self) -> tuple:
        return self._words.shape[:-1]

    @property
    def dtype(self) -> KeyDtype:
        return KEY_DTYPE

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self._words.size // 2

    @property
    def itemsize(self) -> int:
        return KEY_DTYPE.itemsize

    @property
    def nbytes(self) -> int:
        return self._words.nbytes

    @property
    def device(self):
        return self._words.device

    @property
    def sharding(self):
        return self._words.sharding

    def devices(self) -> set:
        return self._words.devices()

    def block_until_ready(self) -> PRNGKeyArray:
        """Returns the keys themselves, once they are computed."""
        self._words.block_until_ready()
        return self

    def delete(self) -> None:
        """Frees the words; later use raises DonatedArrayError."""
        self._words.delete()

    def is_deleted(self) -> bool:
        return self._words.is_deleted()

    def copy(self) -> PRNGKeyArray:
        return PRNGKeyArray(self._words)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[PRNGKeyArray]:
        if not self.shape:
            raise TypeError("iteration over a 0-d key array")
        return map(PRNGKeyArray, self._words)

    def __getitem__(self, index) -> PRNGKeyArray:
        index = index if isinstance(index, tuple) else (index,)
        if not any(part is Ellipsis for part in index):
            index = (*index, Ellipsis)
        # The last slice keeps the words of a key together.
        return PRNGKeyArray(self._words[(*index, slice(None))])

    def reshape(self, *shape) -> PRNGKeyArray:
        """The keys in another shape; one extent may be -1."""
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        return PRNGKeyArray(self._words.reshape((*shape, 2)))

    def ravel(self) -> PRNGKeyArray:
        return PRNGKeyArray(reshape(self._words, (self.size, 2)))

    flatten = ravel

    def squeeze(self, axis=None) -> PRNGKeyArray:
        """Without the given axes of extent 1, or without all of them."""
        if axis is None:
            axis = [i for i, extent in enumerate(self.shape) if extent == 1]
        axes = [axis] if isinstance(axis, int) else axis
        return PRNGKeyArray(squeeze(self._words, [canonicalize_axis(i, self.ndim) for i in axes]))

    def transpose(self, *axes) -> PRNGKeyArray:
        """The axes in this order, reversed by default."""
        axes = axes[0] if len(axes) == 1 and isinstance(axes[0], Sequence) else axes
        order = [canonicalize_axis(i, self.ndim) for i in axes or reversed(range(self.ndim))]
        return PRNGKeyArray(transpose(self._words, (*order, self.ndim)))

    @property
    def T(self) -> PRNGKeyArray:
        return self.transpose()

    def __eq__(self, other) -> Array:
        return self._compare(other)

    def __ne__(self, other) -> Array:
        return jnp.logical_not(self._compare(other))

    def _compare(self, other) -> Array:
        if not isinstance(other, PRNGKeyArray):
            raise TypeError(f"equal does not accept dtypes {KEY_DTYPE}, {aval_of(other).dtype.name}.")
        same = jnp.equal(self._words, other._words)
        return reduce_and(same, (len(same.shape) - 1,))

    def __bool__(self):
        raise TypeError("key array cannot be converted to boolean.")

    def __array__(self, *args, **kwargs):
        raise TypeError("An array of PRNG keys cannot be converted to a NumPy array. "
                        "Use jitcore.random.key_data(arr) to get the underlying integer array.")

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={KEY_DTYPE}) overlaying:\n{self._words}"


register_pytree_node(PRNGKeyArray, lambda keys: ((keys._words,), KEY_DTYPE), lambda _,
                     children: PRNGKeyArray(*children))


# -- new keys ---------------------------------------------------------------------------------------------
def key(seed, *, impl: str | None = None, dtype: str | KeyDtype | None = None) -> PRNGKeyArray:
    """A typed key of an integer seed.

    Args:
        seed: integer scalar of at most 64 bits. A Python int counts as one of the default width: its lower
            32 bits are used, all 64 under `enable_x64`.
        impl, dtype: "threefry2x32", the one implementation; at most one of the two.
    Raises: TypeError for a seed that is no integer scalar; OverflowError; ValueError for another `impl`."""
    if impl is not None and dtype is not None:
        raise ValueError("Cannot specify both `impl` and `dtype` arguments to jitcore.random.key")
    _check_implementation(dtype if impl is None else impl)
    return PRNGKeyArray(_seed("key", seed))


def PRNGKey(seed, *, impl: str | None = None) -> Array:  # noqa: N802  JAX's name
    """A raw key of an integer seed, uint32[2], or a typed one under `enable_custom_prng`; otherwise as
    `key`."""
    _check_implementation(impl)
    words = _seed("PRNGKey", seed)
    return PRNGKeyArray(words) if config.enable_custom_prng else words


def _seed(name: str, seed) -> Array:
    if isinstance(seed, PRNGKeyArray):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if aval_of(seed).ndim:
        shape = aval_of(seed).shape
        raise TypeError(f"{name} accepts a scalar seed, but was given an array of shape {shape} != ().")
    return threefry.seed_words(seed)


def _check_implementation(impl) -> None:
    if impl is not None and impl != IMPLEMENTATION and not isinstance(impl, KeyDtype):
        raise ValueError(f'unrecognized PRNG implementation "{impl}". Did you mean "{IMPLEMENTATION}"?')


def key_dtype(impl: str | None = None) -> KeyDtype:
    """The dtype of typed keys."""
    _check_implementation(impl)
    return KEY_DTYPE


def key_impl(keys) -> str:
    """Name of the keys' implementation."""
    read_words("key_impl", keys, allow_batched=True)
    return IMPLEMENTATION


def key_data(keys) -> Array:
    """The words of keys, uint32[..., 2]."""
    return read_words("key_data", keys, allow_batched=True)


def wrap_key_data(key_bits_array, *, impl: str | None = None, dtype=None) -> PRNGKeyArray:
    """Typed keys of words, uint32[..., 2]. Raises: TypeError for another shape or dtype."""
    _check_implementation(dtype if impl is None else impl)
    return PRNGKeyArray(read_words("wrap_key_data", key_bits_array, allow_batched=True))


def clone(key):
    """The same key."""
    read_words("clone", key, allow_batched=True)
    return key


def split(key, num: int | tuple[int, ...] = 2):
    """New keys of one key: an array of keys of shape (num,), or of shape num; raw keys for a raw key.

    Raises: ValueError for several keys."""
    words = threefry.split_words(read_words("split", key), canonicalize_shape(num))
    return PRNGKeyArray(words) if isinstance(key, PRNGKeyArray) else words


def fold_in(key, data):
    """The key of a key and a number.

    Args:
        data: scalar; taken as uint32.
    Raises: OverflowError for a Python int that is no uint32; ValueError for several keys."""
    words = read_words("fold_in", key)
    if aval_of(data).ndim:
        shape = aval_of(data).shape
        raise TypeError(f"fold_in accepts a scalar, but was given an array of shape {shape} != ().")
    if isinstance(data, int):
        dtypes.check_integer_fits(data, dtypes.uint32)
        data = np.uint32(data)
    words = threefry.fold_words(words, jnp.asarray(data, dtypes.uint32))
    return PRNGKeyArray(words) if isinstance(key, PRNGKeyArray) else words


def read_words(name: str, key, *, allow_batched: bool = False) -> Array:
    """The words of a typed or raw key: uint32[2], with leading axes where several are allowed.

    Raises: TypeError for what is not a key; ValueError for several keys given to `name`."""
    words = key._words if isinstance(key, PRNGKeyArray) else _check_words(key)
    if not allow_batched and len(words.shape) != 1:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape "
                         f"{words.shape[:-1]} != (). Use jitcore.vmap for batching.")
    return words


def _check_words(words) -> Array:
    if not isinstance(words, (Array, np.ndarray)):
        raise TypeError(f"unexpected PRNG key type {type(words)}")
    if words.shape[-1:] != (2,):
        raise TypeError(f"invalid PRNG key data: expected the shape to end with (2,); got {words.shape}")
    if words.dtype != dtypes.uint32:
        raise TypeError(f"invalid PRNG key data: expected dtype uint32; got dtype={words.dtype}")
    return words if isinstance(words, Array) else jnp.asarray(words)


def split_keys(words: Array, count: int = 2) -> list[Array]:
    """`count` raw keys of each raw key in uint32[*batch, 2], for the inside of a distribution."""
    axis = len(words.shape) - 1
    parts = split_axis(threefry.split_words(words, (count,)), (1,) * count, axis=axis)
    return [squeeze(part, (axis,)) for part in parts]
