"""Products of one matrix with vectors on both of its sides, made in one sweep over the matrix.

In: a jaxpr. Out: the same program, in which `a @ x` and `y @ a` of a large matrix are one `two_sided_dot`,
where neither needs the other, or where y is `a @ x`. Memory is what such products wait for, and the matrix is
read once instead of twice.
"""

from __future__ import annotations

from jitcore import dtypes
from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, Var, find_dependent
from jitcore.lax.dot import is_worth_sweep, two_sided_dot
from jitcore.passes.walk import Transform, keep, map_inner_jaxprs, rewrite_each_once, walk_through


def join_sweeps(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Joins pairs of products, in each jaxpr; equations between the two that need the first follow them."""
    return rewrite_each_once(closed_jaxpr, _join)


def _join(closed_jaxpr: ClosedJaxpr, rewrite: Transform) -> ClosedJaxpr:
    eqns: list[Equation] = []
    waiting: dict[tuple[Var, int], Equation] = {}  # by matrix and its contracted axis
    for eqn in closed_jaxpr.eqns:
        eqn = map_inner_jaxprs(eqn, rewrite)
        matrix, axis, vector = _find_side(eqn)
        first = waiting.get((matrix, 1 - axis))
        start = None if first is None else _find_place(eqns, first, vector, axis)
        if start is None:
            eqns.append(eqn)
            if matrix is not None:
                waiting[matrix, axis] = eqn
        else:
            eqns[start:] = _join_pair(eqns[start:], eqn)
            del waiting[matrix, 1 - axis]
    return walk_through(closed_jaxpr, eqns, keep)


def _find_side(eqn: Equation) -> tuple[Var | None, int, Atom | None]:
    """(matrix, its contracted axis, vector) of a product that a sweep can make; no matrix for others."""
    none = None, 0, None
    if eqn.primitive.name != "dot_general":
        return none
    contract, batch = eqn.params["dimension_numbers"]
    kinds = {atom.aval.dtype for atom in (*eqn.invars, *eqn.outvars)}
    if batch != ((), ()) or len(kinds) != 1 or not kinds <= {dtypes.float32, dtypes.float64}:
        return none
    place = 0 if eqn.invars[0].aval.ndim == 2 else 1
    matrix, vector = eqn.invars[place], eqn.invars[1 - place]
    if not (isinstance(matrix, Var) and vector.aval.ndim == 1 and len(contract[place]) == 1):
        return none
    if not is_worth_sweep(matrix.aval.shape, matrix.aval.dtype):
        return none
    return matrix, contract[place][0], vector


def _find_place(eqns: list[Equation], first: Equation, vector: Atom, axis: int) -> int | None:
    """The position of the first product of a pair, at the end of which the second shall stand; None where the
    second needs the first, but for a chain, or where effects would change their order."""
    start = len(eqns) - 1
    while eqns[start] is not first:
        start -= 1
    if axis == 0 and vector is first.outvars[0]:
        vector = None
    late = find_dependent(eqns[start + 1 :], first.outvars)
    moves_effect = any(eqn.effects and not late.isdisjoint(eqn.variables) for eqn in eqns[start + 1 :])
    return None if moves_effect or vector in late else start


def _join_pair(eqns: list[Equation], second: Equation) -> list[Equation]:
    """The first product of a pair and what follows it until the second one, with both products made where the
    second one stands."""
    first, *others = eqns
    late = find_dependent(others, first.outvars)
    kept = [eqn for eqn in others if late.isdisjoint(eqn.variables)]
    moved = [eqn for eqn in others if not late.isdisjoint(eqn.variables)]
    matrix, axis, vector = _find_side(second)
    products = {axis: second, 1 - axis: first}
    right, left = (_find_side(products[contracted])[2] for contracted in (1, 0))
    is_chain = left is products[1].outvars[0]
    operands = [matrix, right] if is_chain else [matrix, right, left]
    outs = [products[contracted].outvars[0] for contracted in (1, 0)]
    joined = Equation(two_sided_dot.primitive, operands, outs, {}, source_info=second.source_info)
    return [*kept, joined, *moved]


