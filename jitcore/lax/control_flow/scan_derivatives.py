"""Derivatives of `scan`: rules of jvp, of partial evaluation and of transposition.

In: a `scan` equation and tangents, unknown operands or cotangents. Out: `scan` equations. A derivative of a
counted loop is a counted loop of as many iterations: forward mode carries tangents along, reverse mode runs
from the last iteration to the first over stacked residuals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress

from jitcore.config import config
from jitcore.core.jaxpr import (ClosedJaxpr, Jaxpr, Literal, ShapedArray, Var, aval_of, eval_jaxpr,
                                find_dependent, slice_eqns)
from jitcore.core.primitive import registry
from jitcore.core.trace import trace_to_jaxpr
from jitcore.lax.control_flow.control import split_operands
from jitcore.transforms.checkpoint import remat_primitive
from jitcore.transforms.jaxpr_parts import depends_on, lift_consts, pair_order, rearrange, settle_carry
from jitcore.transforms.jvp import jvp_jaxpr
from jitcore.transforms.partial_eval import SplitJaxpr, open_partial_trace, split_jaxpr
from jitcore.transforms.tangents import Zero, add_derivatives, instantiate, is_zero, tangent_aval, zero_like
from jitcore.transforms.transpose import Linear, is_linear, transpose, transpose_jaxpr

Flags = Sequence[bool]


def bind_scan(primitive, consts, init, xs, *, jaxpr: ClosedJaxpr, **params) -> list:
    """Applies `scan`; constants of the body become constant operands."""
    jaxpr, values = lift_consts(jaxpr)
    consts = [*values, *consts]
    return primitive.bind(*consts, *init, *xs, jaxpr=jaxpr, num_consts=len(consts), num_carry=len(init),
                          **params)


# -- forward ------------------------------------------------------------------------------------------------
def jvp_scan(primitive, primals, tangents, *, jaxpr, num_consts, num_carry, **params):
    """The loop over values and tangents together."""
    groups = split_operands([not is_zero(t) for t in tangents], num_consts, num_carry)
    consts_flags, init_flags, xs_flags = groups
    others = [False] * (len(jaxpr.out_avals) - num_carry)

    def differentiate(carry_flags):
        return jvp_jaxpr(jaxpr, [*consts_flags, *carry_flags, *xs_flags], [*carry_flags, *others])

    body, carry_flags, ys_flags = settle_carry(differentiate, init_flags)
    body = rearrange(body, pair_order(consts_flags, carry_flags, xs_flags), pair_order(carry_flags, ys_flags))
    flags = [consts_flags, carry_flags, xs_flags]
    consts, init, xs = [
        [*values, *map(instantiate, compress(ts, group))]
        for values, ts, group in zip(split_operands(primals, num_consts, num_carry),
                                     split_operands(tangents, num_consts, num_carry), flags)]
    outs = bind_scan(primitive, consts, init, xs, jaxpr=body, **params)
    carries = num_carry + sum(carry_flags)
    values = [*outs[:num_carry], *outs[carries : carries + len(ys_flags)]]
    found = iter([*outs[num_carry:carries], *outs[carries + len(ys_flags) :]])
    return values, [next(found) if flag else zero_like(value)
                    for value, flag in zip(values, [*carry_flags, *ys_flags])]


# -- partial evaluation -------------------------------------------------------------------------------------
def split_scan(trace, primitive, args, *, jaxpr, num_consts, num_carry, **params):
    """Two loops: one of what is known, which also stacks the residuals, and one of the rest.

    A residual that is the same in all iterations is no stack: it is an operand of both, or is computed before
    the loops. One that is an element of a known `xs` is read from there. Where the stacks would take too much
    memory, the loop is done in segments."""
    unknown = list(map(trace.is_unknown, args))
    consts_flags, init_flags, xs_flags = split_operands(unknown, num_consts, num_carry)
    others = [False] * (len(jaxpr.out_avals) - num_carry)

    def split_body(carry_flags):
        split = split_jaxpr(jaxpr, [*consts_flags, *carry_flags, *xs_flags], [*carry_flags, *others])
        return split, split.out_unknown

    split, carry_flags, _ = settle_carry(split_body, init_flags)
    flags = consts_flags, carry_flags, xs_flags
    groups = split_operands(args, num_consts, num_carry)
    known = [[x for x, flag in zip(group, own) if not flag] for group, own in zip(groups, flags)]
    parts = _Known(split, *known)
    segment = choose_segment(parts, params["length"])
    if segment is not None:
        whole = params | {"jaxpr": jaxpr, "num_consts": num_consts, "num_carry": num_carry}
        return scan_segments(primitive, args, segment, **whole)
    outs, residuals = parts.run(primitive, **params)
    places = [place for is_stack in (False, True)
              for place, (_, flag) in enumerate(residuals) if flag == is_stack]
    consts, init, xs = [list(compress(group, own)) for group, own in zip(groups, flags)]
    body = rearrange(split.unknown, _order_residuals(places, residuals, len(consts) + len(init), len(xs)))
    body, values = lift_consts(body)
    consts = [*values, *(residuals[place][0] for place in places if not residuals[place][1]), *consts]
    xs = [*(residuals[place][0] for place in places if residuals[place][1]), *xs]
    params |= {"jaxpr": body, "num_consts": len(consts), "num_carry": len(init)}
    found = trace.record_unknown(primitive, [*consts, *init, *xs], params)
    return split.merge_outputs(outs, found)


def _order_residuals(places: Sequence[int], residuals, num_before: int, num_xs: int) -> list[int]:
    """The places of the unknown body's inputs where stacked residuals stand before the other `xs`."""
    count = len(residuals)
    fixed = [place for place in places if not residuals[place][1]]
    stacked = [place for place in places if residuals[place][1]]
    middle, last = range(count, count + num_before), range(count + num_before, count + num_before + num_xs)
    return [*fixed, *middle, *stacked, *last]


class _Known:
    """The known part of a split `scan`, and where each residual comes from.

    Attributes:
        residuals: atoms of the known body. hoisted: those that are computed before the loop.
        stacked: those that the known loop stacks."""

    def __init__(self, split: SplitJaxpr, consts: list, init: list, xs: list):
        body, values = lift_consts(split.known)
        shift, jaxpr = len(values), body.jaxpr
        self.body, self.consts, self.init, self.xs = body, [*values, *consts], init, xs
        self.outvars = jaxpr.outvars[: split.num_known_outs]
        computed = iter(jaxpr.outvars[split.num_known_outs :])
        self.residuals = [next(computed) if place is None else jaxpr.invars[place + shift]
                          for place in split.residuals]
        const_vars, carry_vars, self.x_vars = split_operands(jaxpr.invars, len(self.consts), len(init))
        self.fixed = dict(zip(const_vars, self.consts))
        self.fixed |= {var: value for var, out, value in zip(carry_vars, self.outvars, init) if out is var}
        varying = find_dependent(body.eqns, [var for var in jaxpr.invars if var not in self.fixed])
        atoms = list(dict.fromkeys(atom for atom in self.residuals if isinstance(atom, Var)))
        self.hoisted = [var for var in atoms if var not in varying and var not in self.fixed]
        self.ys_vars = self.outvars[len(init) :]
        self.stacked = [var for var in atoms if var in varying and var not in {*self.x_vars, *self.ys_vars}]

    def run(self, primitive, **params) -> tuple[list, list[tuple]]:
        """The known outputs; for each residual its value and whether it is stacked."""
        fixed, stacks = dict(self.fixed), dict(zip(self.x_vars, self.xs))
        if self.hoisted:
            fixed |= zip(self.hoisted, self._compute_hoisted())
        outs: list = []
        if self.outvars or self.stacked:
            body = ClosedJaxpr(self.body.jaxpr.replace(outvars=[*self.outvars, *self.stacked]))
            outs = bind_scan(primitive, self.consts, self.init, self.xs, jaxpr=body, **params)
        for var, stack in zip([*self.ys_vars, *self.stacked], outs[len(self.init) :]):
            if isinstance(var, Var):
                stacks.setdefault(var, stack)
        return outs[: len(self.outvars)], [_locate(atom, fixed, stacks) for atom in self.residuals]

    def _compute_hoisted(self) -> list:
        """What does not change from one iteration to the next."""
        eqns, _ = slice_eqns(self.body.eqns, self.hoisted)
        jaxpr = Jaxpr([], list(self.fixed), eqns, self.hoisted)
        return eval_jaxpr(jaxpr, [], list(self.fixed.values()))


def _locate(atom, fixed: dict, stacks: dict) -> tuple:
    if isinstance(atom, Literal):
        return atom.to_operand(), False
    return (fixed[atom], False) if atom in fixed else (stacks[atom], True)


# -- long loops ---------------------------------------------------------------------------------------------
def count_bytes(avals: Sequence[ShapedArray]):
    return sum(math.prod(aval.shape) * aval.dtype.itemsize for aval in avals)


def choose_segment(known: _Known, length) -> int | None:
    """How many iterations go into a segment, where residuals of all of them would take more memory than they
    may.

    The carry is kept at the start of each segment, residuals are computed again for one segment at a time:
    the sum of both is smallest for the root of their ratio."""
    residual = count_bytes([var.aval for var in known.stacked])
    carry = count_bytes(list(map(aval_of, known.init)))
    if not all(isinstance(number, int) for number in (length, residual, carry)):
        return None
    if length * residual <= config.loop_checkpoint_bytes:
        return None
    segment = math.ceil(math.sqrt(length * carry / residual))
    return segment if 1 < segment < length else None


def scan_segments(primitive, args, segment: int, *, jaxpr, num_consts, num_carry, length, **params) -> list:
    """The same loop as a loop over segments, whose derivative computes each segment again."""
    consts, init, xs = split_operands(args, num_consts, num_carry)
    count = length // segment
    whole = count * segment
    params |= {"num_consts": num_consts, "num_carry": num_carry}

    def run(length, init, xs):
        return primitive.bind(*consts, *init, *xs, jaxpr=jaxpr, length=length, **params)

    first = list(consts), list(init), [_slice(x, 0, whole) for x in xs]
    rest = [_slice(x, whole, length) for x in xs]
    body = _make_segment(primitive, [*map(aval_of, first[0]), *map(aval_of, first[1])],
                         list(map(aval_of, first[2])), jaxpr, segment, params)
    pieces = [_split_axis(x, count, segment) for x in first[2]]
    rest_outs: list = []
    if params["reverse"] and whole < length:
        rest_outs = run(length - whole, init, rest)
        init = rest_outs[:num_carry]
    outs = primitive.bind(*consts, *init, *pieces, jaxpr=body, length=count, **params)
    carry, ys = outs[:num_carry], [_merge_axes(y) for y in outs[num_carry:]]
    if whole == length:
        return [*carry, *ys]
    if not params["reverse"]:
        rest_outs = run(length - whole, carry, rest)
        carry = rest_outs[:num_carry]
    joined = [registry["concatenate"].bind(y, z, dimension=0) for y, z in zip(ys, rest_outs[num_carry:])]
    return [*carry, *joined]


def _make_segment(primitive, avals: list, x_avals: list, jaxpr: ClosedJaxpr, segment: int,
                  params: dict) -> ClosedJaxpr:
    """The body of the loop over segments: a checkpointed loop over one."""

    def run(*operands):
        return primitive.bind(*operands, jaxpr=jaxpr, length=segment, **params)

    operands = [*avals, *(aval.update(shape=(segment, *aval.shape[1:])) for aval in x_avals)]
    inner, _ = trace_to_jaxpr(run, operands)
    checkpointed, _ = trace_to_jaxpr(
        lambda *values: remat_primitive.bind(
            *values, jaxpr=ClosedJaxpr(inner), prevent_cse=False, differentiated=False, policy=None),
        operands)
    return ClosedJaxpr(checkpointed)


def _slice(x, start: int, stop: int):
    shape = aval_of(x).shape
    if (start, stop) == (0, shape[0]):
        return x
    starts, limits = (start, *[0] * (len(shape) - 1)), (stop, *shape[1:])
    return registry["slice"].bind(x, start_indices=starts, limit_indices=limits, strides=None)


def _split_axis(x, count: int, size: int):
    return registry["reshape"].bind(x, new_sizes=(count, size, *aval_of(x).shape[1:]), dimensions=None)


def _merge_axes(y):
    shape = aval_of(y).shape
    return registry["reshape"].bind(y, new_sizes=(shape[0] * shape[1], *shape[2:]), dimensions=None)


# -- reverse ------------------------------------------------------------------------------------------------
def transpose_scan(primitive, cotangents, operands, *, jaxpr, num_consts, num_carry, reverse, **params):
    """The loop in the other direction. Cotangents of constants are summed up in its carry, those of elements
    are stacked."""
    linear = list(map(is_linear, operands))
    consts_flags, init_flags, xs_flags = split_operands(linear, num_consts, num_carry)

    def find_linear(carry_flags):
        return None, depends_on(jaxpr, [*consts_flags, *carry_flags, *xs_flags])

    _, carry_flags, _ = settle_carry(find_linear, init_flags)
    params |= {"jaxpr": jaxpr, "num_consts": num_consts, "num_carry": num_carry, "reverse": reverse}
    if not all(carry_flags):
        return _transpose_mixed(primitive, cotangents, operands, params)
    body_flags = [*consts_flags, *carry_flags, *xs_flags]
    ys_flags = [not is_zero(ct) for ct in cotangents[num_carry:]]
    num_linear = sum(consts_flags), num_carry, sum(xs_flags)

    def transpose_body(ct_flags):
        wanted = [*[False] * num_linear[0], *ct_flags, *[False] * num_linear[2]]
        body, nonzero = transpose_jaxpr(jaxpr, body_flags, [*ct_flags, *ys_flags], wanted)
        result = body, nonzero
        return result, nonzero[num_linear[0] : num_linear[0] + num_carry]

    start = [not is_zero(ct) for ct in cotangents[:num_carry]]
    (body, nonzero), ct_flags, _ = settle_carry(transpose_body, start)
    values, _, x_values = split_operands(operands, num_consts, num_carry)
    values = [x for x in values if not is_linear(x)]
    x_values = [x for x in x_values if not is_linear(x)]
    given = [instantiate(ct) for ct, flag in zip(cotangents, [*ct_flags, *ys_flags]) if flag]
    const_avals = [x.aval for x, flag in zip(compress(operands[:num_consts], consts_flags), nonzero) if flag]
    sums = [instantiate(Zero(tangent_aval(aval))) for aval in const_avals]
    body = _accumulate(body, len(values), len(sums), sum(ct_flags), len(x_values))
    init = [*sums, *given[: sum(ct_flags)]]
    xs = [*x_values, *given[sum(ct_flags) :]]
    outs = iter(bind_scan(primitive, values, init, xs, jaxpr=body, reverse=not reverse,
                          length=params["length"], unroll=params["unroll"]))
    found = iter([next(outs) if flag else None for flag in nonzero])
    everything = [next(found) if flag else None for flag in body_flags]
    return [_as_cotangent(ct, x) if is_linear(x) else None for ct, x in zip(everything, operands)]


def _as_cotangent(ct, operand):
    return Zero(tangent_aval(operand.aval)) if ct is None else ct


def _accumulate(body: ClosedJaxpr, num_values: int, num_sums: int, num_carry: int, num_x: int) -> ClosedJaxpr:
    """The body of the transposed loop, of its transposed equations.

    Args:
        body: from constants, elements, cotangents of the carry and of ys, to cotangents of constants, carry
            and elements.

    Returns: from constants, sums, cotangents of the carry, elements and cotangents of ys, to the new sums,
        cotangents of the carry and of elements."""
    avals = body.in_avals
    values, x_values, rest = split_operands(avals, num_values, num_x)
    ct_carry, ct_ys = rest[:num_carry], rest[num_carry:]
    sums = body.out_avals[:num_sums]

    def step(*args):
        values, others = args[:num_values], args[num_values:]
        sums, ct_carry, others = split_operands(others, num_sums, num_carry)
        outs = eval_jaxpr(body.jaxpr, body.consts, [*values, *others[:num_x], *ct_carry, *others[num_x:]])
        return [*map(add_derivatives, sums, outs), *outs[num_sums:]]

    avals = [*values, *sums, *ct_carry, *x_values, *ct_ys]
    jaxpr, consts = trace_to_jaxpr(step, avals, body.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts)


def _transpose_mixed(primitive, cotangents, operands, params) -> list:
    """Where the loop also computes something that is not linear: that is done first, by a loop of its own."""
    with open_partial_trace() as trace:
        args = [trace.new_arg(x.aval) if is_linear(x) else x for x in operands]
        outs = split_scan(trace, primitive, args, **params)
        flags = list(map(trace.is_unknown, outs))
        jaxpr, residuals = trace.close(list(compress(outs, flags)))
    linear = [Linear(x.aval) for x in operands if is_linear(x)]
    found = iter(transpose(jaxpr, residuals, linear, list(compress(cotangents, flags))))
    return [next(found) if is_linear(x) else None for x in operands]
