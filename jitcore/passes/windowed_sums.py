"""Sums of derivatives of which one is zero but for parts: these are added where they belong.

In: an `add_any` of which an operand is a slice or slices put into zeros, or a sum of such. Out: an update of
the other operand, which happens in its memory where nothing else reads it. The derivative of reading one
element of a large array, in a loop above all, then costs one element and not the array.
"""

from __future__ import annotations

import numpy as np

from jitcore.core.jaxpr import Atom, Equation, Literal, Var
from jitcore.lax.indexing.windows import Window, find_window, is_part
from jitcore.passes.walk import Walk

# Pads have at least so many times the elements of their operand: others are read where they lie. Fewer where
# they are added to an argument: to what a loop sums up, which is in memory. This compares elements that are
# added, on whatever machine.
_MOSTLY_ZEROS, _HALF_ZEROS = 4, 2
# Parts added before that are looked at for each part: with all of them, time were quadratic in their number.
_MAX_PARTS = 16


def simplify_sum(walk: Walk, eqn: Equation) -> list[Atom] | None:
    """The rule of `add_any`. The memory of the walk has, by sum, what a part was added to, and the part."""
    x, y = eqn.invars
    if x.aval.shape != y.aval.shape:
        return None
    is_argument = [isinstance(atom, Var) and atom not in walk.defined_by for atom in (x, y)]
    times = _HALF_ZEROS if any(is_argument) else _MOSTLY_ZEROS
    if not is_argument[0] and (is_argument[1] or _split(walk, y, times)[0] is not None):
        x, y = y, x
    dense, parts = _split(walk, y, times)
    if dense is not None and not (any(is_argument) and parts):
        return _add_beside(walk, x, y) or _add_beside(walk, y, x)
    total = x if dense is None else walk.bind("add_any", x, dense)
    for part in parts:
        walk.memory[added := _add_part(walk, total, part)] = total, part
        total = added
    return [total]


def _split(walk: Walk, atom: Atom, times: int) -> tuple[Atom | None, list[Equation]]:
    """(what is added to or None, the equations that put into zeros what is added)."""
    parts = []
    while atom in walk.memory:
        atom, part = walk.memory[atom]
        parts.append(part)
    first = walk.defined_by.get(atom)
    is_sparse = first is not None and _is_sparse(walk, first, times)
    return (None, [first, *reversed(parts)]) if is_sparse else (atom, parts[::-1])


def _is_sparse(walk: Walk, eqn: Equation, times: int) -> bool:
    """Whether an equation puts something into zeros."""
    if eqn.primitive.name == "pad":
        window = find_window(eqn)
        return _is_zero(walk, eqn.invars[1]) and window is not None and is_part(*window[1:], times)
    is_put = eqn.primitive.name in ("dynamic_update_slice", "scatter-add") or _sets_one_each(eqn)
    return is_put and _is_zero(walk, eqn.invars[0])


def _sets_one_each(eqn: Equation) -> bool:
    """Whether an equation sets one slice for each element of a batch, so that none meets another."""
    if eqn.primitive.name != "scatter":
        return False
    return len(eqn.params["dimension_numbers"].scatter_indices_batching_dims) == eqn.invars[1].aval.ndim - 1


def _is_zero(walk: Walk, atom: Atom) -> bool:
    made = walk.find_definition(atom, "broadcast_in_dim")
    number = atom if made is None else made.invars[0]
    return isinstance(number, Literal) and number.value == 0


# -- additions ----------------------------------------------------------------------------------------------
def _add_part(walk: Walk, total: Atom, part: Equation) -> Var:
    if part.primitive.name.startswith("scatter"):
        return walk.bind("scatter-add", total, *part.invars[1:], **part.params)
    beside = _put_beside(walk, total, part)
    if beside is not None:
        return beside
    window, (update, *starts) = find_window(part), _list_operands(part)
    if window.is_known:
        before = walk.bind("slice", total, **window.slice_params)
    else:
        before = walk.bind("dynamic_slice", total, *starts, slice_sizes=window.sizes, **_list_params(part))
    return _overwrite(walk, total, part, walk.bind("add_any", before, update))


def _list_operands(part: Equation) -> list[Atom]:
    """What is put into zeros, and where along each axis."""
    if part.primitive.name == "pad":
        return [part.invars[0], *map(Literal, map(np.int32, find_window(part).starts))]
    return part.invars[1:]


def _list_params(part: Equation) -> dict:
    return part.params if part.primitive.name == "dynamic_update_slice" else {}


def _overwrite(walk: Walk, total: Atom, part: Equation, value: Atom | None = None) -> Var:
    """The sum with a value, by default the part itself, in the part's window."""
    update, *starts = _list_operands(part)
    return walk.bind("dynamic_update_slice", total, update if value is None else value, *starts,
                     **_list_params(part))


def _put_beside(walk: Walk, total: Atom, part: Equation) -> Var | None:
    """The sum where it, or what was added last, is zero in the window: the halves of an array that was joined
    of slices come together without an addition. None where it is not."""
    window = find_window(part)
    if _is_zero_in(walk, total, window):
        return _overwrite(walk, total, part)
    eqn = walk.find_definition(total, "add_any")
    if eqn is None:
        return None
    first, last = eqn.invars
    if first.aval.shape != last.aval.shape or not _is_zero_in(walk, last, window):
        return None
    return walk.bind("add_any", first, _overwrite(walk, last, part))


def _add_beside(walk: Walk, first: Atom, last: Atom) -> list[Atom] | None:
    """The sum where the first operand is a part, or one has been added to it, and the last one is zero there:
    the part is put into the last one instead."""
    total, part = walk.memory.get(first, (None, walk.defined_by.get(first)))
    if part is None or not _is_sparse(walk, part, 1) or not _is_zero_in(walk, last, find_window(part)):
        return None
    walk.memory[whole := _overwrite(walk, last, part)] = last, part
    return [whole if total is None else walk.bind("add_any", total, whole)]


def _is_zero_in(walk: Walk, atom: Atom, window: Window | None) -> bool:
    """Whether an array is made of few windows in zeros that all lie beside this one."""
    for _ in range(0 if window is None else _MAX_PARTS):
        if _is_zero(walk, atom):
            return True
        eqn = walk.defined_by.get(atom)
        own = None if eqn is None else find_window(eqn)
        if own is None or not window.is_beside(own):
            return False
        if eqn.primitive.name != "dynamic_update_slice":
            return eqn.primitive.name == "pad" and _is_zero(walk, eqn.invars[1])
        atom = eqn.invars[0]
    return False
