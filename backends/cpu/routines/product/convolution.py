"""The routine for `conv_general_dilated`: convolutions of float32 and float64 as implicit matrix products.

In: an equation in the normal form of `jitcore.passes.contractions`. Out: the routine, or None where loops are
better. The machine code is in `convolution_windows`; all that a convolution is, is numbers that it is told.

Where features are last, columns of the products are features and rows are positions of a line; filters, the
right operand, are packed. Where features are first, columns are positions and rows features; the right
operand is the images, as they are. One feature in and out is both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.cpu.machine.tuning import Product
from jitcore.backends.cpu.routines.product.matrices_routine import ITEM_BYTES, PANEL_BYTES, SEGMENT_BYTES
from jitcore.backends.cpu.routines.product.parts import list_parts
from jitcore.backends.cpu.routines.product.routine import ProductRoutine
from jitcore.core.jaxpr import Equation
from jitcore.lax.convolution.conv import is_plain_convolution
from jitcore.lax.define import product

#: Nested indices of items (group, image, positions but the last) and of segments (window but its last axis).
ITEM_DIMS, SEGMENT_DIMS = 4, 3


class Layout(NamedTuple):
    """What machine code is told: an item is c (m x n) = a (m x steps) @ b (steps x n), steps in segments of
    `length`, with the strides given; `groups` right operands `b_item` apart are packed, if any are. items and
    segments: (extent, stride for each buffer) of nested indices, outermost first."""

    m: int
    n: int
    steps: int
    length: int
    a_row: int
    a_step: int
    b_step: int
    b_column: int
    c_row: int
    packs_right: int
    groups: int
    b_item: int
    items: tuple[tuple[int, int, int, int], ...]
    segments: tuple[tuple[int, int, int], ...]


def convolve(dtype: np.dtype, layout: Layout, name: str, is_swapped: bool) -> ProductRoutine:
    """is_swapped: whether the left operand is the filters, the right one the images."""
    dims = [number for dim in (*layout.items, *layout.segments) for number in dim]
    work = _count_work_bytes(layout, dtype.itemsize), dtypes.uint8
    parts = list_parts(dtype.itemsize, layout.m, [layout.n], packs=bool(layout.packs_right))
    return ProductRoutine("windows", name, dtype, (*layout[:-2], *dims), work, is_swapped=is_swapped,
                          result_columns=layout.c_row, parts=parts)


def find_routine(eqn: Equation, tuning: Product) -> ProductRoutine | None:
    """The routine for a convolution; None for other dtypes and layouts, and where loops are better."""
    lhs, rhs = (atom.aval for atom in eqn.invars)
    out = eqn.outvars[0].aval
    if lhs.dtype not in (dtypes.float32, dtypes.float64) or not lhs.dtype == rhs.dtype == out.dtype:
        return None
    if not is_plain_convolution(**eqn.params) or not 1 <= lhs.ndim - 2 <= SEGMENT_DIMS:
        return None
    shapes = [tuple(map(int, aval.shape)) for aval in (lhs, rhs, out)]
    if 0 in (*shapes[0], *shapes[1], *shapes[2]):
        return None
    strides, gaps = eqn.params["window_strides"], eqn.params["rhs_dilation"]
    groups, spec = eqn.params["feature_group_count"], eqn.params["dimension_numbers"]
    ordered = [tuple(shape[dim] for dim in dims) for shape, dims in zip(shapes, spec)]
    outs = ordered[1][0] // groups
    if (spec.lhs_spec[1] == 1 or ordered[0][1] == outs == 1) and strides[-1] == 1:
        planes = lay_out_planes(*ordered, strides, gaps, groups)
        return convolve(lhs.dtype, planes, "planes_convolution", is_swapped=True)
    if spec.lhs_spec[1] == 1 or outs < tuning.least_features:
        return None
    features = lay_out_features(*shapes, strides, gaps, groups)
    return convolve(lhs.dtype, features, "convolution", is_swapped=False)


def lay_out_features(images: Sequence[int], filters: Sequence[int], out: Sequence[int], strides, gaps,
                     groups: int) -> Layout:
    """Rows are the positions of a line, columns the features of a group."""
    features_in, features_out = images[-1], out[-1]
    *window, per_group, _ = filters
    columns = features_out // groups
    runs_on = groups == 1 and gaps[-1] == 1  # neighbours in the window are neighbours in memory
    length = window[-1] * per_group if runs_on else per_group
    steps = product(window) * per_group
    walked = window[:-1] if runs_on else window
    pitch, out_pitch = _list_strides(images), _list_strides(out)
    items = [(groups, per_group, 1, columns), (out[0], pitch[0], 0, out_pitch[0])]
    items += [(out[dim], pitch[dim] * strides[dim - 1], 0, out_pitch[dim])
              for dim in range(1, len(out) - 2)]
    segments = [(extent, pitch[dim + 1] * gaps[dim], product(walked[dim + 1 :]) * length)
                for dim, extent in enumerate(walked)]
    return Layout(
        m=out[-2], n=columns, steps=steps, length=length, a_row=features_in * strides[-1], a_step=1,
        b_step=features_out, b_column=1, c_row=features_out, packs_right=1, groups=groups, b_item=columns,
        items=_fill_up(items, ITEM_DIMS, 4), segments=_fill_up(segments, SEGMENT_DIMS, 3))


def lay_out_planes(images: Sequence[int], filters: Sequence[int], out: Sequence[int], strides,
                   gaps, groups: int) -> Layout:
    """Rows are the features of a group, columns the positions of a line. Steps of a segment go along features
    or along the window's last axis, whichever is longer."""
    outs, features, *window = filters
    pitch, out_pitch = _list_strides(images), _list_strides(out)
    walks = [(extent, filter_pitch, pitch[dim + 2] * gaps[dim]) for dim, (extent, filter_pitch) in enumerate(
        zip(window, _list_strides(filters)[2:]))]
    walks = [(features, product(window), pitch[1]), *walks]
    length, a_step, b_step = walks.pop(0 if features >= window[-1] else -1)
    rows = outs // groups
    items = [(groups, rows * product(filters[1:]), features * pitch[1], rows * out_pitch[1]),
             (out[0], 0, pitch[0], out_pitch[0])]
    items += [(out[dim], 0, pitch[dim] * strides[dim - 2], out_pitch[dim]) for dim in range(2, len(out) - 1)]
    return Layout(
        m=rows, n=out[-1], steps=product(filters[1:]), length=length, a_row=product(filters[1:]),
        a_step=a_step, b_step=b_step, b_column=1, c_row=out_pitch[1], packs_right=0, groups=groups, b_item=0,
        items=_fill_up(items, ITEM_DIMS, 4), segments=_fill_up(walks, SEGMENT_DIMS, 3))


def _list_strides(shape: Sequence[int]) -> list[int]:
    return [product(shape[dim + 1 :]) for dim in range(len(shape))]


def _fill_up(dims: list[tuple], count: int, width: int) -> tuple[tuple, ...]:
    """As many nested indices as machine code has loops for."""
    return ((1,) + (0,) * (width - 1),) * (count - len(dims)) + tuple(dims)


def _count_work_bytes(layout: Layout, itemsize: int) -> int:
    """Memory that machine code uses beside operands and result: tables and packed filters."""
    items, segments = (product(dim[0] for dim in dims) for dims in (layout.items, layout.segments))
    columns = -(-layout.n * itemsize // PANEL_BYTES) * PANEL_BYTES
    packed = layout.groups * layout.steps * columns if layout.packs_right else 0
    return items * ITEM_BYTES + segments * SEGMENT_BYTES + packed
