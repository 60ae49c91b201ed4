"""The arena: where each temporary of a program lies in one block of memory.

In: a program of concrete sizes. Out: an offset per temporary; two share bytes if they are never live
together.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import LibraryCall, Program
from jitcore.schedule.buffers import step_buffers

# Bytes of a cache line: where temporaries begin.
ALIGNMENT = 64


def plan_arena(program: Program, temps: Sequence[Buffer],
               alignment: int = ALIGNMENT) -> tuple[list[int], int]:
    """(offset of each temporary, bytes of the arena), first fit by decreasing size."""
    lives = _find_lives(program)
    placed: list[tuple[int, int, tuple[int, int]]] = []
    offsets: dict[Buffer, int] = {}
    for buffer in sorted(temps, key=count_bytes, reverse=True):
        size, life = -(-max(count_bytes(buffer), 1) // alignment) * alignment, lives[buffer]
        offset = 0
        for start, stop, other in sorted(placed):
            if other[0] <= life[1] and life[0] <= other[1] and start < offset + size and offset < stop:
                offset = stop
        offsets[buffer] = offset
        placed.append((offset, offset + size, life))
    return [offsets[buffer] for buffer in temps], max((stop for _, stop, _ in placed), default=0)


def _find_lives(program: Program) -> dict[Buffer, tuple[int, int]]:
    """First and last position of each buffer among the outermost statements; control flow counts as one."""
    lives: dict[Buffer, tuple[int, int]] = {}
    position = 0
    for step in program.steps:
        for statement in [step] if isinstance(step, LibraryCall) else step.body:
            for buffer in step_buffers(step if isinstance(step, LibraryCall) else statement):
                first = lives.get(buffer, (position, position))[0]
                lives[buffer] = (first, position)
            position += 1
    return lives


def count_bytes(buffer: Buffer) -> int:
    count = buffer.dtype.itemsize
    for extent in buffer.shape:
        count *= int(extent)
    return count
