"""Images that are scaled (`jitcore.image`): resized, and moved by parts of a pixel.

In: arrays of any number of axes. Out: Arrays of other extents, of the same floating dtype; integers become
floats but for the nearest element. Each axis is one product with a matrix of weights. Source: jax.image.
"""

from __future__ import annotations

import enum
import operator
import sys
from collections.abc import Callable, Sequence

import numpy as np

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.docstrings import document
from jitcore.numpy.arrays.promotion import ensure_array

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """What the elements between those of the image are made of."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of that name. Raises: ValueError for another name."""
        names = {"nearest": "NEAREST", "linear": "LINEAR", "bilinear": "LINEAR", "trilinear": "LINEAR",
                 "triangle": "LINEAR", "lanczos3": "LANCZOS3", "lanczos5": "LANCZOS5", "cubic": "CUBIC",
                 "bicubic": "CUBIC", "tricubic": "CUBIC", "cubic-pytorch": "CUBIC_PYTORCH",
                 "bicubic-pytorch": "CUBIC_PYTORCH", "area": "AREA"}
        if s not in names:
            raise ValueError(f'Unknown resize method "{s}"')
        return ResizeMethod[names[s]]


def _triangle(x) -> Array:
    return jnp.maximum(0, 1 - x)


def _cubic(x, a: float = -0.5) -> Array:
    """Source: R. Keys, Cubic convolution interpolation for digital image processing (1981)."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return jnp.where(x >= 2, 0, jnp.where(x >= 1, far, near))


def _lanczos(radius: int, x) -> Array:
    """Source: C. Lanczos, by C. Duchon, Lanczos filtering in one and two dimensions (1979)."""
    return jnp.where(x > radius, 0, jnp.sinc(x) * jnp.sinc(x / radius))


_KERNELS: dict[ResizeMethod, Callable] = {
    ResizeMethod.LINEAR: _triangle, ResizeMethod.CUBIC: _cubic,
    ResizeMethod.CUBIC_PYTORCH: lambda x: _cubic(x, -0.75),
    ResizeMethod.LANCZOS3: lambda x: _lanczos(3, x), ResizeMethod.LANCZOS5: lambda x: _lanczos(5, x)}


def _weights(size: int, out_size: int, scale, translation, method: ResizeMethod, antialias: bool) -> Array:
    """[size, out_size]: how much of each element is in each element of the result."""
    inverse = 1 / scale
    stretch = jnp.maximum(inverse, 1) if antialias else 1
    places = (jnp.arange(out_size, dtype=inverse.dtype) + 0.5) * inverse - translation * inverse - 0.5
    repeats_edge = method is ResizeMethod.CUBIC_PYTORCH
    beyond = 2 if repeats_edge else 0  # elements on each side, which the kernel reaches
    elements = np.arange(-beyond, size + beyond, dtype=inverse.dtype)[:, None]
    if method is ResizeMethod.AREA:  # what intervals have in common
        reach = (inverse + 1) / 2 - jnp.abs(places - elements)
        weights = jnp.clip(reach, 0, jnp.minimum(inverse, 1))
    else:
        weights = _KERNELS[method](jnp.abs(places - elements) / stretch)
    if repeats_edge:
        nearest = np.clip(elements[:, 0], 0, size - 1).astype(np.int32)
        weights = jnp.zeros((size, out_size), weights.dtype).at[nearest].add(weights)
    total = jnp.sum(weights, 0, keepdims=True)
    has_weight = jnp.abs(total) > 1000 * float(jnp.finfo(dtypes.float32).eps)
    weights = jnp.where(has_weight, weights / jnp.where(total != 0, total, 1), 0)
    return weights if repeats_edge else jnp.where((places >= -0.5) & (places <= size - 0.5), weights, 0)


def scale_and_translate(image, shape: Sequence[int], spatial_dims: Sequence[int], scale, translation,
                        method: str | ResizeMethod, antialias: bool = True,
                        precision=lax.Precision.HIGHEST) -> Array:
    """The image stretched and moved along some axes.

    Args:
        image: [n, m, ...]. shape: of the result; other axes than spatial_dims keep their extent.
        scale, translation: one number for each of spatial_dims; place y of the result is (y - translation) /
            scale.
        method: "linear", "cubic", "lanczos3", "lanczos5", "area", "cubic-pytorch" (which repeats the edge
            where antialias is off), or a `ResizeMethod`.
        antialias: smaller images average over what they leave out.

    Returns: an Array; what lies outside of the image is 0.
    Raises: ValueError for "nearest", unknown methods, and shapes that do not fit.
    Source: jax.image.scale_and_translate."""
    image = ensure_array("scale_and_translate", image)
    shape = tuple(map(operator.index, shape))
    method = ResizeMethod.from_string(method) if isinstance(method, str) else method
    if method == ResizeMethod.NEAREST:
        raise ValueError("Nearest neighbor resampling is not currently supported for scale_and_translate.")
    if len(shape) != image.ndim:
        raise ValueError(f"shape must have length equal to the number of dimensions of x; {shape} vs "
                         f"{image.shape}")
    if method is ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    spatial_dims = [axis % image.ndim for axis in spatial_dims]
    for axis in set(range(image.ndim)) - set(spatial_dims):
        if image.shape[axis] != shape[axis]:
            raise ValueError(f"axis {axis} is not among spatial_dims and has extent {image.shape[axis]}, "
                             "in shape "
                             f"{shape[axis]}")
    image = jnp.asarray(image, dtypes.inexact_dtype(image.dtype))
    parts = np.zeros((), image.dtype).real.dtype
    numbers = dtypes.float32 if dtypes.is_half(parts) else parts
    scale, translation = (jnp.asarray(x, numbers) for x in (scale, translation))
    for i, axis in enumerate(spatial_dims):
        weights = _weights(image.shape[axis], shape[axis], scale[i], translation[i], method, antialias)
        product = jnp.tensordot(image, jnp.asarray(weights, image.dtype), ((axis,), (0,)),
                                precision=precision)
        image = jnp.moveaxis(product, -1, axis)
    return image


def resize(image, shape: Sequence[int], method: str | ResizeMethod, antialias: bool = True,
           precision=lax.Precision.HIGHEST) -> Array:
    """The image with other extents.

    Args:
        image: [n, m, ...]. shape: of the result, for all axes.
        method: "nearest", "linear", "cubic", "lanczos3", "lanczos5", or a `ResizeMethod`.
        antialias: smaller images average over what they leave out; not of "nearest".

    Raises: ValueError for another method, or another number of axes.
    Example: `resize(jnp.array([0., 1.]), (4,), "linear")` is `[0., 0.25, 0.75, 1.]`. Source:
    jax.image.resize."""
    image = ensure_array("resize", image)
    shape = tuple(map(operator.index, shape))
    if len(shape) != image.ndim:
        raise ValueError(f"shape must have length equal to the number of dimensions of x; {shape} vs "
                         f"{image.shape}")
    method = ResizeMethod.from_string(method) if isinstance(method, str) else method
    axes = [axis for axis in range(image.ndim) if shape[axis] != image.shape[axis]]
    if method == ResizeMethod.NEAREST:
        for axis in axes:
            places = np.floor((np.arange(shape[axis]) + 0.5) * image.shape[axis] / shape[axis])
            image = jnp.take(image, places.astype(np.int32), axis)
        return image
    scale = [1.0 if not shape[axis] else shape[axis] / image.shape[axis] for axis in axes]
    return scale_and_translate(image, shape, axes, scale, [0.0] * len(axes), method, antialias, precision)


document(sys.modules[__name__], __all__)
