"""Sums of derivatives of which one is zero but for a part: the part is added where it belongs.

In: an `add_any` of which an operand is a slice or slices put into zeros, or a sum of such. Out: an update of
the other operand, which happens in its memory where nothing else reads it. The derivative of reading one
element of a large array, in a loop above all, then costs one element and not the array.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jitcore.core.jaxpr import Atom, Equation, Literal, Var
from jitcore.core.primitive import registry
from jitcore.passes.walk import Walk

# Pads have at least so many times the elements of their operand: others are read where they lie.
_MOSTLY_ZEROS = 4


class _Added(NamedTuple):
    """Key of what the walk remembers of a sum: the sum before the last part, that part and its window."""

    total: Atom


def simplify_sum(walk: Walk, eqn: Equation) -> list[Atom] | None:
    """The rule of `add_any`. Operands that both are sparse are remembered, until one is added to an array."""
    x, y = eqn.invars
    if x.aval.shape != y.aval.shape:
        return None
    if not _is_sparse(walk, y):
        x, y = y, x
    if not _is_sparse(walk, y):
        return _add_after(walk, eqn, x, y) or _add_after(walk, eqn, y, x)
    total = x
    for part in _list_parts(walk, y):
        total = _ADDITIONS[part.primitive.name](walk, total, part)
    if _is_sparse(walk, x):
        walk.memory[total] = (x, y)
    return [total]


def _is_sparse(walk: Walk, atom: Atom) -> bool:
    if atom in walk.memory:
        return True
    eqn = walk.defined_by.get(atom)
    return eqn is not None and eqn.primitive.name in _ADDITIONS and _puts_into_zeros(walk, eqn)


def _puts_into_zeros(walk: Walk, eqn: Equation) -> bool:
    if eqn.primitive.name == "pad":
        return _is_zero(eqn.invars[1]) and _pads_widely(eqn)
    zeros = walk.find_definition(eqn.invars[0], "broadcast_in_dim")
    return zeros is not None and _is_zero(zeros.invars[0])


def _pads_widely(eqn: Equation) -> bool:
    small, large = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    if not all(isinstance(extent, int) for extent in (*small, *large)):
        return False
    around = all(low >= 0 <= high and not gap for low, high, gap in eqn.params["padding_config"])
    return around and math.prod(small) * _MOSTLY_ZEROS <= math.prod(large)


def _is_zero(atom: Atom) -> bool:
    return isinstance(atom, Literal) and atom.value == 0


def _list_parts(walk: Walk, atom: Atom) -> list[Equation]:
    """The equations that put something into zeros, of which an atom is the sum."""
    parts, rest = [], [atom]
    while rest:
        atom = rest.pop()
        if atom in walk.memory:
            rest += reversed(walk.memory[atom])
        else:
            parts.append(walk.defined_by[atom])
    return parts


# -- additions ----------------------------------------------------------------------------------------------
def _emit(walk: Walk, part: Equation, name: str, operands: list[Atom], **params) -> Var:
    primitive = registry[name]
    out = Var(primitive.aval(*[atom.aval for atom in operands], **params))
    walk.emit(Equation(primitive, operands, [out], params, source_info=part.source_info))
    return out


def _add_slice(walk: Walk, total: Atom, part: Equation) -> Var:
    _, update, *starts = part.invars
    before = _emit(walk, part, "dynamic_slice", [total, *starts], slice_sizes=update.aval.shape)
    after = _emit(walk, part, "add_any", [before, update])
    return _emit(walk, part, "dynamic_update_slice", [total, after, *starts])


def _add_slices(walk: Walk, total: Atom, part: Equation) -> Var:
    return _emit(walk, part, "scatter-add", [total, *part.invars[1:]], **part.params)


def _add_padded(walk: Walk, total: Atom, part: Equation) -> Var:
    update = part.invars[0]
    lows = [low for low, _, _ in part.params["padding_config"]]
    limits = [low + extent for low, extent in zip(lows, update.aval.shape)]
    added = _put_beside(walk, total, part, list(zip(lows, limits)))
    if added is not None:
        return added
    before = _emit(walk, part, "slice", [total], start_indices=tuple(lows), limit_indices=tuple(limits),
                   strides=None)
    after = _emit(walk, part, "add_any", [before, update])
    added = _overwrite(walk, total, part, after)
    walk.memory[_Added(added)] = total, part, list(zip(lows, limits))
    return added


def _overwrite(walk: Walk, total: Atom, part: Equation, values: Atom) -> Var:
    starts = [Literal(np.int32(low)) for low, _, _ in part.params["padding_config"]]
    return _emit(walk, part, "dynamic_update_slice", [total, values, *starts])


def _put_beside(walk: Walk, total: Atom, part: Equation, window: list[tuple[int, int]]) -> Var | None:
    """The sum where it, or what was added last, is zero in the window: the halves of an array that was joined
    of slices come together without an addition. None where it is not."""
    if _is_zero_in(walk, total, window):
        return _overwrite(walk, total, part, part.invars[0])
    eqn = walk.find_definition(total, "add_any")
    if eqn is None:
        return None
    first, last = eqn.invars
    if first.aval.shape != last.aval.shape or not _is_zero_in(walk, last, window):
        return None
    return _emit(walk, part, "add_any", [first, _overwrite(walk, last, part, part.invars[0])])


def _add_after(walk: Walk, eqn: Equation, first: Atom, last: Atom) -> list[Atom] | None:
    """The sum where a part has been added to the first operand, and the last one is zero there: the part is
    put into the last one instead."""
    if _Added(first) not in walk.memory:
        return None
    total, part, window = walk.memory[_Added(first)]
    if not _is_zero_in(walk, last, window):
        return None
    walk.emit(eqn.replace(invars=[total, _overwrite(walk, last, part, part.invars[0])]))
    return eqn.outvars


def _is_zero_in(walk: Walk, atom: Atom, window: list[tuple[int, int]]) -> bool:
    """Whether an array is made of windows in zeros that all lie beside this one. window: (low, limit) of each
    dimension."""
    while (eqn := walk.defined_by.get(atom)) is not None:
        atom, starts = eqn.invars[0], eqn.invars[2:]
        if eqn.primitive.name == "broadcast_in_dim":
            return _is_zero(atom)
        if eqn.primitive.name == "pad":
            lows, sizes = [low for low, _, _ in eqn.params["padding_config"]], atom.aval.shape
            is_plain = not any(gap for _, _, gap in eqn.params["padding_config"])
            return is_plain and _is_zero(eqn.invars[1]) and _lies_beside(window, lows, sizes)
        if eqn.primitive.name != "dynamic_update_slice" or not all(isinstance(s, Literal) for s in starts):
            return False
        if not _lies_beside(window, [int(start.value) for start in starts], eqn.invars[1].aval.shape):
            return False
    return False


def _lies_beside(window: list[tuple[int, int]], lows: list, sizes: tuple) -> bool:
    """Whether windows share no element; False where sizes are not known."""
    if not all(isinstance(size, int) for size in sizes):
        return False
    return any(limit <= low or start >= low + size for (start, limit), low, size in zip(window, lows, sizes))


_ADDITIONS = {"dynamic_update_slice": _add_slice, "scatter-add": _add_slices, "pad": _add_padded}
