"""Which elements of operands each element of a result needs, and the equation of a part of the result.

In: an equation of whole arrays. Out: for each axis of each operand how it moves with an axis of the result,
from which parts follow in both directions; for a part of the result the equation that computes it from the
parts of operands that it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jitcore.core.jaxpr import Equation, Literal, ShapedArray

#: For each axis the positions (first, behind the last).
Box = tuple[tuple[int, int], ...]


class Along(NamedTuple):
    """An axis of an operand that moves with one of the result: the element at p needs those from
    (p * stride + start) / dilation on, as many as `extent` elements, dilation included, reach.

    axis: of the result; axes that a reduction sweeps are numbered behind these.
    covers: elements of the operand are groups, of which each is needed that the range touches."""

    axis: int
    stride: int = 1
    start: int = 0
    extent: int = 1
    dilation: int = 1
    covers: bool = False

    def read(self, low: int, high: int, size: int) -> tuple[int, int]:
        """The part of the operand's axis that a part of the result's axis needs."""
        ends = self.stride * low + self.start, self.stride * (high - 1) + self.start
        first, last = min(ends), max(ends) + self.extent - 1
        first = first // self.dilation if self.covers else -(-first // self.dilation)
        first = min(max(first, 0), size)
        return first, max(min(last // self.dilation + 1, size), first)

    def place(self, cut: int) -> int:
        """Where to cut the result so that each side needs most of the same side of the operand."""
        if self.covers:
            return -(-cut * self.dilation // self.stride)
        middle = (2 * cut - 1) * self.dilation - 2 * self.start - (self.extent - 1)
        return -(-middle // (2 * self.stride))


#: None: the whole axis is needed.
Axes = list[Along | None]


class Rule(NamedTuple):
    """What is known of a primitive.

    find: for each operand its axes.
    write: the values of a part of the result, which an `Application` describes.
    sweeps: extents of the axes that it reduces.
    combine: the elementwise primitive that joins results of parts of these.
    is_free: axes of the result that move with no operand need not be computed whole."""

    find: Callable[[Equation], list[Axes]]
    write: Callable
    sweeps: Callable[[Equation], Sequence[int]] = lambda eqn: ()
    combine: str | None = None
    is_free: bool = False


def measure(box: Box) -> tuple[int, ...]:
    return tuple(high - low for low, high in box)


def is_empty(box: Box) -> bool:
    return any(high <= low for low, high in box)


def whole(shape: Sequence[int]) -> Box:
    return tuple((0, size) for size in shape)


def make_constant(value: int, aval: ShapedArray) -> Literal:
    """A number, as an operand of the type of these elements."""
    return Literal(aval.dtype.type(value), aval.update(shape=()))


def find_rule(eqn: Equation) -> Rule:
    primitive = eqn.primitive
    if primitive.traits.get("family") == "elementwise":
        return _ELEMENTWISE
    if primitive.traits.get("family") == "window reduction":
        return _WINDOW_REDUCTION
    return _RULES.get(primitive.name, _WHOLE)


def read_operands(rule: Rule, eqn: Equation, box: Box) -> list[Box]:
    """What a part of the result needs of each operand. box: axes that are swept included."""
    return [tuple((0, size) if along is None else along.read(*box[along.axis], size)
                  for along, size in zip(axes, atom.aval.shape))
            for axes, atom in zip(rule.find(eqn), eqn.invars)]


def grow(rule: Rule, eqn: Equation, box: Box) -> Box:
    """The part of the result that is computed where this one is needed, with the axes that are swept."""
    moved = {along.axis for axes in rule.find(eqn) for along in axes if along is not None}
    shape = eqn.outvars[0].aval.shape
    own = tuple(part if rule.is_free or axis in moved else (0, size)
                for axis, (part, size) in enumerate(zip(box, shape)))
    return own + whole(rule.sweeps(eqn))


# -- what elements become elements --------------------------------------------------------------------------
def _follow(rank: int) -> Axes:
    return list(map(Along, range(rank)))


def _find_elementwise(eqn):
    return [_follow(atom.aval.ndim) for atom in eqn.invars]  # scalars have no axes


def _write_same(part):
    return part.apply()


def _find_whole(eqn):
    return [[None] * atom.aval.ndim for atom in eqn.invars]


def _find_broadcast(eqn):
    (operand, *_), dims = eqn.invars, eqn.params["broadcast_dimensions"]
    return [[None if size == 1 else Along(axis) for axis, size in zip(dims, operand.aval.shape)]]


def _write_broadcast(part):
    return part.apply(shape=part.shape)


def _write_iota(part):
    params = part.eqn.params
    numbers = part.bind("iota", **params | {"shape": part.shape})
    first = part.box[params["dimension"]][0]
    return [part.bind("add", numbers, part.fill(part.offset(first, params["dtype"]), part.shape))]


def _find_transpose(eqn):
    order = list(eqn.params["permutation"])
    return [[Along(order.index(axis)) for axis in range(len(order))]]


def _find_rev(eqn):
    return [[Along(axis, -1, size - 1) if axis in eqn.params["dimensions"] else Along(axis)
             for axis, size in enumerate(eqn.invars[0].aval.shape)]]


def _find_squeeze(eqn):
    dropped = {axis % eqn.invars[0].aval.ndim for axis in eqn.params["dimensions"]}
    kept = [axis for axis in range(eqn.invars[0].aval.ndim) if axis not in dropped]
    return [[Along(kept.index(axis)) if axis in kept else None for axis in range(eqn.invars[0].aval.ndim)]]


def _write_squeeze(part):
    return [part.bind("reshape", part.value(0), new_sizes=part.shape, dimensions=None)]


# -- reshape ------------------------------------------------------------------------------------------------
def _group_axes(eqn) -> list[tuple[list[int], list[int]]]:
    """Axes of operand and result that hold the same elements; those of extent 1 are in none."""
    shapes = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    left, right = ([axis for axis, size in enumerate(shape) if size != 1] for shape in shapes)
    groups = []
    while left or right:
        ins, outs = [left.pop(0)], [right.pop(0)]
        while (n := math.prod(shapes[0][i] for i in ins)) != (m := math.prod(shapes[1][i] for i in outs)):
            (ins if n < m else outs).append((left if n < m else right).pop(0))
        groups.append((ins, outs))
    return groups


def _find_reshape(eqn):
    (operand, *_), (result,) = eqn.invars, eqn.outvars
    axes: Axes = [None] * operand.aval.ndim
    if operand.aval.size:
        for ins, outs in _group_axes(eqn):
            inner = [math.prod(atom.aval.shape[i] for i in group[1:])
                     for atom, group in ((operand, ins), (result, outs))]
            axes[ins[0]] = Along(outs[0], inner[1], 0, inner[1], inner[0], len(ins) + len(outs) > 2)
    return [axes]


def _write_reshape(part):
    value, result = part.value(0), part.eqn.outvars[0].aval.shape
    if part.eqn.invars[0].aval.size and not is_empty(part.box):
        flat, taken, operand = [], [], part.eqn.invars[0].aval.shape
        for ins, outs in _group_axes(part.eqn):
            low, high = part.reads[0][ins[0]]
            inner, own = (math.prod(shape[i] for i in group[1:])
                          for shape, group in ((operand, ins), (result, outs)))
            flat.append((high - low) * inner)
            taken.append(tuple(end * own - low * inner for end in part.box[outs[0]]))
        if taken != [(0, size) for size in flat]:
            value = part.bind("reshape", value, new_sizes=tuple(flat), dimensions=None)
            value = part.take(value, tuple(taken))
    return [part.bind("reshape", value, new_sizes=part.shape, dimensions=None)]


# -- parts of arrays, and arrays of parts -------------------------------------------------------------------
def _find_slice(eqn):
    rank = eqn.invars[0].aval.ndim
    strides = eqn.params.get("strides") or (1,) * rank
    return [[Along(axis, strides[axis], start) for axis, start in enumerate(eqn.params["start_indices"])]]


def _write_slice(part):
    strides, extents = part.eqn.params.get("strides"), measure(part.reads[0])
    if not strides or max(strides) == 1:
        return [part.value(0)]
    return part.apply(start_indices=(0,) * len(extents), limit_indices=extents)


def _find_pad(eqn):
    return [[Along(axis, 1, -low, 1, inner + 1)
             for axis, (low, high, inner) in enumerate(eqn.params["padding_config"])], []]


def _write_pad(part):
    if is_empty(part.reads[0]):
        return [part.fill(part.value(1), part.shape)]
    config, whole_config = [], part.eqn.params["padding_config"]
    for (low, _, inner), (first, behind), (start, end) in zip(whole_config, part.reads[0], part.box):
        before = low + first * (inner + 1) - start
        config.append((before, end - start - before - (behind - first - 1) * (inner + 1) - 1, inner))
    return part.apply(padding_config=tuple(config))


def _find_concatenate(eqn):
    found, offset, dimension = [], 0, eqn.params["dimension"]
    for atom in eqn.invars:
        axes = _follow(atom.aval.ndim)
        axes[dimension] = Along(dimension, 1, -offset)
        offset += atom.aval.shape[dimension]
        found.append(axes)
    return found


def _write_concatenate(part):
    values = [part.value(k) for k, read in enumerate(part.reads) if not is_empty(read)]
    return values if len(values) == 1 else [part.bind("concatenate", *values, **part.eqn.params)]


def _find_dynamic_slice(eqn):
    (operand, *starts), sizes = eqn.invars, eqn.params["slice_sizes"]
    return [[Along(axis) if size == sizes[axis] else None for axis, size in enumerate(operand.aval.shape)],
            *([] for _ in starts)]


def _write_dynamic_slice(part):
    axes = part.rule.find(part.eqn)[0]
    starts = [part.value(k) if along is None else make_constant(0, part.eqn.invars[k].aval)
              for k, along in enumerate(axes, 1)]
    extents = tuple(size if along is None else own
                    for along, size, own in zip(axes, part.eqn.params["slice_sizes"], part.shape))
    return [part.bind("dynamic_slice", part.value(0), *starts, slice_sizes=extents)]


def _find_places(eqn) -> list[int | None]:
    """Where an update begins, on each axis, as far as it is known."""
    operand, update, *starts = eqn.invars
    places: list[int | None] = []
    for size, own, start in zip(operand.aval.shape, update.aval.shape, starts):
        known = isinstance(start, Literal) or size == own
        places.append(None if not known else 0 if size == own else min(max(int(start.value), 0), size - own))
    return places


def _find_dynamic_update_slice(eqn):
    places = _find_places(eqn)
    return [[None if place is None else Along(axis) for axis, place in enumerate(places)],
            [None if place is None else Along(axis, 1, -place) for axis, place in enumerate(places)],
            *([] for _ in eqn.invars[2:])]


def _write_dynamic_update_slice(part):
    update, places = part.reads[1], _find_places(part.eqn)
    if is_empty(update):
        return [part.value(0)]
    if measure(update) == part.shape:
        return [part.value(1)]
    starts = [part.value(k) if place is None else
              make_constant(first + place - low, part.eqn.invars[k].aval)
              for k, (place, (first, _), (low, _)) in enumerate(zip(places, update, part.box), 2)]
    return [part.bind("dynamic_update_slice", part.value(0), part.value(1), *starts, **part.eqn.params)]


def _find_gather(eqn):
    operand, indices = (atom.aval for atom in eqn.invars)
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    batch = iter([axis for axis in range(eqn.outvars[0].aval.ndim) if axis not in numbers.offset_dims])
    of_indices: Axes = [Along(next(batch)) for _ in range(indices.ndim - 1)] + [None]
    of_operand: Axes = [None] * operand.ndim
    for axis, other in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims):
        of_operand[axis] = of_indices[other]
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    left = [axis for axis in range(operand.ndim) if axis not in dropped]
    for axis, out in zip(left, numbers.offset_dims):
        if sizes[axis] == operand.shape[axis] and axis not in numbers.start_index_map:
            of_operand[axis] = Along(out)
    return [of_operand, of_indices]


def _write_gather(part):
    numbers, extents = part.eqn.params["dimension_numbers"], list(part.eqn.params["slice_sizes"])
    for axis, (low, high) in enumerate(part.reads[0]):
        if extents[axis] == part.eqn.invars[0].aval.shape[axis] and axis not in numbers.operand_batching_dims:
            extents[axis] = high - low
    return part.apply(slice_sizes=tuple(extents))


# -- whole axes ---------------------------------------------------------------------------------------------
def _keep_axes(list_whole: Callable) -> Callable:
    """Axes of all operands that stay, but for some, which are needed whole."""

    def find(eqn):
        found = []
        for atom in eqn.invars:
            needed = {axis % atom.aval.ndim for axis in list_whole(eqn.params, atom.aval.ndim)}
            found.append([None if axis in needed else Along(axis) for axis in range(atom.aval.ndim)])
        return found

    return find


# -- reductions ---------------------------------------------------------------------------------------------
def _find_reduction(eqn):
    reduced, rank = list(eqn.params["axes"]), eqn.outvars[0].aval.ndim
    kept = iter(range(rank))
    return [[Along(rank + reduced.index(axis)) if axis in reduced else Along(next(kept))
             for axis in range(eqn.invars[0].aval.ndim)]]


def _sweep_reduction(eqn):
    return [eqn.invars[0].aval.shape[axis] for axis in eqn.params["axes"]]


def _find_dot(eqn):
    contracted, batch = eqn.params["dimension_numbers"]
    rank, n_batch, found = eqn.outvars[0].aval.ndim, len(batch[0]), []
    free = iter(range(n_batch, rank))
    for atom, summed, own in zip(eqn.invars, contracted, batch):
        summed, own = list(summed), list(own)
        found.append([Along(rank + summed.index(axis)) if axis in summed else
                      Along(own.index(axis)) if axis in own else Along(next(free))
                      for axis in range(atom.aval.ndim)])
    return found


def _sweep_dot(eqn):
    return [eqn.invars[0].aval.shape[axis] for axis in eqn.params["dimension_numbers"][0][0]]


# -- windows ------------------------------------------------------------------------------------------------
def _find_window_reduction(eqn):
    params = eqn.params
    return [[Along(axis, stride, -low, (size - 1) * dilation + 1, base)
             for axis, (stride, (low, _), size, dilation, base) in enumerate(zip(
                 params["window_strides"], params["padding"], params["window_dimensions"],
                 params["window_dilation"], params["base_dilation"]))]]


def _pad_windows(axes: Axes, reads: Box, box: Box) -> tuple[tuple[int, int], ...]:
    """The padding with which windows over a part lie as they do over the whole."""
    found = []
    for along, (first, behind) in zip(axes, reads):
        low, high = box[along.axis]
        begin = low * along.stride + along.start
        end = (high - 1) * along.stride + along.start + along.extent
        if behind == first:
            found.append((end - begin, 0))
        else:
            found.append((first * along.dilation - begin, end - (behind - 1) * along.dilation - 1))
    return tuple(found)


def _write_window_reduction(part):
    padding = _pad_windows(part.rule.find(part.eqn)[0], part.reads[0], part.box)
    return part.apply(padding=padding)


def _find_conv(eqn):
    params, rank = eqn.params, eqn.outvars[0].aval.ndim
    numbers, kernel = params["dimension_numbers"], eqn.invars[1].aval.shape
    left: Axes = [None] * rank
    right: Axes = [None] * rank
    if params["feature_group_count"] == params["batch_group_count"] == 1:
        left[numbers.lhs_spec[0]], right[numbers.rhs_spec[0]] = map(Along, numbers.out_spec[:2])
        left[numbers.lhs_spec[1]] = right[numbers.rhs_spec[1]] = Along(rank)
    for i, (low, _) in enumerate(params["padding"]):
        extent = (kernel[numbers.rhs_spec[2 + i]] - 1) * params["rhs_dilation"][i] + 1
        left[numbers.lhs_spec[2 + i]] = Along(numbers.out_spec[2 + i], params["window_strides"][i], -low,
                                              extent, params["lhs_dilation"][i])
    return [left, right]


def _sweep_conv(eqn):
    is_one = eqn.params["feature_group_count"] == eqn.params["batch_group_count"] == 1
    return [eqn.invars[0].aval.shape[eqn.params["dimension_numbers"].lhs_spec[1]]] if is_one else []


def _write_conv(part):
    spatial = part.eqn.params["dimension_numbers"].lhs_spec[2:]
    if is_empty(part.reads[0]):
        return [part.fill(make_constant(0, part.eqn.outvars[0].aval), part.shape)]
    axes = part.rule.find(part.eqn)[0]
    padding = _pad_windows([axes[i] for i in spatial], tuple(part.reads[0][i] for i in spatial), part.box)
    return part.apply(padding=padding)


_ELEMENTWISE = Rule(_find_elementwise, _write_same)
_WINDOW_REDUCTION = Rule(_find_window_reduction, _write_window_reduction)
#: Of primitives without a row: all of each operand is needed for each element.
_WHOLE = Rule(_find_whole, _write_same)
_CUMULATIVE = Rule(_keep_axes(lambda params, rank: [params["axis"]]), _write_same)
_MATRICES = Rule(_keep_axes(lambda params, rank: [-2, -1]), _write_same)

_RULES = {
    **dict.fromkeys(("copy", "name", "reduce_precision", "stop_gradient", "threefry2x32"), _ELEMENTWISE),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _CUMULATIVE),
    **dict.fromkeys(("cholesky", "triangular_solve"), _MATRICES),
    **{f"reduce_{name}": Rule(_find_reduction, _write_same, _sweep_reduction, combine) for name, combine in (
        ("sum", "add"), ("prod", "mul"), ("max", "max"), ("min", "min"), ("and", "and"), ("or", "or"),
        ("xor", "xor"))},
    **{f"arg{name}": Rule(_find_reduction, _write_same, _sweep_reduction, name) for name in ("max", "min")},
    "broadcast_in_dim": Rule(_find_broadcast, _write_broadcast, is_free=True),
    "concatenate": Rule(_find_concatenate, _write_concatenate),
    "conv_general_dilated": Rule(_find_conv, _write_conv, _sweep_conv, "add"),
    "dot_general": Rule(_find_dot, _write_same, _sweep_dot, "add"),
    "dynamic_slice": Rule(_find_dynamic_slice, _write_dynamic_slice),
    "dynamic_update_slice": Rule(_find_dynamic_update_slice, _write_dynamic_update_slice),
    "fft": Rule(_keep_axes(lambda params, rank: range(-len(params["fft_lengths"]), 0)), _write_same),
    "gather": Rule(_find_gather, _write_gather),
    "iota": Rule(lambda eqn: [], _write_iota, is_free=True),
    "pad": Rule(_find_pad, _write_pad),
    "reshape": Rule(_find_reshape, _write_reshape),
    "rev": Rule(_find_rev, _write_same),
    "slice": Rule(_find_slice, _write_slice),
    "sort": Rule(_keep_axes(lambda params, rank: [params["dimension"]]), _write_same),
    "squeeze": Rule(_find_squeeze, _write_squeeze),
    "transpose": Rule(_find_transpose, _write_same),
}
