"""Overwritten updates: an update of a window that a later update replaces whole is not made.

In: a jaxpr. Out: the same program where of two updates of one window the second applies to what the first
applied to, and reads of the array between them are of the values in the window or of the array before.
Scripts write `c[:, k] = ...` and then `c[:, k] = c[:, k] * d`: two versions of `c`, the first a copy. An
update of which only such windows are read is not made either: a branch that writes parts of an array may hand
on these parts alone.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, Literal, Var
from jitcore.lax.indexing.windows import find_window, is_known
from jitcore.passes.walk import Rule, Walk, keep, rewrite_jaxprs

UPDATE, READ = "dynamic_update_slice", "dynamic_slice"
# Reads behind an update that are looked at, a guard of what compiling takes: each goes through all of a
# chain of updates.
MAX_READS = 64


def drop_overwritten(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Drops an update wherever all reads of its result can do without, and nothing else needs it, or another
    update replaces its window."""
    return rewrite_jaxprs(closed_jaxpr, _plan_dropping)


def _plan_dropping(closed_jaxpr: ClosedJaxpr) -> Rule:
    dropped = _find_overwritten(closed_jaxpr.eqns, closed_jaxpr.jaxpr.outvars)
    return functools.partial(_apply_rule, dropped=dropped) if dropped else keep


def _find_overwritten(eqns: Sequence[Equation], outvars: Sequence[Atom]) -> set[Var]:
    """Results of updates that need not be made."""
    readers: dict[Atom, list[Equation]] = defaultdict(list)
    for eqn in eqns:
        for var in eqn.variables:
            readers[var].append(eqn)
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
    window, other = find_window(update), find_window(reader)
    return window == other or reader.primitive.name == READ and window.find_axis_apart(other) is not None


# -- rewriting ----------------------------------------------------------------------------------------------
def _apply_rule(walk: Walk, eqn: Equation, dropped: set[Var]) -> list[Atom] | None:
    """The memory of the walk has the dropped updates, by their results."""
    if eqn.primitive.name == UPDATE:
        while (before := walk.memory.get(eqn.invars[0])) and find_window(before) == find_window(eqn):
            eqn = eqn.replace(invars=[before.invars[0], *eqn.invars[1:]])
        if eqn.outvars[0] in dropped:
            walk.memory[eqn.outvars[0]] = eqn
        else:
            walk.emit(eqn)
        return eqn.outvars
    return [_read(walk, eqn)] if eqn.primitive.name == READ and eqn.invars[0] in walk.memory else None


def _read(walk: Walk, read: Equation) -> Atom:
    """What a window of an array has behind dropped updates."""
    array, *starts = read.invars
    update = walk.memory.get(array)
    if update is None:
        return walk.bind(READ, *read.invars, **read.params)
    origin, value, *places = update.invars
    window, other = find_window(update), find_window(read)
    if window == other:
        return value
    before = _read(walk, read.replace(invars=[origin, *starts]))
    axis = window.find_axis_apart(other)
    if is_known((window.starts[axis], other.starts[axis])):
        return before
    one, other = (_clamp(walk, place, window.extents[axis]) for place in (places[axis], starts[axis]))
    if one.aval.dtype != other.aval.dtype:
        one, other = (_as_int64(walk, place) for place in (one, other))
    return walk.bind("select_n", walk.bind("eq", one, other), before, value)


def _clamp(walk: Walk, start: Atom, extent: int) -> Atom:
    """Where a window of one element lies along an axis."""
    dtype = start.aval.dtype
    if isinstance(start, Literal):
        return Literal(dtype.type(min(max(int(start.value), 0), extent - 1)), start.aval)
    last = min(extent - 1, int(np.iinfo(dtype).max))
    return walk.bind("min", walk.bind("max", start, Literal(dtype.type(0))), Literal(dtype.type(last)))


def _as_int64(walk: Walk, place: Atom) -> Atom:
    """A place in an array, which is none that another type cannot hold."""
    dtype = dtypes.int64
    if isinstance(place, Literal):
        return Literal(dtype.type(int(place.value)))
    if place.aval.dtype == dtype:
        return place
    return walk.bind("convert_element_type", place, new_dtype=dtype, weak_type=False)
