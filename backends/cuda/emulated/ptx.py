"""PTX text in, `Assembly` out: its functions as lists of statements, its variables. The first stage.

Only the outline is understood here; `arithmetic`, `movement` and `collectives` say what instructions mean.
"""

from __future__ import annotations

import bisect
import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from jitcore.backends.cuda.emulated.errors import DeviceError


class Statement(NamedTuple):
    """A brace, a label with its colon, a directive or an instruction, without semicolon."""

    line: int
    text: str


class Variable(NamedTuple):
    """size: in bytes; initial: (bits of an element, literal or name) each."""

    name: str
    space: str
    size: int
    align: int
    initial: list[tuple[int, str]]


class Function(NamedTuple):
    """returns, parameters: name -> bytes."""

    name: str
    is_kernel: bool
    returns: dict[str, int]
    parameters: dict[str, int]
    max_threads: int
    statements: list[Statement]


@dataclass
class Assembly:
    lines: list[str]
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SKIPPED = re.compile(r"(?:\s|\.(?:loc|file|version|target|address_size)\b[^\n]*\n)*")
_HEAD, _REST, _SECTION = re.compile(r"[^;{=]*"), re.compile(r"[^;]*;?"), re.compile(r"\{[^}]*\}")
# A brace inside of an instruction, as in `mov.b64 {%r1, %r2}, %rd1;`, is no statement.
_STATEMENT = re.compile(r"[{}]|[\w$%]+\s*:(?!:)|[^;]*;")
_FUNCTION = re.compile(r"\.(entry|func)\s*(?:\(([^)]*)\)\s*)?([\w$]+)\s*(?:\(([^)]*)\))?(.*)$", re.DOTALL)
_PARAMETER = re.compile(r"\.param\b.*?\.([a-z]+\d+|pred)\b.*?([\w$%]+)(?:\[(\d+)\])?\s*$", re.DOTALL)
_MAX_THREADS = re.compile(r"\.(?:maxntid|reqntid)\s+(\d+)(?:,\s*(\d+))?(?:,\s*(\d+))?")
_VARIABLE = re.compile(
    r"(?:\.(?:visible|extern|weak|common)\s+)*\.(global|shared|const|local|param)\s+(?:\.align\s+(\d+)\s+)?"
    r"\.(\w+)\s+([\w$]+)\s*((?:\[\s*\d*\s*\])*)\s*(?:=\s*(.*))?$",
    re.DOTALL,
)


def parse_ptx(text: str) -> Assembly:
    """Raises: DeviceError for what is neither a function nor a variable."""
    assembly = Assembly(text.splitlines())
    scanner = _Scanner(_COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text + "\n"))
    for line, head in scanner.scan(_HEAD):
        found, body = _FUNCTION.search(head), None
        if head.startswith(".section"):  # of a debugger
            scanner.take(_SECTION)
            continue
        if found and scanner.text.startswith("{", scanner.at):
            body = list(scanner.read_block())
        else:
            head += scanner.take(_REST).rstrip("; \n")
        if found and body is not None:
            kind, returns, name, parameters, rest = found.groups()
            extents = _MAX_THREADS.search(rest)
            limit = math.prod(map(int, extents.groups("1"))) if extents else 1024
            sizes = _parse_parameters(returns), _parse_parameters(parameters)
            assembly.functions[name] = Function(name, kind == "entry", *sizes, limit, body)
        elif not found and body is None and not head.startswith(".pragma"):
            variable = parse_variable(Statement(line, head))
            assembly.variables[variable.name] = variable
    return assembly


class _Scanner:
    """Goes through PTX without comments."""

    def __init__(self, text: str):
        self.text, self.at = text, 0
        self._newlines = [found.start() for found in re.finditer("\n", text)]

    def take(self, pattern: re.Pattern) -> str:
        found = pattern.match(self.text, self.at)
        self.at = found.end()
        return found[0]

    def scan(self, pattern: re.Pattern) -> Iterator[Statement]:
        while self.take(_SKIPPED) is not None and self.at < len(self.text):
            line = bisect.bisect_left(self._newlines, self.at) + 1
            yield Statement(line, re.sub(r"\s+", " ", self.take(pattern).rstrip(";").strip()))

    def read_block(self) -> Iterator[Statement]:
        """The statements between two braces."""
        depth = 0
        for statement in self.scan(_STATEMENT):
            depth += {"{": 1, "}": -1}.get(statement.text, 0)
            if depth == 0:
                return
            if depth > 1 or statement.text != "{":
                yield statement


def _parse_parameters(text: str | None) -> dict[str, int]:
    found = (_PARAMETER.search(part) for part in (text or "").split(","))
    return {each[2]: max(width_of(each[1]), 8) // 8 * int(each[3] or 1) for each in found if each}


def parse_variable(statement: Statement) -> Variable:
    found = _VARIABLE.match(statement.text)
    if not found:
        raise DeviceError(f"no variable or function\n    PTX line {statement.line}: {statement.text}")
    space, align, kind, name, extents, initial = found.groups()
    bits = width_of(kind)
    count = math.prod(int(extent or 0) for extent in re.findall(r"\[\s*(\d*)\s*\]", extents))
    values = [(bits, value) for value in re.sub(r"[{}\s]", "", initial or "").split(",") if value]
    return Variable(name, space, bits // 8 * count, int(align or bits // 8), values)


class Instruction:
    """`@%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+8];` taken apart. Rules take the modifiers that they know."""

    def __init__(self, statement: Statement):
        self.line, self.text = statement
        guard, name, operands = re.match(r"(?:@(!?[\w$%]+) )?([\w.:]+) ?(.*)$", self.text).groups()
        self.guard, self.negated = (guard or "").lstrip("!"), (guard or "").startswith("!")
        self.opcode, *self.modifiers = name.split(".")
        self.operands = split_operands(operands)

    def take(self, *names: str) -> str | None:
        """Removes and returns the first modifier that is one of the names; * stands for any end of one."""
        for modifier in self.modifiers:
            if any(modifier == name or name[-1] == "*" and modifier.startswith(name[:-1]) for name in names):
                self.modifiers.remove(modifier)
                return modifier
        return None

    def ignore(self, *names: str) -> None:
        while self.take(*names):
            pass

    def take_kind(self) -> str:
        """The type, which is the last modifier."""
        if not self.modifiers or not width_of(self.modifiers[-1]):
            raise self.error("no type")
        return self.modifiers.pop()

    def error(self, reason: str) -> DeviceError:
        return DeviceError(f"{reason}\n    PTX line {self.line}: {self.text}")


def split_operands(text: str) -> list[str]:
    """At the commas outside of braces, brackets and parentheses."""
    return [part.strip() for part in re.split(r",(?![^{\[(]*[}\])])", text) if part.strip()]


def width_of(kind: str) -> int:
    """Bits of a type, 32 for f32, b32 and f16x2; 0 if it is none."""
    found = re.fullmatch(r"[a-z]+?(\d+)(x2)?", kind)
    return 1 if kind == "pred" else int(found[1]) * (2 if found[2] else 1) if found else 0


def parse_literal(text: str, bits: int) -> int | None:
    """The bits of a number; None if the text is none. A decimal fraction has the width of the operand."""
    if re.fullmatch(r"0[fFdD][0-9a-fA-F]+", text):
        return int(text[2:], 16)
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
        return int(text.rstrip("U"), 0) & (1 << bits) - 1
    if re.fullmatch(r"-?\d+\.\d*([eE][-+]?\d+)?", text):
        return int.from_bytes(struct.pack("<d" if bits == 64 else "<f", float(text)), "little")
    return None
