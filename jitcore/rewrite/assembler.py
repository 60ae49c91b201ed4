"""Instructions of the normal form assembled to a code object.

In: instructions, labels, the exception handler of each instruction. Out: a code object of this interpreter,
with line, column and exception tables. Stage: the last of a rewrite.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from jitcore.rewrite.instructions import CELL_SLOT_OPS, Instruction, Position
from jitcore.rewrite.versions import (
    CACHES,
    HAS_BACKWARD_BRANCHES,
    HAS_CHECKED_LOAD,
    HAS_PRECALL,
    HAS_TO_BOOL,
    LOAD_CELL,
    MATRIX_MULTIPLY,
    OPCODES,
)

_SLOT_OPS = {ours: theirs for theirs, ours in CELL_SLOT_OPS.items()}
_OPPOSITE = {"TRUE": "FALSE", "FALSE": "TRUE", "NONE": "NOT_NONE", "NOT_NONE": "NONE"}


class Label:
    """A place to jump to."""

    __slots__ = ("offset",)

    def __init__(self):
        self.offset: int | None = None  # in units of two bytes


class Handler(NamedTuple):
    """Where exceptions of an instruction go; see `instructions.HandlerRange`."""

    label: Label
    depth: int
    pushes_offset: bool


class _Item:
    """An instruction to be encoded. arg: an int, a `Label`, or the name of a cell."""

    __slots__ = ("opcode", "arg", "position", "handler", "goes_back", "extra")

    def __init__(self, op: str, arg, position, handler):
        self.opcode, self.arg, self.position, self.handler = OPCODES[op], arg, position, handler
        self.goes_back = "BACKWARD" in op
        self.extra = 0  # EXTENDED_ARGs before it

    @property
    def size(self) -> int:
        return 1 + self.extra + CACHES[self.opcode]


class Assembler:
    """Collects instructions and makes a code object of them.

    Args:
        code: whose constants, names and properties the result keeps; what is not said otherwise is its own.
        variables: names of the fast variables, arguments first. More are added as they are used.
        cells: names of the variables in cells, all of which the new code gets as free variables.

    Attributes:
        handler: of the instructions that are added from now on, or None.
    """

    def __init__(self, code: CodeType, variables: Iterable[str], cells: Iterable[str] = ()):
        self.code, self.handler = code, None
        self.consts = list(code.co_consts)
        self._items: list[_Item | Label] = []
        self._const_places: dict[int, int] = {}
        self._placed: set[Label] = set()
        self._cells = tuple(cells)
        self._variables: dict[str, int] = {}
        for name in variables:
            self.variable(name)

    # -- what is added ---------------------------------------------------------------------------------------
    def variable(self, name: str) -> int:
        """The number of a fast variable."""
        return self._variables.setdefault(name, len(self._variables))

    def const(self, value: Any) -> int:
        """The number of a constant; any object may be one."""
        if id(value) not in self._const_places:
            self._const_places[id(value)] = len(self.consts)
            self.consts.append(value)
        return self._const_places[id(value)]

    def place(self, label: Label) -> None:
        self._items.append(label)
        self._placed.add(label)

    def emit(self, op: str, arg: int | Label = 0, position: Position | None = None) -> None:
        """Adds an instruction of this interpreter."""
        self._items.append(_Item(op, arg, position, self.handler))

    def begin(self, position: Position) -> None:
        if self._cells:
            self.emit("COPY_FREE_VARS", len(self._cells))
        self.emit("RESUME", 0, position)

    def load(self, name: str, position: Position | None = None) -> None:
        """Adds a load of a fast variable; an unbound one raises."""
        self.emit("LOAD_FAST_CHECK" if HAS_CHECKED_LOAD else "LOAD_FAST", self.variable(name), position)

    def store(self, name: str, position: Position | None = None) -> None:
        self.emit("STORE_FAST", self.variable(name), position)

    def load_const(self, value: Any, position: Position | None = None) -> None:
        self.emit("LOAD_CONST", self.const(value), position)

    def apply(self, helper: Any, position: Position | None = None) -> None:
        """Replaces the value x on top of the stack by `helper @ x`, a call that all versions encode alike.

        helper: with `__matmul__`, which must not return NotImplemented."""
        self.load_const(helper, position)
        self.emit("SWAP", 2, position)
        self.emit("BINARY_OP", MATRIX_MULTIPLY, position)

    def jump(self, label: Label, position: Position | None = None) -> None:
        self.emit("JUMP_BACKWARD" if label in self._placed else "JUMP_FORWARD", label, position)

    def branch(self, kind: str, label: Label, position: Position | None = None, *, exact=False) -> None:
        """Adds a jump that takes a value from the stack.

        kind: TRUE, FALSE, NONE or NOT_NONE. exact: whether the value is a bool already."""
        if HAS_TO_BOOL and not exact and kind in ("TRUE", "FALSE"):
            self.emit("TO_BOOL", 0, position)
        goes_back = label in self._placed
        if HAS_BACKWARD_BRANCHES:
            self.emit(f"POP_JUMP_{'BACKWARD' if goes_back else 'FORWARD'}_IF_{kind}", label, position)
        elif not goes_back:
            self.emit(f"POP_JUMP_IF_{kind}", label, position)
        else:
            skip = Label()
            self.emit(f"POP_JUMP_IF_{_OPPOSITE[kind]}", skip, position)
            self.emit("JUMP_BACKWARD", label, position)
            self.place(skip)

    def add(self, instruction: Instruction) -> None:
        """Adds an instruction of the normal form."""
        op, arg, position = instruction.op, instruction.arg, instruction.position
        if op == "LOAD_FAST":
            self.load(arg, position)
            return
        if op in ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
            arg = self.variable(arg)
        elif op == "LOAD_CELL":
            op = LOAD_CELL
        elif op in _SLOT_OPS:
            op = _SLOT_OPS[op]
        elif op == "CALL" and HAS_PRECALL:
            self.emit("PRECALL", arg, position)
        self.emit(op, arg, position)

    # -- the result ------------------------------------------------------------------------------------------
    def assemble(self, stack_size: int, **changes: Any) -> CodeType:
        """The code object. changes: as for `code.replace`."""
        first_cell = len(self._variables)
        numbers = {name: first_cell + number for number, name in enumerate(self._cells)}
        for item in self._items:
            if isinstance(item, _Item) and isinstance(item.arg, str):
                item.arg = numbers[item.arg]
        self._settle_sizes()
        data, positions, ranges = self._encode()
        return self.code.replace(
            co_code=data, co_consts=tuple(self.consts), co_varnames=tuple(self._variables),
            co_nlocals=len(self._variables), co_freevars=self._cells, co_cellvars=(), co_stacksize=stack_size,
            co_linetable=encode_positions(self.code.co_firstlineno, positions),
            co_exceptiontable=encode_handlers(ranges), **changes)  # fmt: skip

    def _settle_sizes(self) -> None:
        """Finds how many EXTENDED_ARGs each instruction needs: jumps get longer by those of others."""
        settled = False
        while not settled:
            offset = 0
            for item in self._items:
                if isinstance(item, Label):
                    item.offset = offset
                else:
                    offset += item.size
            settled, offset = True, 0
            for item in self._items:
                if isinstance(item, Label):
                    continue
                offset += item.size
                extra = max(_read_arg(item, offset).bit_length() - 1, 0) // 8
                if extra > item.extra:
                    item.extra, settled = extra, False

    def _encode(self):
        data, offset = bytearray(), 0
        positions: list[tuple[Position | None, int]] = []
        ranges: list[tuple[int, int, Handler]] = []
        for item in self._items:
            if isinstance(item, Label):
                continue
            end = offset + item.size
            arg = _read_arg(item, end)
            for place in range(item.extra, 0, -1):
                data += bytes((OPCODES["EXTENDED_ARG"], arg >> 8 * place & 255))
            data += bytes((item.opcode, arg & 255)) + bytes(2 * CACHES[item.opcode])
            if positions and positions[-1][0] == item.position:
                positions[-1] = item.position, positions[-1][1] + item.size
            else:
                positions.append((item.position, item.size))
            if item.handler is not None:
                if ranges and ranges[-1][1] == offset and ranges[-1][2] == item.handler:
                    ranges[-1] = ranges[-1][0], end, item.handler
                else:
                    ranges.append((offset, end, item.handler))
            offset = end
        return bytes(data), positions, ranges


def _read_arg(item: _Item, end: int) -> int:
    """The number an item is encoded with. end: where the next instruction begins."""
    if not isinstance(item.arg, Label):
        return item.arg
    distance = end - item.arg.offset if item.goes_back else item.arg.offset - end
    if distance < 0:
        raise AssertionError("a jump goes in the other direction")
    return distance


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
                rest = b"".join(map(_encode_varint, (end - start, column + 1, end_column + 1)))
        while units:
            count = min(units, _MAX_RUN)
            table.append(128 | kind << 3 | count - 1)
            if kind != _NO_POSITION:
                table += _encode_signed(change) + rest
            units, change = units - count, 0
    return bytes(table)


def _encode_signed(number: int) -> bytes:
    return _encode_varint(-number << 1 | 1 if number < 0 else number << 1)


def _encode_varint(number: int) -> bytes:
    """6 bits in each byte, low ones first."""
    groups = bytearray()
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

