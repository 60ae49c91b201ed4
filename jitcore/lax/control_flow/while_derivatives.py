"""Derivatives of `while`: rules of jvp, of partial evaluation and of transposition, and the primitive
`while_vjp`.

In: a `while` equation and tangents, unknown operands or cotangents. Out: equations. Forward mode is one loop
over values and tangents. Reverse mode is `while_vjp`, the cotangents of a loop's operands by those of its
results; it needs the carry of every iteration, last one first, which `reverse_loop.py` recomputes from
checkpoints.

Second and higher derivatives stay in this form. Let J be the derivative of a loop from x to y. The loop that
carries tangents takes (x, dx) to (y, J dx), and its cotangents by (dw, w) are J^T w at dx and, at x, J^T dw
plus the derivative of J^T w along dx: `while_vjp_jvp` is the `while_vjp` of that loop. The last term is a
symmetric function of dx, so that its transpose is itself: reverse over reverse costs as much as forward over
reverse.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from jitcore.config import config
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, aval_of, eval_jaxpr, sub_jaxprs
from jitcore.core.primitive import Primitive
from jitcore.core.trace import trace_to_jaxpr
from jitcore.lax.control_flow.loops import Loop, make_loop
from jitcore.lax.control_flow.reverse_loop import reverse_while
from jitcore.transforms.batching import Unmapped, batch_values, run_batched
from jitcore.transforms.jaxpr_parts import depends_on, drop_effects, pair_order, rearrange, settle_carry
from jitcore.transforms.jvp import jvp_jaxpr, run_jvp
from jitcore.transforms.partial_eval import split_jaxpr
from jitcore.transforms.tangents import Zero, instantiate, is_zero, tangent_aval, zero_like
from jitcore.transforms.transpose import is_linear

Flags = Sequence[bool]


# -- forward ------------------------------------------------------------------------------------------------
def add_tangents(loop: Loop, cond_consts, body_consts, init, const_tangents, tangents,
                 wanted: Flags | None = None) -> tuple[Loop, list, list, list, list[bool]]:
    """The loop over values and tangents.

    Args:
        const_tangents, tangents: of the body's constants and the carry, with `Zero`s.
        wanted: carries that shall have a tangent in any case.

    Returns: (loop, cond_consts, body_consts, init, which carries have a tangent). The carry is the values,
        then the tangents that there are."""
    const_flags = [not is_zero(t) for t in const_tangents]
    start = [not is_zero(t) for t in tangents]
    start = start if wanted is None else [a or b for a, b in zip(start, wanted)]
    body, flags, _ = settle_carry(
        lambda carry: jvp_jaxpr(loop.body_jaxpr, [*const_flags, *carry], carry), start)
    body = rearrange(body, pair_order(const_flags, flags))
    avals = [tangent_aval(aval) for aval in compress(loop.body_jaxpr.out_avals, flags)]
    cond = _ignore_more(loop.cond_jaxpr, avals)
    joint, cond_consts, body_consts = make_loop(
        cond, cond_consts, body, [*body_consts, *compress(const_tangents, const_flags)])
    init = [*init, *map(instantiate, compress(tangents, flags))]
    return joint, cond_consts, body_consts, init, flags


def _ignore_more(closed: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The jaxpr with further inputs, which it does not read."""

    def run(*args):
        return eval_jaxpr(closed.jaxpr, closed.consts, args[: len(closed.in_avals)])

    jaxpr, consts = trace_to_jaxpr(run, [*closed.in_avals, *avals], closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts)


def _spread_tangents(values: Sequence, tangents: Sequence, flags: Flags) -> list:
    found = iter(tangents)
    return [next(found) if flag else zero_like(value) for value, flag in zip(values, flags)]


def jvp_while(primitive, primals, tangents, **params):
    """One loop over values and tangents. The condition has no derivative."""
    loop = Loop(**params)
    _, const_tangents, init_tangents = loop.split(tangents)
    if all(map(is_zero, [*const_tangents, *init_tangents])):
        outs = primitive.bind(*primals, **params)
        return outs, list(map(zero_like, outs))
    *parts, flags = add_tangents(loop, *loop.split(primals), const_tangents, init_tangents)
    joint, *operands = parts
    outs = joint.bind(*operands)
    values = outs[: loop.num_carry]
    return values, _spread_tangents(values, outs[loop.num_carry :], flags)


# -- partial evaluation -------------------------------------------------------------------------------------
def split_while(trace, primitive, args, **params):
    """The known carries go through a loop of their own; the whole loop is recorded for the others.

    Nothing but the operands is kept from one to the other: what the recorded loop needs it computes again."""
    loop = Loop(**params)
    cond_flags, const_flags, init_flags = loop.split(list(map(trace.is_unknown, args)))

    def split_body(carry):
        split = split_jaxpr(loop.body_jaxpr, [*const_flags, *carry], carry)
        return split, split.out_unknown

    split, flags, _ = settle_carry(split_body, init_flags)
    (is_undecided,) = depends_on(loop.cond_jaxpr, [*cond_flags, *flags])
    if is_undecided or all(flags):
        return trace.record_unknown(primitive, args, params)
    body = rearrange(split.known, None, range(split.num_known_outs))
    kept = [not flag for flag in flags]
    places = [loop.cond_nconsts + place for place, flag in enumerate(kept) if flag]
    cond = rearrange(loop.cond_jaxpr, [*range(loop.cond_nconsts), *places])
    cond_consts, body_consts, init = loop.split(args)
    known_consts = [x for x, flag in zip(body_consts, const_flags) if not flag]
    known, cond_consts, known_consts = make_loop(cond, cond_consts, body, known_consts)
    known_outs = iter(known.bind(cond_consts, known_consts, list(compress(init, kept))))
    # What the loop prints, it prints once.
    again = loop._replace(cond_jaxpr=drop_effects(loop.cond_jaxpr), body_jaxpr=drop_effects(loop.body_jaxpr))
    outs = trace.record_unknown(primitive, args, again._asdict())
    return [out if flag else next(known_outs) for out, flag in zip(outs, flags)]


# -- reverse ------------------------------------------------------------------------------------------------
def transpose_while(primitive, cotangents, operands, **params):
    """A linear function is its own derivative, at zero as anywhere."""
    loop = Loop(**params)
    cond_consts, *rest = loop.split(operands)
    inputs = [x for group in rest for x in group]
    wanted = tuple(map(is_linear, inputs))
    values = [instantiate(Zero(tangent_aval(x.aval))) if is_linear(x) else x for x in inputs]
    ct_flags = tuple(not is_zero(ct) for ct in cotangents)
    params |= {"wanted": wanted, "ct_flags": ct_flags}
    outs = iter(while_vjp.bind(*cond_consts, *values, *compress(cotangents, ct_flags), **params))
    return [*[None] * len(cond_consts), *(next(outs) if flag else None for flag in wanted)]


class Reverse(NamedTuple):
    """A `while_vjp`: the loop, which of its inputs (constants of the body, carry) have a cotangent to be
    found, and which of its results have one that is given. Operands: those of the loop, the cotangents
    given."""

    loop: Loop
    wanted: tuple[bool, ...]
    ct_flags: tuple[bool, ...]

    @classmethod
    def of(cls, *, wanted, ct_flags, **params) -> Reverse:
        return cls(Loop(**params), wanted, ct_flags)

    def params(self) -> dict:
        return {**self.loop._asdict(), "wanted": self.wanted, "ct_flags": self.ct_flags}

    def split(self, args: Sequence) -> tuple:
        """(cond_consts, body_consts, init, cotangents) of the operands."""
        cond_consts, body_consts, rest = self.loop.split(args)
        return cond_consts, body_consts, rest[: self.loop.num_carry], rest[self.loop.num_carry :]

    def run(self, *args) -> list:
        """The cotangents, in primitives of the current trace."""
        cond_consts, body_consts, init, cts = self.split(args)
        given = iter(cts)
        cts = [next(given) if flag else zero_like(x) for x, flag in zip(init, self.ct_flags)]
        return reverse_while(self.loop, cond_consts, body_consts, init, cts, self.wanted)


_expanded: weakref.WeakKeyDictionary[ClosedJaxpr, dict] = weakref.WeakKeyDictionary()


def _expand(run, avals: Sequence[ShapedArray], key: tuple, owner: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr of an application, made once for each."""
    known = _expanded.setdefault(owner, {})
    key = (*key, tuple((aval.shape, aval.dtype) for aval in avals), config.trace_key)
    if key not in known:
        jaxpr, consts = trace_to_jaxpr(run, avals)
        known[key] = ClosedJaxpr(jaxpr, consts)
    return known[key]


def expand_vjp(avals: Sequence[ShapedArray], params: dict) -> ClosedJaxpr:
    reverse = Reverse.of(**params)
    key = ("vjp", reverse.loop.cond_jaxpr, reverse.wanted, reverse.ct_flags)
    return _expand(reverse.run, avals, key, reverse.loop.body_jaxpr)


def _run_vjp(*args, **params):
    return run_jaxpr_numpy(expand_vjp(list(map(aval_of, args)), params), args)


def _vjp_avals(*avals, **params):
    _, body_consts, init, _ = Reverse.of(**params).split(avals)
    return [tangent_aval(aval).update(weak_type=False)
            for aval in compress([*body_consts, *init], params["wanted"])]


def _effects(**params) -> frozenset:
    return frozenset().union(*(inner.effects for inner in sub_jaxprs(params)))


def _jvp_vjp(primitive, primals, tangents, **params):
    """Along cotangents alone the application is linear; otherwise see the module's text."""
    reverse = Reverse.of(**params)
    _, const_tangents, init_tangents, ct_tangents = reverse.split(tangents)
    moved = tuple(not is_zero(t) for t in (*const_tangents, *init_tangents))
    if not any(moved):
        first_ct = len(primals) - len(ct_tangents)
        outs = primitive.bind(*primals, **params)
        if all(map(is_zero, ct_tangents)):
            return outs, list(map(zero_like, outs))
        return outs, primitive.bind(*primals[:first_ct], *map(instantiate, ct_tangents), **params)
    ct_moved = tuple(not is_zero(t) for t in ct_tangents)
    given = [t for t in (*const_tangents, *init_tangents, *ct_tangents) if not is_zero(t)]
    outs = while_vjp_jvp.bind(*primals, *given, **params, moved=moved, ct_moved=ct_moved)
    return outs[: len(outs) // 2], outs[len(outs) // 2 :]


def _transpose_vjp(primitive, cotangents, operands, **params):
    """The transpose of J^T is J: tangents go through the loop."""
    reverse = Reverse.of(**params)
    cond_consts, body_consts, init, cts = reverse.split(operands)
    values = [*cond_consts, *body_consts, *init]
    found = _push_forward(reverse, cond_consts, body_consts, init, cotangents)
    outs = compress(found, reverse.ct_flags)
    return [*[None] * len(values), *(t if is_linear(ct) else None for t, ct in zip(outs, cts))]


def _push_forward(reverse: Reverse, cond_consts, body_consts, init, tangents: Sequence) -> list:
    """The tangents of the loop's results by those of the wanted inputs."""
    loop, given = reverse.loop, iter(tangents)
    inputs = [next(given) if flag else zero_like(x) for x, flag in zip([*body_consts, *init], reverse.wanted)]
    if all(map(is_zero, inputs)):
        return list(map(zero_like, init))
    tangents = inputs[: loop.body_nconsts], inputs[loop.body_nconsts :]
    joint, *operands, flags = add_tangents(loop, cond_consts, body_consts, init, *tangents)
    outs = joint.bind(*operands)
    return _spread_tangents(outs[: loop.num_carry], outs[loop.num_carry :], flags)


def _batch_vjp(primitive, axis, values, batched, **params):
    """The loop of all elements, each with inputs of its own wherever a cotangent is wanted."""
    reverse = Reverse.of(**params)
    loop = reverse.loop
    cond_flags, const_flags, init_flags, _ = reverse.split(batched)
    wanted = reverse.wanted[: loop.body_nconsts], reverse.wanted[loop.body_nconsts :]
    const_flags = [a or b for a, b in zip(const_flags, wanted[0])]
    init_flags = [a or b or c for a, b, c in zip(init_flags, wanted[1], reverse.ct_flags)]
    batched_loop, flags = loop.batch(axis, cond_flags, const_flags, init_flags)
    wanted_flags = [*cond_flags, *const_flags, *flags, *[True] * sum(reverse.ct_flags)]
    operands = batch_values(axis, values, batched, wanted_flags)
    return primitive.bind(*operands, **reverse._replace(loop=batched_loop).params())


while_vjp = Primitive("while_vjp", impl=_run_vjp, aval=_vjp_avals, jvp=_jvp_vjp, transpose=_transpose_vjp,
                      batch=_batch_vjp, multiple_results=True, effects=_effects, expand=expand_vjp)


# -- higher derivatives -------------------------------------------------------------------------------------
class Moved(NamedTuple):
    """A `while_vjp_jvp`: a `while_vjp` and its derivative. Operands: those of the `while_vjp`, then the
    tangents of the loop's inputs, of the cotangents, where flags say that there are some. Results:
    cotangents, their tangents."""

    reverse: Reverse
    moved: tuple[bool, ...]
    ct_moved: tuple[bool, ...]

    @classmethod
    def of(cls, *, moved, ct_moved, **params) -> Moved:
        return cls(Reverse.of(**params), moved, ct_moved)

    def params(self) -> dict:
        return {**self.reverse.params(), "moved": self.moved, "ct_moved": self.ct_moved}

    def split(self, args: Sequence) -> tuple[list, list, list]:
        """(operands of the `while_vjp`, tangents of the loop's inputs, of cotangents), with None for no
        tangent."""
        first = len(args) - sum(self.moved) - sum(self.ct_moved)
        given = iter(args[first:])
        tangents = [next(given) if flag else None for flag in self.moved]
        return list(args[:first]), tangents, [next(given) if flag else None for flag in self.ct_moved]

    def run(self, *args) -> list:
        """The `while_vjp` of the loop that carries tangents."""
        operands, tangents, ct_tangents = self.split(args)
        reverse, loop = self.reverse, self.reverse.loop
        cond_consts, body_consts, init, cts = reverse.split(operands)
        inputs = [*body_consts, *init]
        # A wanted input has a tangent in any case: the cotangent of that is the first result.
        tangents = [zero_like(x) if t is None else t for x, t in zip(inputs, tangents)]
        tangents = [instantiate(t) if flag else t for t, flag in zip(tangents, reverse.wanted)]
        split_at = loop.body_nconsts
        joint, *joint_operands, flags = add_tangents(
            loop, cond_consts, body_consts, init, tangents[:split_at], tangents[split_at:])
        given, given_tangents = iter(cts), iter(ct_tangents)
        cts = [next(given) if flag else None for flag in reverse.ct_flags]
        ct_tangents = [next(given_tangents) if flag else None for flag in reverse.ct_flags]
        all_cts = [*ct_tangents, *compress(cts, flags)]
        ct_flags = tuple(ct is not None for ct in all_cts)
        const_flags = [not is_zero(t) for t in tangents[:split_at]]
        lifted = len(joint_operands[1]) - split_at - sum(const_flags)
        wanted, order = self._find_wanted(const_flags, flags, lifted)
        given_cts = [ct for ct in all_cts if ct is not None]
        outs = while_vjp.bind(*(x for group in joint_operands for x in group), *given_cts,
                              **Reverse(joint, wanted, ct_flags).params())
        return [outs[place] for place in order]

    def _find_wanted(self, const_flags: Flags, flags: Flags, lifted: int) -> tuple[tuple, list[int]]:
        """Which inputs of the loop with tangents are wanted; where the cotangents of the tangents, then those
        of the values, stand among the results."""
        wanted = self.reverse.wanted
        consts, carry = wanted[: len(const_flags)], wanted[len(const_flags) :]
        groups = [consts, compress(consts, const_flags), carry, compress(carry, flags)]
        groups = list(map(list, groups))
        starts = np.cumsum([0, *map(sum, groups)])
        places = [list(range(a, b)) for a, b in itertools.pairwise(starts)]
        first, last = places[1] + places[3], places[0] + places[2]
        return (*[False] * lifted, *(flag for group in groups for flag in group)), [*first, *last]


def expand_vjp_jvp(avals: Sequence[ShapedArray], params: dict) -> ClosedJaxpr:
    moved = Moved.of(**params)
    loop = moved.reverse.loop
    key = ("jvp", loop.cond_jaxpr, moved.reverse.wanted, moved.reverse.ct_flags, moved.moved, moved.ct_moved)
    return _expand(moved.run, avals, key, loop.body_jaxpr)


def _run_vjp_jvp(*args, **params):
    return run_jaxpr_numpy(expand_vjp_jvp(list(map(aval_of, args)), params), args)


def _vjp_jvp_avals(*avals, moved, ct_moved, **params):
    operands, _, _ = Moved.of(moved=moved, ct_moved=ct_moved, **params).split(avals)
    return 2 * _vjp_avals(*operands, **params)


def _jvp_vjp_jvp(primitive, primals, tangents, **params):
    return run_jvp(Moved.of(**params).run, primals, tangents)


def _split_vjp_jvp(trace, primitive, args, **params):
    """With known values and unknown tangents, the cotangents are known."""
    moved = Moved.of(**params)
    operands, _, _ = moved.split(args)
    outs = trace.record_unknown(primitive, args, params)
    if any(map(trace.is_unknown, operands)):
        return outs
    return [*while_vjp.bind(*operands, **moved.reverse.params()), *outs[len(outs) // 2 :]]


def _transpose_vjp_jvp(primitive, cotangents, operands, **params):
    """By the symmetry of second derivatives: wanted inputs and those with tangents change places."""
    moved = Moved.of(**params)
    reverse = moved.reverse
    values, tangents, ct_tangents = moved.split(operands)
    cts = [instantiate(ct) for ct in cotangents[len(cotangents) // 2 :]]
    asked = tuple(t is not None and is_linear(t) for t in tangents)
    found: list = []
    if any(asked):
        swapped = Moved(reverse._replace(wanted=asked), reverse.wanted, (False,) * len(moved.ct_moved))
        outs = primitive.bind(*values, *cts, **swapped.params())
        found = outs[len(outs) // 2 :]
    result: list = [None] * len(values)
    found_of = iter(found)
    result += [next(found_of) if flag else None for t, flag in zip(tangents, asked) if t is not None]
    if any(moved.ct_moved):
        cond_consts, body_consts, init, _ = reverse.split(values)
        pushed = compress(_push_forward(reverse, cond_consts, body_consts, init, cts), reverse.ct_flags)
        result += [t if is_linear(own) else None for t, own in zip(pushed, ct_tangents) if own is not None]
    return result


def _batch_vjp_jvp(primitive, axis, values, batched, **params):
    outs, flags = run_batched(Moved.of(**params).run, axis, values, batched)
    return [out if flag else Unmapped(out) for out, flag in zip(outs, flags)]


while_vjp_jvp = Primitive("while_vjp_jvp", impl=_run_vjp_jvp, aval=_vjp_jvp_avals, jvp=_jvp_vjp_jvp,
                          transpose=_transpose_vjp_jvp, partial=_split_vjp_jvp, batch=_batch_vjp_jvp,
                          multiple_results=True, effects=_effects, expand=expand_vjp_jvp)
