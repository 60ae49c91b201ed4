"""The buffer plan: dead temporaries go, scalars move to the stack, outputs reuse donated inputs.

In: a program as it was lowered. Out: the same program with final buffer kinds and aliases; and, for concrete
sizes, the arena: an offset in one block of memory for each temporary. Two share bytes if they are never live
together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import (Call, Choice, Kernel, LibraryCall, Loop, Native, Program, Reduce, Scan,
                                    Store)
from jitcore.loopir.traversal import flatten, list_buffers, list_outermost, list_reads, list_writes


def plan_temporaries(lowering, program: Program) -> None:
    """Drops what nothing reads, and places scalars."""
    drop_dead_stores(program)
    _place_scalars(program)


def drop_dead_stores(program: Program) -> None:
    """Removes stores to temporaries that nothing reads (their values were forwarded), and then unused
    temporaries."""
    needed = set(program.outputs)
    for statement in flatten(program.steps):
        needed.update(statement.block_results)
        if isinstance(statement, (Call, LibraryCall)):
            needed.update(statement.outputs)
    while True:
        written, read = list_writes(program.steps), list_reads(program.steps)
        dead = (written & set(program.temps)) - read - needed
        if not dead:
            break
        program.steps = _without(program.steps, lambda statement: statement.buffer in dead)  # noqa: B023
    program.temps = [buffer for buffer in program.temps if buffer in read | written]


def _without(body: list, is_dead: Callable[[Store | Scan], bool]) -> list:
    """The body without the stores and scans that are dead, and without what becomes empty."""
    kept = []
    for statement in body:
        if isinstance(statement, (Store, Scan)) and is_dead(statement):
            continue
        statement.change_bodies(lambda inner: _without(inner, is_dead))
        if isinstance(statement, Reduce):
            statement.stores = _without(statement.stores, is_dead)
        if not isinstance(statement, (Native, Kernel, Loop, Choice)) or statement.body:
            kept.append(statement)
    return kept


def _place_scalars(program: Program) -> None:
    """A scalar that one native step keeps to itself lives on its stack; others are in the arena."""
    homes: dict[Buffer, set[int]] = {}
    for number, step in enumerate(program.steps):
        for buffer in list_buffers([step]):
            homes.setdefault(buffer, set()).add(number)
    calls = [statement for statement in flatten(program.steps) if isinstance(statement, LibraryCall)]
    shown = list_buffers(calls)  # to Python
    for buffer in program.temps:
        if buffer.kind == "scalar" and (len(homes[buffer]) > 1 or buffer in shown):
            buffer.kind = "temp"


def reuse_inputs(lowering, program: Program) -> None:
    """Lets outputs take over donated inputs of their shape and dtype, where that changes no value."""
    if len(program.steps) != 1 or not isinstance(program.steps[0], Native):
        return
    step = program.steps[0]
    free = [source for source, may_overwrite in zip(program.inputs, lowering.donated) if may_overwrite]
    for output in program.outputs:
        for source in free:
            same_type = (source.shape, source.dtype) == (output.shape, output.dtype)
            if same_type and _may_alias(step.body, source, output):
                program.aliases[output] = source
                free.remove(source)
                step.body = _without_copies(step.body, source, output)
                break


def _without_copies(body: list, source: Buffer, output: Buffer) -> list:
    """Leaves out the store that only moves each element of `source` to its own place."""

    def is_copy(statement: Store | Scan) -> bool:
        if not isinstance(statement, Store) or statement.buffer is not output:
            return False
        return statement.value.op == "load" and statement.value.attr == (source, statement.offset)

    return _without(body, is_copy)


def _may_alias(body: list, source: Buffer, output: Buffer) -> bool:
    """Whether `source` is read for the last time where the same element of `output` is first written."""
    written = False
    for kernel in body:
        statements = flatten([kernel])
        reads = [(s, offset) for s in statements for buffer, offset in s.loads if buffer is source]
        writes = [(s, offset) for s in statements for buffer, offset in s.targets if buffer is output]
        if written and reads:
            return False
        if written or not writes:
            continue
        (first, place), *others = writes
        if others or not isinstance(kernel, Kernel) or not isinstance(first, Store):
            return False
        if any(s is not first or offset != place for s, offset in reads):
            return False
        written = True
    return written


def plan_arena(program: Program, temps: Sequence[Buffer], alignment: int) -> tuple[list[int], int]:
    """(offset of each temporary, bytes of the arena), first fit by decreasing size. alignment: of offsets."""
    lives = _find_lives(program)
    placed: list[tuple[int, int, tuple[int, int]]] = []
    offsets: dict[Buffer, int] = {}
    for buffer in sorted(temps, key=lambda buffer: buffer.nbytes, reverse=True):
        size, life = -(-max(buffer.nbytes, 1) // alignment) * alignment, lives[buffer]
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
    for position, statement in enumerate(list_outermost(program.steps)):
        for buffer in list_buffers([statement]):
            first = lives.get(buffer, (position, position))[0]
            lives[buffer] = (first, position)
    return lives
