"""Normal form of contractions: every `dot_general` and convolution is spelled in the one way that backends
have code for.

In: a jaxpr. Out: the same program, in which

- operands of a product lie in memory as stacks of matrices: batch, free and contracted axes each follow one
  another. Transpositions that leave them so are read through dimension numbers, others are computed;
- a vector times a matrix that little arithmetic makes of others, or that is no such stack, is a sum of
  products, which loops compute where they read those: each element is read once;
- a convolution has one of the two layouts of `plain_layouts`, no padding, no dilated images and no
  groups of images: `pad`, `transpose` and `reshape` do that before, in loops that fuse with what computes the
  images;
- operands have the dtype that is summed in, so that halves become float32 where they are computed; but for
  matrices of them that are multiplied, where a backend has units for that (`keep_halves`).

What this adds is written with the functions of `lax`, traced and spliced in.
"""

from __future__ import annotations

import functools

from jitcore import dtypes, lax
from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation
from jitcore.lax.convolution.general import ConvDimensionNumbers, is_plain_convolution, plain_layouts
from jitcore.lax.dot import accumulation_dtype, free_dims, order_contraction, runs_together
from jitcore.passes.tuning import DEFAULT, Tuning
from jitcore.passes.walk import Walk, rewrite_equations


def normalize_contractions(closed_jaxpr: ClosedJaxpr, tuning: Tuning = DEFAULT,
                           keeps_halves: bool = False) -> ClosedJaxpr:
    """keeps_halves: products of matrices read halves as they are."""
    rule = functools.partial(_apply_rule, tuning=tuning, keeps_halves=keeps_halves)
    return rewrite_equations(closed_jaxpr, rule)


keep_halves = functools.partial(normalize_contractions, keeps_halves=True)


def _apply_rule(walk: Walk, eqn: Equation, tuning: Tuning, keeps_halves: bool) -> list[Atom] | None:
    if eqn.primitive.name == "conv_general_dilated":
        return _normalize_convolution(walk, eqn, tuning)
    if eqn.primitive.name == "dot_general":
        return _sum_products(walk, eqn, tuning) or _normalize_product(walk, eqn, keeps_halves)
    return None


# -- products -----------------------------------------------------------------------------------------------
def _multiplies_halves(eqn: Equation) -> bool:
    """Whether matrices of one dtype of 16 bits are multiplied."""
    left, right = (atom.aval for atom in eqn.invars)
    around = [len(contract) + len(batch) for contract, batch in zip(*eqn.params["dimension_numbers"])]
    is_half = left.dtype == right.dtype and dtypes.is_half(left.dtype)
    return is_half and left.ndim > around[0] and right.ndim > around[1]


def _sum_products(walk: Walk, eqn: Equation, tuning: Tuning) -> list[Atom] | None:
    """A vector times a matrix that is computed, or would have to be transposed, as a sum of products."""
    ranks = [atom.aval.ndim for atom in eqn.invars]
    has_dtype = all(atom.aval.dtype == eqn.outvars[0].aval.dtype for atom in eqn.invars)
    if min(ranks) != 1 or max(ranks) < 2 or not has_dtype:
        return None
    position = 1 - ranks.index(1)
    matrix, vector = eqn.invars[position], eqn.invars[1 - position]
    contracted = eqn.params["dimension_numbers"][0][position]
    made = walk.defined_by.get(matrix)
    is_computed = made is not None and "is_cheap" in made.primitive.traits
    if not _are_many(matrix.aval, tuning.min_computed_matrix):
        return None
    if not is_computed and _is_stack(matrix, contracted, ()):
        return None
    operands, (axis,) = made.invars if is_computed else [matrix], contracted
    flipped = [walk.find_definition(atom, "transpose") for atom in operands]
    if ranks[position] == 2 and all(flip or not atom.aval.ndim for flip, atom in zip(flipped, operands)):
        operands, axis = [flip.invars[0] if flip else atom for flip, atom in zip(flipped, operands)], 1 - axis

    def spelled(vector, *operands):
        elements = made.primitive.bind(*operands, **made.params) if is_computed else operands[0]
        factors = lax.broadcast_in_dim(vector, elements.shape, (axis,))
        return [lax.reduce_sum(elements * factors, axes=(axis,))]

    return walk.spell(spelled, [vector, *operands])


def _are_many(aval, least: int) -> bool:
    """Whether there are many real numbers, which are summed as they are."""
    is_real = dtypes.is_floating(aval.dtype) and aval.dtype.itemsize >= 4
    return is_real and all(isinstance(extent, int) for extent in aval.shape) and aval.size >= least


def _normalize_product(walk: Walk, eqn: Equation, keeps_halves: bool) -> list[Atom] | None:
    out_dtype = eqn.outvars[0].aval.dtype
    work = accumulation_dtype(*[atom.aval.dtype for atom in eqn.invars], out_dtype)
    if not dtypes.is_floating(work):
        return None
    contracting, batch = eqn.params["dimension_numbers"]
    (lhs, lhs_contract, lhs_batch), (rhs, rhs_contract, rhs_batch) = sides = [
        _read_through_transpose(walk, *side) for side in zip(eqn.invars, contracting, batch)
    ]
    lhs_contract, rhs_contract = order_contraction(lhs.aval.shape, rhs.aval.shape, lhs_contract, rhs_contract)
    keeps = keeps_halves and _multiplies_halves(eqn)
    converts = not keeps and any(side[0].aval.dtype != work for side in sides)
    stacked = [_is_stack(*side) for side in ((lhs, lhs_contract, lhs_batch), (rhs, rhs_contract, rhs_batch))]
    if all(stacked) and not converts and [lhs, rhs] == eqn.invars:
        return None

    def spelled(left, right):
        numbers = [(lhs_contract, lhs_batch), (rhs_contract, rhs_batch)]
        values = [left, right]
        for k, is_left in enumerate((True, False)):
            if converts:
                values[k] = lax.convert_element_type(values[k], work)
            if not stacked[k]:
                values[k], *numbers[k] = _stack_matrices(values[k], *numbers[k], contracted_last=is_left)
        pairs = tuple(zip(*numbers))
        out = lax.dot_general(*values, pairs, eqn.params["precision"],
                              work if converts else eqn.params["preferred_element_type"])
        return [lax.convert_element_type(out, out_dtype)]

    return walk.spell(spelled, [lhs, rhs])


def _read_through_transpose(walk: Walk, atom: Atom, contract, batch):
    """(operand, its contracted axes, its batch axes) before transpositions that it may do without."""
    while (inner := walk.find_definition(atom, "transpose")) is not None:
        order = inner.params["permutation"]
        origin = inner.invars[0]
        free = [order[dim] for dim in free_dims(atom.aval.ndim, contract, batch)]
        moved = tuple(order[dim] for dim in contract), tuple(order[dim] for dim in batch)
        groups = (moved[1], free, sorted(moved[0]))
        if free != sorted(free) or not all(runs_together(origin.aval.shape, group) for group in groups):
            break
        atom, (contract, batch) = origin, moved
    return atom, tuple(contract), tuple(batch)


def _is_stack(atom: Atom, contract, batch) -> bool:
    groups = (batch, free_dims(atom.aval.ndim, contract, batch), contract)
    return all(runs_together(atom.aval.shape, group) for group in groups)


def _stack_matrices(value, contract, batch, contracted_last: bool):
    """(the operand with its axes in groups, contracted axes, batch axes)."""
    free = free_dims(value.ndim, contract, batch)
    groups = (free, contract) if contracted_last else (contract, free)
    first = len(batch) + (len(free) if contracted_last else 0)
    moved = lax.transpose(value, [*batch, *groups[0], *groups[1]])
    return moved, tuple(range(first, first + len(contract))), tuple(range(len(batch)))


# -- convolutions -------------------------------------------------------------------------------------------
def _normalize_convolution(walk: Walk, eqn: Equation, tuning: Tuning) -> list[Atom] | None:
    params = eqn.params
    lhs, rhs = eqn.invars
    out = eqn.outvars[0].aval
    work = accumulation_dtype(lhs.aval.dtype, rhs.aval.dtype, out.dtype)
    layout = _choose_layout(params, out.shape, tuning.min_line)
    groups = params["batch_group_count"] * params["feature_group_count"]
    is_plain = (
        is_plain_convolution(**params)
        and params["dimension_numbers"] == layout
        and not (groups == 1 and _is_pointwise(params, rhs.aval.shape))
    )
    if dtypes.is_complex(work) or (is_plain and lhs.aval.dtype == work):
        return None

    def spelled(images, filters):
        lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
        images = lax.convert_element_type(_permute(images, lhs_spec, layout.lhs_spec), work)
        config = [(0, 0, 0)] * images.ndim
        for dim, pads, dilation in zip(layout.lhs_spec[2:], params["padding"], params["lhs_dilation"]):
            config[dim] = (*pads, dilation - 1)
        if any(entry != (0, 0, 0) for entry in config):
            images = lax.pad(images, work.type(0), config)
        if params["batch_group_count"] > 1:
            images = _move_groups_to_features(images, params["batch_group_count"])
        filters = lax.convert_element_type(_permute(filters, rhs_spec, layout.rhs_spec), work)
        result = _convolve_plainly(images, filters, params, layout, groups)
        return [lax.convert_element_type(_permute(result, layout.out_spec, out_spec), out.dtype)]

    return walk.spell(spelled, [lhs, rhs])


def _choose_layout(params: dict, out_shape, min_line: int) -> ConvDimensionNumbers:
    """Features stay first where positions, then along vectors, are neighbours and many."""
    lhs_spec, _, out_spec = params["dimension_numbers"]
    features_last, features_first = plain_layouts(len(lhs_spec) - 2)
    line = out_shape[out_spec[-1]]
    keeps = (
        lhs_spec == features_first.lhs_spec
        and out_spec == features_first.out_spec
        and params["window_strides"][-1:] == (1,)
        and params["batch_group_count"] == 1
        and isinstance(line, int)
        and line >= min_line
    )
    return features_first if keeps else features_last


def _permute(value, source, target):
    """The value with its axes where another layout has them."""
    order = [0] * len(source)
    for old, new in zip(source, target):
        order[new] = old
    return lax.transpose(value, order)


def _move_groups_to_features(images, groups: int):
    """(groups * images, position..., feature) as (images, position..., groups * feature)."""
    count, *extents, features = images.shape
    split = lax.reshape(images, (groups, count // groups, *extents, features))
    last = split.ndim - 1
    moved = lax.transpose(split, [*range(1, last), 0, last])
    return lax.reshape(moved, (count // groups, *extents, groups * features))


def _is_pointwise(params: dict, filter_shape) -> bool:
    """Whether positions do not see one another and features are last: a matrix product, if there is one
    group."""
    lhs_spec, rhs_spec, _ = params["dimension_numbers"]
    window = [filter_shape[dim] for dim in rhs_spec[2:]]
    steps = (*window, *params["window_strides"])
    return lhs_spec[1] == len(lhs_spec) - 1 and all(step == 1 for step in steps)


def _convolve_plainly(images, filters, params: dict, layout: ConvDimensionNumbers, groups: int):
    outs, features, *window = (filters.shape[dim] for dim in layout.rhs_spec)
    rank, strides = len(window), params["window_strides"]
    if groups == 1 and _is_pointwise(params | {"dimension_numbers": layout}, filters.shape):
        matrix = lax.reshape(filters, (features, outs))
        return lax.dot_general(images, matrix, (((rank + 1,), (0,)), ((), ())))
    return lax.conv_general_dilated(
        images, filters, strides, ((0, 0),) * rank, rhs_dilation=params["rhs_dilation"],
        dimension_numbers=layout, feature_group_count=groups)
