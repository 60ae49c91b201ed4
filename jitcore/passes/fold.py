"""Constant folding: scalar arithmetic on literals is done now.

In: a jaxpr. Out: the same program, with elementwise equations that have only literals as operands replaced by
their value, of the same dtype. Only scalars: an array in the program text would cost more than computing it.
"""

from __future__ import annotations

import numpy as np

from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, Literal
from jitcore.passes.walk import Walk, rewrite_equations


def fold_constants(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Evaluates elementwise equations on literals through the primitive's `impl`."""
    with np.errstate(all="ignore"):
        return rewrite_equations(closed_jaxpr, _fold)


def _fold(walk: Walk, eqn: Equation) -> list[Atom] | None:
    # Other families are left alone: a loop on literals may run for long, a callback has effects.
    if eqn.primitive.traits.get("family") != "elementwise" or eqn.effects:
        return None
    if not all(atom.__class__ is Literal for atom in eqn.invars):
        return None
    (var,) = eqn.outvars
    value = eqn.primitive.impl(*[atom.to_numpy() for atom in eqn.invars], **eqn.params)
    return [Literal(np.asarray(value, var.aval.dtype)[()], var.aval)]
