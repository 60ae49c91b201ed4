"""Convolution: `conv_general_dilated` and its special cases.

In: a batch of images and a set of filters, axes named by dimension numbers. Out: a batch of feature maps.
The implementation brings every case to one form, groups x rows x columns, and multiplies matrices.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.lax.define import define, to_operands
from jitcore.lax.dot import accumulation_dtype, canonicalize_precision, matrix_product
from jitcore.lax.elementwise import convert_element_type
from jitcore.lax.pad import pad_ndarray
from jitcore.lax.shape import reshape, rev
from jitcore.lax.window import count_windows, dilated_extent, padtype_to_pads, window_view
from jitcore.transforms.batch_rules import make_empty_batch
from jitcore.transforms.batching import batch_values, move_axis
from jitcore.transforms.derivative_rules import jvp_multilinear
from jitcore.transforms.transpose import is_linear

__all__ = ["ConvDimensionNumbers", "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_transpose",
           "conv_with_general_padding"]


class ConvDimensionNumbers(NamedTuple):
    """Positions of the axes: (batch, feature, spatial...) for images, (out, in, spatial...) for filters."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers) -> ConvDimensionNumbers:
    """Dimension numbers from strings such as ("NHWC", "HWIO", "NHWC"), or None for ("NCHW", "OIHW", "NCHW").

    Raises: TypeError when ranks differ or the strings do not name the same axes."""
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if ndim != len(rhs_shape):
        raise TypeError(
            f"convolution requires lhs and rhs ndim to be equal, got {ndim} and {len(rhs_shape)}.")
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(ndim))] * 3)
    if not all(isinstance(element, str) for element in dimension_numbers):
        kinds = tuple(type(element) for element in dimension_numbers)
        raise TypeError(f"convolution dimension_numbers elements must be strings, got {kinds}.")
    if any(len(element) != ndim for element in dimension_numbers):
        raise TypeError(f"convolution dimension_numbers must have one letter for each of {ndim} axes, "
                        f"got {dimension_numbers}.")
    lhs, rhs, out = dimension_numbers
    spatial = [set(text) - set(leading) for text, leading in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))]
    if not (len(spatial[0]) == ndim - 2 and spatial[0] == spatial[1] == spatial[2]):
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of spatial characters, "
            f"got {dimension_numbers}.")
    order = [letter for letter in rhs if letter in spatial[0]]
    return ConvDimensionNumbers(
        *[
            tuple(map(text.index, [*leading, *order]))
            for text, leading in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))])


# -- the primitive --------------------------------------------------------------------------------------
def _output_extents(lhs_spatial, rhs_spatial, window_strides, padding, lhs_dilation, rhs_dilation) -> list:
    extents = []
    for size, window, stride, (low, high), spread, gap in zip(lhs_spatial, rhs_spatial, window_strides,
                                                              padding, lhs_dilation, rhs_dilation):
        padded = dilated_extent(size, spread) + low + high
        extents.append(count_windows(padded, dilated_extent(window, gap), stride))
    return extents


def _check_groups(images, features, in_per_group, out_features, feature_groups: int,
                  batch_groups: int) -> None:
    name = "conv_general_dilated"
    if feature_groups > 1 and batch_groups > 1:
        raise ValueError(f"At most one of batch_group_count and feature_group_count may be > 1, got "
                         f"batch_group_count={batch_groups} and feature_group_count={feature_groups}")
    counts = {"feature_group_count": feature_groups, "batch_group_count": batch_groups}
    for label, groups in counts.items():
        if groups <= 0:
            raise ValueError(f"{name} {label} must be a positive integer, got {groups}.")
    if features % feature_groups:
        raise ValueError(f"{name} feature_group_count must divide lhs feature dimension size, "
                         f"but {feature_groups} does not divide {features}.")
    if features // feature_groups != in_per_group:
        raise ValueError(
            f"{name} lhs feature dimension size divided by feature_group_count must equal the rhs "
            f"input feature dimension size, but {features} // {feature_groups} != {in_per_group}.")
    for label, groups in counts.items():
        if out_features % groups:
            raise ValueError(f"{name} rhs output feature dimension size must be a multiple of {label}, "
                             f"but {out_features} is not a multiple of {groups}.")
    if images % batch_groups:
        raise ValueError(f"{name} batch_group_count must divide lhs batch dimension size, "
                         f"but {batch_groups} does not divide {images}.")


def _conv_aval(lhs: ShapedArray, rhs: ShapedArray, *, window_strides, padding, lhs_dilation, rhs_dilation,
               dimension_numbers, feature_group_count, batch_group_count, precision=None,
               preferred_element_type=None) -> ShapedArray:
    dtypes.reject_narrow("conv_general_dilated", lhs.dtype, rhs.dtype)
    if lhs.dtype != rhs.dtype:
        raise TypeError("lax.conv_general_dilated requires arguments to have the same dtypes, "
                        f"got {lhs.dtype.name}, {rhs.dtype.name}.")
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    images, features, *lhs_spatial = [lhs.shape[dim] for dim in lhs_spec]
    out_features, in_per_group, *rhs_spatial = [rhs.shape[dim] for dim in rhs_spec]
    for label, values in (("window_strides", window_strides), ("lhs_dilation", lhs_dilation),
                          ("rhs_dilation", rhs_dilation), ("padding", padding)):
        if len(values) != len(lhs_spatial):
            raise ValueError(
                f"conv_general_dilated window and {label} must have the same number of dimensions, "
                f"but got {len(lhs_spatial)} and {len(values)}")
        if label != "padding" and any(value <= 0 for value in values):
            raise ValueError(f"conv_general_dilated {label} must be positive, got {values}")
    _check_groups(images, features, in_per_group, out_features, feature_group_count, batch_group_count)
    extents = _output_extents(lhs_spatial, rhs_spatial, window_strides, padding, lhs_dilation, rhs_dilation)
    shape = [None] * lhs.ndim
    for dim, extent in zip(out_spec, [images // batch_group_count, out_features, *extents]):
        shape[dim] = extent
    dtype, weak = lhs.dtype, lhs.weak_type and rhs.weak_type
    if preferred_element_type is not None:
        dtype, weak = preferred_element_type, False
    return ShapedArray(tuple(shape), dtype, weak)


def _conv(lhs, rhs, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
          feature_group_count, batch_group_count, precision=None, preferred_element_type=None):
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    out_dtype = preferred_element_type or lhs.dtype
    work = accumulation_dtype(lhs.dtype, rhs.dtype, out_dtype)
    images = lhs.transpose(lhs_spec).astype(work, copy=False)
    filters = rhs.transpose(rhs_spec).astype(work, copy=False)
    spatial = [(low, high, dilation - 1) for (low, high), dilation in zip(padding, lhs_dilation)]
    images = pad_ndarray(images, 0, [(0, 0, 0), (0, 0, 0), *spatial])
    windows = window_view(images, range(2, images.ndim), filters.shape[2:], window_strides, rhs_dilation)
    result = _multiply_groups(windows, filters, feature_group_count, batch_group_count)
    return result.transpose(np.argsort(out_spec)).astype(out_dtype, copy=False)


def _multiply_groups(windows, filters, feature_groups: int, batch_groups: int) -> np.ndarray:
    """Windows (image, feature, position..., window...) times filters: (image, out feature, position...)."""
    groups = feature_groups * batch_groups
    rank = filters.ndim - 2
    images, features = windows.shape[0] // batch_groups, windows.shape[1] // feature_groups
    positions, window = windows.shape[2 : 2 + rank], windows.shape[2 + rank :]
    split = windows.reshape(batch_groups, images, feature_groups, features, *positions, *window)
    place, inner = range(4, 4 + rank), range(4 + rank, 4 + 2 * rank)
    columns = split.transpose([0, 2, 1, *place, 3, *inner]).reshape(groups, images * _count(positions),
                                                                    features * _count(window))
    outs = filters.shape[0] // groups
    weights = filters.reshape(groups, outs, features * _count(window)).transpose(0, 2, 1)
    product = matrix_product(columns, weights).reshape(groups, images, *positions, outs)
    return product.transpose([1, 0, rank + 2, *range(2, 2 + rank)]).reshape(images, filters.shape[0],
                                                                            *positions)


def plain_layouts(rank: int) -> tuple[ConvDimensionNumbers, ConvDimensionNumbers]:
    """Layouts that backends have code for: features last, ("NHWC", "HWIO", "NHWC"), or features first,
    ("NCHW", "OIHW", "NCHW")."""
    last, first = (0, rank + 1, *range(1, rank + 1)), tuple(range(rank + 2))
    return (ConvDimensionNumbers(last, (rank + 1, rank, *range(rank)), last),
            ConvDimensionNumbers(first, first, first))


def is_plain_convolution(*, padding, lhs_dilation, dimension_numbers, batch_group_count, **_) -> bool:
    """Whether there is nothing to do before windows slide: a plain layout without padding, dilation of
    images, or groups of them."""
    return (
        dimension_numbers in plain_layouts(len(padding))
        and all(pads == (0, 0) for pads in padding)
        and all(dilation == 1 for dilation in lhs_dilation)
        and batch_group_count == 1)


def _count(extents) -> int:
    return int(np.prod(extents, dtype=np.int64))


def _fold(x, dim: int):
    """x with its batch axis merged into axis `dim` of its elements, the batch outside."""
    moved = move_axis(x, 0, dim)
    shape = aval_of(moved).shape
    return reshape(moved, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def _unfold(x, dim: int, size):
    """The inverse of `_fold`."""
    shape = aval_of(x).shape
    return move_axis(reshape(x, (*shape[:dim], size, shape[dim] // size, *shape[dim + 1 :])), dim, 0)


def _batch_conv(primitive, axis, values, batched, *, dimension_numbers, feature_group_count,
                batch_group_count, **params):
    (lhs, rhs), (lhs_spec, rhs_spec, out_spec) = values, dimension_numbers
    params["dimension_numbers"] = dimension_numbers
    groups = {"feature_group_count": feature_group_count, "batch_group_count": batch_group_count}
    if axis.size == 0:
        return make_empty_batch(primitive, values, batched, **groups, **params)
    if batched == [True, False] and batch_group_count == 1:  # more images
        out = primitive.bind(_fold(lhs, lhs_spec[0]), rhs, **groups, **params)
        return _unfold(out, out_spec[0], axis.size)
    if batched == [False, True] and feature_group_count == batch_group_count == 1:  # more filters
        out = primitive.bind(lhs, _fold(rhs, rhs_spec[0]), **groups, **params)
        return _unfold(out, out_spec[1], axis.size)
    lhs, rhs = batch_values(axis, values, batched)  # more groups
    kind, dim = ("feature_group_count", 1) if batch_group_count == 1 else ("batch_group_count", 0)
    groups[kind] *= axis.size
    out = primitive.bind(_fold(lhs, lhs_spec[dim]), _fold(rhs, rhs_spec[0]), **groups, **params)
    return _unfold(out, out_spec[1], axis.size)


def _lower_conv(builder, lhs, rhs, *, window_strides, rhs_dilation, dimension_numbers, feature_group_count,
                preferred_element_type=None, **_):
    """The sum of products over windows of a plain convolution, for what matrix products do badly: integers,
    few features."""
    (batch, feature, *places), (outer, inner, *window_dims), out_spec = dimension_numbers
    rank, groups = len(places), feature_group_count
    window = [rhs.shape[dim] for dim in window_dims]
    positions = _output_extents([lhs.shape[dim] for dim in places], window, window_strides, ((0, 0),) * rank,
                                (1,) * rank, rhs_dilation)
    outs, features = rhs.shape[outer], rhs.shape[inner]
    out_dtype = np.dtype(preferred_element_type or lhs.dtype)
    work = accumulation_dtype(lhs.dtype, rhs.dtype, out_dtype)
    first = rank + 3  # axes: image, then positions and (group, out) in the order of the layout; window, in
    group, start = (1, 3) if out_spec[1] == 1 else (rank + 1, 1)
    outer_shape = [lhs.shape[batch], *positions]
    if 0 in (*outer_shape, outs, features, *window):
        outer_shape[group:group] = [outs]
        return builder.fill(outer_shape, builder.constant(0, out_dtype))
    outer_shape[group:group] = [groups, outs // groups]

    def read_image(index):
        found = {batch: index[0], feature: index[group] * features + index[-1]}
        found |= {dim: index[start + k] * window_strides[k] + index[first + k] * rhs_dilation[k]
                  for k, dim in enumerate(places)}
        return tuple(found[dim] for dim in range(rank + 2))

    def read_filter(index):
        found = {outer: index[group] * (outs // groups) + index[group + 1], inner: index[-1]}
        found |= {dim: index[first + k] for k, dim in enumerate(window_dims)}
        return tuple(found[dim] for dim in range(rank + 2))

    shape = (*outer_shape, *window, features)
    left, right = (builder.view(builder.store(builder.convert(value, work)), shape, read)
                   for value, read in ((lhs, read_image), (rhs, read_filter)))
    total = builder.reduce("add", builder.map("mul", left, right), range(first, len(shape)))
    if work != out_dtype:
        total = builder.convert(builder.store(total), out_dtype)
    outer_shape[group : group + 2] = [outs]
    return builder.reshape(builder.store(total), outer_shape)


def _hlo_conv(b, lhs, rhs, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
              feature_group_count, batch_group_count, precision=None, preferred_element_type=None):
    out_dtype = np.dtype(preferred_element_type or lhs.dtype)
    work = accumulation_dtype(lhs.dtype, rhs.dtype, out_dtype)
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    extents = [[x.shape[dim] for dim in spec[2:]] for x, spec in ((lhs, lhs_spec), (rhs, rhs_spec))]
    positions = _output_extents(*extents, window_strides, padding, lhs_dilation, rhs_dilation)
    shape = [0] * len(out_spec)
    for dim, extent in zip(out_spec,
                           (lhs.shape[lhs_spec[0]] // batch_group_count, rhs.shape[rhs_spec[0]], *positions)):
        shape[dim] = extent
    left, right, result = (b.join_layout(spec, letters)
                           for spec, letters in zip(dimension_numbers, ("bf", "oi", "bf")))
    out = b.op("convolution", b.convert(lhs, work), b.convert(rhs, work), shape=shape, dtype=work,
               window_strides=window_strides, padding=b.join_pairs(padding), lhs_dilation=lhs_dilation,
               rhs_dilation=rhs_dilation, dimension_numbers=f"#stablehlo.conv<{left}x{right}->{result}>",
               feature_group_count=feature_group_count, batch_group_count=batch_group_count,
               precision_config=b.join_precisions(precision))
    return b.convert(out, out_dtype)


# -- derivatives ----------------------------------------------------------------------------------------
def _transpose_conv(primitive, ct, operands, **params):
    lhs, rhs = operands
    if is_linear(lhs):
        out = _correlate_with_filters(primitive, ct, lhs.aval, convert_element_type(rhs, ct.dtype), **params)
        return [convert_element_type(out, lhs.aval.dtype), None]
    out = _correlate_with_images(primitive, ct, convert_element_type(lhs, ct.dtype), rhs.aval, **params)
    return [None, convert_element_type(out, rhs.aval.dtype)]


def _correlate_with_filters(primitive, ct, lhs, rhs, *, dimension_numbers, feature_group_count,
                            batch_group_count, **params):
    """The cotangent of the images: ct, its elements as far apart as the windows were, times the flipped
    filters, whose features change places within each group."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    extents = _dilated_extents(lhs, aval_of(rhs), ct.aval, dimension_numbers, **params)
    groups = feature_group_count * batch_group_count
    filters = rev(rhs, rhs_spec[2:])
    if groups > 1:
        filters = _fold(_unfold(filters, rhs_spec[0], groups), rhs_spec[1])
    pads = [(window - low - 1, image + low - out)
            for (image, window, out), (low, _) in zip(extents, params["padding"])]
    changed = {"window_strides": params["lhs_dilation"], "lhs_dilation": params["window_strides"],
               "padding": tuple(pads)}
    out = primitive.bind(
        ct, filters, dimension_numbers=ConvDimensionNumbers(out_spec, _swap_first(rhs_spec), lhs_spec),
        feature_group_count=groups, batch_group_count=1, **(params | changed))
    if batch_group_count == 1:
        return out
    return _fold(_unfold(out, lhs_spec[1], batch_group_count), lhs_spec[0])


def _correlate_with_images(primitive, ct, lhs, rhs, *, dimension_numbers, feature_group_count,
                           batch_group_count, **params):
    """The cotangent of the filters: images times ct as filters, batch and features with changed places."""
    extents = _dilated_extents(aval_of(lhs), rhs, ct.aval, dimension_numbers, **params)
    pads = [(low, out - image + window - low - 1)
            for (image, window, out), (low, _) in zip(extents, params["padding"])]
    changed = {"window_strides": params["rhs_dilation"], "rhs_dilation": params["window_strides"],
               "padding": tuple(pads)}
    lhs_spec, rhs_spec, out_spec = map(_swap_first, dimension_numbers)
    return primitive.bind(lhs, ct, dimension_numbers=ConvDimensionNumbers(lhs_spec, out_spec, rhs_spec),
                          feature_group_count=batch_group_count, batch_group_count=feature_group_count,
                          **(params | changed))


def _swap_first(spec: tuple[int, ...]) -> tuple[int, ...]:
    return (spec[1], spec[0], *spec[2:])


def _dilated_extents(lhs, rhs, out, dimension_numbers, *, window_strides, lhs_dilation, rhs_dilation, **_):
    """For each spatial axis the extents (image, window, result), all spread over the padded image."""
    sides = zip((lhs, rhs, out), dimension_numbers, (lhs_dilation, rhs_dilation, window_strides))
    return list(zip(*[[dilated_extent(aval.shape[dim], step) for dim, step in zip(spec[2:], steps)]
                      for aval, spec, steps in sides]))


@define("conv_general_dilated", impl=_conv, aval=_conv_aval, jvp=jvp_multilinear(), transpose=_transpose_conv,
        batch=_batch_conv, lower=_lower_conv, hlo=_hlo_conv,
        needs_library=lambda **params: not is_plain_convolution(**params))
def conv_general_dilated(lhs, rhs, window_strides: Sequence[int], padding,
                         lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
                         dimension_numbers=None, feature_group_count: int = 1, batch_group_count: int = 1,
                         precision=None, preferred_element_type=None) -> Array:
    """Correlates a batch of images with filters: neural networks' convolution (filters are not flipped).

    Args:
        lhs: images, axes (batch, feature, spatial...) in the order of dimension_numbers.
        rhs: filters, axes (out feature, in feature, spatial...).
        window_strides: step of the filter along each spatial axis.
        padding: "VALID", "SAME", "SAME_LOWER" or (before, after) for each spatial axis; negative crops.
        lhs_dilation, rhs_dilation: distance of neighbours in the images and in the filter.
        dimension_numbers: see `conv_dimension_numbers`.
        feature_group_count, batch_group_count: independent groups of features or of images.
        precision: kept for backends with several; the CPU always computes in full precision.
        preferred_element_type: dtype to accumulate in and to return.
    Raises: TypeError and ValueError when shapes and parameters disagree.
    Source: StableHLO specification, convolution."""
    lhs, rhs = to_operands("conv_general_dilated", (lhs, rhs))
    shapes = aval_of(lhs).shape, aval_of(rhs).shape
    spec = conv_dimension_numbers(*shapes, dimension_numbers)
    ones = (1,) * (len(shapes[0]) - 2)
    window_strides, lhs_dilation, rhs_dilation = (
        tuple(map(operator.index, ones if values is None else values))
        for values in (window_strides, lhs_dilation, rhs_dilation))
    if isinstance(padding, str):
        if any(dilation != 1 for dilation in lhs_dilation) and padding.upper() != "VALID":
            raise ValueError(
                "String padding is not implemented for transposed convolution using this op. Please "
                "either exactly specify the required padding or use conv_transpose.")
        windows = [dilated_extent(shapes[1][dim], gap) for dim, gap in zip(spec.rhs_spec[2:], rhs_dilation)]
        extents = [dilated_extent(shapes[0][dim], gap) for dim, gap in zip(spec.lhs_spec[2:], lhs_dilation)]
        padding = padtype_to_pads(extents, windows, window_strides, padding)
    elif len(padding) != len(ones):
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected {len(ones)}, got {len(padding)}.")
    preferred = None if preferred_element_type is None else dtypes.canonicalize(preferred_element_type)
    return conv_general_dilated.primitive.bind(lhs, rhs, window_strides=window_strides,
                                               padding=tuple(map(tuple, padding)), lhs_dilation=lhs_dilation,
                                               rhs_dilation=rhs_dilation, dimension_numbers=spec,
                                               feature_group_count=feature_group_count,
                                               batch_group_count=batch_group_count,
                                               precision=canonicalize_precision(precision),
                                               preferred_element_type=preferred)


# -- special cases --------------------------------------------------------------------------------------
def conv(lhs, rhs, window_strides: Sequence[int], padding: str, precision=None,
         preferred_element_type=None) -> Array:
    """`conv_general_dilated` of axes (batch, feature, spatial...) and (out, in, spatial...)."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_with_general_padding(lhs, rhs, window_strides: Sequence[int], padding,
                              lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None,
                              precision=None, preferred_element_type=None) -> Array:
    """`conv` with explicit padding and dilations."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
                                precision=precision, preferred_element_type=preferred_element_type)


def conv_transpose(lhs, rhs, strides: Sequence[int], padding, rhs_dilation: Sequence[int] | None = None,
                   dimension_numbers=None, transpose_kernel: bool = False, precision=None,
                   preferred_element_type=None, use_consistent_padding: bool = False) -> Array:
    """Convolution with fractional strides: the result is about `strides` times as large as lhs.

    Args:
        padding: "SAME" (extent times stride), "VALID", or pairs as in `conv_general_dilated`.
        dimension_numbers: by default channels stand last: ("NHWC", "HWIO", "NHWC").
        use_consistent_padding: whether pairs are those of the convolution whose gradient this is, which cuts
            them off the result, and not those of the spread lhs.
        transpose_kernel: flip the filters and swap their feature axes, as a convolution's gradient does."""
    ndim = aval_of(lhs).ndim
    if dimension_numbers is None:
        spatial = "DHW"[-(ndim - 2) :] if ndim > 2 else ""
        dimension_numbers = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    spec = conv_dimension_numbers(aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers)
    rhs_dilation = (1,) * (ndim - 2) if rhs_dilation is None else tuple(rhs_dilation)
    windows = [dilated_extent(aval_of(rhs).shape[dim], gap)
               for dim, gap in zip(spec.rhs_spec[2:], rhs_dilation)]
    if use_consistent_padding and not isinstance(padding, str):
        padding = [(window - 1 - low, window - 1 - high) for window, (low, high) in zip(windows, padding)]
    if isinstance(padding, str):
        padding = [transposed_padding(window, stride, padding) for window, stride in zip(windows, strides)]
    if transpose_kernel:
        rhs = rev(rhs, spec.rhs_spec[2:])
        swapped = (spec.rhs_spec[1], spec.rhs_spec[0], *spec.rhs_spec[2:])
        spec = spec._replace(rhs_spec=swapped)
    return conv_general_dilated(lhs, rhs, (1,) * (ndim - 2), padding, tuple(strides), rhs_dilation, spec,
                                precision=precision, preferred_element_type=preferred_element_type)


def transposed_padding(window: int, stride: int, kind: str) -> tuple[int, int]:
    """Padding of the dilated image for which the result has the extent that the kind of padding promises."""
    if kind.upper() not in ("SAME", "VALID"):
        raise ValueError(f"Padding mode must be `SAME` or `VALID`, got {kind}.")
    total = window + stride - 2 + (max(window - stride, 0) if kind.upper() == "VALID" else 0)
    if kind.upper() == "VALID":
        before = window - 1
    else:
        before = window - 1 if stride > window - 1 else -(-total // 2)
    return before, total - before
