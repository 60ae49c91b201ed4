"""Which loops of a function can be functions of their own, and what goes into and out of them.

In: a code object. Out: an `Outline`: for each natural loop that may leave its function the variables that it
reads and assigns, the places where control goes on behind it, and where in the code object it begins.
`outlined.py` writes the code. Stage: beside emission, behind the flow of a normalized graph.

A loop stays where it is if it is entered or left with something on the stack that is no iterator of its own,
if it runs inside of an `except` or `finally` clause, if it or its function looks at frames, or if it shares
variables with inner functions that may change them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import NamedTuple

from jitcore.rewriter.bytecode.flow import (CELL_READS, STORES, Flow, Loop, find_assigned, find_entering,
                                            find_live, normalize_graph, note_assigned)
from jitcore.rewriter.bytecode.graph import CALLS, VALUE, Block, Graph, find_reachable, stack_effect
from jitcore.rewriter.bytecode.instructions import (CELL_SLOT_OPS, ForIter, Instruction, Jump, Unsupported,
                                                    count_arguments, decode, is_generator, read_raw)
from jitcore.rewriter.bytecode.versions import LOAD_ATTR_SHIFT

#: What shows the variables of a frame.
_INTROSPECTION = frozenset({"locals", "vars", "dir", "eval", "exec", "super", "_getframe", "currentframe"})
#: Builtins and methods that only describe what a loop goes through; calls of these become part of it.
_ITERABLES = frozenset({"range", "enumerate", "zip", "reversed", "len", "min", "max", "abs", "int"})
_VIEWS = frozenset(
    "items keys values arange linspace ndindex ndenumerate ravel flatten reshape copy tolist".split())
_HEAD_OPS = frozenset(
    """LOAD_FAST LOAD_DEREF LOAD_CONST LOAD_SMALL_INT LOAD_GLOBAL LOAD_ATTR PUSH_NULL SWAP COPY BINARY_OP
    BINARY_SUBSCR BINARY_SLICE BUILD_SLICE UNARY_NEGATIVE BUILD_TUPLE BUILD_LIST CALL GET_ITER""".split()
)
_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})


class Exit(NamedTuple):
    """A place behind a loop. depth: how many iterators of the loop it removes; offsets: of all places in the
    code object that do the same."""

    block: int
    depth: int
    offsets: tuple[int, ...]

    @property
    def offset(self) -> int:
        """In the code object."""
        return self.offsets[0]


class OutlinedLoop(NamedTuple):
    """A loop that may be a function.

    Attributes:
        number: its place in the outline; parent: that of the next larger one around it, or None.
        line: of its beginning; size: number of its instructions, those of inner loops among them.
        offset: where it begins in the code object; depth: of the stack there.
        head: instructions that make its iterator, at its beginning.
        takes_iterable: whether the iterable lies on the stack there, as one more argument.
        parameters: variables that go into it; unsure: those of them that may be unbound; varying: those that
            a loop around it assigns.
        results: variables that come out of it; unsure_results: those of them that may be unbound.
        cells: variables that are in cells, because functions made in the loop read them.
        free: variables of functions around.
        exits: in the order of their numbers.
        is_caught: whether a handler outside of it may see exceptions that it raises.
        grown: results that are lists, which it appends to only: it begins with empty ones.
        head_block: where it begins, or None for its header. is_limited: whether it takes the number of
            iterations that it may do as one more argument; it leaves there when it has done as many, as if by
            one more exit; what is left of it is one more result, `LIMIT`. make_element: of a `for` over
            numbers whose elements are made by a function of columns, which are so many more arguments, and
            the number; that is one more result, `INDEX`. is_once: whether it is left in each iteration; of a
            `for` the argument is then no iterable, but the number. counter: the result that tells which
            iteration it has come to, or None.
    """

    number: int
    parent: int | None
    loop: Loop
    line: int
    size: int
    offset: int
    depth: int
    head: tuple[Instruction, ...]
    takes_iterable: bool
    parameters: tuple[str, ...]
    unsure: frozenset[str]
    varying: frozenset[str]
    results: tuple[str, ...]
    unsure_results: frozenset[str]
    cells: tuple[str, ...]
    free: tuple[str, ...]
    exits: tuple[Exit, ...]
    is_caught: bool
    grown: tuple[str, ...] = ()
    head_block: int | None = None
    is_limited: bool = False
    make_element: FunctionType | None = None
    is_once: bool = False
    counter: str | None = None


class Outline:
    """The loops of a function that can be functions.

    Args:
        code: of a function; or of a module, of whose names `variables` are variables of its loops, all of
            which come out of these: anybody may read them then.
        leaders: offsets at which blocks begin, so that a loop can be left there.

    Attributes:
        code, graph: of the function. free: variables of functions around.
        loops: outer ones before those inside.
        size: number of instructions of the function.
    """

    def __init__(self, code: CodeType, variables: frozenset[str] | None = None, leaders: Iterable[int] = ()):
        """Raises: Unsupported for generators and other code that cannot be decoded."""
        if is_generator(code):
            raise Unsupported("a generator")
        self.code = code
        self.graph = normalize_graph(code, variables, leaders)
        self._raw = list(read_raw(code))
        self.free = frozenset(code.co_freevars)
        arguments = self._find_arguments()
        self.flow = Flow(self.graph, arguments)
        self.live = find_live(self.graph, with_cells=True)
        self._entering = find_entering(self.graph)
        self.assigned = find_assigned(self.graph, arguments, with_cells=True)
        self.size = _count(self.graph.blocks, self.graph)
        # Comprehensions save and restore variables that may have no value.
        self._cleared = {one.arg for block in self.graph.blocks.values() for one in block.instructions
                         if one.op == "LOAD_FAST_AND_CLEAR"}
        self.loops: list[OutlinedLoop] = []
        if not _INTROSPECTION & {*code.co_names}:
            self._fixed_cells = _Cells(code)
            for loop in sorted(self.flow.loops.values(), key=lambda loop: -len(loop.body)):
                found = self._describe(loop)
                if found is not None:
                    self.loops.append(found)

    def _find_arguments(self) -> frozenset[str]:
        return frozenset(self.code.co_varnames[: count_arguments(self.code)])

    @staticmethod
    def _is_open(loop: Loop) -> bool:
        """Whether a loop works on nothing but variables."""
        return not loop.is_comprehension

    def _describe(self, loop: Loop) -> OutlinedLoop | None:
        begin = self._find_begin(loop)
        exits = self._find_exits(loop)
        if begin is None or not exits or not self._is_open(loop) or self.graph.blocks[loop.header].handled:
            return None
        offset, bound, head, takes_iterable = begin
        blocks = [self.graph.blocks[number] for number in loop.body]
        instructions = [*head, *(one for block in blocks for one in block.instructions)]
        cells = self._find_cells(loop, instructions)
        if cells is None:
            return None
        assigned = {one.arg for one in instructions if one.op in (*STORES, "DELETE_FAST", "DELETE_DEREF")}
        read = list_reads(instructions)
        behind = self.graph.variables.union(*(self.live[one.block] for one in exits))
        free = tuple(sorted(self.free.intersection(one.arg for one in instructions)))
        results = tuple(sorted((assigned & behind) - {*free}))
        into = (self.live[loop.header] | list_reads(head)) & (read | {*results}) - {*free}
        parameters = tuple(sorted(into))
        certain = frozenset.intersection(*(frozenset(self.assigned[one.block]) for one in exits))
        bound, certain = bound - self._cleared, certain - self._cleared
        position = next((one.position for one in head if one.position and one.position[0]), None)
        return OutlinedLoop(
            number=len(self.loops), parent=self._find_parent(loop), loop=loop,
            line=self._find_line(loop, position), size=_count(loop.body, self.graph) + len(head),
            offset=offset, depth=loop.base, head=tuple(head), takes_iterable=takes_iterable,
            parameters=parameters, unsure=frozenset(into) - bound,
            varying=frozenset(into) & self._list_stored_around(loop), results=results,
            unsure_results=frozenset(results) - certain, cells=cells, free=free, exits=exits,
            is_caught=any(one.can_raise and one.handler[0] not in loop.body for one in blocks))

    @staticmethod
    def _list_stored_around(loop: Loop) -> set[str]:
        around, stored = loop.parent, set()
        while around is not None:
            stored |= around.stored
            around = around.parent
        return stored

    def _find_parent(self, loop: Loop) -> int | None:
        around = [one for one in self.loops if loop.body < one.loop.body]
        return min(around, key=lambda one: len(one.loop.body)).number if around else None

    def _find_line(self, loop: Loop, position) -> int:
        """The line of the loop's `for` or `while`."""
        blocks = [self.graph.blocks[loop.header], *(self.graph.blocks[number] for number in loop.latches)]
        positions = [position, *(block.position for block in blocks)]
        positions += [one.position for block in blocks for one in block.instructions]
        offset = find_offset(blocks[0])  # a jump back to it is the `while` of `while True`
        positions += [raw.position for raw in self._raw if raw.target == offset and "BACKWARD" in raw.name]
        return min((place[0] for place in positions if place and place[0]), default=self.code.co_firstlineno)

    def list_lines(self) -> list[int]:
        """The lines of all loops but those of comprehensions, whether they can be functions or not."""
        known = {one.loop.header: one.line for one in self.loops}
        return sorted(known.get(header) or self._find_line(loop, None)
                      for header, loop in self.flow.loops.items() if not loop.is_comprehension)

    # -- the beginning ---------------------------------------------------------------------------------------
    def _find_begin(self, loop: Loop) -> tuple[int, frozenset, list[Instruction], bool] | None:
        """(offset, variables bound there, instructions that make the iterator, whether the iterable is on the
        stack)."""
        if not loop.iterates:
            instructions = self.graph.blocks[loop.header].instructions
            if not instructions or not instructions[0].offsets:
                return None
            return min(instructions[0].offsets), frozenset(self.assigned[loop.header]), [], False
        before = [block for number, block in self.graph.blocks.items()
                  if number not in loop.body and loop.header in block.successors]
        if len(before) != 1 or not isinstance(before[0].terminator, Jump):
            return None
        block = before[0]
        if not block.instructions or block.instructions[-1].op != "GET_ITER" or block.handled:
            return None
        start = _find_head(block, loop.base, self.code)
        takes_iterable = start is None
        place = len(block.instructions) - 1 if start is None else start
        head = block.instructions[place:]
        bound = note_assigned(set(self.assigned[block.number]), block.instructions[:place], with_cells=True)
        return min(head[0].offsets), frozenset(bound), head, takes_iterable

    # -- the ends --------------------------------------------------------------------------------------------
    def _find_exits(self, loop: Loop) -> tuple[Exit, ...] | None:
        blocks, found = self.graph.blocks, []
        for number in loop.outs:
            target = blocks[number]
            offset = find_offset(target)
            if offset is None or target.handled:
                return None
            sources = [one for one in loop.body if number in blocks[one].successors]
            for depth in range(loop.base, len(target.layout)):
                if target.layout[depth] != VALUE or not all(self._is_iterator(one, depth) for one in sources):
                    return None
            found.append(self.make_exit(number, loop, offset))
        return tuple(found)

    def make_exit(self, number: int, loop: Loop, offset: float) -> Exit:
        block = self.graph.blocks[number]
        offsets = block.instructions[0].offsets if block.instructions else ()
        return Exit(number, len(block.layout) - loop.base, (int(offset), *offsets))

    def _is_iterator(self, number: int, depth: int) -> bool:
        """Whether a place on the stack holds the iterator of a loop that a block is in."""
        return any(loop.iterates and loop.base == depth and number in loop.body
                   for loop in self.flow.loops.values())

    # -- cells -----------------------------------------------------------------------------------------------
    def _find_cells(self, loop: Loop, instructions: Iterable[Instruction]) -> tuple[str, ...] | None:
        """The function's own variables in cells that the loop uses; None where others may change them."""
        own = {*self.code.co_cellvars}
        used = {one.arg for one in instructions if one.arg in own and one.op in (*CELL_READS, *STORES)}
        if any(one.op in CELL_SLOT_OPS.values() for one in instructions):
            return None
        behind = find_reachable(self.flow.successors, [loop.header])
        stored = {one.arg for number in behind for one in self.graph.blocks[number].instructions
                  if one.op in ("STORE_DEREF", "DELETE_DEREF")}
        for name in used:
            if name in self._fixed_cells.stored_inside or name in stored - self._fixed_cells.private:
                return None
        return tuple(sorted(used))


class _Cells:
    """What inner functions do with the variables of a function.

    Attributes:
        stored_inside: variables that they assign.
        private: variables that only comprehensions read, which run at once.
    """

    def __init__(self, code: CodeType):
        inner = [const for const in code.co_consts if isinstance(const, CodeType)]
        self.stored_inside = {name for one in inner for name in list_stored(one)}
        shared = {name for one in inner for name in one.co_freevars if not _runs_at_once(one)}
        self.private = {*code.co_cellvars} - shared


def _runs_at_once(code: CodeType) -> bool:
    """Whether an inner function is a comprehension without functions inside it."""
    return code.co_name in _COMPREHENSIONS and not any(isinstance(one, CodeType) for one in code.co_consts)


def list_stored(code: CodeType) -> Iterator[str]:
    """The free variables that a function, or one inside it, assigns."""
    try:
        steps = decode(code).steps
    except Exception:  # a generator: what it does is not known
        yield from code.co_freevars
        return
    for step in steps:
        for one in step.instructions:
            if one.op in ("STORE_DEREF", "DELETE_DEREF") and one.arg in code.co_freevars:
                yield one.arg
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from list_stored(const)


def _find_head(block: Block, base: int, code: CodeType) -> int | None:
    """Where in a block the expression of its iterable begins, if it only describes what there is."""
    depths, depth = [], len(block.layout)
    for one in block.instructions:
        depths.append(depth)
        depth += stack_effect(one)
    start = max((place for place, found in enumerate(depths) if found == base), default=None)
    if start is None:
        return None
    head = block.instructions[start:]
    calls = sum(one.op in CALLS for one in head)
    described = sum(code.co_names[one.arg >> 1] in _ITERABLES for one in head if one.op == "LOAD_GLOBAL")
    described += sum(code.co_names[one.arg >> LOAD_ATTR_SHIFT] in _VIEWS
                     for one in head if one.op == "LOAD_ATTR")
    return start if all(one.op in _HEAD_OPS for one in head) and calls <= described else None


def list_reads(instructions: Iterable[Instruction]) -> frozenset[str]:
    ops = CELL_READS | {"LOAD_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"}
    return frozenset(one.arg for one in instructions if one.op in ops)


def _count(numbers: Iterable[int], graph: Graph) -> int:
    return sum(len(graph.blocks[number].instructions) + 1 for number in numbers)


def find_offset(block: Block) -> int | None:
    """Where the code of a block begins."""
    if block.instructions:
        return min(block.instructions[0].offsets, default=None)
    return int(block.order) if isinstance(block.terminator, ForIter) and block.order % 1 == 0 else None
