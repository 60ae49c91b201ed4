"""Overwritten updates: an update of a window that a later update replaces whole is not made.

In: a jaxpr. Out: the same program where of two updates of one window the second applies to what the first
applied to, and reads of the array between them are of the values in the window or of the array before.
Scripts write `c[:, k] = ...` and then `c[:, k] = c[:, k] * d`: two versions of `c`, the first a copy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from jitcore import dtypes
from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, Literal, Var
from jitcore.core.primitive import registry
from jitcore.passes.forward import Transform, Walk, map_inner_jaxprs, rewrite_each_once, walk_through

UPDATE, READ = "dynamic_update_slice", "dynamic_slice"


def drop_overwritten(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Drops an update wherever all reads of its result can do without, and another replaces its window."""
    return rewrite_each_once(closed_jaxpr, _drop)


def _drop(closed_jaxpr: ClosedJaxpr, rewrite: Transform) -> ClosedJaxpr:
    jaxpr = closed_jaxpr.jaxpr
    dropped = _find_overwritten(jaxpr.eqns, jaxpr.outvars)
    eqns = [map_inner_jaxprs(eqn, rewrite) for eqn in jaxpr.eqns]
    if dropped:
        return walk_through(closed_jaxpr, eqns, lambda walk, eqn: _apply_rule(walk, eqn, dropped))
    if all(new is old for new, old in zip(eqns, jaxpr.eqns)):
        return closed_jaxpr
    return ClosedJaxpr(jaxpr.replace(eqns=eqns), closed_jaxpr.consts)


# -- windows ------------------------------------------------------------------------------------------------
def _starts(eqn: Equation) -> list[Atom]:
    return eqn.invars[2:] if eqn.primitive.name == UPDATE else eqn.invars[1:]


def _sizes(eqn: Equation) -> tuple:
    return eqn.invars[1].aval.shape if eqn.primitive.name == UPDATE else tuple(eqn.params["slice_sizes"])


def _is_same_place(one: Atom, other: Atom) -> bool:
    if isinstance(one, Literal) and isinstance(other, Literal):
        return int(one.value) == int(other.value)
    return one is other


def _is_same_window(one: Equation, other: Equation) -> bool:
    return _sizes(one) == _sizes(other) and all(map(_is_same_place, _starts(one), _starts(other)))


def _find_axis(update: Equation, read: Equation) -> int | None:
    """The axis along which two windows of one element may lie at different places, while they agree along all
    others; None where they differ in other ways."""
    sizes, extents = _sizes(update), update.invars[0].aval.shape
    if sizes != _sizes(read):
        return None
    pairs = zip(_starts(update), _starts(read))
    apart = [axis for axis, pair in enumerate(pairs) if not _is_same_place(*pair)]
    if len(apart) != 1 or sizes[apart[0]] != 1 or not isinstance(extents[apart[0]], int):
        return None
    return apart[0]


def _find_overwritten(eqns: Sequence[Equation], outvars: Sequence[Atom]) -> set[Var]:
    """Results of updates that need not be made."""
    if sum(eqn.primitive.name == UPDATE for eqn in eqns) < 2:
        return set()
    readers: dict[Atom, list[Equation]] = defaultdict(list)
    for eqn in eqns:
        for atom in eqn.invars:
            if isinstance(atom, Var):
                readers[atom].append(eqn)
    results = set(outvars)
    return {eqn.outvars[0] for eqn in eqns
            if eqn.primitive.name == UPDATE and eqn.outvars[0] not in results
            and _is_overwritten(eqn, readers[eqn.outvars[0]])}  # fmt: skip


def _is_overwritten(update: Equation, readers: Sequence[Equation]) -> bool:
    out, is_replaced = update.outvars[0], False
    for reader in readers:
        if reader.invars[0] is not out or out in reader.invars[1:]:
            return False
        if reader.primitive.name == UPDATE and _is_same_window(update, reader):
            is_replaced = True
        elif reader.primitive.name != READ:
            return False
        elif not _is_same_window(update, reader) and _find_axis(update, reader) is None:
            return False
    return is_replaced


# -- rewriting ----------------------------------------------------------------------------------------------
def _apply_rule(walk: Walk, eqn: Equation, dropped: set[Var]) -> list[Atom] | None:
    """The memory of the walk has the dropped updates, by their results."""
    if eqn.primitive.name == UPDATE:
        while eqn.invars[0] in walk.memory:
            eqn = eqn.replace(invars=[walk.memory[eqn.invars[0]].invars[0], *eqn.invars[1:]])
        if eqn.outvars[0] in dropped:
            walk.memory[eqn.outvars[0]] = eqn
            return eqn.outvars
        walk.emit(eqn)
        return eqn.outvars
    if eqn.primitive.name == READ and eqn.invars[0] in walk.memory:
        return [_read(walk, eqn)]
    return None


def _read(walk: Walk, read: Equation) -> Atom:
    """What a window of an array has behind a dropped update."""
    update = walk.memory[read.invars[0]]
    if _is_same_window(update, read):
        return update.invars[1]
    axis = _find_axis(update, read)
    before = Var(read.outvars[0].aval)
    walk.emit(read.replace(invars=[update.invars[0], *read.invars[1:]], outvars=[before]))
    extent = update.invars[0].aval.shape[axis]
    one, other = (_clamp(walk, eqn, axis, extent) for eqn in (update, read))
    if isinstance(one, Literal) and isinstance(other, Literal):
        return update.invars[1] if int(one.value) == int(other.value) else before
    is_hit = _emit(walk, read, "eq", [one, other], dtypes.bool_)
    found = Var(before.aval)
    walk.emit(Equation(registry["select_n"], [is_hit, before, update.invars[1]], [found], {},
                       source_info=read.source_info))  # fmt: skip
    return found


def _clamp(walk: Walk, eqn: Equation, axis: int, extent: int) -> Atom:
    """Where a window of one element lies along an axis."""
    start = _starts(eqn)[axis]
    dtype = start.aval.dtype
    if isinstance(start, Literal):
        return Literal(dtype.type(min(max(int(start.value), 0), extent - 1)), start.aval)
    start = _emit(walk, eqn, "max", [start, Literal(dtype.type(0))], dtype)
    return _emit(walk, eqn, "min", [start, Literal(dtype.type(extent - 1))], dtype)


def _emit(walk: Walk, origin: Equation, name: str, operands: list[Atom], dtype) -> Var:
    out = Var(operands[0].aval.update(dtype=dtype, weak_type=False))
    walk.emit(Equation(registry[name], operands, [out], {}, source_info=origin.source_info))
    return out
