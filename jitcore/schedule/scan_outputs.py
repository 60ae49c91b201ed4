"""Rows of a scan's stacked outputs: stored where they belong as soon as they are computed.

In: the statements of a scan's body, with a temporary for each row. Out: statements that compute the rows in
the stacks themselves. A row that a routine, a call or a loop inside works on as a whole is copied there
afterwards.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

from jitcore.loopir.builder import Builder
from jitcore.loopir.expr import Buffer, Expr, Graph
from jitcore.loopir.index import Index
from jitcore.loopir.program import Kernel, Reduce, Scan, Store
from jitcore.loopir.values import Region, Stored
from jitcore.schedule.buffers import step_buffers
from jitcore.schedule.scatters import region_kernel
from jitcore.schedule.unrolling import Rewrite


def store_rows(
    builder: Builder,
    body: list,
    rows: Sequence[Stored],
    stacks: Sequence[Buffer],
    position: Callable[[], Index],
) -> None:
    """Completes the statements of a body that has computed the rows.

    Args:
        rows: temporaries that nothing but the body reads. position: where in the stacks the rows belong."""
    for row, stack in zip(rows, stacks):
        users = [number for number, statement in enumerate(body) if row.buffer in step_buffers(statement)]
        if row.shape and all(isinstance(body[number], Kernel) for number in users):
            move = _Move(builder.graph, row.buffer, stack, position() * math.prod(row.shape))
            for number in users:
                body[number] = move.kernel(body[number])
        else:
            region = Region(row, lambda index: (position(), *index))
            body.append(region_kernel(builder, region, stack))


class _Move(Rewrite):
    """Statements that find the elements of one buffer in another, from `start` on."""

    def __init__(self, graph: Graph, old: Buffer, new: Buffer, start: Index):
        super().__init__(graph, {})
        self.old, self.new, self.start = old, new, start

    def kernel(self, kernel: Kernel) -> Kernel:
        moved = copy.copy(kernel)
        moved.body = list(map(self.statement, kernel.body))
        return moved

    def place(self, buffer: Buffer, offset: Index) -> tuple[Buffer, Index]:
        return (self.new, offset + self.start) if buffer is self.old else (buffer, offset)

    def _rebuild(self, node: Expr) -> Expr:
        new = super()._rebuild(node)
        return self.graph.load(*self.place(*new.attr)) if new.op == "load" else new

    def store(self, s: Store) -> Store:
        new = super().store(s)
        new.buffer, new.offset = self.place(new.buffer, new.offset)
        return new

    def statement(self, s):
        new = super().statement(s)
        if isinstance(s, Scan):
            new.buffer, new.offset = self.place(new.buffer, new.offset)
        if isinstance(s, (Reduce, Scan)):
            new.partials, new.block = s.partials, s.block
        return new
