"""Rows of a scan's stacked outputs: stored where they belong as soon as they are computed.

In: the statements of a scan's body, with a temporary for each row. Out: statements that compute the rows in
the stacks themselves. A row that a routine, a call or a loop inside works on as a whole is copied there
afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jitcore.loopir.builder import Builder
from jitcore.loopir.expr import Buffer
from jitcore.loopir.index import Index
from jitcore.loopir.program import Kernel
from jitcore.loopir.traversal import list_buffers
from jitcore.loopir.values import Region, Stored
from jitcore.schedule.scatters import region_kernel
from jitcore.schedule.unrolling import Rewrite


def store_rows(builder: Builder, body: list, rows: Sequence[Stored], stacks: Sequence[Buffer],
               position: Callable[[], Index]) -> None:
    """Completes the statements of a body that has computed the rows.

    Args:
        rows: temporaries that nothing but the body reads. position: where in the stacks the rows belong."""
    for row, stack in zip(rows, stacks):
        users = [number for number, statement in enumerate(body) if row.buffer in list_buffers([statement])]
        if row.shape and all(isinstance(body[number], Kernel) for number in users):
            place = stack, position() * math.prod(row.shape)
            move = Rewrite(builder.graph, {}, buffers={row.buffer: place})
            for number in users:
                body[number] = move.statement(body[number])
        else:
            region = Region(row, lambda index: (position(), *index))
            body.append(region_kernel(builder, region, stack))
