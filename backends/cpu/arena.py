"""The arena: where each temporary of a program lies in one block of memory, and the blocks themselves.

In: a program of concrete sizes. Out: an offset per temporary; two share bytes if they are never live
together. At run time, a block for each call.

Blocks of middle size are kept for the next call: the C library returns them to the system as soon as they are
free, and the system's zeroing of their pages would take longer than many programs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import LibraryCall, Program
from jitcore.schedule.buffers import step_buffers

ALIGNMENT = 64

# Bytes of the blocks that are kept, in steps of powers of 2, and how many of each: 64 MiB at most. Below, the
# C library keeps them itself; above, a program's own work takes longer than new pages.
_KEPT_SIZES = (1 << 16, 1 << 24)
_KEPT_COUNT = 2

_kept: dict[int, list[np.ndarray]] = {}


def plan_arena(program: Program, temps: Sequence[Buffer]) -> tuple[list[int], int]:
    """(offset of each temporary, bytes of the arena), first fit by decreasing size."""
    lives = _find_lives(program)
    placed: list[tuple[int, int, tuple[int, int]]] = []
    offsets: dict[Buffer, int] = {}
    for buffer in sorted(temps, key=_padded_bytes, reverse=True):
        size, life = _padded_bytes(buffer), lives[buffer]
        offset = 0
        for start, stop, other in sorted(placed):
            if other[0] <= life[1] and life[0] <= other[1] and start < offset + size and offset < stop:
                offset = stop
        offsets[buffer] = offset
        placed.append((offset, offset + size, life))
    return [offsets[buffer] for buffer in temps], max((stop for _, stop, _ in placed), default=0)


def write_arena(size: int, names: dict) -> tuple[list[str], list[str]]:
    """Lines of Python that get the block `arena` for one call of a program, and that give it back.

    names: where what the lines use is added."""
    names |= {"empty": np.empty, "arena_dtype": np.uint8}
    if not _KEPT_SIZES[0] <= size <= _KEPT_SIZES[1]:
        return [f"arena = empty({size}, arena_dtype)"], []
    size = 1 << (size - 1).bit_length()
    names["kept"] = _kept.setdefault(size, [])
    # Another thread may take the last block between a test and the removal: no test then.
    take = ["try:", "    arena = kept.pop()", "except IndexError:", f"    arena = empty({size}, arena_dtype)"]
    return take, [f"if len(kept) < {_KEPT_COUNT}:", "    kept.append(arena)"]


def drop_blocks() -> None:
    """Gives back the blocks that are kept for later calls."""
    for blocks in list(_kept.values()):
        blocks.clear()


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


def _padded_bytes(buffer: Buffer) -> int:
    count = buffer.dtype.itemsize
    for extent in buffer.shape:
        count *= int(extent)
    return -(-max(count, 1) // ALIGNMENT) * ALIGNMENT
