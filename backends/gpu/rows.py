"""Rows in registers: what the sweeps of an item compute for each other along one axis.

In: the statements of an item. Out: which of their expressions a team may keep, so that later sweeps neither
read nor compute them again, and how many registers that takes.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from jitcore.dtypes import part_size
from jitcore.loopir.expr import COMPLEX_COST, OP_COST, Axis, Buffer, Expr, Index, walk
from jitcore.loopir.program import Loop, Reduce, Store
from jitcore.loopir.traversal import flatten, list_reads, list_roots

#: Bytes of a register.
REGISTER_BYTES = 4


class Row(NamedTuple):
    """sweeps: the statements along an axis. values: the expressions that are kept. stored: for those that
    load what an earlier sweep has stored, its value. element_bytes: of registers for each element, at most at
    one time. cost: of all operations on an element. lanes: elements side by side that a thread reads at
    a time, in so many rounds of the team. threads: of a multiprocessor that there are registers for."""

    axis: Axis
    sweeps: list[Loop | Reduce]
    values: set[Expr]
    stored: dict[Expr, Expr]
    element_bytes: int
    cost: int
    lanes: int = 1
    rounds: int = 0
    threads: int = 0


def find_row(body: list) -> Row | None:
    """The row of an item; None where no sweep needs what another one has read or computed."""
    plain = [statement for statement in body if _is_plain(statement)]
    if not plain:
        return None
    axis = Counter(sweep.axes[0] for sweep in plain).most_common(1)[0][0]
    sweeps = [sweep for sweep in plain if sweep.axes[0] is axis]
    values, stored = _list_kept(axis, sweeps, _find_stored(sweeps, body))
    element_bytes = _count_bytes(sweeps, values, stored)
    cost = sum(map(_cost_of, values))
    return Row(axis, sweeps, values, stored, element_bytes, cost) if element_bytes else None


def _cost_of(node: Expr) -> int:
    """Of an operation, by how many registers a number takes."""
    is_complex = any(arg.dtype.kind == "c" for arg in (node, *node.args))
    cost = OP_COST.get(node.op, 1) + (COMPLEX_COST.get(node.op, 1) if is_complex else 0)
    return cost * max(part_size(node.dtype) // REGISTER_BYTES, 1)


def list_inside(sweep: Loop | Reduce) -> list[Reduce | Store]:
    """What a sweep does for each element."""
    return sweep.body if isinstance(sweep, Loop) else [sweep]


def _is_plain(statement) -> bool:
    """Whether a statement goes along all of one axis, and stores or combines values that are there."""
    if not isinstance(statement, (Loop, Reduce)) or len(statement.axes) > 1 or statement.bounds:
        return False
    if isinstance(statement, Reduce):
        stores, finds_places = statement.stores, statement.finds_places
    else:
        stores, finds_places = statement.body, False
    return not finds_places and all(
        isinstance(store, Store) and not store.is_update and store.mask is None for store in stores)


def _find_stored(sweeps: list, body: list) -> dict[Buffer, dict[Index, Expr]]:
    """The elements of each buffer that a body writes, with their values: none, unless one store of a sweep
    writes all of them, and no sweep has read others before."""
    targets = [buffer for statement in flatten(body) for buffer, _ in statement.targets]
    found: dict[Buffer, dict[Index, Expr]] = {buffer: {} for buffer in targets}
    read: set[Buffer] = set()
    for sweep in sweeps:
        read |= list_reads([sweep])
        for store in [store for statement in list_inside(sweep) for store in statement.stores]:
            if targets.count(store.buffer) == 1 and store.buffer not in read:
                found[store.buffer] = {store.offset: store.value}
    return found


def _list_kept(axis: Axis, sweeps: list, written: dict) -> tuple[set[Expr], dict[Expr, Expr]]:
    """The expressions along an axis that have the same value in all sweeps; and of which of them a store says
    it."""
    kept: set[Expr] = set()
    changed: set[Expr] = set()
    stored: dict[Expr, Expr] = {}
    for node in [node for sweep in sweeps for node in walk(list_roots([sweep]))]:  # operands come first
        if node.op == "load" and node.attr[0] in written:
            value = written[node.attr[0]].get(node.attr[1])
            if value in kept:
                stored[node] = value
            else:
                changed.add(node)
        if node not in changed and changed.isdisjoint(node.inner):
            kept |= {node} if axis in node.axes else set()
        else:
            changed.add(node)
    return kept, stored


def _count_bytes(sweeps: list, values: set[Expr], stored: dict[Expr, Expr]) -> int:
    """Bytes of registers for each element, at most, whose values wait between two sweeps."""
    known: set[Expr] = set()
    most = 0
    for number, sweep in enumerate(sweeps):
        known |= values.intersection(walk(list_roots([sweep])))
        used = _list_used(list_roots(sweeps[number + 1 :]), known | stored.keys())
        waiting = {stored.get(node, node) for node in used} & known
        most = max(most, sum(max(node.dtype.itemsize, REGISTER_BYTES) for node in waiting))
    return most


def _list_used(roots: list[Expr], known: set[Expr]) -> set[Expr]:
    """The known expressions from which others are computed."""
    found, seen, stack = set(), set(), list(roots)
    while stack:
        node = stack.pop()
        if node in known:
            found.add(node)
        elif node not in seen:
            seen.add(node)
            stack.extend(node.inner)
    return found
