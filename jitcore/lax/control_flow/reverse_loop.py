"""The reverse pass of a `while` loop: its carry in every iteration, last one first, from checkpoints.

In: a loop, its operands, cotangents of its results. Out: cotangents of its operands, in `while`, `cond` and
slices that are updated in place: native loops, in memory of fixed size for any number of iterations.

The forward pass runs the loop and puts the carry of every `stride`-th iteration on a stack; where the lower
half of the stack is full, every second entry is given up and the stride doubles. The reverse pass takes the
last entry, runs the loop from there to the iteration before the last reversed one, and puts further entries
into the slots that are free. So each iteration is computed once more than without a derivative as long as
there are slots for all, twice more up to about the square of their number, and so on. The loop's constants
and carries that never change are not copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np

from jitcore.config import config
from jitcore.core.jaxpr import ClosedJaxpr, aval_of, eval_jaxpr
from jitcore.core.trace import trace_to_jaxpr
from jitcore.lax import elementwise as ew
from jitcore.lax.bits import clz, shift_left
from jitcore.lax.control_flow.loops import Loop, run_if, run_while
from jitcore.lax.indexing.slices import dynamic_index_in_dim, dynamic_update_index_in_dim
from jitcore.lax.joining import concatenate
from jitcore.lax.reduce import reduce_or
from jitcore.lax.shape import broadcast_in_dim, empty, iota
from jitcore.transforms.jaxpr_parts import settle_carry, slice_jaxpr
from jitcore.transforms.jvp import jvp_jaxpr
from jitcore.transforms.partial_eval import split_jaxpr
from jitcore.transforms.tangents import Zero, add_derivatives, fill, instantiate, is_zero, tangent_aval
from jitcore.transforms.transpose import transpose_jaxpr

Flags = Sequence[bool]

# Slots of a stack: more would save little, fewer cost many repetitions.
MAX_SLOTS, MIN_SLOTS = 1024, 8
# Slots where the size of the carry is not known yet.
USUAL_SLOTS = 64
_ZERO, _ONE = np.int32(0), np.int32(1)


def reverse_while(loop: Loop, cond_consts, body_consts, init, cts, wanted: Flags) -> list:
    """The cotangents of the wanted inputs (constants of the body, carry). cts: of the carry, with `Zero`s."""
    inputs = [*body_consts, *init]
    back = Back(loop, wanted, [not is_zero(ct) for ct in cts])
    if back.jaxpr is None:
        return [instantiate(Zero(tangent_aval(aval_of(x)))) for x in compress(inputs, wanted)]
    forward = Forward(loop, back.reads_carry, cond_consts, body_consts, init)
    sums = [fill(aval, 0) for aval in back.sum_avals]
    carried = [instantiate(ct) for ct, flag in zip(cts, back.ct_flags) if flag]

    def step_back(state, ys):
        carry, old = forward.full(state), ys[len(sums) :]
        if not loop.batch_shape:
            outs = back.run(body_consts, carry, old)
        else:
            running = forward.test(carry)
            carry = [_choose(running, now, first) for now, first in zip(carry, init)]
            outs = back.run(body_consts, carry, [_choose(running, ct, _zeros(ct)) for ct in old])
            outs[len(sums) :] = [_choose(running, new, ct) for new, ct in zip(outs[len(sums) :], old)]
        return [*map(add_derivatives, ys[: len(sums)], outs[: len(sums)]), *outs[len(sums) :]]

    ys = run_reversed(forward, step_back, [*sums, *carried])
    found = iter(ys)
    sums = [next(found) if flag else None for flag in back.sum_flags]
    carried = [next(found) if flag else None for flag in back.ct_flags]
    everything = iter(sums)
    consts_wanted, carry_wanted = wanted[: loop.body_nconsts], wanted[loop.body_nconsts :]
    results = [next(everything) for flag in consts_wanted if flag] + list(compress(carried, carry_wanted))
    return [instantiate(Zero(tangent_aval(aval_of(x)))) if ct is None else ct
            for ct, x in zip(results, compress(inputs, wanted))]


# -- one iteration ------------------------------------------------------------------------------------------
class Back:
    """The derivative of the body, transposed.

    Attributes:
        jaxpr: from the constants and the carry before an iteration, and cotangents of the carry after it, to
            cotangents of constants and of the carry; without inputs that it does not read. None if all are
            zero.
        ct_flags: which carries have a cotangent. sum_flags: which of the wanted constants have one.
        reads_carry: which parts of the carry it reads."""

    def __init__(self, loop: Loop, wanted: Flags, ct_given: Flags):
        body, num_consts = loop.body_jaxpr, loop.body_nconsts
        const_flags = list(wanted[:num_consts])
        derivative, carry_flags, _ = settle_carry(
            lambda carry: jvp_jaxpr(body, [*const_flags, *carry], carry), wanted[num_consts:])
        num_values, num_linear = len(body.in_avals), sum(const_flags) + sum(carry_flags)
        unknown = [False] * num_values + [True] * num_linear
        self.split = split_jaxpr(derivative, unknown, [False] * loop.num_carry + [True] * sum(carry_flags))
        linear = [False] * len(self.split.residuals) + [True] * num_linear
        num_sums = sum(const_flags)

        def transpose(flags):
            result = transpose_jaxpr(self.split.unknown, linear, flags, [*[False] * num_sums, *flags])
            return result, result[1][num_sums:]

        start = list(compress(ct_given, carry_flags))
        (self.transposed, nonzero), flags, _ = settle_carry(transpose, start)
        self.sum_flags, found = nonzero[:num_sums], iter(flags)
        self.ct_flags = [next(found) if flag else False for flag in carry_flags]
        self.jaxpr: ClosedJaxpr | None = None
        self.reads_carry = [False] * loop.num_carry
        self.sum_avals = self.transposed.out_avals[: sum(self.sum_flags)]
        if any(flags):
            self.num_values = num_values
            ct_avals = self.transposed.in_avals[len(self.split.residuals) :]
            jaxpr, consts = trace_to_jaxpr(self._run, [*body.in_avals, *ct_avals], body.jaxpr.debug_info)
            self.jaxpr, self.used = slice_jaxpr(ClosedJaxpr(jaxpr, consts), [True] * len(jaxpr.outvars))
            self.reads_carry = self.used[num_consts:num_values]

    def _run(self, *args):
        values, cts = args[: self.num_values], args[self.num_values :]
        outs = eval_jaxpr(self.split.known.jaxpr, self.split.known.consts, values)
        residuals = self.split.join_residuals(values, outs)
        return eval_jaxpr(self.transposed.jaxpr, self.transposed.consts, [*residuals, *cts])

    def run(self, consts: Sequence, carry: Sequence, cts: Sequence) -> list:
        return eval_jaxpr(self.jaxpr.jaxpr, self.jaxpr.consts, compress([*consts, *carry, *cts], self.used))


class Forward:
    """The loop, on a state that is as small as can be: the parts of the carry that change and that are read.

    Args:
        reads_carry: the parts that the reverse pass reads."""

    def __init__(self, loop: Loop, reads_carry: Flags, cond_consts, body_consts, init):
        self.loop, self.cond_consts, self.body_consts, self.init = loop, cond_consts, body_consts, init
        cond, body = loop.cond_jaxpr, loop.body_jaxpr
        self.cond, self.cond_used = slice_jaxpr(cond, [True])
        read = [a or b for a, b in zip(reads_carry, self.cond_used[loop.cond_nconsts :])]
        first = body.jaxpr.invars[loop.body_nconsts :]
        fixed = [out is var for out, var in zip(body.jaxpr.outvars, first)]

        def slice_body(flags):
            result = slice_jaxpr(body, [flag and not same for flag, same in zip(flags, fixed)])
            return result, result[1][loop.body_nconsts :]

        (self.body, self.body_used), live, _ = settle_carry(slice_body, read)
        self.in_state = [flag and not same for flag, same in zip(live, fixed)]
        self.start = list(compress(init, self.in_state))

    def full(self, state: Sequence) -> list:
        """The carry; parts that are never read are those of the start."""
        changing = iter(state)
        return [next(changing) if flag else x for x, flag in zip(self.init, self.in_state)]

    def test(self, carry: Sequence):
        operands = compress([*self.cond_consts, *carry], self.cond_used)
        return eval_jaxpr(self.cond.jaxpr, self.cond.consts, operands)[0]

    def holds(self, state: Sequence):
        """Whether there is another iteration."""
        running = self.test(self.full(state))
        axes = tuple(range(len(self.loop.batch_shape)))
        return reduce_or.primitive.bind(running, axes=axes) if axes else running

    def step(self, state: Sequence) -> list:
        carry = self.full(state)
        operands = compress([*self.body_consts, *carry], self.body_used)
        outs = eval_jaxpr(self.body.jaxpr, self.body.consts, operands)
        if not self.loop.batch_shape:
            return outs
        running = self.test(carry)
        return [_choose(running, new, old) for new, old in zip(outs, state)]


def _choose(running, new, old):
    """`new` in lanes that run."""
    shape = aval_of(new).shape
    which = broadcast_in_dim(running, shape, tuple(range(aval_of(running).ndim)))
    return ew.select_n(which, old, new)


def _zeros(x):
    return fill(aval_of(x), 0)


# -- checkpoints --------------------------------------------------------------------------------------------
def count_slots(state: Sequence) -> int:
    """The slots of a stack of states: twice a power of two, within the budget where that leaves enough."""
    avals = list(map(aval_of, state))
    size = sum(math.prod(aval.shape) * aval.dtype.itemsize for aval in avals)
    if not isinstance(size, int):
        return USUAL_SLOTS
    slots = min(max(config.loop_checkpoint_bytes // max(size, 1), MIN_SLOTS), MAX_SLOTS)
    return 1 << (slots.bit_length() - 1)


def run_reversed(forward: Forward, step_back: Callable, ys: Sequence) -> list:
    """`for state in reversed(states of the loop): ys = step_back(state, ys)`."""
    slots = count_slots(forward.start)
    total, count, stride, stacks = _fill(forward, slots)
    half = slots // 2
    low = ew.mul(iota(np.int32, half), stride)
    order = concatenate([_find_slot(low, half), ew.add(iota(np.int32, half + 1), np.int32(half))], 0)
    places = concatenate([low, broadcast_in_dim(_ZERO, (half + 1,), ())], 0)
    num_ys = len(ys)

    def advance(left, top, places, *rest):
        ys, stacks = rest[:num_ys], rest[num_ys:]
        state = [dynamic_index_in_dim(stack, _item(order, top), keepdims=False) for stack in stacks]
        place = _item(places, top)
        distance = ew.sub(ew.sub(left, _ONE), place)
        free = ew.sub(np.int32(slots - 1), top)
        steps = _choose_steps(distance, free)
        _, *state = run_while(
            lambda number, *_: ew.lt(number, steps),
            lambda number, *state: [ew.add(number, _ONE), *forward.step(state)], [_ZERO, *state])
        arrived = ew.eq(steps, distance)
        # What is not kept goes into the last slot, which is never read.
        target = ew.select_n(arrived, _item(order, ew.add(top, _ONE)), np.int32(slots))
        stacks = [_put(stack, x, target) for stack, x in zip(stacks, state)]
        places = _put(places, ew.add(place, steps), ew.select_n(arrived, ew.add(top, _ONE), np.int32(slots)))
        number = _to_int(arrived)
        ys = run_if(number, lambda *args: step_back(args[num_ys:], args[:num_ys]),
                    lambda *args: list(args[:num_ys]), [*ys, *state])
        used_up = _to_int(ew.eq(distance, _ZERO))
        top = ew.sub(ew.add(top, ew.sub(_ONE, number)), used_up)
        return [ew.sub(left, number), top, places, *ys, *stacks]

    outs = run_while(lambda left, *_: ew.gt(left, _ZERO), advance,
                     [total, ew.sub(count, _ONE), places, *ys, *stacks])
    return outs[3 : 3 + num_ys]


def _choose_steps(distance, free):
    """How far to go for the next checkpoint: one step where all of the rest fit, else half of the free slots
    are spread over the distance."""
    parts = ew.add(ew.div(ew.add(free, _ONE), np.int32(2)), _ONE)
    spread = ew.div(ew.add(distance, ew.sub(parts, _ONE)), parts)
    return ew.select_n(ew.le(distance, free), spread, ew.min_(distance, _ONE))


def _fill(forward: Forward, slots: int) -> tuple:
    """Runs the loop: (iterations, checkpoints, stride between them, stacks of states)."""
    half = slots // 2
    stacks = [empty((slots + 1, *aval_of(x).shape), aval_of(x).dtype, number=number)
              for number, x in enumerate(forward.start)]
    num_state = len(stacks)

    def holds(total, count, stride, *rest):
        return forward.holds(rest[:num_state])

    def save(total, count, stride, *rest):
        state, stacks = rest[:num_state], rest[num_state:]
        is_full = ew.eq(count, np.int32(half))
        stride = ew.select_n(is_full, stride, ew.mul(stride, np.int32(2)))
        count = ew.select_n(is_full, count, np.int32(half // 2))
        slot = _find_slot(ew.mul(count, stride), half)
        stacks = [_put(stack, x, slot) for stack, x in zip(stacks, state)]
        # The first step needs no test: `holds` has just been found.
        steps, *state = run_while(
            lambda number, *state: ew.select_n(
                ew.lt(number, stride), np.bool_(False), forward.holds(state)),
            lambda number, *state: [ew.add(number, _ONE), *forward.step(state)],
            [_ONE, *forward.step(state)])
        return [ew.add(total, steps), ew.add(count, _ONE), stride, *state, *stacks]

    total, count, stride, *rest = run_while(holds, save, [_ZERO, _ZERO, _ONE, *forward.start, *stacks])
    return total, count, stride, rest[num_state:]


def _find_slot(place, half: int):
    """The slot of the checkpoint of an iteration; `place` is one number or many.

    The first `half` iterations have slots of their own. Later ones take that of a checkpoint given up when
    the stride doubled: with stride 2s, the k-th iteration of the upper half takes the slot of number
    (2k+1)s."""
    bits = np.int32(31 - (half.bit_length() - 1))
    limit = np.int32(half)
    axes = tuple(range(aval_of(place).ndim))

    def is_above(place):
        above = ew.ge(place, limit)
        return reduce_or.primitive.bind(above, axes=axes) if axes else above

    def move(place):
        doublings = ew.max_(ew.sub(bits, clz(place)), _ZERO)
        lower = ew.sub(place, shift_left(np.int32(half - 1), doublings))
        return [ew.select_n(ew.ge(place, limit), place, lower)]

    return run_while(is_above, move, [place])[0]


def _item(numbers, index):
    return dynamic_index_in_dim(numbers, index, keepdims=False)


def _put(stack, x, index):
    return dynamic_update_index_in_dim(stack, x, index, 0)


def _to_int(flag):
    return ew.convert_element_type(flag, np.int32)
