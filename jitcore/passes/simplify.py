"""Algebraic simplification: equations that change nothing, or undo one another, go away.

In: a jaxpr. Out: the same program with fewer equations. A rule stands here only if it is exact for every
operand: signed zeros, infinities, NaN and wrap-around included.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, Literal
from jitcore.core.primitive import registry
from jitcore.passes.walk import Walk, rewrite_equations
from jitcore.passes.windowed_sums import simplify_sum

Rewrite = Callable[[Walk, Equation], list[Atom] | None]


def simplify(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Applies `RULES`, once per equation in order, so that chains collapse in one walk."""
    return rewrite_equations(closed_jaxpr, apply_rule)


def apply_rule(walk: Walk, eqn: Equation) -> list[Atom] | None:
    rule = RULES.get(eqn.primitive.name)
    return rule(walk, eqn) if rule is not None else None


# -- arithmetic with a neutral element ----------------------------------------------------------------------
def _keep_operand(position: int, eqn: Equation) -> list[Atom] | None:
    """The operand stands for the result, unless the equation also broadcasts it."""
    atom = eqn.invars[position]
    return [atom] if atom.aval.shape == eqn.outvars[0].aval.shape else None


def _is_literal(atom: Atom, value: float, sign: float = 1.0) -> bool:
    """Whether the atom is this real number; for a zero the sign must agree."""
    if not isinstance(atom, Literal) or dtypes.is_complex(atom.aval.dtype) or atom.value != value:
        return False
    return value != 0 or not dtypes.is_floating(atom.aval.dtype) or np.signbit(atom.value) == (sign < 0)


def _read_scalars(walk: Walk, eqn: Equation) -> list[Atom]:
    """The operands, with the literal in place of an array of one number."""
    return [_read_scalar(walk, atom) for atom in eqn.invars]


def _read_scalar(walk: Walk, atom: Atom) -> Atom:
    inner = walk.find_definition(atom, "broadcast_in_dim")
    is_number = inner is not None and isinstance(inner.invars[0], Literal)
    return inner.invars[0] if is_number else atom


def _simplify_mul(walk: Walk, eqn: Equation):
    x, y = _read_scalars(walk, eqn)
    if _is_literal(y, 1):
        return _keep_operand(0, eqn)
    return _keep_operand(1, eqn) if _is_literal(x, 1) else None


def _simplify_add(walk: Walk, eqn: Equation):
    # -0.0 is neutral; adding +0.0 turns -0.0 into +0.0.
    x, y = _read_scalars(walk, eqn)
    if _is_literal(y, 0, sign=-1):
        return _keep_operand(0, eqn)
    return _keep_operand(1, eqn) if _is_literal(x, 0, sign=-1) else None


def _simplify_sub(walk: Walk, eqn: Equation):
    return _keep_operand(0, eqn) if _is_literal(_read_scalar(walk, eqn.invars[1]), 0) else None


def _simplify_div(walk: Walk, eqn: Equation):
    return _keep_operand(0, eqn) if _is_literal(_read_scalar(walk, eqn.invars[1]), 1) else None


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
    return [origin] if origin.aval.dtype == target else _reissue(walk, eqn, origin, eqn.params)


def _widens(narrow, wide) -> bool:
    """Whether a conversion loses nothing and stays among integers or among floats (between those two, what
    happens to values out of range differs)."""
    kinds = dtypes.kind_of(narrow), dtypes.kind_of(wide)
    if kinds == ("f", "f"):
        return wide.itemsize > narrow.itemsize
    if kinds == ("c", "c") or kinds[0] == kinds[1] == "u" or kinds == ("i", "i") or kinds == ("u", "i"):
        return wide.itemsize > narrow.itemsize
    return kinds[0] == "b"


def _reissue(walk: Walk, eqn: Equation, operand: Atom, params: dict) -> list[Atom]:
    """The equation on an earlier operand instead."""
    walk.emit(eqn.replace(invars=[operand], params=params))
    return eqn.outvars


def _keep_same_shape(walk: Walk, eqn: Equation):
    return _keep_operand(0, eqn)


def _simplify_reshape(walk: Walk, eqn: Equation):
    (x,) = eqn.invars
    if eqn.params["dimensions"] is not None:
        return None
    if x.aval.shape == eqn.outvars[0].aval.shape:
        return [x]
    inner = walk.find_definition(x, "reshape")
    if inner is None or inner.params["dimensions"] is not None:
        return None
    origin = inner.invars[0]
    same = origin.aval.shape == eqn.outvars[0].aval.shape
    return [origin] if same else _reissue(walk, eqn, origin, eqn.params)


def _simplify_transpose(walk: Walk, eqn: Equation):
    (x,), order = eqn.invars, eqn.params["permutation"]
    if tuple(order) == tuple(range(len(order))):
        return [x]
    inner = walk.find_definition(x, "transpose")
    if inner is None:
        return None
    order = tuple(inner.params["permutation"][axis] for axis in order)
    if order == tuple(range(len(order))):
        return [inner.invars[0]]
    return _reissue(walk, eqn, inner.invars[0], eqn.params | {"permutation": order})


def _simplify_broadcast(walk: Walk, eqn: Equation):
    x = eqn.invars[0]
    if x.aval.shape == eqn.outvars[0].aval.shape:
        return [x]
    inner = walk.find_definition(x, "broadcast_in_dim")
    if inner is None or len(inner.invars) > 1 or len(eqn.invars) > 1:
        return None
    dims = tuple(eqn.params["broadcast_dimensions"][dim] for dim in inner.params["broadcast_dimensions"])
    return _reissue(walk, eqn, inner.invars[0], eqn.params | {"broadcast_dimensions": dims})


def _simplify_dynamic_slice(walk: Walk, eqn: Equation):
    x, *starts = eqn.invars
    shape, sizes = x.aval.shape, eqn.params["slice_sizes"]
    if not all(isinstance(start, Literal) for start in starts) or not all(isinstance(n, int) for n in shape):
        return None
    places = [min(max(int(start.value), 0), extent - size)
              for start, extent, size in zip(starts, shape, sizes)]
    limits = tuple(place + size for place, size in zip(places, sizes))
    params = {"start_indices": tuple(places), "limit_indices": limits, "strides": None}
    walk.emit(Equation(registry["slice"], [x], eqn.outvars, params, source_info=eqn.source_info))
    return eqn.outvars


def _simplify_concatenate(walk: Walk, eqn: Equation):
    return [eqn.invars[0]] if len(eqn.invars) == 1 else None


def _simplify_rev(walk: Walk, eqn: Equation):
    if not eqn.params["dimensions"]:
        return [eqn.invars[0]]
    inner = walk.find_definition(eqn.invars[0], "rev")
    same = inner is not None and set(inner.params["dimensions"]) == set(eqn.params["dimensions"])
    return [inner.invars[0]] if same else None


RULES: dict[str, Rewrite] = {
    "add": _simplify_add, "add_any": simplify_sum,
    "sub": _simplify_sub, "mul": _simplify_mul, "div": _simplify_div,
    "integer_pow": _simplify_integer_pow, "neg": _cancel_twice, "not": _cancel_twice,
    "select_n": _simplify_select, "cond": _choose_branch,
    "convert_element_type": _simplify_convert, "reshape": _simplify_reshape, "transpose": _simplify_transpose,
    "broadcast_in_dim": _simplify_broadcast, "squeeze": _keep_same_shape,
    "dynamic_slice": _simplify_dynamic_slice, "concatenate": _simplify_concatenate, "rev": _simplify_rev,
    "stop_gradient": _keep_same_shape,
}
