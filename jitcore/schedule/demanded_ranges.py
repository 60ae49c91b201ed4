"""Temporaries that are read in part are computed in part.

In: the statements of a whole program. Out: the same statements, where kernels whose results are temporaries
that all readers read within ranges known at run time (`bounds`) compute the union of these ranges only. What
such a kernel stores beside them has to be what is there already elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from jitcore.loopir.expr import Axis, Buffer, Expr, Graph, Index, walk
from jitcore.loopir.program import (Ends, Kernel, LibraryCall, Loop, Native, Program, Reduce, Statement,
                                    Store, Switch, While)
from jitcore.loopir.traversal import flatten, list_buffers, list_reads, list_writes, peel
from jitcore.schedule.bounds import find_store_range, tighten
from jitcore.schedule.buffers import drop_dead_stores

Bounds = dict[Axis, Ends]


def narrow_producers(lowering, program: Program) -> None:
    """Gives loops of kernels the ranges in which what they store is read."""
    _tighten_packing(lowering, program)
    steps = program.steps
    bodies = [body for step in steps if isinstance(step, Native) for body in _bodies(step.body)]
    ranged = {id(s) for body in bodies for s in body if isinstance(s, Kernel) and _has_ranges(s.body)}
    if not ranged:
        return
    narrowing = _Narrowing(lowering, steps, bodies, ranged)
    for body in bodies:
        for place in reversed(range(len(body))):  # last ones first: readers before producers
            narrowing.kernel(body, place)


def _tighten_packing(lowering, program: Program) -> None:
    """Tightens loops around packed elements once more: masks that they kept for other loops may have turned
    out to be read nowhere else."""
    kernels = [kernel for kernel in flatten(program.steps) if isinstance(kernel, Kernel)]
    found = [kernel for kernel in kernels if any(
        store.packed for s in flatten(kernel.body) for store in s.stores)]
    if not found:
        return
    drop_dead_stores(program)
    for kernel in found:
        if not _has_ranges(kernel.body):
            kernel.body = tighten(lowering, kernel.body, [kernel.vector] if kernel.vector else [])


def _has_ranges(body: list) -> bool:
    return any(statement.bounds for statement in flatten(body))


def _bodies(body: list) -> Iterator[list]:
    """The lists of statements that run one after the other."""
    yield body
    for statement in body:
        for other in statement.bodies if isinstance(statement, (While, Switch)) else ():
            yield from _bodies(other)


def _own_reads(statement: Statement) -> set[Buffer]:
    """What a statement reads, but for what the statements in lists inside of it do."""
    is_control = isinstance(statement, (While, Switch))
    return {buffer for buffer, _ in statement.loads} if is_control else list_reads([statement])


def _reads(body: list, around: Bounds) -> Iterator[tuple[Buffer, Index, Bounds]]:
    """(buffer, offset, bounds of the loops around it) of each element that is read."""
    for statement in body:
        yield from ((*node.attr, around) for node in walk(statement.ends) if node.op == "load")
        bounds = around | statement.bounds
        yield from ((*access, bounds) for access in statement.loads)
        for inner in statement.bodies:
            yield from _reads(inner, bounds)


# -- one kernel -------------------------------------------------------------------------------------------


class _Narrowing:
    """What is known of a program. ranged: ids of kernels with loops over ranges."""

    def __init__(self, lowering, steps: list, bodies: list[list], ranged: set[int]):
        self.lowering, self.ranged = lowering, ranged
        self.users: dict[Buffer, list] = {}  # statements that read or store, but for those of several bodies
        self.writes: dict[int, set[Buffer]] = {}  # by id of the statement
        calls = [step for step in steps if isinstance(step, LibraryCall)]
        self.read, self.shared = list_reads(calls), list_buffers(calls)  # shared: with other bodies too
        homes: dict[Buffer, int] = {}
        for number, body in enumerate(bodies):
            for statement in body:
                self.writes[id(statement)] = writes = list_writes([statement])
                reads = _own_reads(statement)
                self.read |= reads
                for buffer in reads if isinstance(statement, (While, Switch)) else reads | writes:
                    self.users.setdefault(buffer, []).append(statement)
                    if homes.setdefault(buffer, number) != number:
                        self.shared.add(buffer)

    def kernel(self, body: list, place: int) -> None:
        """Narrows the loops of the kernel at a place in a body, if nothing needs the rest of what it stores.
        It then runs right before its first reader where it can: more may be known about ranges there."""
        kernel = body[place]
        if not isinstance(kernel, Kernel) or not _is_plain(kernel.body) or kernel.others:
            return
        stores = [store for s in flatten(kernel.body) for store in s.stores]
        stores = [store for store in stores if store.buffer in self.read or store.buffer.kind == "out"]
        read, everything = _own_reads(kernel), {store.buffer for store in stores}
        kept = [store for store in stores if not self._is_own(store.buffer) or store.buffer in read]
        stores = [store for store in stores if store not in kept]
        written = {store.buffer for store in stores}
        if len(everything) < len(stores) + len(kept) or not stores:
            return
        users = {id(user): user for buffer in written for user in self.users[buffer] if user is not kernel}
        if self.ranged.isdisjoint(users) or not all(isinstance(user, Kernel) for user in users.values()):
            return
        readers = [number for number, statement in enumerate(body) if id(statement) in users]
        if readers[0] < place or any(not written.isdisjoint(self.writes[user]) for user in users):
            return
        may_wait = not kept and self._written_in(body[place + 1 : readers[0]]).isdisjoint(read)
        reads = self._list_reads(body, readers[0] if may_wait else place, readers, written)
        if not _set_ranges(self.lowering, kernel, stores, kept, reads):
            return
        self.ranged.add(id(kernel))
        for buffer in _own_reads(kernel) - read:  # what the ends of its ranges depend on
            self.users.setdefault(buffer, []).append(kernel)
        if may_wait:
            body.insert(readers[0] - 1, body.pop(place))

    def _is_own(self, buffer: Buffer) -> bool:
        """Whether a buffer holds a temporary that one list of statements keeps to itself."""
        return buffer.kind == "temp" and buffer not in self.shared

    def _written_in(self, statements: list) -> set[Buffer]:
        return set().union(*(self.writes[id(statement)] for statement in statements))

    def _list_reads(self, body: list, begin: int, readers: list[int], written: set[Buffer]) -> list:
        """(buffer, offset, bounds) of what kernels at some places of a body read of some buffers. Bounds are
        told as far as they are known at place `begin`."""
        found: list[tuple[Buffer, Index, Bounds]] = []
        for number in readers:
            changed = written | self._written_in(body[begin:number])
            for buffer, offset, bounds in _reads(body[number].body, {}):
                if buffer in written:
                    found.append((buffer, offset, _known_before(bounds, changed)))
        return found


def _set_ranges(lowering, kernel: Kernel, stores: list[Store], kept: list[Store], reads: list) -> bool:
    """Gives the loops around all of a kernel's statements their ranges; whether one has any. kept: stores
    whose elements are needed wherever they change."""
    whole = [loop for loop in peel(kernel.body)[0] if not loop.bounds]
    for loop in whole:
        loop.low, loop.high = _find_union(lowering, loop.axis, stores, kept, reads)
    return any(loop.bounds for loop in whole)


def _is_plain(body: list) -> bool:
    """Whether there are loops around stores and reductions only, in which each element is stored once."""
    return all(isinstance(s, (Loop, Store, Reduce)) and not any(store.is_update for store in s.stores)
               for s in flatten(body))


def _known_before(bounds: Bounds, changed: set[Buffer]) -> Bounds:
    """Bounds without the ends that vary inside of a kernel, or depend on what was written."""

    def keep(end: Expr | None) -> Expr | None:
        if end is None or end.axes:
            return None
        nodes = walk([end])
        is_known = not any(n.op == "result" or n.op == "load" and n.attr[0] in changed for n in nodes)
        return end if is_known else None

    return {axis: (keep(low), keep(high)) for axis, (low, high) in bounds.items()}


def _find_union(lowering, axis: Axis, stores: list[Store], kept: list[Store], reads: list) -> tuple:
    """(low, high) of a range of an axis that holds every place where an element that is read is stored, or
    one that is kept changes."""
    places = {store.buffer: store.offset for store in stores}
    written = {store.buffer for store in (*stores, *kept)}
    lows, highs = {}, {}
    for store in kept:
        low, high = find_store_range(lowering, store, axis, written)
        lows[low], highs[high] = True, True
    for buffer, offset, bounds in reads:
        reader = _find_partner(axis, places[buffer], offset)
        low, high = bounds.get(reader, (None, None))
        lows[low], highs[high] = True, True
    return _join(lowering.graph, "min", lows), _join(lowering.graph, "max", highs)


def _find_partner(axis: Axis, stored: Index, read: Index) -> Axis | None:
    """The axis along which a reader walks through what was stored along an axis, from the same place on and
    by the same steps; None where the two indexes differ otherwise than by their axes."""
    terms = [{step: atom for atom, step in index.terms if isinstance(atom, Axis)} for index in (stored, read)]
    is_same = stored.const == read.const and terms[0].keys() == terms[1].keys() and all(
        len(own) == len(index.terms) for own, index in zip(terms, (stored, read)))
    if not is_same or any(terms[0][step].extent != terms[1][step].extent for step in terms[0]):
        return None
    return next((terms[1][step] for step, own in terms[0].items() if own is axis), None)


def _join(graph: Graph, op: str, ends: dict) -> Expr | None:
    if not ends or None in ends:
        return None
    first, *others = ends
    for other in others:
        first = graph.op(op, first, other)
    return first
