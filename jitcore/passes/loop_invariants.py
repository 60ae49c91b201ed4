"""Loop invariants: what a loop computes anew in each iteration from what stays the same is computed once.

In: a jaxpr. Out: the same program where the bodies of loops read the results of such equations, which stand
before the loop. Those move that take longer than to read their results from memory; from there on what makes
of a result that nobody else reads another one that is no larger; and values that take many cheap equations.
What is cheap stays where it is fused, and is computed twice if both need it. Value iterations look up the
same places in their grids in each iteration.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence

from jitcore.core.jaxpr import (Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var, list_equations, slice_eqns,
                                sub_jaxprs)
from jitcore.passes.tuning import DEFAULT, Tuning
from jitcore.passes.walk import Walk, rewrite_equations

# What stays, with all that it is in: loops that may not end, as the loop around them may have no iterations,
# what may raise, and what says that it stays.
STAYING = {"while", "pure_callback", "optimization_barrier"}
# What takes long, though its results need not be in memory.
HEAVY = ("dot_general", "conv_general_dilated", "fft", "threefry2x32", "top_k")
# What an element at a computed place counts, and a power that is known. And how many equations are looked at
# for one value.
GATHER_COST, ROOT_COST, MAX_EQUATIONS = 8, 4, 40


def hoist_invariants(closed_jaxpr: ClosedJaxpr, tuning: Tuning = DEFAULT) -> ClosedJaxpr:
    """Takes invariants out of loops, the innermost loops first."""
    return rewrite_equations(closed_jaxpr, functools.partial(_rewrite, tuning=tuning))


def _rewrite(walk: Walk, eqn: Equation, tuning: Tuning) -> list[Atom] | None:
    params = eqn.params
    if eqn.primitive.name == "while":
        name, count, first = "body", "body_nconsts", params["cond_nconsts"]
    elif eqn.primitive.name == "scan" and params["length"] != 1:
        name, count, first = "", "num_consts", 0
    else:
        return None
    name = f"{name}_jaxpr".lstrip("_")
    closed, end = params[name], first + params[count]
    jaxpr, num_consts = closed.jaxpr, params[count]
    given = dict(zip(jaxpr.invars, eqn.invars[first:end]))
    for var, out, start in zip(jaxpr.invars[num_consts:], jaxpr.outvars, eqn.invars[end:]):
        if var is out:  # a carry that stays what it is
            given[var] = start
    moved = _find_moved(jaxpr, given, tuning)
    if not moved:
        return None
    results = {var for one in moved for var in one.outvars}
    left = [one for one in jaxpr.eqns if results.isdisjoint(one.outvars)]
    read = Counter(var for one in left for var in one.variables)
    read.update(atom for atom in jaxpr.outvars if isinstance(atom, Var))
    stored = [var for one in moved for var in one.outvars if read[var]]
    before, _ = slice_eqns(jaxpr.eqns, stored, {*given, *jaxpr.constvars})
    inner = ClosedJaxpr(Jaxpr(jaxpr.constvars, list(given), before, stored), closed.consts)
    values = walk.splice(inner, list(given.values()))
    invars = [*jaxpr.invars[:num_consts], *stored, *jaxpr.invars[num_consts:]]
    body = ClosedJaxpr(jaxpr.replace(invars=invars, eqns=left), closed.consts)
    walk.emit(eqn.replace(invars=[*eqn.invars[:end], *values, *eqn.invars[end:]],
                          params=params | {name: body, count: num_consts + len(stored)}))
    return eqn.outvars


def _find_moved(jaxpr: Jaxpr, given: Iterable[Var], tuning: Tuning) -> list[Equation]:
    """The equations of a body that move, in order. given: its inputs that are the same in all iterations."""
    reads = Counter(var for eqn in jaxpr.eqns for var in eqn.variables)
    needed = {atom for atom in jaxpr.outvars if isinstance(atom, Var)}  # where other iterations may differ
    reads.update(needed)
    invariant, stored = {*given, *jaxpr.constvars}, set()
    defined_by: dict[Var, Equation] = {}
    for eqn in jaxpr.eqns:
        if eqn.effects or not invariant.issuperset(eqn.variables):
            needed.update(eqn.variables)
            continue
        invariant.update(eqn.outvars)
        defined_by.update((var, eqn) for var in eqn.outvars)
        replaced = [var for var in eqn.variables if var in stored and reads[var] == 1]
        if _takes_long(eqn, tuning) or replaced and _replaces(eqn, replaced):
            stored.update(eqn.outvars)
    for var, eqn in reversed(defined_by.items()):  # an array that is broadcast is stored before it is
        if var in needed and var not in stored and _is_broadcast(eqn):
            needed.update(eqn.variables)
    for var, eqn in defined_by.items():
        if var in needed and var not in stored and _takes_many(eqn, defined_by, stored, tuning):
            stored.update(eqn.outvars)
    return [eqn for eqn in jaxpr.eqns if not stored.isdisjoint(eqn.outvars)]


def _is_broadcast(eqn: Equation) -> bool:
    """Whether the result has more elements than any operand."""
    return all(_count_bytes([var]) < _count_bytes(eqn.outvars) for var in eqn.variables)


def _takes_long(eqn: Equation, tuning: Tuning) -> bool:
    """Whether an equation takes longer than to read its results, and may move."""
    primitive = eqn.primitive
    if primitive.traits.get("family") == "elementwise":
        return _find_cost(eqn) >= _find_least_cost(eqn, tuning)
    is_long = "stores_result" in primitive.traits or primitive.name in HEAVY or primitive.lower is None
    inner = (one for closed in sub_jaxprs(eqn.params) for one in list_equations(closed.jaxpr))
    return is_long and STAYING.isdisjoint([primitive.name, *(one.primitive.name for one in inner)])


def _takes_many(eqn: Equation, defined_by: dict[Var, Equation], stored: set[Var], tuning: Tuning) -> bool:
    """Whether the equations that compute a value from what is stored take longer than to read it."""
    least, size = _find_least_cost(eqn, tuning), eqn.outvars[0].aval.size
    if size == 0:
        return False
    work, found, waiting = 0.0, {id(eqn)}, [eqn]
    while waiting and work < least < math.inf and len(found) < MAX_EQUATIONS:
        one = waiting.pop()
        work += _find_cost(one) * one.outvars[0].aval.size / size
        for var in one.variables:
            before = None if var in stored else defined_by.get(var)
            if before is not None and id(before) not in found:
                found.add(id(before))
                waiting.append(before)
    return work >= least


def _find_cost(eqn: Equation) -> int:
    """Of an element, where an equation is fused with its readers."""
    traits, name = eqn.primitive.traits, eqn.primitive.name
    if name == "pow" and isinstance(eqn.invars[1], Literal) and 2 * eqn.invars[1].value % 1 == 0:
        return ROOT_COST  # a few products and roots
    if traits.get("family") == "elementwise":
        return traits.get("cost", 1)
    return GATHER_COST if name == "gather" else 0


def _find_least_cost(eqn: Equation, tuning: Tuning) -> float:
    """From which on a result is rather read than computed."""
    nbytes = _count_bytes(eqn.outvars)
    if eqn.outvars[0].aval.shape == () or nbytes > tuning.max_invariant_bytes:
        return math.inf
    return tuning.min_invariant_cost if nbytes <= tuning.near_bytes else tuning.min_far_invariant_cost


def _replaces(eqn: Equation, replaced: Sequence[Var]) -> bool:
    """Whether results that are stored need not be if those of this equation are."""
    traits = eqn.primitive.traits
    is_light = traits.get("family") == "elementwise" or "same_elements" in traits
    return is_light and _count_bytes(eqn.outvars) <= _count_bytes(replaced)


def _count_bytes(variables: Iterable[Var]) -> float:
    """Infinity where extents are not known."""
    avals = [var.aval for var in variables]
    is_known = all(isinstance(extent, int) for aval in avals for extent in aval.shape)
    return sum(aval.size * aval.dtype.itemsize for aval in avals) if is_known else math.inf
