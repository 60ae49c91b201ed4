"""Loops whose iterations meet in sums and extremes only: blocks of iterations are computed side by side.

In: a loop that counts, each iteration of which computes single numbers, by loops of its own, and hands them
to sums, extremes and the like, whose order does not matter. Out: a loop over blocks of iterations, each as
`vmap` would compute it, and behind it the loop itself for the iterations that are left. The loops inside then
run in lanes, each until its own condition fails. Scripts write such loops to try one number after the other.

A block takes as many rounds as the iteration that goes round most often. So the rounds are counted, and where
most of the lanes wait for few others, the loop itself does the rest.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import (Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var, aval_of, eval_jaxpr,
                                sub_jaxprs)
from jitcore.core.primitive import registry
from jitcore.core.trace import close_over_consts, trace_to_jaxpr
from jitcore.lax import bits, elementwise
from jitcore.lax.control_flow.loops import Loop, run_while
from jitcore.lax.reduce import REDUCTIONS, reduce_max, reduce_sum
from jitcore.lax.shape import iota
from jitcore.passes.simplify import eliminate_dead_code, prune_jaxpr
from jitcore.passes.tuning import DEFAULT, Tuning
from jitcore.passes.walk import Walk, rewrite_equations
from jitcore.transforms.batching import BatchAxis, batch_values, run_batched

LOOPS = ("while", "scan")
# Operations on integers that no processor has for several lanes at a time.
SCALAR_ONLY = ("div", "rem", "pow")
# What gives the same for floats in any order.
ORDERLESS = ("max", "min")
# Steps of a counter: larger ones might overflow within a block.
MAX_STEP = 1 << 20


def batch_iterations(closed_jaxpr: ClosedJaxpr, tuning: Tuning = DEFAULT) -> ClosedJaxpr:
    """Puts a loop over blocks before each loop whose iterations are independent so far."""
    return rewrite_equations(closed_jaxpr, functools.partial(_rewrite, tuning=tuning))


def _rewrite(walk: Walk, eqn: Equation, tuning: Tuning) -> list[Atom] | None:
    loop = _as_while(eqn, tuning.iterations)
    counted = None if loop is None else _read_loop(loop)
    if counted is None:
        return None

    def program(*operands):
        cond_consts, body_consts, init = loop.split(operands)
        first = [*init, np.int64(0)] if eqn.primitive.name == "scan" else init
        carry = _run_blocks(counted, cond_consts, body_consts, first, tuning)
        return loop.bind(cond_consts, body_consts, carry)[: len(init)]

    traced = ClosedJaxpr(*trace_to_jaxpr(program, [atom.aval for atom in eqn.invars]))
    return walk.splice(eliminate_dead_code(traced), eqn.invars)


# -- which loops --------------------------------------------------------------------------------------------
class _Body(NamedTuple):
    """A loop's body. steps: carry -> what each iteration adds to it. parts: carry -> (operation, what it
    takes in), for sums and the like. Other carries stay what they are."""

    jaxpr: Jaxpr
    steps: dict[Var, int]
    parts: dict[Var, tuple[str, Atom]]


class _CountedLoop(NamedTuple):
    """A loop that goes on while `counter` is below `stop`, both as its condition sees them."""

    cond: Jaxpr
    body: _Body
    counter: Var
    stop: Atom
    step: int


def _as_while(eqn: Equation, block: int) -> Loop | None:
    """A `while`, or a `scan` without stacked inputs and outputs as one: its last carry is the number of the
    iteration."""
    params = eqn.params
    if eqn.primitive.name == "while":
        loop = Loop(**params)
        return None if loop.batch_shape else loop
    if eqn.primitive.name != "scan":
        return None
    closed, num_consts, length = params["jaxpr"], params["num_consts"], params["length"]
    has_stacks = max(len(eqn.invars) - num_consts, len(eqn.outvars)) > params["num_carry"]
    if has_stacks or not isinstance(length, int) or length < block or _read_body(closed, num_consts) is None:
        return None
    avals, one = [*closed.in_avals, aval_of(np.int64(0))], np.int64(1)
    cond = trace_to_jaxpr(lambda *carry: [elementwise.lt(carry[-1], np.int64(length))], avals[num_consts:])
    body = trace_to_jaxpr(
        lambda *args: [*eval_jaxpr(closed.jaxpr, [], args[:-1]), elementwise.add(args[-1], one)], avals
    )
    return Loop(ClosedJaxpr(*cond), 0, ClosedJaxpr(*body), num_consts)


def _read_loop(loop: Loop) -> _CountedLoop | None:
    """The loop, if it counts and its iterations are independent so far."""
    cond, body = loop.cond_jaxpr.jaxpr, _read_body(loop.body_jaxpr, loop.body_nconsts)
    if body is None or len(cond.eqns) != 1 or cond.constvars or cond.outvars != cond.eqns[0].outvars:
        return None
    operands = {"lt": cond.eqns[0].invars, "gt": cond.eqns[0].invars[::-1]}.get(cond.eqns[0].primitive.name)
    carries = dict(zip(cond.invars[loop.cond_nconsts :], body.jaxpr.invars[loop.body_nconsts :]))
    if operands is None or carries.get(operands[0]) not in body.steps:
        return None
    counter, stop = operands
    changes = carries.get(stop) in body.steps or carries.get(stop) in body.parts
    step = body.steps[carries[counter]]
    return _CountedLoop(cond, body, counter, stop, step) if not changes and step > 0 else None


def _read_body(closed: ClosedJaxpr, num_consts: int) -> _Body | None:
    """What a body does with its carry; None where iterations depend on each other, or where nothing is
    gained: without a loop inside, LLVM puts them side by side."""
    jaxpr = closed.jaxpr
    has_loop = any(eqn.primitive.name in LOOPS for eqn in jaxpr.eqns)
    if not has_loop or closed.consts or jaxpr.effects or not _runs_in_lanes(jaxpr, may_loop=True):
        return None
    reads = Counter(var for eqn in jaxpr.eqns for var in eqn.variables)
    reads.update(atom for atom in jaxpr.outvars if isinstance(atom, Var))
    defined_by = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
    steps, parts = {}, {}
    for var, out in zip(jaxpr.invars[num_consts:], jaxpr.outvars):
        if out is var:
            continue
        eqn = None if isinstance(out, Literal) else defined_by.get(out)
        others = [] if eqn is None else [atom for atom in eqn.invars if atom is not var]
        if len(others) != 1 or len(eqn.invars) != 2:
            return None
        op, kind, step = eqn.primitive.name, var.aval.dtype.kind, _find_step(eqn, var)
        if step is not None:
            steps[var] = step
        elif op in REDUCTIONS and (kind in "iub" or op in ORDERLESS) and reads[var] == reads[out] == 1:
            parts[var] = op, others[0]
        else:
            return None
    return _Body(jaxpr, steps, parts) if steps and parts else None


def _find_step(eqn: Equation, counter: Var) -> int | None:
    """What an equation adds to a counter, if it is a number that no block overflows by."""
    dtype, name = counter.aval.dtype, eqn.primitive.name
    first, second = eqn.invars if name == "sub" or eqn.invars[0] is counter else eqn.invars[::-1]
    if name not in ("add", "sub") or dtype.kind not in "iu" or dtype.itemsize < 4:
        return None
    if first is not counter or not isinstance(second, Literal) or abs(int(second.value)) > MAX_STEP:
        return None
    step = int(second.value) if name == "add" else -int(second.value)
    return None if dtype.kind == "u" and step < 0 else step


def _runs_in_lanes(jaxpr: Jaxpr, may_loop: bool) -> bool:
    """Whether a body computes single numbers by what lanes can do; `may_loop`: loops of its own too."""
    for eqn in jaxpr.eqns:
        name, inner = eqn.primitive.name, sub_jaxprs(eqn.params)
        if any(atom.aval.shape for atom in (*eqn.invars, *eqn.outvars)) or any(each.consts for each in inner):
            return False
        if name in SCALAR_ONLY and not dtypes.is_floating(eqn.outvars[0].aval.dtype):
            return False
        if inner and not (name == "cond" or (name in LOOPS and may_loop)):
            return False
        if not all(_runs_in_lanes(each.jaxpr, may_loop and name != "cond") for each in inner):
            return False
    return True


# -- blocks -------------------------------------------------------------------------------------------------
def _run_blocks(loop: _CountedLoop, cond_consts: Sequence, body_consts: Sequence, init: Sequence,
                tuning: Tuning) -> list:
    """The carry after as many whole blocks as there are, or until too many rounds were in vain."""
    (cond, body, counter, stop, step), block = loop, tuning.iterations
    last = counter.aval.dtype.type((block - 1) * step)

    def holds(needed, spent, *carry):
        inputs = [*cond_consts, *carry]
        known = dict(zip(cond.invars, inputs))
        end = stop.to_operand() if isinstance(stop, Literal) else known[stop]
        # A distance that overflows leaves all iterations to the loop itself.
        is_whole = elementwise.gt(elementwise.sub(end, known[counter]), last)
        is_worth = elementwise.ge(elementwise.mul(needed, np.float32(tuning.max_waste)), spent)
        return bits.and_(bits.and_(*eval_jaxpr(cond, [], inputs), is_whole), is_worth)

    def advance(needed, spent, *carry):
        new, rounds = _advance(body, body_consts, carry, block)
        most = elementwise.mul(reduce_max(rounds, (0,)), np.float32(block))
        return [elementwise.add(needed, reduce_sum(rounds, (0,))), elementwise.add(spent, most), *new]

    return run_while(holds, advance, [np.float32(0), np.float32(0), *init])[2:]


def _advance(body: _Body, consts: Sequence, carry: Sequence, block: int) -> tuple[list, object]:
    """The carry after a block of iterations, and how many rounds each of them took, in float32."""
    carries, axis = body.jaxpr.invars[len(consts) :], BatchAxis(block)
    old = dict(zip(carries, carry))
    inputs = [var for var in body.jaxpr.invars if var not in body.parts]
    terms, _ = prune_jaxpr(body.jaxpr.replace(outvars=[term for _, term in body.parts.values()]),
                           [True] * len(body.parts))
    terms = terms.replace(invars=inputs)
    values = [*consts, *(_spread(old[var], body.steps.get(var), block) for var in carries
                         if var not in body.parts)]
    outs, flags = run_batched(
        lambda *args: _run_counting(terms, args, np.int32(0)), axis, values,
        [var in body.steps for var in inputs])
    *outs, rounds = batch_values(axis, outs, flags)
    new = dict(old)
    for (var, (op, _)), found in zip(body.parts.items(), outs):
        new[var] = registry[op].bind(old[var], REDUCTIONS[op](found, (0,)))
    for var, step in body.steps.items():
        new[var] = elementwise.add(old[var], var.aval.dtype.type(step * block))
    return [new[var] for var in carries], elementwise.convert_element_type(rounds, dtypes.float32)


def _spread(value, step: int | None, block: int):
    """A carry as the iterations of a block see it. step: of a counter."""
    if step is None:
        return value
    dtype = aval_of(value).dtype
    numbers = iota(dtype, block)
    return elementwise.add(value, numbers if step == 1 else elementwise.mul(numbers, dtype.type(step)))


# -- rounds -------------------------------------------------------------------------------------------------
def _run_counting(jaxpr: Jaxpr, args: Sequence, rounds) -> list:
    """The outputs of a jaxpr, and `rounds` plus the rounds of its loops."""
    def apply(eqn, operands):
        nonlocal rounds
        run = _COUNTING.get(eqn.primitive.name)
        if run is None:
            return eqn.primitive.bind_all(*operands, **eqn.params)
        *outs, rounds = run(eqn.params, operands, rounds)
        return outs

    outs = eval_jaxpr(jaxpr, [], args, apply)
    return [*outs, rounds]


def _run_round(closed: ClosedJaxpr, args: Sequence) -> list:
    *args, rounds = args
    return _run_counting(closed.jaxpr, args, elementwise.add(rounds, np.int32(1)))


def _count_while(params: dict, operands: Sequence, rounds) -> list:
    loop = Loop(**params)
    cond_consts, body_consts, init = loop.split(operands)

    def holds(*carry):
        (going,) = eval_jaxpr(loop.cond_jaxpr.jaxpr, [], [*cond_consts, *carry[:-1]])
        return going

    def step(*carry):
        return _run_round(loop.body_jaxpr, [*body_consts, *carry])

    return run_while(holds, step, [*init, rounds])


def _count_scan(params: dict, operands: Sequence, rounds) -> list:
    operands = [*operands, rounds]
    closed, values = close_over_consts(*trace_to_jaxpr(
        lambda *args: _run_round(params["jaxpr"], args), list(map(aval_of, operands))))
    counted = params | {"jaxpr": closed, "num_consts": params["num_consts"] + len(values),
                        "num_carry": params["num_carry"] + 1}
    return registry["scan"].bind(*values, *operands, **counted)


_COUNTING = {"while": _count_while, "scan": _count_scan}
