"""Sums of cotangents over the iterations of a loop, where each iteration adds to a part only.

In: the transposed body of a loop and the sums so far. Out: the new sums. The cotangent of a row `w[i]` is an
array of zeros with one row set: here the row is added to the sum in its place, and the zeros are never made,
so that an iteration costs as much as the row, not as the array.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore.core.aval import aval_of
from jitcore.core.jaxpr import ClosedJaxpr, Equation, Literal, Var, eval_jaxpr
from jitcore.core.primitive import registry
from jitcore.transforms.jaxpr_parts import slice_eqns
from jitcore.transforms.tangents import add_derivatives

_SUMS = ("add", "add_any")


class SparseSums:
    """A jaxpr of which some outputs are to be added to sums.

    Args:
        body: its first `num_sums` outputs are what is added.
    """

    def __init__(self, body: ClosedJaxpr, num_sums: int):
        self.body, jaxpr = body, body.jaxpr
        self.defined_by = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
        atoms = [atom for eqn in jaxpr.eqns for atom in eqn.invars] + jaxpr.outvars
        self.uses = Counter(atom for atom in atoms if isinstance(atom, Var))
        self.terms = [self._find_terms(atom) for atom in jaxpr.outvars[:num_sums]]
        deferred = {id(term) for terms in self.terms for term in terms if isinstance(term, Equation)}
        dense = [term for terms in self.terms for term in terms if not isinstance(term, Equation)]
        operands = [atom for terms in self.terms for term in terms if isinstance(term, Equation)
                    for atom in term.invars]
        self.num_dense, wanted = len(dense), [*dense, *operands, *jaxpr.outvars[num_sums:]]
        eqns = [eqn for eqn in jaxpr.eqns if id(eqn) not in deferred]
        eqns, _ = slice_eqns(eqns, wanted, keep_effects=True)
        self.jaxpr = jaxpr.replace(eqns=eqns, outvars=wanted)

    def _find_terms(self, atom) -> list:
        """What an output is the sum of: atoms, and equations that put a part among zeros."""
        eqn = self.defined_by.get(atom)
        if eqn is None or self.uses[atom] != 1:
            return [atom]
        if eqn.primitive.name in _SUMS and all(x.aval.shape == atom.aval.shape for x in eqn.invars):
            return [term for x in eqn.invars for term in self._find_terms(x)]
        return [eqn if self._is_sparse(eqn) else atom]

    def _is_sparse(self, eqn: Equation) -> bool:
        name, whole = eqn.primitive.name, eqn.outvars[0].aval.shape
        if name == "scatter-add":
            return self._is_zero(eqn.invars[0])
        if name == "dynamic_update_slice":
            part = eqn.invars[1]
            is_inserted = self._is_zero(eqn.invars[0])
        elif name == "pad":
            part = eqn.invars[0]
            is_inserted = _is_literal_zero(eqn.invars[1]) and all(
                low >= 0 and high >= 0 and inside == 0
                for low, high, inside in eqn.params["padding_config"])
        else:
            return False
        sizes = math.prod(part.aval.shape), math.prod(whole)
        return is_inserted and all(isinstance(size, int) for size in sizes) and 2 * sizes[0] <= sizes[1]

    def _is_zero(self, atom) -> bool:
        eqn = self.defined_by.get(atom)
        return (eqn is not None and eqn.primitive.name == "broadcast_in_dim"
                and _is_literal_zero(eqn.invars[0]))

    def run(self, args: Sequence, sums: Sequence) -> list:
        """The new sums, then the other outputs."""
        values = eval_jaxpr(self.jaxpr, self.body.consts, args)
        dense, rest = iter(values), iter(values[self.num_dense :])
        results = []
        for total, terms in zip(sums, self.terms):
            for term in terms:
                if isinstance(term, Equation):
                    total = _add_part(total, term, [next(rest) for _ in term.invars])
                else:
                    total = add_derivatives(total, next(dense))
            results.append(total)
        return [*results, *rest]


def _is_literal_zero(atom) -> bool:
    return isinstance(atom, Literal) and atom.value == 0


def _add_part(total, eqn: Equation, operands: Sequence) -> Any:
    """The sum of `total` and what the equation computes of these operands, by changing a part of it."""
    if eqn.primitive.name == "scatter-add":
        return eqn.primitive.bind(total, *operands[1:], **eqn.params)
    if eqn.primitive.name == "pad":
        part, starts = operands[0], [np.int32(low) for low, _, _ in eqn.params["padding_config"]]
    else:
        _, part, *starts = operands
    before = registry["dynamic_slice"].bind(total, *starts, slice_sizes=aval_of(part).shape)
    return registry["dynamic_update_slice"].bind(total, add_derivatives(before, part), *starts)
