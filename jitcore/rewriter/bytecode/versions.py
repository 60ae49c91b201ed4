"""What differs between versions of CPython's bytecode, as facts.

In: the running interpreter. Out: constants that `instructions.py` (decoding) and `assembler.py` consult. No
other module of the rewriter knows a version.
"""

from __future__ import annotations

import opcode
import sys

VERSION = sys.version_info[:2]
SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))

OPCODES: dict[str, int] = {name: code for name, code in opcode.opmap.items() if code < 256}
NAMES: list[str] = opcode.opname[:256]


def _count_caches() -> list[int]:
    """Cache entries (2 bytes each) behind each opcode."""
    entries = opcode._inline_cache_entries
    if not hasattr(entries, "items"):  # 3.11, 3.12: by opcode
        return list(entries)
    counts = [0] * 256
    for name, count in entries.items():
        if name in OPCODES:
            counts[OPCODES[name]] = count
    return counts


CACHES: list[int] = _count_caches()

#: Opcodes whose argument is a distance.
JUMPS: frozenset[int] = frozenset(opcode.hasjrel) | frozenset(getattr(opcode, "hasjump", ()))

#: Whether a call finds NULL below the callable, [NULL, f, ...]; else above it, [f, NULL, ...].
NULL_BELOW = VERSION < (3, 13)

#: Whether a call is announced by PRECALL.
HAS_PRECALL = "PRECALL" in OPCODES

#: Whether conditional jumps take an exact bool, which TO_BOOL makes.
HAS_TO_BOOL = "TO_BOOL" in OPCODES

#: Whether LOAD_FAST trusts that the variable is bound; LOAD_FAST_CHECK does not.
HAS_CHECKED_LOAD = "LOAD_FAST_CHECK" in OPCODES

#: Whether conditional jumps have one opcode for each direction.
HAS_BACKWARD_BRANCHES = "POP_JUMP_BACKWARD_IF_TRUE" in OPCODES

#: Loads the cell of a variable, not what is in it.
LOAD_CELL = "LOAD_CLOSURE" if "LOAD_CLOSURE" in OPCODES else "LOAD_FAST"

#: How far LOAD_ATTR's argument is shifted; below it stands the bit of `LOADS_WITH_NULL`.
LOAD_ATTR_SHIFT = 1 if VERSION >= (3, 12) else 0

#: Opcodes whose arguments are places of names, and how far these are shifted.
NAME_SHIFTS = {opcode.opname[number]: 0 for number in opcode.hasname}
NAME_SHIFTS |= {"LOAD_GLOBAL": 1, "LOAD_ATTR": LOAD_ATTR_SHIFT, "LOAD_SUPER_ATTR": 2}

#: Bit of COMPARE_OP that makes its result an exact bool.
COMPARE_TO_BOOL = 16 if VERSION >= (3, 13) else 0

#: How far COMPARE_OP's argument, the place of the comparison, is shifted.
COMPARE_SHIFT = {(3, 11): 0, (3, 12): 4}.get(VERSION, 5)
COMPARISONS: tuple[str, ...] = opcode.cmp_op

#: Opcodes with a bit 1 that asks for a NULL for the call that follows.
LOADS_WITH_NULL: frozenset[str] = (
    frozenset({"LOAD_GLOBAL"}) if VERSION < (3, 12)
    else frozenset({"LOAD_GLOBAL", "LOAD_ATTR", "LOAD_SUPER_ATTR"}))

#: What stands at the end of a loop, where FOR_ITER jumps to.
LOOP_ENDS: tuple[str, ...] = {
    (3, 11): (), (3, 12): ("END_FOR",), (3, 13): ("END_FOR", "POP_TOP")}.get(VERSION, ("END_FOR", "POP_ITER"))

#: BINARY_OP's arguments for `+`, `@`, `*` and `-`, and those for `%` and `%=`.
ADD, MATRIX_MULTIPLY, MULTIPLY, SUBTRACT = 0, 4, 5, 10
REMAINDER, REMAINDER_IN_PLACE = 6, 19

#: Whether `sum` of floats carries along what additions lose.
IS_SUM_COMPENSATED = VERSION >= (3, 12)

#: BINARY_OP's arguments for `+=` and the others.
IN_PLACE = range(13, 26)

#: BINARY_OP's argument for `x[i]`, which has an opcode of its own up to 3.13.
_SUBSCRIPT = 26

#: Names from 3.14 on of what is the same for whoever reads code.
_RENAMED = {"LOAD_FAST_BORROW": "LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW": "LOAD_FAST_LOAD_FAST",
            "NOT_TAKEN": "NOP"}

#: What `with` begins with from 3.14 on; up to then it is one opcode, BEFORE_WITH.
BEGIN_OF_WITH: tuple[tuple[str, int], ...] = () if "BEFORE_WITH" in OPCODES else (
    ("COPY", 1), ("LOAD_SPECIAL", 1), ("SWAP", 2), ("SWAP", 3), ("LOAD_SPECIAL", 0), ("CALL", 0))

#: LOAD_COMMON_CONSTANT's arguments for the builtins that code asks for to do what they do itself.
OWN_BUILTINS = range(2, 5)


def find_name(number: int, arg: int) -> str:
    """The name of an opcode that all versions have where they have the operation."""
    name = NAMES[number]
    if name == "BINARY_OP" and arg == _SUBSCRIPT:
        return "BINARY_SUBSCR"
    return _RENAMED.get(name, name)


def find_opcode(name: str, arg: int) -> tuple[int, int]:
    """The opcode of this interpreter, with its argument."""
    if name == "BINARY_SUBSCR" and name not in OPCODES:
        return OPCODES["BINARY_OP"], _SUBSCRIPT
    return OPCODES[name], arg
