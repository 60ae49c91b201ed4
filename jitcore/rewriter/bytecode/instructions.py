"""Bytecode decoded to a normal form, which is the same for all versions of CPython.

In: a code object. Out: `Decoded`: instructions, where control goes, and exception handlers. Stage: the first
of a rewrite.

The normal form has one way of saying each thing:
- variables go by name: LOAD_FAST, STORE_FAST, DELETE_FAST, LOAD_FAST_AND_CLEAR (fast ones), LOAD_DEREF,
  STORE_DEREF, DELETE_DEREF, LOAD_CELL (those in cells);
- superinstructions are split; a return of a constant is a load and a return;
- every NULL that a call wants below or beside its callable is a PUSH_NULL, so that its place is known;
- nothing converts to an exact bool: the assembler adds that before the jumps that need it;
- `with` begins with BEFORE_WITH; from 3.14 on there may be a NULL behind what it calls at its end;
- calls such as `any(x for x in y)` are calls;
- an instruction after which control may go elsewhere than on is a `Terminator`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from types import CodeType

from jitcore.rewriter.bytecode.versions import (BEGIN_OF_WITH, CACHES, COMPARE_TO_BOOL, JUMPS,
                                                LOADS_WITH_NULL, LOOP_ENDS, NAMES, NULL_BELOW, OWN_BUILTINS,
                                                find_name)

Position = tuple[int | None, int | None, int | None, int | None]


class Unsupported(Exception):
    """The function has bytecode that the rewriter does not handle; it is left as it is."""


class Instruction:
    """One instruction of the normal form. arg: an int, or the name of a variable. offsets: where it stands in
    the code object; the second half of a superinstruction is one behind the first."""

    __slots__ = ("op", "arg", "position", "offsets")

    def __init__(self, op: str, arg: int | str = 0, position: Position | None = None):
        self.op, self.arg, self.position = op, arg, position
        self.offsets: tuple[int, ...] = ()

    def key(self) -> tuple:
        """Equal for instructions that the compiler made from one place of the source."""
        return self.op, self.arg, self.position

    def __repr__(self) -> str:
        return f"{self.op} {self.arg}"


#: Target of a terminator: the instruction behind it.
NEXT = -1
#: The same, behind the removal of the value on top of the stack.
POP_NEXT = -2


class Jump(namedtuple("Jump", "target")):
    __slots__ = ()


class Branch(namedtuple("Branch", "true false")):
    """Takes a value from the stack; goes to `true` where it holds."""

    __slots__ = ()


class NoneBranch(namedtuple("NoneBranch", "none other")):
    """Takes a value from the stack; goes to `none` where it is None."""

    __slots__ = ()


class ForIter(namedtuple("ForIter", "body exit")):
    """Asks the iterator on top of the stack for its next element: pushes it and goes to `body`, or takes the
    iterator from the stack and goes to `exit`."""

    __slots__ = ()


class Return(namedtuple("Return", "")):
    """Control does not go on; the instruction itself is the last of its block."""

    __slots__ = ()


class Raise(namedtuple("Raise", "")):
    """Control does not go on here; a handler may take over."""

    __slots__ = ()


Terminator = Jump | Branch | NoneBranch | ForIter | Return | Raise


class Step(namedtuple("Step", "offset instructions terminator position")):
    """One instruction of the code object in normal form; its targets are offsets, `NEXT` or `POP_NEXT`."""

    __slots__ = ()


class HandlerRange(namedtuple("HandlerRange", "start stop target depth pushes_offset")):
    """Where exceptions of the bytes [start, stop) are handled, with this stack depth. pushes_offset: whether
    the handler also gets the offset of the instruction that raised."""

    __slots__ = ()


class Decoded(namedtuple("Decoded", "steps handlers loop_exits")):
    """A code object. loop_exits: where control goes on behind what stands at the end of a loop, by offset of
    that end."""

    __slots__ = ()


_GENERATOR, _COROUTINE = 0x20, 0x80 | 0x200  # CO_GENERATOR; CO_COROUTINE, CO_ASYNC_GENERATOR


def is_generator(code: CodeType) -> bool:
    return bool(code.co_flags & _GENERATOR)


def decode(code: CodeType, variables: frozenset[str] | None = None) -> Decoded:
    """variables: of the code of a module, the names that are read as variables of its own; else they are
    globals.

    Raises: Unsupported for `yield from`, coroutines, class bodies and opcodes that are not known."""
    if code.co_flags & _COROUTINE:
        raise Unsupported("a coroutine")
    raw = _join_steps(list(read_raw(code)))
    cells = {*code.co_cellvars, *code.co_freevars}
    begin = next((item.offset for item in raw if item.name == "RESUME"), 0)
    if variables is not None:
        raw = [_read_name(code, item, variables) for item in raw]
    steps = [Step(item.offset, *_normalize(code, item, cells, begin), item.position) for item in raw]
    for step in steps:
        for number, instruction in enumerate(step.instructions):
            instruction.offsets = (step.offset + min(number, 1),)
    return Decoded(steps, list(read_handlers(code)), _find_loop_exits(raw))


# -- reading ------------------------------------------------------------------------------------------------
class Raw(namedtuple("Raw", "offset name arg target position")):
    """An instruction as it stands in a code object. target: the offset that a jump goes to, or None."""

    __slots__ = ()


def read_raw(code: CodeType) -> Iterator[Raw]:
    data, positions = code.co_code, list(code.co_positions())
    extended, start, at = 0, None, 0
    while at < len(data):
        opcode, arg = data[at], data[at + 1] | extended
        start = at if start is None else start
        at += 2
        if NAMES[opcode] == "EXTENDED_ARG":
            extended = arg << 8
            continue
        end = at + 2 * CACHES[opcode]
        target = None
        if opcode in JUMPS:
            target = end - 2 * arg if "BACKWARD" in NAMES[opcode] else end + 2 * arg
        yield Raw(start, find_name(opcode, arg), arg, target, positions[at // 2 - 1])
        extended, start, at = 0, None, end


def read_handlers(code: CodeType) -> Iterator[HandlerRange]:
    """Source: Objects/exception_handling_notes.txt of CPython: numbers of 6-bit groups, high ones first."""
    numbers = []
    value = 0
    for byte in code.co_exceptiontable:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    for start, length, target, depth in zip(*[iter(numbers)] * 4):
        yield HandlerRange(2 * start, 2 * (start + length), 2 * target, depth >> 1, bool(depth & 1))


def _find_loop_exits(raw: list[Raw]) -> dict[int, int]:
    index = {item.offset: number for number, item in enumerate(raw)}
    exits = {}
    for item in raw:
        if item.name == "FOR_ITER":
            number = index[item.target]
            for name in LOOP_ENDS:
                if raw[number].name != name:
                    break
                number += 1
            exits[item.target] = raw[number].offset
    return exits


# -- the normal form ----------------------------------------------------------------------------------------
def _join_steps(raw: list[Raw]) -> list[Raw]:
    """What other versions say with fewer instructions is said so: BEFORE_WITH; and a call of a builtin with a
    generator, where code asks for the builtin to loop itself."""
    found = list(raw)
    for at, item in enumerate(raw):
        new, length = None, 1
        if item.name == "LOAD_SPECIAL" and _match(raw, at - 1, BEGIN_OF_WITH):
            at, new, length = at - 1, item._replace(offset=raw[at - 1].offset, name="BEFORE_WITH", arg=0), 6
        elif item.name == "LOAD_COMMON_CONSTANT" and item.arg in OWN_BUILTINS:
            at, length = at - 1, 4  # COPY, the constant, IS_OP, POP_JUMP_IF_FALSE
            new = raw[at]._replace(name="JUMP_FORWARD", target=raw[at + 3].target)
        if new is not None:
            found[at : at + length] = [new, *(one._replace(name="NOP", target=None)
                                              for one in raw[at + 1 : at + length])]
    return found


def _match(raw: list[Raw], at: int, pattern: tuple[tuple[str, int], ...]) -> bool:
    return pattern == tuple((one.name, one.arg) for one in raw[at : at + len(pattern)])


_DROPPED = frozenset({"NOP", "RESUME", "MAKE_CELL", "COPY_FREE_VARS", "PRECALL", "CACHE", "TO_BOOL"})
_REFUSED = frozenset({
    "SEND", "CLEANUP_THROW", "GET_AWAITABLE", "ASYNC_GEN_WRAP", "GET_AITER", "GET_ANEXT",
    "END_ASYNC_FOR", "LOAD_LOCALS", "LOAD_NAME", "STORE_NAME", "DELETE_NAME", "IMPORT_STAR",
    "SETUP_ANNOTATIONS"})
PAIRS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST")}
_FAST = {"LOAD_FAST": "LOAD_FAST", "LOAD_FAST_CHECK": "LOAD_FAST", "STORE_FAST": "STORE_FAST",
         "DELETE_FAST": "DELETE_FAST", "LOAD_FAST_AND_CLEAR": "LOAD_FAST_AND_CLEAR"}
_OF_MODULES = frozenset({"LOAD_NAME", "STORE_NAME", "DELETE_NAME"})
CELL_OPS = frozenset(
    {"LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
#: The number of an iteration, and of those that a loop may still do, as variables of code that the rewriter
#: writes.
INDEX, LIMIT = "index_of_loop", "iterations_of_loop"


def name_list(place: int) -> str:
    """The name of the list that a comprehension makes, which lies at this place of the stack meanwhile."""
    return f"<list {place}>"


#: What inlined comprehensions do with variables that are cells: they save and restore the slot itself.
CELL_SLOT_OPS = {"STORE_FAST": "STORE_CELL_SLOT", "LOAD_FAST_AND_CLEAR": "LOAD_CELL_SLOT_AND_CLEAR",
                 "DELETE_FAST": "DELETE_CELL_SLOT", "MAKE_CELL": "MAKE_CELL_IN_SLOT"}


def _normalize(code: CodeType, raw: Raw, cells: set[str], begin: int):
    """(instructions, terminator or None) of one raw instruction."""
    name, arg, position = raw.name, raw.arg, raw.position
    if name == "MAKE_CELL" and raw.offset > begin:
        return [Instruction(CELL_SLOT_OPS[name], code._varname_from_oparg(arg), position)], None
    if name == "RESUME" and arg & 3:  # behind a yield
        return [Instruction(name, arg, position)], None
    if name in _DROPPED or raw.offset < begin:  # before it, what makes a generator
        return [], None
    if name in _REFUSED or name.startswith(("INSTRUMENTED_", "<")):
        raise Unsupported(name)
    if name in PAIRS:
        pair = zip(PAIRS[name], (arg >> 4, arg & 15))
        return [_fast(code, op, number, cells, position) for op, number in pair], None
    if name in _FAST:
        return [_fast(code, _FAST[name], arg, cells, position)], None
    if name.endswith("_VARIABLE"):
        return [Instruction(f"{name.removesuffix('VARIABLE')}FAST", code.co_names[arg], position)], None
    if name == "LOAD_CLOSURE":
        return [Instruction("LOAD_CELL", code._varname_from_oparg(arg), position)], None
    if name in CELL_OPS:
        return [Instruction(name, code._varname_from_oparg(arg), position)], None
    if name == "RETURN_CONST":
        return [Instruction("LOAD_CONST", arg, position), Instruction("RETURN_VALUE", 0, position)], Return()
    if name == "POP_ITER":
        return [Instruction("POP_TOP", 0, position)], None
    if name == "RETURN_VALUE":
        return [Instruction(name, 0, position)], Return()
    if name in ("RAISE_VARARGS", "RERAISE"):
        return [Instruction(name, arg, position)], Raise()
    if name == "COMPARE_OP":
        return [Instruction(name, arg & ~COMPARE_TO_BOOL, position)], None
    if name == "LOAD_METHOD" or name in LOADS_WITH_NULL and arg & 1:
        return _load_with_null(name, arg, position), None
    if raw.target is not None:
        return _normalize_jump(raw)
    return [Instruction(name, arg, position)], None


def _read_name(code: CodeType, raw: Raw, variables: frozenset[str]) -> Raw:
    """An instruction of a module as one of a function."""
    if raw.name not in _OF_MODULES:
        return raw
    if code.co_names[raw.arg] in variables:
        return raw._replace(name=f"{raw.name.removesuffix('NAME')}VARIABLE")
    shift = raw.name == "LOAD_NAME"
    return raw._replace(name=f"{raw.name.removesuffix('NAME')}GLOBAL", arg=raw.arg << shift)


def _fast(code: CodeType, op: str, number: int, cells: set[str], position: Position) -> Instruction:
    variable = code._varname_from_oparg(number)
    if variable not in cells:
        return Instruction(op, variable, position)
    return Instruction("LOAD_CELL" if op == "LOAD_FAST" else CELL_SLOT_OPS[op], variable, position)


def _load_with_null(name: str, arg: int, position: Position) -> list[Instruction]:
    """A load of a callable, with the NULL of a call without `self` in its place."""
    null = Instruction("PUSH_NULL", 0, position)
    if name == "LOAD_METHOD":
        load = Instruction("LOAD_ATTR", arg, position)
    else:
        load = Instruction(name, arg & ~1, position)
    if not NULL_BELOW:
        return [load, null]
    if name == "LOAD_GLOBAL":
        return [null, load]
    return [load, null, Instruction("SWAP", 2, position)]


def _normalize_jump(raw: Raw):
    name, target = raw.name, raw.target
    if name == "FOR_ITER":
        return [], ForIter(NEXT, target)
    if name in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"):
        return [], Jump(target)
    if name.startswith("JUMP_IF_"):  # the value stays where the jump is taken
        copy = [Instruction("COPY", 1, raw.position)]
        return copy, Branch(POP_NEXT, target) if "FALSE" in name else Branch(target, POP_NEXT)
    if name.startswith("POP_JUMP"):
        if name.endswith("NOT_NONE"):
            return [], NoneBranch(NEXT, target)
        if name.endswith("NONE"):
            return [], NoneBranch(target, NEXT)
        return [], Branch(target, NEXT) if name.endswith("TRUE") else Branch(NEXT, target)
    raise Unsupported(name)


def count_arguments(code: CodeType) -> int:
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)


def find_first_position(code: CodeType) -> tuple[int, int, int, int]:
    return code.co_firstlineno, code.co_firstlineno, 0, 0
