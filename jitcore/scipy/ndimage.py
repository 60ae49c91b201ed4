"""Images of any number of axes with SciPy's names and arguments (`jitcore.scipy.ndimage`).

In: arrays and coordinates in them. Out: Arrays of the dtype of the image. Source: scipy.ndimage, of which
what JAX has.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import ensure_array

__all__ = ["map_coordinates"]


def _mirror(index, size: int):
    period = max(2 * (size - 1), 1)
    return jnp.abs((index + size - 1) % period - (size - 1))


def _reflect(index, size: int):
    return _mirror(2 * index + 1, 2 * size + 1) // 2


#: How an index outside of the image is brought inside.
_FOLDS: dict[str, Callable] = {
    "constant": lambda index, size: index, "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size, "mirror": _mirror, "reflect": _reflect}


def _round_half_away(x) -> Array:
    """As SciPy rounds."""
    return x if dtypes.is_integer(x.dtype) else lax.round(x)


def _find_neighbours(x, order: int) -> list[tuple]:
    """(index, weight) of the elements along one axis of which the value at x is made."""
    if order == 0:
        return [(jnp.asarray(_round_half_away(x), dtypes.int32), 1)]
    below = jnp.floor(x)
    index, upper = jnp.asarray(below, dtypes.int32), x - below
    return [(index, 1 - upper), (index + 1, upper)]


def map_coordinates(input, coordinates: Sequence, order: int, mode: str = "constant", cval=0.0) -> Array:
    """The image at any places, interpolated.

    Args:
        input: the image, [n, m, ...]. coordinates: one array for each axis, which broadcast; integers or
            floats.
        order: 0, the nearest element, or 1, linear.
        mode: what is outside: "constant" (cval), "nearest", "wrap", "mirror" (about the last element),
            "reflect" (about the edge).

    Returns: an Array of the shape of the coordinates and the image's dtype; integers are rounded.
    Raises: ValueError for a wrong number of coordinates; NotImplementedError for another order or mode.
    Example: `map_coordinates(jnp.array([0., 2., 4.]), [jnp.array([0.5, 1.25])], order=1)` is `[1., 2.5]`.
    Source: scipy.ndimage.map_coordinates."""
    image = ensure_array("map_coordinates", input)
    places = [ensure_array("map_coordinates", x) for x in coordinates]
    if len(places) != image.ndim:
        raise ValueError("coordinates must be a sequence of length input.ndim, but "
                         f"{len(places)} != {image.ndim}")
    if mode not in _FOLDS:
        raise NotImplementedError(f"map_coordinates does not support mode {mode!r}; it has {[*_FOLDS]}")
    if order not in (0, 1):
        raise NotImplementedError("map_coordinates requires order<=1")
    cval = jnp.asarray(cval, image.dtype)
    axes = []
    for x, size in zip(places, image.shape):
        axes.append([(_FOLDS[mode](index, size), (index >= 0) & (index < size), weight)
                     for index, weight in _find_neighbours(x, order)])
    total: Array | int = 0
    for corner in itertools.product(*axes):
        indices, inside, weights = zip(*corner)
        value = image[indices]
        if mode == "constant":
            is_inside = inside[0]
            for one in inside[1:]:
                is_inside = is_inside & one
            value = jnp.where(is_inside, value, cval)
        for weight in weights:
            value = value * weight
        total = total + value
    if dtypes.kind_of(image.dtype) in "iu":
        total = _round_half_away(total)
    return jnp.asarray(total, image.dtype)
