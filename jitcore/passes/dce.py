"""Dead code: equations that no output needs go away, and so do unread operands, outputs and carries of loops,
and unread vectors of decompositions.

In: a jaxpr. Out: the same program without them. Equations with effects stay. A loop without effects whose
result nobody reads goes away even if it would not have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from jitcore.core.jaxpr import ClosedJaxpr, DropVar, Equation, Jaxpr, Literal, Var

Flags = list[bool]


def eliminate_dead_code(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Keeps all arguments and outputs; a constant that nothing reads goes away."""
    jaxpr = closed_jaxpr.jaxpr
    pruned, used = prune_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    kept = [var in used for var in jaxpr.constvars]
    if pruned is jaxpr and all(kept):
        return closed_jaxpr
    pruned = pruned.replace(constvars=list(compress(jaxpr.constvars, kept)))
    return ClosedJaxpr(pruned, list(compress(closed_jaxpr.consts, kept)))


def prune_jaxpr(jaxpr: Jaxpr, wanted: Sequence[bool]) -> tuple[Jaxpr, set[Var]]:
    """The jaxpr with only the wanted outputs, and the variables that it still reads. Invars all stay."""
    outvars = list(compress(jaxpr.outvars, wanted))
    used: set[Var] = {atom for atom in outvars if not isinstance(atom, Literal)}
    kept: list[Equation] = []
    for eqn in reversed(jaxpr.eqns):
        reads = [var in used for var in eqn.outvars]
        if not eqn.effects and not any(reads):
            continue
        eqn = _prune_equation(eqn, reads)
        used.update(eqn.variables)
        kept.append(eqn)
    kept.reverse()
    if len(outvars) == len(jaxpr.outvars) and kept == jaxpr.eqns:
        return jaxpr, used
    return jaxpr.replace(eqns=kept, outvars=outvars), used


def _prune_equation(eqn: Equation, reads: Flags) -> Equation:
    """The equation without what its outputs that are read do not need."""
    prune = _PRUNERS.get(eqn.primitive.name)
    if prune is not None:
        return prune(eqn, reads)
    if "optional_results" in eqn.primitive.traits:
        return _prune_optional(eqn, reads)
    if all(reads):
        return eqn
    outvars = [var if read else _drop(var) for var, read in zip(eqn.outvars, reads)]
    return eqn if outvars == eqn.outvars else eqn.replace(outvars=outvars)


def _drop(var: Var) -> DropVar:
    return var if isinstance(var, DropVar) else DropVar(var.aval)


def _rebuild(eqn: Equation, keep_in: Flags, keep_out: Flags, reads: Flags, params: dict) -> Equation:
    """The equation with some operands and outputs gone; itself when nothing changed."""
    outvars = [var if read else _drop(var) for var, read in zip(eqn.outvars, reads)]
    same_params = all(_is_same(value, eqn.params[name]) for name, value in params.items())
    if all(keep_in) and all(keep_out) and outvars == eqn.outvars and same_params:
        return eqn
    params = eqn.params | params
    return eqn.replace(invars=list(compress(eqn.invars, keep_in)), outvars=list(compress(outvars, keep_out)),
                       params=params, effects=eqn.primitive.effects_of(params))


def _is_same(new, old) -> bool:
    if isinstance(new, tuple):
        return all(map(_is_same, new, old))
    return new.jaxpr is old.jaxpr if isinstance(new, ClosedJaxpr) else new == old


def _drop_invars(closed_jaxpr: ClosedJaxpr, jaxpr: Jaxpr, keep: Sequence[bool]) -> ClosedJaxpr:
    if not all(keep):
        jaxpr = jaxpr.replace(invars=list(compress(jaxpr.invars, keep)))
    return closed_jaxpr if jaxpr is closed_jaxpr.jaxpr else ClosedJaxpr(jaxpr, closed_jaxpr.consts)


# -- control flow --------------------------------------------------------------------------------------------
def _prune_cond(eqn: Equation, reads: Flags) -> Equation:
    branches = eqn.params["branches"]
    pruned = [prune_jaxpr(branch.jaxpr, reads) for branch in branches]
    keep = [
        any(branch.jaxpr.invars[i] in used for branch, (_, used) in zip(branches, pruned))
        for i in range(len(eqn.invars) - 1)
    ]
    closed = tuple(_drop_invars(branch, jaxpr, keep) for branch, (jaxpr, _) in zip(branches, pruned))
    return _rebuild(eqn, [True, *keep], reads, reads, {"branches": closed})


def _prune_scan(eqn: Equation, reads: Flags) -> Equation:
    body, num_consts, num_carry = (eqn.params[name] for name in ("jaxpr", "num_consts", "num_carry"))
    first_x = num_consts + num_carry
    live = find_live_carries(body.jaxpr, body.jaxpr.invars[num_consts:first_x], reads)
    keep_out = live + reads[num_carry:]
    jaxpr, used = prune_jaxpr(body.jaxpr, keep_out)
    keep_in = [var in used for var in body.jaxpr.invars]
    keep_in[num_consts:first_x] = live
    params = {"jaxpr": _drop_invars(body, jaxpr, keep_in), "num_consts": sum(keep_in[:num_consts]),
              "num_carry": sum(live)}
    return _rebuild(eqn, keep_in, keep_out, reads, params)


def _prune_while(eqn: Equation, reads: Flags) -> Equation:
    holds, num_holds = eqn.params["cond_jaxpr"], eqn.params["cond_nconsts"]
    body, num_body = eqn.params["body_jaxpr"], eqn.params["body_nconsts"]
    holds_jaxpr, holds_used = prune_jaxpr(holds.jaxpr, [True])
    tested = [var in holds_used for var in holds.jaxpr.invars]
    wanted = [read or test for read, test in zip(reads, tested[num_holds:])]
    live = find_live_carries(body.jaxpr, body.jaxpr.invars[num_body:], wanted)
    body_jaxpr, body_used = prune_jaxpr(body.jaxpr, live)
    keep_holds = tested[:num_holds]
    keep_body = [var in body_used for var in body.jaxpr.invars[:num_body]]
    params = {
        "cond_jaxpr": _drop_invars(holds, holds_jaxpr, keep_holds + live), "cond_nconsts": sum(keep_holds),
        "body_jaxpr": _drop_invars(body, body_jaxpr, keep_body + live), "body_nconsts": sum(keep_body),
    }
    return _rebuild(eqn, keep_holds + keep_body + live, live, reads, params)


def find_live_carries(body: Jaxpr, carries: Sequence[Var], wanted: Sequence[bool]) -> Flags:
    """Which carries of a loop matter to its wanted outputs and its effects, over any number of iterations.

    An inner equation counts as reading all of its operands for each of its outputs, so a carry may be kept
    that only an unread output of an inner loop needs.

    Args:
        body: outputs are the carries, then others.
        carries: the invars of the carries, in the order of the outputs.
        wanted: per output.

    Cost: linear in the equations.
    """
    defined_by = {var: eqn for eqn in body.eqns for var in eqn.outvars}
    carry_of = {var: i for i, var in enumerate(carries)}
    live = list(wanted[: len(carries)])
    pending = list(compress(body.outvars, wanted))
    for eqn in body.eqns:
        if eqn.effects:
            pending += eqn.invars
    seen: set = set()
    while pending:
        atom = pending.pop()
        if atom in seen:
            continue
        seen.add(atom)
        carry = carry_of.get(atom)
        if carry is not None and not live[carry]:
            live[carry] = True
            pending.append(body.outvars[carry])
        eqn = defined_by.get(atom)
        if eqn is not None and eqn not in seen:
            seen.add(eqn)
            pending += eqn.invars
    return live


# -- decompositions ------------------------------------------------------------------------------------------
def _prune_optional(eqn: Equation, reads: Flags) -> Equation:
    """Values alone, where nobody reads vectors: these are most of the work."""
    params, keep_out = {}, [True]
    for name, count in eqn.primitive.traits["optional_results"].items():
        if eqn.params[name]:
            params[name] = any(reads[len(keep_out) : len(keep_out) + count])
            keep_out += [params[name]] * count
    return _rebuild(eqn, [True], keep_out, reads, params)


_PRUNERS = {"cond": _prune_cond, "scan": _prune_scan, "while": _prune_while}
