"""Instructions of the normal form, and blocks of them, assembled to a code object.

In: instructions, labels, the exception handler of each instruction; or a graph. Out: a code object of this
interpreter, with line, column and exception tables. Stage: the last of a rewrite.
"""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from types import CodeType

from jitcore.rewriter.bytecode.instructions import (CELL_SLOT_OPS, Branch, ForIter, Instruction, Jump,
                                                    NoneBranch, Position, read_handlers)
from jitcore.rewriter.bytecode.versions import (BEGIN_OF_WITH, CACHES, HAS_BACKWARD_BRANCHES,
                                                HAS_CHECKED_LOAD, HAS_PRECALL, HAS_TO_BOOL, LOAD_ATTR_SHIFT,
                                                LOAD_CELL, LOOP_ENDS, MATRIX_MULTIPLY, NULL_BELOW, OPCODES,
                                                find_opcode)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jitcore.rewriter.bytecode.graph import Block, Graph

_SLOT_OPS = {ours: theirs for theirs, ours in CELL_SLOT_OPS.items()}
_EXTENDED_ARG = OPCODES["EXTENDED_ARG"]
_LOAD = "LOAD_FAST_CHECK" if HAS_CHECKED_LOAD else "LOAD_FAST"
_SIZES = [1 + count for count in CACHES]  # in units of two bytes
_OPPOSITE = {"TRUE": "FALSE", "FALSE": "TRUE", "NONE": "NOT_NONE", "NOT_NONE": "NONE"}

Runs = list[tuple[Position | None, int]]


class Label:
    """A place to jump to."""

    __slots__ = ("offset",)

    def __init__(self):
        self.offset: int | None = None  # in units of two bytes


class Handler(namedtuple("Handler", "label depth pushes_offset")):
    """Where exceptions of an instruction go; see `instructions.HandlerRange`."""

    __slots__ = ()


class Assembler:
    """Collects instructions and makes a code object of them: what all code of the rewriter is written with.

    Args:
        code: whose constants, names and properties the result keeps; what is not said otherwise is its own.
        variables: names of the fast variables, arguments first. More are added as they are used.
        cells: names of the variables in cells, all of which the new code gets as free variables.
        own_cells: names of variables for which the new code makes cells; they may be arguments.

    Attributes:
        handler, position: of the instructions that are added from now on, or None.
    """

    def __init__(self, code: CodeType, variables: Iterable[str], cells: Iterable[str] = (),
                 own_cells: Iterable[str] = ()):
        self.code, self.handler, self.position = code, None, None
        self.consts = list(code.co_consts)
        self.names = list(code.co_names)
        self._items: list[tuple[int, int, Position | None, Handler | None]] = []  # opcode, argument, ...
        self._jumps: list[tuple[int, Label, bool]] = []  # place of the jump, target, whether it goes back
        self._cell_uses: list[tuple[int, str]] = []
        self._labels: dict[Label, int] = {}  # how many instructions stand before each
        self._const_places: dict[int, int] = {}
        self._cells, self._own_cells = tuple(cells), tuple(own_cells)
        self._in_cells = {*self._cells, *self._own_cells}
        self._unbound: list[tuple[Label, Label, Any, Position | None]] = []
        self._variables: dict[str, int] = {}
        for name in variables:
            self.variable(name)

    # -- instructions ----------------------------------------------------------------------------------------
    def variable(self, name: str) -> int:
        """The number of a fast variable."""
        return self._variables.setdefault(name, len(self._variables))

    def const(self, value: Any) -> int:
        """The number of a constant; any object may be one."""
        place = self._const_places.get(id(value))
        if place is None:
            place = self._const_places[id(value)] = len(self.consts)
            self.consts.append(value)
        return place

    def place(self, label: Label) -> None:
        self._labels[label] = len(self._items)

    def emit(self, op: str, arg: int | Label | str = 0) -> None:
        """Adds an instruction of this interpreter. arg: a number, where to jump to, or the name of a cell."""
        if type(arg) is not int:
            if isinstance(arg, str):
                self._cell_uses.append((len(self._items), arg))
            else:
                self._jumps.append((len(self._items), arg, "BACKWARD" in op))
            arg = 0
        self._items.append((*find_opcode(op, arg), self.position, self.handler))

    def begin(self, position: Position, *, is_generator: bool = False) -> None:
        if self._cells:
            self.emit("COPY_FREE_VARS", len(self._cells))
        for name in self._own_cells:
            self.emit("MAKE_CELL", name)
        self.position = position
        if is_generator:
            self.emit("RETURN_GENERATOR")
            self.pop()
        self.emit("RESUME")

    def add(self, instruction: Instruction) -> None:
        """Adds an instruction of the normal form."""
        op, arg, self.position = instruction.op, instruction.arg, instruction.position
        if op == "LOAD_FAST":
            self.emit(_LOAD, self.variable(arg))
            return
        if op == "BEFORE_WITH" and BEGIN_OF_WITH:
            for step in BEGIN_OF_WITH:
                self.emit(*step)
            return
        if op in ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
            arg = self.variable(arg)
        elif op == "LOAD_CELL":
            op = LOAD_CELL
        elif op in _SLOT_OPS:
            op = _SLOT_OPS[op]
        elif op == "CALL" and HAS_PRECALL:
            self.emit("PRECALL", arg)
        self.emit(op, arg)

    # -- variables -------------------------------------------------------------------------------------------
    def load(self, name: str) -> None:
        """Adds a load of a variable; an unbound one raises."""
        self._use("LOAD_DEREF", _LOAD, name)

    def store(self, name: str) -> None:
        self._use("STORE_DEREF", "STORE_FAST", name)

    def delete(self, name: str) -> None:
        self._use("DELETE_DEREF", "DELETE_FAST", name)

    def _use(self, of_cell: str, of_fast: str, name: str) -> None:
        is_cell = name in self._in_cells
        self.emit(of_cell if is_cell else of_fast, name if is_cell else self.variable(name))

    def unbind_if(self, name: str, unbound: Any) -> None:
        """Deletes a variable that has the value that stands for none."""
        bound = Label()
        self.load(name)
        self.branch_is(unbound, bound, holds=False)
        self.delete(name)
        self.place(bound)

    def load_or(self, name: str, unbound: Any, depth: int) -> None:
        """Loads a variable, or what stands for its lack of a value. depth: of the stack."""
        around, absent, known = self.handler, Label(), Label()
        self.handler = Handler(absent, depth, False)
        self.load(name)
        self.handler = around
        self.place(known)
        self._unbound.append((absent, known, unbound, self.position))

    def write_unbound(self) -> None:
        """Adds what `load_or` jumps to: the last of all instructions."""
        self.handler = None
        for absent, known, unbound, self.position in self._unbound:
            self.place(absent)
            self.pop()
            self.load_const(unbound)
            self.jump(known)

    # -- the stack -------------------------------------------------------------------------------------------
    def load_const(self, value: Any) -> None:
        self.emit("LOAD_CONST", self.const(value))

    def load_attribute(self, name: str) -> None:
        """Replaces the value on top of the stack by one of its attributes."""
        if name not in self.names:
            self.names.append(name)
        self.emit("LOAD_ATTR", self.names.index(name) << LOAD_ATTR_SHIFT)

    def pop(self) -> None:
        self.emit("POP_TOP")

    def copy(self, depth: int = 1) -> None:
        self.emit("COPY", depth)

    def swap(self, depth: int = 2) -> None:
        self.emit("SWAP", depth)

    def apply(self, helper: Any, count: int = 1) -> None:
        """Replaces the value x on top of the stack by `helper @ x`, a call that all versions encode alike; or
        so many values by the same of the tuple of them.

        helper: with `__matmul__`, which must not return NotImplemented."""
        if count != 1:
            self.emit("BUILD_TUPLE", count)
        self.load_const(helper)
        self.swap()
        self.emit("BINARY_OP", MATRIX_MULTIPLY)

    def push_callee(self, function: Callable) -> None:
        """Begins a call; its arguments follow, and `call`."""
        if NULL_BELOW:
            self.emit("PUSH_NULL")
        self.load_const(function)
        if not NULL_BELOW:
            self.emit("PUSH_NULL")

    def call(self, count: int) -> None:
        if HAS_PRECALL:
            self.emit("PRECALL", count)
        self.emit("CALL", count)

    # -- where control goes ----------------------------------------------------------------------------------
    def jump(self, label: Label) -> None:
        self.emit("JUMP_BACKWARD" if label in self._labels else "JUMP_FORWARD", label)

    def branch(self, kind: str, label: Label, *, exact: bool = False) -> None:
        """Adds a jump that takes a value from the stack.

        kind: TRUE, FALSE, NONE or NOT_NONE. exact: whether the value is a bool already."""
        if HAS_TO_BOOL and not exact and kind in ("TRUE", "FALSE"):
            self.emit("TO_BOOL")
        goes_back = label in self._labels
        if HAS_BACKWARD_BRANCHES:
            self.emit(f"POP_JUMP_{'BACKWARD' if goes_back else 'FORWARD'}_IF_{kind}", label)
        elif not goes_back:
            self.emit(f"POP_JUMP_IF_{kind}", label)
        else:
            skip = Label()
            self.emit(f"POP_JUMP_IF_{_OPPOSITE[kind]}", skip)
            self.emit("JUMP_BACKWARD", label)
            self.place(skip)

    def branch_is(self, value: Any, label: Label, *, holds: bool = True) -> None:
        """Takes a value from the stack, and goes to the label if it is, or is not, an object."""
        self.load_const(value)
        self.emit("IS_OP")
        self.branch("TRUE" if holds else "FALSE", label, exact=True)

    def branch_in(self, container: Any, label: Label, *, holds: bool = True) -> None:
        """The same, if the value is in a container, or is not: a guard, with `__contains__`."""
        self.load_const(container)
        self.emit("CONTAINS_OP")
        self.branch("TRUE" if holds else "FALSE", label, exact=True)

    def branch_both(self, kinds: tuple[str, str], labels: Sequence[Label], following: Label | None) -> None:
        """Takes a value; goes to the first label where it is of the first kind, else to the other one.

        following: where control goes by itself."""
        if labels[0] is following:
            self.branch(kinds[1], labels[1])
            return
        self.branch(kinds[0], labels[0])
        if labels[1] is not following:
            self.jump(labels[1])

    # -- the result ------------------------------------------------------------------------------------------
    def assemble(self, stack_size: int, **changes: Any) -> CodeType:
        """The code object. changes: as for `code.replace`."""
        data, positions, ranges = self.encode()
        return self.code.replace(
            co_code=data, co_consts=tuple(self.consts), co_names=tuple(self.names),
            co_varnames=tuple(self._variables), co_nlocals=len(self._variables), co_freevars=self._cells,
            co_cellvars=self._own_cells, co_stacksize=stack_size,
            co_linetable=encode_positions(self.code.co_firstlineno, positions),
            co_exceptiontable=encode_handlers(ranges), **changes)

    def encode(self) -> tuple[bytes, Runs, list[tuple[int, int, Handler]]]:
        """(bytes, positions with the units of code that have them, (start, end, handler) in units)."""
        numbers = self._number_cells()
        for place, name in self._cell_uses:
            self._items[place] = (self._items[place][0], numbers[name], *self._items[place][2:])
        ops, args, positions, handlers = map(list, zip(*self._items))
        sizes = self._settle_sizes(ops, args)
        data = bytearray()
        for op, arg in zip(ops, args):
            if arg > 255:
                for place in range((arg.bit_length() - 1) // 8, 0, -1):
                    data += bytes((_EXTENDED_ARG, arg >> 8 * place & 255))
            data.append(op)
            data.append(arg & 255)
            if CACHES[op]:
                data += bytes(2 * CACHES[op])
        runs: Runs = [(position, units) for position, units, _ in _list_runs(positions, sizes)]
        handled = [run for run in _list_runs(handlers, sizes) if run[0] is not None]
        return bytes(data), runs, [(start, start + units, handler) for handler, units, start in handled]

    def _number_cells(self) -> dict[str, int]:
        apart = [name for name in self._own_cells if name not in self._variables]
        numbers = {name: number for number, name in enumerate((*apart, *self._cells), len(self._variables))}
        return numbers | {name: self._variables[name] for name in self._own_cells if name in self._variables}

    def _settle_sizes(self, ops: Sequence[int], args: list[int]) -> list[int]:
        """Finds the arguments of jumps and the units of each instruction, EXTENDED_ARGs among them: jumps get
        longer by those of others."""
        sizes = [_SIZES[op] if arg < 256 else _SIZES[op] + (arg.bit_length() - 1) // 8
                 for op, arg in zip(ops, args)]
        settled = False
        while not settled:
            settled = True
            ends = [0, *itertools.accumulate(sizes)]
            for label, count in self._labels.items():
                label.offset = ends[count]
            for place, label, goes_back in self._jumps:
                distance = ends[place + 1] - label.offset if goes_back else label.offset - ends[place + 1]
                if distance < 0:
                    raise AssertionError("a jump goes in the other direction")
                size = _SIZES[ops[place]] + max(distance.bit_length() - 1, 0) // 8
                if size > sizes[place]:
                    sizes[place], settled = size, False
                args[place] = distance
        return sizes


def _list_runs(values: Sequence, sizes: Sequence[int]) -> list[tuple[Any, int, int]]:
    """(value, units, first unit) of each run of instructions with equal values."""
    runs, start, last, units = [], 0, values[0] if values else None, 0
    for value, size in zip(values, sizes):
        if value is not last and value != last:
            runs.append((last, units, start))
            start, last, units = start + units, value, 0
        units += size
    return [*runs, (last, units, start)] if values else []


def insert_code(code: CodeType, added: Assembler, at: int, stack_size: int) -> CodeType:
    """A code object with the instructions of an assembler at an offset, and all else as it was.

    added: made for `code`, with variables by their numbers. at: no jump may cross it."""
    data, positions, _ = added.encode()
    old = [(position, len(list(same))) for position, same in itertools.groupby(code.co_positions())]
    before, behind = _split_runs(old, at // 2)
    ranges = []
    for handler in read_handlers(code):
        label = Label()
        start, stop, label.offset = ((offset + len(data) * (offset >= at)) // 2
                                     for offset in (handler.start, handler.stop, handler.target))
        ranges.append((start, stop, Handler(label, handler.depth, handler.pushes_offset)))
    return code.replace(
        co_code=code.co_code[:at] + data + code.co_code[at:], co_consts=tuple(added.consts),
        co_stacksize=max(code.co_stacksize, stack_size), co_exceptiontable=encode_handlers(ranges),
        co_linetable=encode_positions(code.co_firstlineno, before + positions + behind))


def _split_runs(runs: Runs, count: int) -> tuple[Runs, Runs]:
    """The runs of the first units, and those of the others."""
    before, behind = [], []
    for position, units in runs:
        first = min(units, count)
        before += [(position, first)] * (first > 0)
        behind += [(position, units - first)] * (units > first)
        count -= first
    return before, behind


# -- blocks -------------------------------------------------------------------------------------------------
class BlockWriter:
    """Writes the blocks of a graph. out: where the instructions go.

    Attributes:
        labels: of the blocks that control goes to; those of blocks that are not written are others' affair.
        base: how much of the stack below lies elsewhere."""

    base = 0

    def __init__(self, graph: Graph, out: Assembler, numbers: Iterable[int]):
        self.graph, self.out = graph, out
        self.labels = {number: Label() for number in numbers}
        self.pads: list[tuple[Label, int]] = []

    def write_blocks(self, blocks: list[Block]) -> None:
        """In this order."""
        for block, following in zip(blocks, [*blocks[1:], None]):
            self.write_block(block, None if following is None else self.labels[following.number])
        self.out.handler = None
        self._write_pads()

    def write_block(self, block: Block, following: Label | None) -> None:
        self.out.place(self.labels[block.number])
        self.out.handler = self.find_handler(block)
        self.write_instructions(block)
        self.write_terminator(block, following)

    def find_handler(self, block: Block) -> Handler | None:
        """Of all that is written for a block, what comes before its instructions too: Python 3.13 looks for
        the handler of an error in a call, or in a generator that a loop asks, at the instruction before."""
        if block.handler is None or block.handler[0] not in self.labels:
            return None
        target, depth, pushes_offset = block.handler
        return Handler(self.labels[target], depth - self.base, pushes_offset)

    def write_instructions(self, block: Block) -> None:
        for instruction in block.instructions:
            self.out.add(instruction)

    def write_guard(self, block: Block) -> None:
        """What is asked before a value, or a loop's iterator, decides: nothing."""

    def write_terminator(self, block: Block, following: Label | None) -> None:
        out, labels, out.position = self.out, self.labels, block.position
        match block.terminator:
            case Jump(target):
                if labels[target] is not following:
                    out.jump(labels[target])
            case ForIter(body, exit_block):
                self.write_guard(block)
                self.pads.append((Label(), exit_block))
                out.emit("FOR_ITER", self.pads[-1][0])
                if labels[body] is not following:
                    out.jump(labels[body])
            case Branch(one, other):
                self.write_guard(block)
                out.branch_both(("TRUE", "FALSE"), (labels[one], labels[other]), following)
            case NoneBranch(one, other):
                self.write_guard(block)
                out.branch_both(("NONE", "NOT_NONE"), (labels[one], labels[other]), following)

    def _write_pads(self) -> None:
        """What FOR_ITER expects at its target; then control goes where it would have gone."""
        self.out.position = None
        for pad, target in self.pads:
            self.out.place(pad)
            for name in LOOP_ENDS:
                self.out.emit(name)
            self.out.jump(self.labels[target])


# -- tables -------------------------------------------------------------------------------------------------
_NO_POSITION, _LINE_ONLY, _LONG_FORM = 15, 13, 14
_MAX_RUN = 8  # units that one entry covers


def encode_positions(first_line: int, runs: Sequence[tuple[Position | None, int]]) -> bytes:
    """co_linetable. runs: positions, and how many units of code have each.

    Source: Objects/locations.md of CPython."""
    table, line = bytearray(), first_line
    for position, units in runs:
        kind, rest, change = _NO_POSITION, b"", 0
        if position is not None and position[0] is not None:
            start, end, column, end_column = position
            change, line = start - line, start
            if end is None or column is None or end_column is None:
                kind = _LINE_ONLY
            else:
                kind = _LONG_FORM
                rest = _encode_varints(end - start, column + 1, end_column + 1)
        while units:
            count = min(units, _MAX_RUN)
            table.append(128 | kind << 3 | count - 1)
            if kind != _NO_POSITION:
                table += _encode_varints(-change << 1 | 1 if change < 0 else change << 1) + rest
            units, change = units - count, 0
    return bytes(table)


def _encode_varints(*numbers: int) -> bytes:
    """6 bits in each byte, low ones first."""
    if max(numbers) < 64:
        return bytes(numbers)
    groups = bytearray()
    for number in numbers:
        while number >= 64:
            groups.append(64 | number & 63)
            number >>= 6
        groups.append(number)
    return bytes(groups)


def encode_handlers(ranges: Sequence[tuple[int, int, Handler]]) -> bytes:
    """co_exceptiontable: numbers of 6 bits a byte, high ones first; bit 7 marks the first of an entry."""
    table = bytearray()
    for start, end, (label, depth, pushes_offset) in ranges:
        for place, number in enumerate((start, end - start, label.offset, depth << 1 | pushes_offset)):
            groups = [number & 63]
            while number := number >> 6:
                groups.append(number & 63 | 64)
            groups.reverse()
            groups[0] |= 128 if place == 0 else 0
            table += bytes(groups)
    return bytes(table)
