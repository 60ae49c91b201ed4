"""Simplification: constants are folded, equations that change nothing or that nobody reads go away, equal
ones are merged.

In: a jaxpr. Out: the same program with fewer equations. An algebraic rule stands here only if it is exact for
every operand: signed zeros, infinities, NaN and wrap-around included.

Folded are elementwise equations that have only literals as operands, to values of the same dtype. Only
scalars: an array in the program text would cost more than computing it. Of several equations with the same
primitive, operands and params the first remains; equations with effects all remain.

Dead are equations that no output needs, operands, outputs and carries of loops that nobody reads, and unread
vectors of decompositions. A loop without effects whose result nobody reads goes away even if it would not
have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import Atom, ClosedJaxpr, DropVar, Equation, Jaxpr, Literal, Var
from jitcore.lax.indexing.windows import find_window
from jitcore.passes.canonical import encode_literal, encode_params
from jitcore.passes.walk import Walk, rewrite_equations
from jitcore.passes.windowed_sums import simplify_sum


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


def merge_common_subexpressions(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Keeps the first of equal equations, within each jaxpr."""
    return rewrite_equations(closed_jaxpr, _merge)


def _merge(walk: Walk, eqn: Equation) -> list[Atom] | None:
    if eqn.effects:
        return None
    kept = _simplify_select(walk, eqn) if eqn.primitive.name == "select_n" else None
    if kept is not None:  # cases that have become one variable
        return kept
    operands = tuple(encode_literal(atom) if atom.__class__ is Literal else atom for atom in eqn.invars)
    key = (eqn.primitive, operands, encode_params(eqn.params))
    position = walk.memory.setdefault(key, len(walk.eqns))
    if position == len(walk.eqns):
        return None
    return _name_outputs(walk, position, eqn)


def _name_outputs(walk: Walk, position: int, eqn: Equation) -> list[Var]:
    """The outputs of the earlier equation; one that it dropped gets a variable where `eqn` needs it."""
    first = walk.eqns[position]
    outvars = [
        Var(var.aval) if isinstance(var, DropVar) and not isinstance(wanted, DropVar) else var
        for var, wanted in zip(first.outvars, eqn.outvars)
    ]
    if outvars != first.outvars:
        walk.eqns[position] = first.replace(outvars=outvars)
    return outvars


Rewrite = Callable[[Walk, Equation], list[Atom] | None]


def simplify(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Applies `RULES`, once per equation in order, so that chains collapse in one walk."""
    return rewrite_equations(closed_jaxpr, apply_rule)


def apply_rule(walk: Walk, eqn: Equation) -> list[Atom] | None:
    rule = RULES.get(eqn.primitive.name)
    return rule(walk, eqn) if rule is not None else None


# -- arithmetic ----------------------------------------------------------------------------------------------
# (operands, number): what the result is the other operand for. -0.0 is neutral to sums; adding +0.0 turns
# -0.0 into +0.0.
_NEUTRAL = {"mul": ((1, 0), 1), "add": ((1, 0), -0.0), "sub": ((1,), 0), "div": ((1,), 1)}


def _keep_operand(position: int, eqn: Equation) -> list[Atom] | None:
    """The operand stands for the result, unless the equation also broadcasts it."""
    atom = eqn.invars[position]
    return [atom] if atom.aval.shape == eqn.outvars[0].aval.shape else None


def _drop_neutral(walk: Walk, eqn: Equation):
    places, number = _NEUTRAL[eqn.primitive.name]
    for place in places:
        if _is_number(walk, eqn.invars[place], number):
            return _keep_operand(1 - place, eqn)
    return None


def _is_number(walk: Walk, atom: Atom, number: float) -> bool:
    """Whether an atom is this real number, or an array of it; for a zero the sign must agree."""
    made = walk.find_definition(atom, "broadcast_in_dim")
    atom = made.invars[0] if made is not None else atom
    if not isinstance(atom, Literal) or dtypes.is_complex(atom.aval.dtype) or atom.value != number:
        return False
    has_sign = number == 0 and dtypes.is_floating(atom.aval.dtype)
    return not has_sign or np.signbit(atom.value) == np.signbit(number)


def _simplify_integer_pow(walk: Walk, eqn: Equation):
    return [eqn.invars[0]] if eqn.params["y"] == 1 else None


def _cancel_twice(walk: Walk, eqn: Equation):
    """neg(neg(x)), not(not(x))."""
    inner = walk.find_definition(eqn.invars[0], eqn.primitive.name)
    return [inner.invars[0]] if inner is not None else None


# -- selection -----------------------------------------------------------------------------------------------
def _simplify_select(walk: Walk, eqn: Equation):
    which, *cases = eqn.invars
    if isinstance(which, Literal):
        return _keep_operand(1 + min(max(int(which.value), 0), len(cases) - 1), eqn)
    return _keep_operand(1, eqn) if all(case is cases[0] for case in cases) else None


def _choose_branch(walk: Walk, eqn: Equation):
    index, *operands = eqn.invars
    if not isinstance(index, Literal):
        return None
    branches = eqn.params["branches"]
    chosen = branches[min(max(int(index.value), 0), len(branches) - 1)]
    return walk.splice(chosen, operands, apply_rule)


# -- dtype and shape -----------------------------------------------------------------------------------------
def _simplify_convert(walk: Walk, eqn: Equation):
    (x,) = eqn.invars
    target = eqn.params["new_dtype"]
    if x.aval.dtype == target:
        return [x]
    inner = walk.find_definition(x, "convert_element_type")
    if inner is None:
        return None
    origin = inner.invars[0]
    if not _widens(origin.aval.dtype, x.aval.dtype):
        return None
    return [origin] if origin.aval.dtype == target else _reissue(walk, eqn, origin)


def _widens(narrow, wide) -> bool:
    """Whether a conversion loses nothing and stays among integers or among floats (between those two, what
    happens to values out of range differs)."""
    kinds = dtypes.kind_of(narrow), dtypes.kind_of(wide)
    if kinds == ("f", "f"):
        return wide.itemsize > narrow.itemsize
    if kinds == ("c", "c") or kinds[0] == kinds[1] == "u" or kinds == ("i", "i") or kinds == ("u", "i"):
        return wide.itemsize > narrow.itemsize
    return kinds[0] == "b" and kinds[1] != "V"


def _reissue(walk: Walk, eqn: Equation, operand: Atom, **params) -> list[Atom]:
    """The equation on an earlier operand instead."""
    walk.emit(eqn.replace(invars=[operand], params=eqn.params | params))
    return eqn.outvars


def _keep_same_shape(walk: Walk, eqn: Equation):
    return _keep_operand(0, eqn)


def _simplify_reshape(walk: Walk, eqn: Equation):
    (x,) = eqn.invars
    if eqn.params["dimensions"] is not None:
        return None
    inner = walk.find_definition(x, "reshape")
    has_inner = inner is not None and inner.params["dimensions"] is None
    for origin in (x, inner.invars[0]) if has_inner else (x,):
        if origin.aval.shape == eqn.outvars[0].aval.shape:
            return [origin]
    return _reissue(walk, eqn, inner.invars[0]) if has_inner else None


def _simplify_transpose(walk: Walk, eqn: Equation):
    (x,), order = eqn.invars, tuple(eqn.params["permutation"])
    inner = walk.find_definition(x, "transpose")
    if inner is not None and order != tuple(range(len(order))):
        (x,), order = inner.invars, tuple(inner.params["permutation"][axis] for axis in order)
    if order == tuple(range(len(order))):
        return [x]
    return _reissue(walk, eqn, x, permutation=order) if inner is not None else None


def _simplify_broadcast(walk: Walk, eqn: Equation):
    x = eqn.invars[0]
    if x.aval.shape == eqn.outvars[0].aval.shape:
        return [x]
    inner = walk.find_definition(x, "broadcast_in_dim")
    if inner is None or len(inner.invars) > 1 or len(eqn.invars) > 1:
        return None
    dims = tuple(eqn.params["broadcast_dimensions"][dim] for dim in inner.params["broadcast_dimensions"])
    return _reissue(walk, eqn, inner.invars[0], broadcast_dimensions=dims)


def _simplify_dynamic_slice(walk: Walk, eqn: Equation):
    window = find_window(eqn)
    return [walk.bind("slice", eqn.invars[0], **window.slice_params)] if window.is_known else None


def _simplify_concatenate(walk: Walk, eqn: Equation):
    return [eqn.invars[0]] if len(eqn.invars) == 1 else None


def _simplify_rev(walk: Walk, eqn: Equation):
    dims = set(eqn.params["dimensions"])
    inner = walk.find_definition(eqn.invars[0], "rev")
    same = inner is not None and set(inner.params["dimensions"]) == dims
    return [eqn.invars[0]] if not dims else [inner.invars[0]] if same else None


RULES: dict[str, Rewrite] = {
    **dict.fromkeys(_NEUTRAL, _drop_neutral), "add_any": simplify_sum,
    "integer_pow": _simplify_integer_pow, "neg": _cancel_twice, "not": _cancel_twice,
    "select_n": _simplify_select, "cond": _choose_branch,
    "convert_element_type": _simplify_convert, "reshape": _simplify_reshape, "transpose": _simplify_transpose,
    "broadcast_in_dim": _simplify_broadcast, "squeeze": _keep_same_shape,
    "dynamic_slice": _simplify_dynamic_slice, "concatenate": _simplify_concatenate, "rev": _simplify_rev,
    "stop_gradient": _keep_same_shape,
}


# -- dead code -----------------------------------------------------------------------------------------------
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
    pruned, left = _rebuild(eqn, keep_in, keep_out, reads, params), list(compress(reads, keep_out))
    carries = compress(body.jaxpr.invars[num_consts:first_x], live)
    # What a conditional inside no longer reads may have been all that a carry was for.
    return pruned if all(find_live_carries(jaxpr, list(carries), left)) else _prune_scan(pruned, left)


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
    pruned = _rebuild(eqn, keep_holds + keep_body + live, live, reads, params)
    carries, left = compress(body.jaxpr.invars[num_body:], live), list(compress(wanted, live))
    still = all(find_live_carries(body_jaxpr, list(carries), left))
    return pruned if still else _prune_while(pruned, list(compress(reads, live)))


def find_live_carries(body: Jaxpr, carries: Sequence[Var], wanted: Sequence[bool]) -> Flags:
    """Which carries of a loop matter to its wanted outputs and its effects, over any number of iterations.

    An inner equation counts as reading all of its operands for each of its outputs, so a carry may be kept
    that only an unread output of an inner loop needs.

    Args:
        body: outputs are the carries, then others.
        carries: the invars of the carries, in the order of the outputs.
        wanted: per output.

    Cost: linear in the equations."""
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
