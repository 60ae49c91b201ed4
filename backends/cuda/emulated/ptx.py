"""PTX text in, `Assembly` out: its functions as lists of statements, its variables. The first stage.

Only the outline is understood here: what is a statement, a label, a variable with its initial value. What an
instruction means is said in `arithmetic`, `movement` and `collectives`.
"""

from __future__ import annotations

import bisect
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from jitcore.backends.cuda.emulated.errors import DeviceError

__all__ = ["Assembly", "Function", "Instruction", "Statement", "Variable", "parse_ptx",
           "parse_literal", "parse_variable", "split_operands", "width_of"]  # fmt: skip


class Statement(NamedTuple):
    """A brace, a label with its colon, a directive or an instruction, without semicolon."""

    line: int
    text: str


@dataclass
class Variable:
    """Attributes: size: bytes; initial: (bits of an element, its literal or symbol) each."""

    name: str
    space: str
    size: int
    align: int
    line: int
    initial: list[tuple[int, str]]


@dataclass
class Function:
    name: str
    line: int
    is_kernel: bool
    returns: dict[str, int]  # name -> bytes
    parameters: dict[str, int]
    statements: list[Statement]
    max_threads: int = 1024


@dataclass
class Assembly:
    lines: list[str]
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(r"(?:\s|\.(?:loc|file|version|target|address_size)\b[^\n]*\n)*")
_LABEL = re.compile(r"([\w$%]+)\s*:(?!:)")
_FUNCTION = re.compile(r"\.(entry|func)\s*(?:\(([^)]*)\)\s*)?([\w$]+)\s*(?:\(([^)]*)\))?(.*)$", re.DOTALL)
_PARAMETER = re.compile(r"\.param\b.*?\.([a-z]+\d+|pred)\b.*?([\w$%]+)(?:\[(\d+)\])?\s*$", re.DOTALL)
_VARIABLE = re.compile(
    r"(?:\.(?:visible|extern|weak|common)\s+)*\.(global|shared|const|local|param)\s+(?:\.align\s+(\d+)\s+)?"
    r"\.(\w+)\s+([\w$]+)\s*((?:\[\s*\d*\s*\])*)\s*(?:=\s*(.*))?$",
    re.DOTALL,
)
_MAX_THREADS = re.compile(r"\.(?:maxntid|reqntid)\s+([\d,\s]+)")


def parse_ptx(text: str) -> Assembly:
    """Raises: DeviceError for what is neither a function nor a variable."""
    assembly = Assembly(text.splitlines())
    scanner = _Scanner(_COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text + "\n"))
    for statement in scanner.scan(r"[^;{=]*"):
        if statement.text.startswith(".section"):
            scanner.read_block()
        elif found := _FUNCTION.search(statement.text):
            kind, returns, name, parameters, rest = found.groups()
            statements = scanner.read_block()
            if statements is None:
                continue  # a declaration
            function = Function(name, statement.line, kind == "entry", _parse_parameters(returns),
                                _parse_parameters(parameters), statements)  # fmt: skip
            if limit := _MAX_THREADS.search(rest):
                x, y, z = (*map(int, limit[1].split(",")), 1, 1)[:3]
                function.max_threads = x * y * z
            assembly.functions[name] = function
        elif not statement.text.startswith(".pragma"):
            text = statement.text + scanner.read_to_semicolon()
            variable = parse_variable(Statement(statement.line, text))
            assembly.variables[variable.name] = variable
    return assembly


class _Scanner:
    """Goes through PTX without comments, statement by statement."""

    def __init__(self, text: str):
        self.text, self.at = text, 0
        self.newlines = [found.start() for found in re.finditer("\n", text)]

    def take(self, pattern: str | re.Pattern) -> str | None:
        found = re.compile(pattern).match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found[0] if found else None

    def scan(self, pattern: str) -> Iterator[Statement]:
        while True:
            self.take(_SPACE)
            if self.at >= len(self.text):
                return
            line = bisect.bisect_left(self.newlines, self.at) + 1
            taken = self.take(pattern)
            yield Statement(line, taken.strip())

    def read_to_semicolon(self) -> str:
        return self.take(r"[^;]*;?").rstrip("; \n")

    def read_block(self) -> list[Statement] | None:
        """The statements between braces; None where a semicolon stands instead of them."""
        if not self.take(r"\s*\{"):
            self.read_to_semicolon()
            return None
        depth, statements = 1, []
        # A brace inside of an instruction, as in `mov.b64 {%r1, %r2}, %rd1;`, is no statement.
        for statement in self.scan(rf"[{{}}]|{_LABEL.pattern}|[^;]*;"):
            depth += {"{": 1, "}": -1}.get(statement.text, 0)
            if depth == 0:
                break
            statements.append(Statement(statement.line, re.sub(r"\s+", " ", statement.text.rstrip(";").strip())))
        return statements


def _parse_parameters(text: str | None) -> dict[str, int]:
    found = (_PARAMETER.search(part) for part in (text or "").split(","))
    return {each[2]: max(width_of(each[1]), 8) // 8 * int(each[3] or 1) for each in found if each}


def parse_variable(statement: Statement) -> Variable:
    found = _VARIABLE.match(statement.text)
    if not found:
        raise DeviceError(f"PTX line {statement.line}: no variable or function: {statement.text}")
    space, align, kind, name, extents, initial = found.groups()
    size = width_of(kind) // 8
    for extent in re.findall(r"\[\s*(\d*)\s*\]", extents):
        size *= int(extent or 0)
    values = [value.strip() for value in re.sub(r"[{}]", "", initial or "").split(",") if value.strip()]
    return Variable(name, space, size, int(align or width_of(kind) // 8), statement.line,
                    [(width_of(kind), value) for value in values])  # fmt: skip


class Instruction:
    """`@%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+8]`, taken apart.

    Rules take the modifiers that they know; one that is left over is unknown.
    """

    def __init__(self, statement: Statement):
        self.line, self.text = statement
        guard, name, operands = re.match(r"(?:@(!?[\w$%]+) )?([\w.:]+) ?(.*)$", self.text).groups()
        self.guard, self.negated = (guard or "").lstrip("!"), (guard or "").startswith("!")
        self.opcode, *self.modifiers = re.split(r"\.", name)
        self.operands = split_operands(operands)

    def take(self, *names: str) -> str | None:
        """Removes and returns the first modifier that is one of the names, which may end in * each."""
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
        if not self.modifiers:
            raise self.error("no type")
        return self.modifiers.pop()

    def error(self, reason: str) -> DeviceError:
        return DeviceError(f"{reason}\n    PTX line {self.line}: {self.text}")


def split_operands(text: str) -> list[str]:
    """At the commas outside of braces, brackets and parentheses."""
    return [part.strip() for part in re.split(r",(?![^{\[(]*[}\])])", text) if part.strip()]


def width_of(kind: str) -> int:
    """Bits of a type: 32 for `.f32`, `.b32` and `.f16x2`."""
    found = re.fullmatch(r"([a-z]+)(\d+)(x2)?", kind)
    return 1 if kind == "pred" else int(found[2]) * (2 if found[3] else 1) if found else 0


def parse_literal(text: str, bits: int) -> int | None:
    """The bits of a number; None if the text is none. A decimal fraction has the type of the operand."""
    if re.fullmatch(r"0[fFdD][0-9a-fA-F]+", text):
        return int(text[2:], 16)
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
        return int(text.rstrip("U"), 0) & (1 << bits) - 1
    if re.fullmatch(r"-?\d+\.\d*([eE][-+]?\d+)?", text):
        return int.from_bytes(struct.pack("<d" if bits == 64 else "<f", float(text)), "little")
    return None
