"""Overwritten updates: an update of a window that a later update replaces whole is not made.

In: a jaxpr. Out: the same program where of two updates of one window the second applies to what the first
applied to, and reads of the array between them are of the values in the window or of the array before.
Scripts write `c[:, k] = ...` and then `c[:, k] = c[:, k] * d`: two versions of `c`, the first a copy. An
update of which only such windows are read is not made either: a branch that writes parts of an array may hand
on these parts alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, Literal, Var
from jitcore.core.primitive import registry
from jitcore.passes.walk import Transform, Walk, map_inner_jaxprs, rewrite_each_once, walk_through

UPDATE, READ = "dynamic_update_slice", "dynamic_slice"
# Reads behind an update that are looked at: each goes through all of a chain of updates.
MAX_READS = 64


def drop_overwritten(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Drops an update wherever all reads of its result can do without, and nothing else needs it, or another
    update replaces its window."""
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
    if not any(eqn.primitive.name == UPDATE for eqn in eqns):
        return set()
    readers: dict[Atom, list[Equation]] = defaultdict(list)
    for eqn in eqns:
        for atom in eqn.invars:
            if isinstance(atom, Var):
                readers[atom].append(eqn)
    results, dropped = set(outvars), set()
    reads: dict[Var, list[Equation]] = {}  # of results of updates that nothing but reads needs
    for eqn in reversed(eqns):
        out = eqn.outvars[0] if eqn.primitive.name == UPDATE else None
        if out is None or out in results or not all(_is_of_windows(reader, out) for reader in readers[out]):
            continue
        passed = [read for reader in readers[out] for read in reads.get(reader.outvars[0], (reader,))]
        if len(passed) > MAX_READS or not all(_can_do_without(eqn, reader) for reader in passed):
            continue
        dropped.add(out)
        if all(read.primitive.name == READ for read in passed):
            reads[out] = passed
    return dropped


def _is_of_windows(reader: Equation, array: Var) -> bool:
    """Whether an equation reads or replaces a window of an array, and reads nothing else of it."""
    return reader.primitive.name in (UPDATE, READ) and (
        reader.invars[0] is array and array not in reader.invars[1:])


def _can_do_without(update: Equation, reader: Equation) -> bool:
    """Whether a reader of an update, or of later ones that are dropped, needs no memory that holds it."""
    is_same = _is_same_window(update, reader)
    return is_same or reader.primitive.name == READ and _find_axis(update, reader) is not None


# -- rewriting ----------------------------------------------------------------------------------------------
def _apply_rule(walk: Walk, eqn: Equation, dropped: set[Var]) -> list[Atom] | None:
    """The memory of the walk has the dropped updates, by their results."""
    if eqn.primitive.name == UPDATE:
        while (before := walk.memory.get(eqn.invars[0])) is not None and _is_same_window(before, eqn):
            eqn = eqn.replace(invars=[before.invars[0], *eqn.invars[1:]])
        if eqn.outvars[0] in dropped:
            walk.memory[eqn.outvars[0]] = eqn
            return eqn.outvars
        walk.emit(eqn)
        return eqn.outvars
    if eqn.primitive.name == READ and eqn.invars[0] in walk.memory:
        return [_read(walk, eqn)]
    return None


def _read(walk: Walk, read: Equation) -> Atom:
    """What a window of an array has behind dropped updates."""
    update = walk.memory.get(read.invars[0])
    if update is None:
        found = Var(read.outvars[0].aval)
        walk.emit(read.replace(outvars=[found]))
        return found
    if _is_same_window(update, read):
        return update.invars[1]
    axis = _find_axis(update, read)
    extent = update.invars[0].aval.shape[axis]
    places = [_starts(eqn)[axis] for eqn in (update, read)]
    is_known = all(isinstance(place, Literal) for place in places)
    if is_known and len({_clamp(walk, eqn, axis, extent).value for eqn in (update, read)}) == 1:
        return update.invars[1]
    before = _read(walk, read.replace(invars=[update.invars[0], *read.invars[1:]]))
    if is_known:
        return before
    one, other = (_clamp(walk, eqn, axis, extent) for eqn in (update, read))
    if one.aval.dtype != other.aval.dtype:
        one, other = (_as_int64(walk, read, place) for place in (one, other))
    is_hit = _emit(walk, read, "eq", [one, other], dtypes.bool_)
    found = Var(read.outvars[0].aval)
    walk.emit(Equation(registry["select_n"], [is_hit, before, update.invars[1]], [found], {},
                       source_info=read.source_info))
    return found


def _clamp(walk: Walk, eqn: Equation, axis: int, extent: int) -> Atom:
    """Where a window of one element lies along an axis."""
    start = _starts(eqn)[axis]
    dtype = start.aval.dtype
    if isinstance(start, Literal):
        return Literal(dtype.type(min(max(int(start.value), 0), extent - 1)), start.aval)
    start = _emit(walk, eqn, "max", [start, Literal(dtype.type(0))], dtype)
    last = min(extent - 1, int(np.iinfo(dtype).max))
    return _emit(walk, eqn, "min", [start, Literal(dtype.type(last))], dtype)


def _as_int64(walk: Walk, origin: Equation, place: Atom) -> Atom:
    """A place in an array, which is none that another type cannot hold."""
    dtype = dtypes.int64
    if isinstance(place, Literal):
        return Literal(dtype.type(int(place.value)))
    if place.aval.dtype == dtype:
        return place
    return _emit(walk, origin, "convert_element_type", [place], dtype, new_dtype=dtype, weak_type=False)


def _emit(walk: Walk, origin: Equation, name: str, operands: list[Atom], dtype, **params) -> Var:
    out = Var(operands[0].aval.update(dtype=dtype, weak_type=False))
    walk.emit(Equation(registry[name], operands, [out], params, source_info=origin.source_info))
    return out
