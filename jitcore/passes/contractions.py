"""Normal form of contractions: every `dot_general` and convolution is spelled in the one way that backends
have code for.

In: a jaxpr. Out: the same program, in which

- operands of a product lie in memory as stacks of matrices: batch, free and contracted axes each follow one
  another. Transpositions that leave them so are read through dimension numbers, others are computed;
- a convolution has its images as (image, position..., feature), its filters as (window..., in, out), no
  padding, no dilated images and no groups of images: `pad`, `transpose` and `reshape` do that before, in loops
  that fuse with what computes the images;
- operands have the dtype that is summed in, so that halves become float32 where they are computed.

What this adds is written with the functions of `lax`, traced and spliced in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitcore import dtypes, lax
from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation
from jitcore.core.trace import trace_to_jaxpr
from jitcore.lax.conv import ConvDimensionNumbers, is_plain_convolution
from jitcore.lax.dot import accumulation_dtype, free_dims, order_contraction, runs_together
from jitcore.passes.forward import Walk, rewrite_equations

__all__ = ["normalize_contractions"]


def normalize_contractions(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    return rewrite_equations(closed_jaxpr, _apply_rule)


def _apply_rule(walk: Walk, eqn: Equation) -> list[Atom] | None:
    rule = _RULES.get(eqn.primitive.name)
    return None if rule is None else rule(walk, eqn)


def _spell(walk: Walk, function: Callable, operands: Sequence[Atom]) -> list[Atom]:
    """The outputs of a function of operands, computed by equations emitted here."""
    jaxpr, consts = trace_to_jaxpr(function, [atom.aval for atom in operands])
    return walk.splice(ClosedJaxpr(jaxpr, consts), list(operands), lambda walk, eqn: None)


# -- products -----------------------------------------------------------------------------------------------
def _normalize_product(walk: Walk, eqn: Equation) -> list[Atom] | None:
    out_dtype = eqn.outvars[0].aval.dtype
    work = accumulation_dtype(*[atom.aval.dtype for atom in eqn.invars], out_dtype)
    if not dtypes.is_floating(work):
        return None
    contracting, batch = eqn.params["dimension_numbers"]
    (lhs, lhs_contract, lhs_batch), (rhs, rhs_contract, rhs_batch) = sides = [
        _read_through_transpose(walk, *side) for side in zip(eqn.invars, contracting, batch)
    ]
    lhs_contract, rhs_contract = order_contraction(lhs.aval.shape, rhs.aval.shape, lhs_contract, rhs_contract)
    converts = any(side[0].aval.dtype != work for side in sides)
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
                              work if converts else eqn.params["preferred_element_type"])  # fmt: skip
        return [lax.convert_element_type(out, out_dtype)]

    return _spell(walk, spelled, [lhs, rhs])


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
def _normalize_convolution(walk: Walk, eqn: Equation) -> list[Atom] | None:
    params = eqn.params
    lhs, rhs = eqn.invars
    out_dtype = eqn.outvars[0].aval.dtype
    work = accumulation_dtype(lhs.aval.dtype, rhs.aval.dtype, out_dtype)
    if dtypes.is_complex(work) or (is_plain_convolution(**params) and lhs.aval.dtype == work):
        return None
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    rank = len(lhs_spec) - 2

    def spelled(images, filters):
        images = lax.transpose(images, [lhs_spec[0], *lhs_spec[2:], lhs_spec[1]])
        images = lax.convert_element_type(images, work)
        spatial = [(*pads, dilation - 1) for pads, dilation in zip(params["padding"], params["lhs_dilation"])]
        if any(config != (0, 0, 0) for config in spatial):
            images = lax.pad(images, work.type(0), [(0, 0, 0), *spatial, (0, 0, 0)])
        groups = params["batch_group_count"]
        if groups > 1:
            images = _move_groups_to_features(images, groups)
        filters = lax.transpose(filters, [*rhs_spec[2:], rhs_spec[1], rhs_spec[0]])
        filters = lax.convert_element_type(filters, work)
        groups *= params["feature_group_count"]
        out = _convolve_plainly(images, filters, params, groups)
        order = [0] * (rank + 2)
        for position, dim in enumerate((out_spec[0], *out_spec[2:], out_spec[1])):
            order[dim] = position
        return [lax.convert_element_type(lax.transpose(out, order), out_dtype)]

    return _spell(walk, spelled, [lhs, rhs])


def _move_groups_to_features(images, groups: int):
    """(groups * images, position..., feature) as (images, position..., groups * feature)."""
    count, *extents, features = images.shape
    split = lax.reshape(images, (groups, count // groups, *extents, features))
    last = split.ndim - 1
    moved = lax.transpose(split, [*range(1, last), 0, last])
    return lax.reshape(moved, (count // groups, *extents, groups * features))


def _convolve_plainly(images, filters, params: dict, groups: int):
    *window, features, outs = filters.shape
    rank = len(window)
    strides = params["window_strides"]
    if groups == 1 and all(extent == 1 for extent in window) and all(stride == 1 for stride in strides):
        matrix = lax.reshape(filters, (features, outs))
        return lax.dot_general(images, matrix, (((rank + 1,), (0,)), ((), ())))
    positions = tuple(range(1, rank + 1))
    spec = ConvDimensionNumbers((0, rank + 1, *positions), (rank + 1, rank, *range(rank)),
                                (0, rank + 1, *positions))  # fmt: skip
    return lax.conv_general_dilated(
        images, filters, strides, ((0, 0),) * rank, rhs_dilation=params["rhs_dilation"],
        dimension_numbers=spec, feature_group_count=groups)  # fmt: skip


_RULES = {"dot_general": _normalize_product, "conv_general_dilated": _normalize_convolution}
