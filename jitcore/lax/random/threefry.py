"""The Threefry-2x32 hash, the one primitive that random numbers need.

In: two key words and two counter words for each element, uint32. Out: two hashed words for each element.
Keys, splitting, bits of every width and the distributions are built of it in `jitcore.random`.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray
from jitcore.lax.define import define, join_shapes
from jitcore.transforms.batch_rules import batch_elementwise

# Threefry-2x32 with 20 rounds: five groups of four, their rotations in turn, a key word after each group.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_GROUPS = 5
_PARITY = 0x1BD11BDA
# Elements hashed at a time: the two words and the scratch of one chunk stay in a core's own cache.
_CHUNK = 16384


def _threefry_aval(*avals: ShapedArray) -> list[ShapedArray]:
    if any(aval.dtype != dtypes.uint32 for aval in avals):
        got = ", ".join(aval.dtype.name for aval in avals)
        raise TypeError(f"Arguments to threefry2x32 must have uint32 type, got {got}")
    shape: tuple = ()
    for aval in avals:
        shape = join_shapes("threefry2x32", shape, aval.shape)
    return [ShapedArray(shape, dtypes.uint32)] * 2


def _threefry(k1, k2, x0, x1) -> tuple[np.ndarray, np.ndarray]:
    shape = np.broadcast_shapes(k1.shape, k2.shape, x0.shape, x1.shape)
    outs = np.empty(shape, np.uint32), np.empty(shape, np.uint32)
    flat_outs = [out.reshape(-1) for out in outs]
    size = flat_outs[0].size
    flat_outs[0][...] = np.broadcast_to(x0, shape).reshape(-1)
    flat_outs[1][...] = np.broadcast_to(x1, shape).reshape(-1)
    keys = [key if key.ndim == 0 else np.broadcast_to(key, shape).reshape(-1) for key in (k1, k2)]
    scratch = np.empty(min(size, _CHUNK), np.uint32)
    for start in range(0, size, _CHUNK):
        part = slice(start, start + _CHUNK)
        words = [key if key.ndim == 0 else key[part] for key in keys]
        chunk = [out[part] for out in flat_outs]
        _hash_in_place(*words, *chunk, scratch[: chunk[0].size])
    return outs


def _hash_in_place(k1, k2, x0, x1, scratch) -> None:
    """Overwrites x0 and x1 with their hashes; scratch has their size."""
    keys = (k1, k2, k1 ^ k2 ^ np.uint32(_PARITY))
    np.add(x0, keys[0], out=x0)
    np.add(x1, keys[1], out=x1)
    for group in range(_GROUPS):
        for rotation in _ROTATIONS[group % 2]:
            np.add(x0, x1, out=x0)
            np.left_shift(x1, np.uint32(rotation), out=scratch)
            np.right_shift(x1, np.uint32(32 - rotation), out=x1)
            np.bitwise_or(x1, scratch, out=x1)
            np.bitwise_xor(x1, x0, out=x1)
        np.add(x0, keys[(group + 1) % 3], out=x0)
        np.add(x1, keys[(group + 2) % 3] + np.uint32(group + 1), out=x1)


def _lower_threefry(builder, k1, k2, x0, x1) -> list:
    def combine(op, a, b):
        return builder.map(op, a, builder.constant(b, dtypes.uint32) if isinstance(b, int) else b)

    keys = (k1, k2, combine("xor", combine("xor", k1, k2), _PARITY))
    x0, x1 = combine("add", x0, k1), combine("add", x1, k2)
    for group in range(_GROUPS):
        for rotation in _ROTATIONS[group % 2]:
            x0 = combine("add", x0, x1)
            rotated = combine("or", combine("shift_left", x1, rotation),
                              combine("shift_right_logical", x1, 32 - rotation))
            x1 = combine("xor", rotated, x0)
        x0 = combine("add", x0, keys[(group + 1) % 3])
        x1 = combine("add", x1, combine("add", keys[(group + 2) % 3], group + 1))
    return [x0, x1]


@define("threefry2x32", impl=_threefry, aval=_threefry_aval, batch=batch_elementwise,
        lower=_lower_threefry, hlo=_lower_threefry, multiple_results=True)
def threefry2x32(k1, k2, x0, x1) -> list[Array]:
    """Hashes the counter (x0, x1) under the key (k1, k2), element by element.

    Args:
        k1, k2, x0, x1: uint32; arrays have one shape, the others are scalars.
    Returns: the two hashed words, uint32 of that shape.
    Raises: TypeError for another dtype or two different shapes.
    Source: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC11)."""
    return threefry2x32.primitive.bind(k1, k2, x0, x1)
