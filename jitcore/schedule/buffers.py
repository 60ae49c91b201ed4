"""The buffer plan: dead temporaries go, scalars move to the stack, outputs reuse donated inputs.

In: a program as it was lowered. Out: the same program with final buffer kinds and aliases; and, for concrete
sizes, the arena: an offset in one block of memory for each temporary. Two share bytes if they are never live
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jitcore.loopir.expr import Buffer, walk
from jitcore.loopir.program import (
    Call,
    Choice,
    Kernel,
    LibraryCall,
    Loop,
    Native,
    Program,
    Reduce,
    Repeat,
    Scan,
    Store,
    Switch,
    While,
    bound_exprs,
)
from jitcore.schedule.statements import roots_of, stores_of


def plan_buffers(program: Program, donated: Sequence[bool]) -> Program:
    """Finishes a lowered program; see the module's first line."""
    drop_dead_stores(program)
    _place_scalars(program)
    _reuse_inputs(program, donated)
    return program


def statements_of(body: Sequence) -> Iterator:
    """Every statement of a body, those inside others included."""
    for statement in body:
        yield statement
        if isinstance(statement, (Kernel, Loop, Repeat)):
            yield from statements_of(statement.body)
        elif isinstance(statement, Reduce):
            yield from statement.stores
        elif isinstance(statement, Choice):
            yield from statements_of(statement.body)
            yield from statements_of(statement.other)
        elif isinstance(statement, While):
            yield from statements_of(statement.cond)
            yield from statements_of(statement.body)
        elif isinstance(statement, Switch):
            for branch in statement.branches:
                yield from statements_of(branch)
        elif isinstance(statement, Call) and statement.epilogue is not None:
            yield from statements_of([statement.epilogue])


def loads_of(statement) -> Iterator[tuple[Buffer, object]]:
    """(buffer, offset) of each element that a statement reads itself."""
    for node in walk(bound_exprs(statement)):
        if node.op == "load":
            yield node.attr
    if isinstance(statement, (Store, Reduce, Scan, Repeat)):
        for node in walk(roots_of(statement)):
            if node.op == "load":
                yield node.attr
        for store in stores_of(statement):
            if store.combine is not None:
                yield store.buffer, store.offset
    elif isinstance(statement, Call):
        for buffer in [*statement.inputs, *statement.scratch]:
            yield buffer, None
    elif isinstance(statement, LibraryCall):
        for buffer in statement.inputs:
            yield buffer, None
    elif isinstance(statement, While):
        yield statement.predicate, None
        for pair in statement.swaps:
            yield from ((buffer, None) for buffer in pair)
    elif isinstance(statement, Switch):
        yield statement.selector, None


def step_buffers(step) -> set[Buffer]:
    """Every buffer that a step, or one statement, touches."""
    if not isinstance(step, (LibraryCall, Native)):
        step = Native([step])
    return _step_reads(step) | step_writes(step)


def _step_reads(step) -> set[Buffer]:
    if isinstance(step, LibraryCall):
        return set(step.inputs)
    return {buffer for statement in statements_of(step.body) for buffer, _ in loads_of(statement)}


def step_writes(step) -> set[Buffer]:
    """Every buffer that a step stores into."""
    if isinstance(step, LibraryCall):
        return set(step.outputs)
    writes = set()
    for statement in statements_of(step.body):
        writes |= {store.buffer for store in stores_of(statement)}
        if isinstance(statement, Scan):
            writes.add(statement.buffer)
        if isinstance(statement, (Reduce, Scan)) and statement.partials:
            writes |= set(statement.partials)
        if isinstance(statement, Call):
            writes |= {*statement.outputs, *statement.scratch}
        if isinstance(statement, LibraryCall):
            writes |= set(statement.outputs)
        if isinstance(statement, While):
            writes |= {buffer for pair in statement.swaps for buffer in pair}
    return writes


def drop_dead_stores(program: Program) -> None:
    """Removes stores to temporaries that nothing reads (their values were forwarded), and then unused
    temporaries."""
    natives = [step for step in program.steps if isinstance(step, Native)]
    needed = set(program.outputs)
    for statement in (s for step in natives for s in statements_of(step.body)):
        if isinstance(statement, (Reduce, Scan)) and statement.partials:
            needed |= set(statement.partials)
        elif isinstance(statement, (Call, LibraryCall)):
            needed |= set(statement.outputs)
    while True:
        read = needed.union(*map(_step_reads, program.steps))
        written = set().union(*map(step_writes, natives))
        dead = (written & set(program.temps)) - read
        if not dead:
            break
        for step in natives:
            step.body = _without(step.body, lambda statement: statement.buffer in dead)  # noqa: B023
    program.steps = [step for step in program.steps if not isinstance(step, Native) or step.body]
    used = set().union(*(_step_reads(step) | step_writes(step) for step in program.steps), set())
    program.temps = [buffer for buffer in program.temps if buffer in used]


def _without(body: list, is_dead: Callable[[Store | Scan], bool]) -> list:
    """The body without the stores and scans that are dead, and without what becomes empty."""
    kept = []
    for statement in body:
        if isinstance(statement, (Store, Scan)):
            if is_dead(statement):
                continue
        elif isinstance(statement, (Kernel, Loop)):
            statement.body = _without(statement.body, is_dead)
            if not statement.body:
                continue
        elif isinstance(statement, Repeat):
            statement.body = _without(statement.body, is_dead)
        elif isinstance(statement, Reduce):
            statement.stores = _without(statement.stores, is_dead)
        elif isinstance(statement, Choice):
            statement.body = _without(statement.body, is_dead)
            statement.other = _without(statement.other, is_dead)
            if not statement.body:
                continue
        elif isinstance(statement, While):
            statement.cond = _without(statement.cond, is_dead)
            statement.body = _without(statement.body, is_dead)
        elif isinstance(statement, Switch):
            statement.branches = [_without(branch, is_dead) for branch in statement.branches]
        elif isinstance(statement, Call) and statement.epilogue is not None:
            statement.epilogue = next(iter(_without([statement.epilogue], is_dead)), None)
        kept.append(statement)
    return kept


def _place_scalars(program: Program) -> None:
    """A scalar that one native step keeps to itself lives on its stack; others are in the arena."""
    homes: dict[Buffer, set[int]] = {}
    shown: set[Buffer] = set()  # to Python
    for number, step in enumerate(program.steps):
        for buffer in step_buffers(step):
            homes.setdefault(buffer, set()).add(number)
        for statement in statements_of([step] if isinstance(step, LibraryCall) else step.body):
            if isinstance(statement, LibraryCall):
                shown |= {*statement.inputs, *statement.outputs}
    for buffer in program.temps:
        if buffer.kind == "scalar" and (len(homes[buffer]) > 1 or buffer in shown):
            buffer.kind = "temp"


def _reuse_inputs(program: Program, donated: Sequence[bool]) -> None:
    """Lets outputs take over donated inputs of their shape and dtype, where that changes no value."""
    if len(program.steps) != 1 or not isinstance(program.steps[0], Native):
        return
    step = program.steps[0]
    free = [source for source, may_overwrite in zip(program.inputs, donated) if may_overwrite]
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
        statements = list(statements_of([kernel]))
        reads = [(s, offset) for s in statements for buffer, offset in loads_of(s) if buffer is source]
        writes = [(s, store) for s in statements for store in stores_of(s) if store.buffer is output]
        writes += [(s, None) for s in statements if isinstance(s, Scan) and s.buffer is output]
        calls = [s for s in statements if isinstance(s, (Call, LibraryCall))]
        writes += [(s, None) for s in calls if output in s.outputs]
        writes += [(s, None) for s in statements if isinstance(s, While) and output in sum(s.swaps, ())]
        if written and reads:
            return False
        if written or not writes:
            continue
        if not isinstance(kernel, Kernel) or len(writes) != 1 or not isinstance(writes[0][0], Store):
            return False
        first = writes[0][0]
        if any(s is not first or offset != first.offset for s, offset in reads):
            return False
        written = True
    return written


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
