"""Local simplification: constants are folded, equations that change nothing go away, equal ones are merged.

In: a jaxpr. Out: the same program with fewer equations. An algebraic rule stands here only if it is exact for
every operand: signed zeros, infinities, NaN and wrap-around included.

Folded are elementwise equations that have only literals as operands, to values of the same dtype. Only
scalars: an array in the program text would cost more than computing it. Of several equations with the same
primitive, operands and params the first remains; equations with effects all remain.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import Atom, ClosedJaxpr, DropVar, Equation, Literal, Var
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
    return kinds[0] == "b"


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
