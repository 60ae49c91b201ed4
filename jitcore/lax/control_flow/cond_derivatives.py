"""Derivatives of `cond`: rules of jvp, of partial evaluation and of transposition.

In: a `cond` equation and tangents, unknown operands or cotangents. Out: `cond` equations that choose the same
branch. The index has no derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, eval_jaxpr
from jitcore.core.trace import trace_to_jaxpr
from jitcore.transforms.jaxpr_parts import lift_consts
from jitcore.transforms.jvp import jvp_jaxpr, split_outputs
from jitcore.transforms.partial_eval import SplitJaxpr, split_jaxpr
from jitcore.transforms.tangents import Zero, fill, is_zero, tangent_aval
from jitcore.transforms.transpose import is_linear, transpose_jaxpr

Branches = tuple[ClosedJaxpr, ...]


def bind_cond(primitive, index, operands: Sequence, branches: Sequence[ClosedJaxpr]) -> list:
    """Applies `cond`; constants of the branches become operands of all."""
    branches, values = _lift_all(branches)
    return primitive.bind(index, *values, *operands, branches=branches)


def _lift_all(branches: Sequence[ClosedJaxpr]) -> tuple[Branches, list]:
    lifted = [lift_consts(branch) for branch in branches]
    counts = [len(values) for _, values in lifted]
    if not any(counts):
        return tuple(branches), []
    avals = [branch.in_avals[:count] for (branch, _), count in zip(lifted, counts)]
    result = []
    for number, (branch, _) in enumerate(lifted):
        before, own = sum(counts[:number]), counts[number]
        result.append(_take_some(branch, [a for group in avals for a in group], before, own))
    return tuple(result), [value for _, values in lifted for value in values]


def _take_some(branch: ClosedJaxpr, leading: list[ShapedArray], before: int, own: int) -> ClosedJaxpr:
    """The branch with these leading inputs, of which it reads `own`, from place `before` on."""

    def run(*args):
        given = args[: len(leading)]
        return eval_jaxpr(branch.jaxpr, [], [*given[before : before + own], *args[len(leading) :]])

    jaxpr, _ = trace_to_jaxpr(run, [*leading, *branch.in_avals[own:]], branch.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr)


# -- forward ------------------------------------------------------------------------------------------------
def jvp_cond(primitive, primals, tangents, *, branches: Branches):
    """The branches over values and tangents. A result has a tangent if one of the branches gives it one."""
    index, *operands = primals
    nonzero = [not is_zero(t) for t in tangents[1:]]
    found = [jvp_jaxpr(branch, nonzero)[1] for branch in branches]
    wanted = list(map(any, zip(*found)))
    derivatives = [jvp_jaxpr(branch, nonzero, wanted)[0] for branch in branches]
    given = [t for t in tangents if not is_zero(t)]
    return split_outputs(bind_cond(primitive, index, [*operands, *given], derivatives), wanted)


# -- partial evaluation -------------------------------------------------------------------------------------
def split_cond(trace, primitive, args, *, branches: Branches):
    """Two choices by one index: of what is known, with the residuals of the branch that ran, and of the rest.

    Residuals that branches compute go into common slots, which branches share where types agree; a branch
    fills the slots that it does not need with zeros."""
    index, *operands = args
    if trace.is_unknown(index):
        return trace.record_unknown(primitive, args, {"branches": branches})
    unknown = list(map(trace.is_unknown, operands))
    found = [split_jaxpr(branch, unknown).out_unknown for branch in branches]
    wanted = list(map(any, zip(*found)))
    splits = [split_jaxpr(branch, unknown, wanted) for branch in branches]
    slots, slot_of = _share_slots(splits)
    passed = sorted({place for split in splits for place in split.residuals if place is not None})
    known = [x for x in operands if not trace.is_unknown(x)]
    known_branches = [_fill_slots(split, slots, own) for split, own in zip(splits, slot_of)]
    num_outs = splits[0].num_known_outs
    outs = []
    if num_outs or slots:
        outs = bind_cond(primitive, index, known, known_branches)
    residuals = [*(known[place] for place in passed), *outs[num_outs:]]
    rest = [_read_slots(split, passed, slots, own) for split, own in zip(splits, slot_of)]
    rest, values = _lift_all(rest)
    given = list(compress(operands, unknown))
    unknown_outs = trace.record_unknown(primitive, [index, *values, *residuals, *given], {"branches": rest})
    return splits[0].merge_outputs(outs, unknown_outs)


def _computed_avals(split: SplitJaxpr) -> list[ShapedArray]:
    return split.known.out_avals[split.num_known_outs :]


def _share_slots(splits: Sequence[SplitJaxpr]) -> tuple[list[ShapedArray], list[list[int]]]:
    """The types of the slots; for each branch the slots of the residuals that it computes."""
    slots: list[ShapedArray] = []
    slot_of = []
    for split in splits:
        own: list[int] = []
        for aval in _computed_avals(split):
            free = (place for place, slot in enumerate(slots) if place not in own
                    and (slot.shape, slot.dtype) == (aval.shape, aval.dtype))
            place = next(free, None)
            if place is None:
                place = len(slots)
                slots.append(aval)
            own.append(place)
        slot_of.append(own)
    return slots, slot_of


def _fill_slots(split: SplitJaxpr, slots: list[ShapedArray], own: list[int]) -> ClosedJaxpr:
    """The known branch, whose results are the known ones and all slots."""

    def run(*known):
        outs = eval_jaxpr(split.known.jaxpr, split.known.consts, known)
        computed = dict(zip(own, outs[split.num_known_outs :]))
        filled = [computed[place] if place in computed else fill(aval, 0) for place, aval in enumerate(slots)]
        return [*outs[: split.num_known_outs], *filled]

    jaxpr, consts = trace_to_jaxpr(run, split.known.in_avals, split.known.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts)


def _read_slots(split: SplitJaxpr, passed: list[int], slots, own: list[int]) -> ClosedJaxpr:
    """The unknown branch by the known operands that some branch reads, all slots, and the unknown
    operands."""
    num_residuals = len(split.residuals)
    passed_avals = [split.known.in_avals[place] for place in passed]

    def run(*args):
        operands, rest = dict(zip(passed, args)), args[len(passed) :]
        computed = iter([rest[place] for place in own])
        residuals = [next(computed) if place is None else operands[place] for place in split.residuals]
        return eval_jaxpr(split.unknown.jaxpr, split.unknown.consts, [*residuals, *rest[len(slots) :]])

    avals = [*passed_avals, *slots, *split.unknown.in_avals[num_residuals:]]
    jaxpr, consts = trace_to_jaxpr(run, avals, split.unknown.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts)


# -- reverse ------------------------------------------------------------------------------------------------
def transpose_cond(primitive, cotangents, operands, *, branches: Branches):
    """The branches transposed. An operand has a cotangent if one of the branches gives it one."""
    index, *operands = operands
    in_linear = list(map(is_linear, operands))
    ct_flags = [not is_zero(ct) for ct in cotangents]
    found = [transpose_jaxpr(branch, in_linear, ct_flags)[1] for branch in branches]
    wanted = list(map(any, zip(*found)))
    transposed = [transpose_jaxpr(branch, in_linear, ct_flags, wanted)[0] for branch in branches]
    values = [x for x in operands if not is_linear(x)]
    given = list(compress(cotangents, ct_flags))
    outs = iter(bind_cond(primitive, index, [*values, *given], transposed))
    results = iter([next(outs) if flag else None for flag in wanted])
    cts: list = [None]
    for x in operands:
        ct = next(results) if is_linear(x) else None
        cts.append(Zero(tangent_aval(x.aval)) if ct is None and is_linear(x) else ct)
    return cts
