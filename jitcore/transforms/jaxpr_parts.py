"""Parts of jaxprs: slices by dataflow, other orders of inputs and outputs, fixpoints of flags.

In: closed jaxprs of loop bodies, branches and checkpointed functions. Out: closed jaxprs. Nothing is traced
here. The derivative rules of control flow and of `checkpoint` are made of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

from jitcore.core.jaxpr import ClosedJaxpr, find_dependent, keep_with_jaxpr, slice_eqns
from jitcore.core.trace import close_over_consts

Flags = Sequence[bool]


def lift_consts(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list]:
    """The jaxpr with its constants as leading inputs, and their values: bodies of loops carry none."""
    if not closed.consts:
        return closed, []
    return _close(closed), list(closed.consts)


@keep_with_jaxpr
def _close(closed: ClosedJaxpr) -> ClosedJaxpr:
    return close_over_consts(closed.jaxpr, closed.consts)[0]


def slice_jaxpr(closed: ClosedJaxpr, wanted: Flags) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr of some of the outputs, by the inputs that they need; also which inputs these are."""
    jaxpr = closed.jaxpr
    outvars = list(compress(jaxpr.outvars, wanted))
    eqns, needed = slice_eqns(jaxpr.eqns, outvars)
    used = [var in needed for var in jaxpr.invars]
    kept = [var in needed for var in jaxpr.constvars]
    sliced = jaxpr.replace(constvars=list(compress(jaxpr.constvars, kept)),
                           invars=list(compress(jaxpr.invars, used)), eqns=eqns, outvars=outvars)
    return ClosedJaxpr(sliced, list(compress(closed.consts, kept))), used


def drop_effects(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr without what it does besides computing its outputs."""
    if not closed.effects:
        return closed
    eqns, _ = slice_eqns(closed.eqns, closed.jaxpr.outvars)
    return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts)


def depends_on(closed: ClosedJaxpr, in_flags: Flags) -> list[bool]:
    """Which outputs depend on the flagged inputs."""
    found = find_dependent(closed.eqns, compress(closed.jaxpr.invars, in_flags))
    return [atom in found for atom in closed.jaxpr.outvars]


def rearrange(closed: ClosedJaxpr, inputs: Sequence[int] | None = None,
              outputs: Sequence[int] | None = None) -> ClosedJaxpr:
    """The jaxpr with inputs and outputs in another order, given as their old places."""
    jaxpr = closed.jaxpr
    invars = jaxpr.invars if inputs is None else [jaxpr.invars[place] for place in inputs]
    outvars = jaxpr.outvars if outputs is None else [jaxpr.outvars[place] for place in outputs]
    return ClosedJaxpr(jaxpr.replace(invars=invars, outvars=outvars), closed.consts)


def pair_order(*groups: Flags) -> list[int]:
    """The order that puts tangents behind the primals of their group.

    In a jaxpr of `jvp_jaxpr` all primals come first, then the tangents that there are; flags say which."""
    order: list[int] = []
    primal, tangent = 0, sum(map(len, groups))
    for flags in groups:
        order += range(primal, primal + len(flags))
        order += range(tangent, tangent + sum(flags))
        primal, tangent = primal + len(flags), tangent + sum(flags)
    return order


def settle_carry(transform: Callable[[list[bool]], tuple[Any, Sequence[bool]]],
                 carry: Flags) -> tuple[Any, list[bool], list[bool]]:
    """The fixpoint of flags that go around a loop.

    Args:
        transform: flags of the carry before an iteration -> (result, flags of all outputs, the carry first).
        carry: the flags before the first iteration.

    Returns: (result, flags of the carry, flags of the other outputs)."""
    carry = list(carry)
    while True:
        result, outs = transform(carry)
        grown = [before or after for before, after in zip(carry, outs)]
        if grown == carry:
            return result, carry, list(outs[len(carry) :])
        carry = grown
