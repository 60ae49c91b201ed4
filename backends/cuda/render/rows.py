"""Rows in registers: what a sweep of an item reads and computes stays there for the sweeps after it.

In: the row of a mapping, and a team. Out: code for each round of the team, one after the other, in which an
expression is computed once, however many sweeps need it.

A round that the row fills in part is computed as a whole, at places of the row in any case: its values are
then known in later sweeps. Only what is combined and stored is guarded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.render.team import Team
from jitcore.backends.gpu.rows import Row
from jitcore.backends.llvm.registers import I64
from jitcore.loopir.expr import Expr, walk


class HeldRow:
    """This thread's part of a row.

    Attributes:
        values: of each round, the registers of what is known there, by the id of the expression.
        places: of each round, where this thread's elements begin.
        exists: whether they are of the row, in the last round; None where it is full."""

    def __init__(self, e: KernelEmitter, team: Team, row: Row):
        b = e.b
        self.e, self.row, self.exists = e, row, None
        self.values: list[dict] = [{} for _ in range(row.rounds)]
        first = b.mul(team.rank, I64(row.lanes))
        self.places = [b.add(first, I64(number * team.size * row.lanes)) for number in range(row.rounds)]
        if int(row.axis.extent) % (team.size * row.lanes):
            extent, last = e.size(row.axis.extent), self.places[-1]
            self.exists = b.icmp_signed("<", last, extent)
            self.places[-1] = b.select(self.exists, last, b.sub(extent, I64(row.lanes)))

    def run(self, roots: list[Expr], emit: Callable[[], None]) -> None:
        """A sweep that evaluates these expressions: `emit()` for each round."""
        nodes = [node for node in walk(roots) if node in self.row.values]
        # all rounds read before one computes: memory is busy with all of them
        for needed in [node for node in nodes if node.op == "load" and not node.inner], nodes:
            for number in range(self.row.rounds):
                with self._enter(number):
                    for node in needed:
                        self._know(node)
                    if needed is nodes:
                        with self._guard(number):
                            emit()

    def _know(self, node: Expr) -> None:
        """Puts the value of an expression into a register."""
        e, stored = self.e, self.row.stored.get(node)
        if stored is None or id(node) in e.values:
            e.expr(node)
        else:
            e.values[id(node)] = e.expr(stored)

    @contextlib.contextmanager
    def _enter(self, number: int) -> Iterator[None]:
        e, row, outside = self.e, self.row, self.e.values
        e.values = outside | self.values[number]
        e.axis_values[row.axis] = self.places[number]
        with e.in_lanes(row.axis, row.lanes):
            yield
        self.values[number] = {id(node): e.values[id(node)] for node in row.values if id(node) in e.values}
        e.values = outside

    def _guard(self, number: int) -> contextlib.AbstractContextManager:
        is_full = self.exists is None or number + 1 < self.row.rounds
        return contextlib.nullcontext() if is_full else self.e.if_then(self.exists)
