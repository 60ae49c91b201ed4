"""Attention: what values belong to the keys that are near to a query.

In: queries, keys and values. Out: for each query the values, weighted.
"""

from __future__ import annotations

import math

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.nn.normalization import softmax
from jitcore.numpy.arrays.promotion import ensure_array
from jitcore.scipy.special import logsumexp

__all__ = ["dot_product_attention"]


def dot_product_attention(query, key, value, bias=None, mask=None, *, scale: float | None = None,
                          is_causal: bool = False, query_seq_lengths=None, key_value_seq_lengths=None,
                          local_window_size: int | tuple[int, int] | None = None,
                          implementation: str | None = None,
                          return_residual: bool = False) -> Array | tuple[Array, Array]:
    """softmax(scale query key^T + bias) value, for each head.

    Args:
        query: [batch, T, N, H], or without the batch. key, value: [batch, S, K, H]; K divides N, and N / K
            heads of the query share one of the keys. They have one floating dtype.
        bias: is added, [batch or 1, N or 1, T or 1, S or 1]. mask: bools of such a shape; False: no
            attention.
        scale: 1 / sqrt(H) by default. is_causal: no key that comes after its query is seen.
        query_seq_lengths, key_value_seq_lengths: [batch] ints, what is filled of T and of S.
        local_window_size: how many keys before and after a query are seen, one number or two.
        implementation: None or "xla", for JAX's signature.
        return_residual: also the logarithms of the sums that softmax divides by.

    Returns: an Array of the query's shape and dtype; sums are taken in single precision at least. Queries
    beyond their length give 0. With return_residual also [batch, T, N], in that dtype.
    Raises: ValueError for shapes or dtypes that do not fit, and for another implementation.
    Source: A. Vaswani et al., Attention is all you need (2017), as jax.nn.dot_product_attention."""
    if implementation not in (None, "xla"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    query, key, value = (ensure_array("dot_product_attention", x) for x in (query, key, value))
    shape, dtype = query.shape, query.dtype
    if not query.ndim == key.ndim == value.ndim or query.ndim not in (3, 4):
        raise ValueError("query, key and value need the axes [batch, length, heads, features], the batch "
                         "or not, got "
                         f"shapes {query.shape}, {key.shape} and {value.shape}")
    for name, x in (("key", key), ("value", value)):
        if x.dtype != dtype:
            raise ValueError(f"{name} dtype should be {dtype}, but got {x.dtype}")
    if query.ndim == 3:
        query, key, value = query[None], key[None], value[None]
    batch, length, heads, features = query.shape
    others = (batch, key.shape[1], key.shape[2], features)
    if key.shape != others or value.shape != others or heads % max(others[2], 1):
        raise ValueError(f"keys of shape {key.shape} and values of shape {value.shape} do not fit to a "
                         "query of "
                         f"shape {query.shape}")
    bias, mask = (None if x is None else jnp.reshape(x, (1,) * (4 - jnp.ndim(x)) + jnp.shape(x))
                  for x in (bias, mask))
    wide = dtypes.result_type(dtype, dtypes.float32)
    groups = (batch, length, others[2], heads // others[2], features)
    scores = jnp.einsum("btkgh,bskh->bkgts", jnp.reshape(query, groups), key, preferred_element_type=wide)
    scores = jnp.reshape(scores, (batch, heads, length, others[1]))
    scores = scores * jnp.asarray(1 / math.sqrt(features) if scale is None else scale, wide)
    if bias is not None:
        scores = scores + jnp.asarray(bias, wide)
    seen = _find_seen(length, others[1], is_causal, query_seq_lengths, key_value_seq_lengths,
                      local_window_size)
    for one in (*seen, mask):
        if one is not None:
            scores = jnp.where(one, scores, jnp.asarray(-0.7 * float(jnp.finfo(wide).max), wide))
    residual = None
    if return_residual:
        residual = jnp.asarray(jnp.moveaxis(logsumexp(scores, axis=-1), -2, -1), dtype)
    weights = jnp.asarray(softmax(scores, axis=-1), key.dtype)
    weights = jnp.reshape(weights, (batch, others[2], heads // others[2], length, others[1]))
    out = jnp.reshape(jnp.einsum("bkgts,bskh->btkgh", weights, value), (batch, length, heads, features))
    if query_seq_lengths is not None:
        filled = jnp.arange(length)[None] < jnp.asarray(query_seq_lengths)[:, None]
        out = jnp.where(filled[:, :, None, None], out, 0)
    out = jnp.reshape(jnp.asarray(out, dtype), shape)
    return out if residual is None else (out, jnp.reshape(residual, shape[:-1]))


def _find_seen(length: int, keys: int, is_causal: bool, query_lengths, key_lengths, window) -> list:
    """Masks that broadcast to [batch, heads, T, S]: which keys each query sees."""
    row, column = jnp.arange(length)[:, None], jnp.arange(keys)[None]
    seen = []
    if is_causal:
        seen.append(column <= row)
    if window is not None:
        before, after = (window, window) if isinstance(window, int) else window
        seen.append((row - column <= before) & (column - row <= after))
    for place, lengths in ((row, query_lengths), (column, key_lengths)):
        if lengths is not None:
            seen.append(place < jnp.asarray(lengths)[:, None, None, None])
    return seen
