"""`while` as a value, and loops and choices written inside rules.

In: the parts of a `while` equation, or Python functions on lists of values. Out: equations. The public
functions of control flow take pytrees and are built on the same primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jitcore.core.jaxpr import ClosedJaxpr, Var, aval_of
from jitcore.core.primitive import registry
from jitcore.core.trace import close_over_consts, trace_to_jaxpr
from jitcore.lax.control_flow.callback import reject_io
from jitcore.lax.control_flow.control import batch_loop_body
from jitcore.transforms.batching import BatchAxis, Flags, batch_jaxpr
from jitcore.transforms.jaxpr_parts import lift_consts


class Loop(NamedTuple):
    """A `while`: its condition and body, and how many constants each reads."""

    cond_jaxpr: ClosedJaxpr
    cond_nconsts: int
    body_jaxpr: ClosedJaxpr
    body_nconsts: int

    def split(self, args: Sequence) -> tuple:
        """(cond_consts, body_consts, carry) of the operands; what follows goes with the carry."""
        first = self.cond_nconsts + self.body_nconsts
        return args[: self.cond_nconsts], args[self.cond_nconsts : first], args[first:]

    @property
    def num_carry(self) -> int:
        return len(self.body_jaxpr.out_avals)

    @property
    def batch_shape(self) -> tuple:
        """The shape of the condition; each element of the batch goes on until its own fails."""
        return self.cond_jaxpr.out_avals[0].shape

    def bind(self, cond_consts: Sequence, body_consts: Sequence, init: Sequence) -> list:
        return registry["while"].bind(*cond_consts, *body_consts, *init, **self._asdict())

    def batch(self, axis: BatchAxis, cond_flags: Flags, body_flags: Flags,
              init_flags: Flags) -> tuple[Loop, list[bool]]:
        """The loop for all elements of a batch, and which carries have a batch axis.

        A batch has the leading axes of every carry, so that an inner one has to become part of it."""
        body, flags, _ = batch_loop_body(self.body_jaxpr, axis, body_flags, init_flags)
        cond, (differs,) = batch_jaxpr(self.cond_jaxpr, axis, [*cond_flags, *flags])
        if differs or (self.batch_shape and any(flags)):
            reject_io("while", self.cond_jaxpr, self.body_jaxpr)
            flags = [True] * len(flags)
            body, _ = batch_jaxpr(self.body_jaxpr, axis, [*body_flags, *flags], flags)
            cond, _ = batch_jaxpr(self.cond_jaxpr, axis, [*cond_flags, *flags], [True])
        return self._replace(cond_jaxpr=cond, body_jaxpr=body), flags


def keep_stopped(active, stepped: Sequence, carry: Sequence) -> list:
    """The carry after a step: of a batch, elements that have stopped keep theirs.

    active: whether an element goes on, of the batch axes, which every carry begins with."""
    axes = tuple(range(aval_of(active).ndim))
    if not axes:
        return list(stepped)
    masks = [registry["broadcast_in_dim"].bind(active, shape=aval_of(old).shape, broadcast_dimensions=axes)
             for old in carry]
    return [registry["select_n"].bind(mask, old, new) for mask, new, old in zip(masks, stepped, carry)]


def make_loop(cond: ClosedJaxpr, cond_consts, body: ClosedJaxpr, body_consts) -> tuple[Loop, list, list]:
    """A loop and its constants. Constants of the jaxprs become operands."""
    cond, cond_values = lift_consts(cond)
    body, body_values = lift_consts(body)
    cond_consts, body_consts = [*cond_values, *cond_consts], [*body_values, *body_consts]
    return Loop(cond, len(cond_consts), body, len(body_consts)), cond_consts, body_consts


def _trace(fun: Callable, values: Sequence) -> tuple[ClosedJaxpr, list]:
    return close_over_consts(*trace_to_jaxpr(fun, list(map(aval_of, values))))


def run_while(holds: Callable, body: Callable, init: Sequence) -> list:
    """The carry after `while holds(*carry): carry = body(*carry)`; both may close over values.

    holds returns one bool. body returns a list of the carry's types."""
    cond, cond_consts = _trace(lambda *carry: [holds(*carry)], init)
    closed, body_consts = _trace(body, init)
    return Loop(cond, len(cond_consts), closed, len(body_consts)).bind(cond_consts, body_consts, init)


def run_if(which, then: Callable, otherwise: Callable, operands: Sequence) -> list:
    """`then(*operands)` if which, an int32 of 0 or 1, else `otherwise(*operands)`; lists of equal types."""
    (no, no_consts), (yes, yes_consts) = _trace(otherwise, operands), _trace(then, operands)
    no_own, yes_own = len(no_consts), len(yes_consts)
    no_unread = [Var(var.aval) for var in yes.jaxpr.invars[:yes_own]]
    yes_unread = [Var(var.aval) for var in no.jaxpr.invars[:no_own]]
    no_vars = [*no.jaxpr.invars[:no_own], *no_unread, *no.jaxpr.invars[no_own:]]
    branches = (ClosedJaxpr(no.jaxpr.replace(invars=no_vars)),
                ClosedJaxpr(yes.jaxpr.replace(invars=[*yes_unread, *yes.jaxpr.invars])))
    return registry["cond"].bind(which, *no_consts, *yes_consts, *operands, branches=branches)
