"""The tiers of a function, for people: which serves a call, why no better one, and the warning that says so.

In: what could not be compiled, and where. Out: a `Reason`; a warning; and of all signatures of a function a
`Report`, whose text is a short table.
"""

from __future__ import annotations

import dis
import enum
import linecache
import re
import types
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from jitcore.autojitted.recording.purity import ORIGINAL
from jitcore.core.source import SourcePosition, find_cell, format_place
from jitcore.errors import AutojitWarning, NotTraceable
from jitcore.hypertext import show_table
from jitcore.numpy_semantics.errors import describe_reason
from jitcore.rewriter.objects import is_library_file

__all__ = ["AutojitWarning", "Reason", "Tier", "find_reason", "warn_of"]


class Tier(enum.Enum):
    """Best first."""

    TRACED = "traced"
    NUMBA = "numba"
    PYTHON = "python"


class Reason(NamedTuple):
    """Why a tier was left: what could not be done, and the user's line.

    details: what a message says of it below its first line, where the error said it."""

    file: str
    line: int
    text: str
    details: str = ""

    def __str__(self) -> str:
        return f"{format_place(self.file, self.line)}: {self.text}"

    def as_error(self) -> NotTraceable:
        """The error that is raised with `strict`."""
        return describe_reason(self.text, _show_line(self.file, self.line))


def _show_line(file: str, line: int) -> list[str]:
    """The lines of a message that show a line of the user's."""
    text = linecache.getline(file, line).strip()
    return [f"  {format_place(file, line)}", f"    {text}"] if text else []


def find_reason(error: BaseException, function: types.FunctionType) -> Reason:
    """Where in the user's code an exception arose, and what it says."""
    code = function.__code__
    file, line = code.co_filename, code.co_firstlineno
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not is_library_file(name) and not name.startswith("<jitcore") and trace.tb_lineno:
            file, line = name, trace.tb_lineno
        trace = trace.tb_next
    text, details = _split_message(error)
    return Reason(file, line, text, details if "To fix: " in details else "")


def find_loop_reason(position: SourcePosition, error: Exception) -> Reason:
    """Why a loop is no loop of the program."""
    return Reason(position.file, position.line, _split_message(error)[0])


def _split_message(error: BaseException) -> tuple[str, str]:
    """The first line of a message, with the exception's type where that says more, and the rest."""
    try:
        text, _, details = str(error).strip().partition("\n")
    except NotTraceable:  # the user's own, with a traced value in it
        text = details = ""
    if not isinstance(error, NotTraceable):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text, details


def warn_of(reason: Reason, name: str, tier: Tier, loops: Sequence[int] = ()) -> None:
    """Says that a function goes on in a lower tier, why, and what to write instead.

    loops: lines of the loops that are compiled for themselves."""
    how = {Tier.NUMBA: "is compiled by Numba", Tier.PYTHON: "runs in plain Python"}[tier]
    if loops:
        *first, last = map(str, dict.fromkeys(loops))
        lines = f"lines {', '.join(first)} and {last}" if first else f"line {last}"
        how = f"{how}, except for its loops at {lines}, which are compiled"
    details = reason.details or str(reason.as_error()).partition("\n")[2]
    details = re.sub(r"\nSee help\(.*\)$", "\nSee help(jitcore.errors.AutojitWarning)", details)
    message = f"{reason}; {name} {how}\n{details}"
    warnings.warn_explicit(message, AutojitWarning, find_cell(reason.file) or reason.file, reason.line)


class Region(NamedTuple):
    """A function or a loop in it.

    line: of its beginning; tiers: of the signatures that were called; unrolled: why Python went through a
    loop when it was traced, so that its body is in the program once for each iteration, or None."""

    kind: str
    name: str
    file: str
    line: int
    tiers: tuple[Tier, ...]
    unrolled: str | None = None


class Report(NamedTuple):
    """Attributes:
    name: of the function.
    regions: the function, its loops, the functions of the user that it calls and their loops.
    compiled: percentage of operations of the user's code, counted in the source, that compiled code runs.
    reasons: why signatures are served by a lower tier.
    """

    name: str
    regions: tuple[Region, ...]
    compiled: float
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.compiled:.0f} % of its operations are compiled"]
        for region in self.regions:
            tiers = ", ".join(tier.value for tier in region.tiers) or "not called yet"
            unrolled = f"; unrolled: {region.unrolled}" if region.unrolled else ""
            place = format_place(region.file, region.line)
            lines.append(f"  {region.kind:8} {place} {region.name}: {tiers}{unrolled}")
        lines += [f"  blocked  {reason}" for reason in self.reasons]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(region.kind, format_place(region.file, region.line), region.name,
                 ", ".join(tier.value for tier in region.tiers) or "not called yet",
                 f"unrolled: {region.unrolled}" if region.unrolled else "") for region in self.regions]
        rows += [("blocked", format_place(reason.file, reason.line), "", "", reason.text)
                 for reason in self.reasons]
        return show_table(("", "place", "name", "tier", "why"), rows, str(self).partition("\n")[0])


def make_report(owner: Any) -> Report:
    served = list(owner.signatures)
    tiers = tuple(sorted({one.tier for one in served}, key=list(Tier).index))
    if not tiers and (owner.reasons or owner.is_left):
        tiers = (Tier.PYTHON,)
    regions = []
    for function in list_functions(owner.function):
        code = function.__code__
        place = function.__qualname__, code.co_filename
        regions.append(Region("function", *place, code.co_firstlineno, tiers))
        for line in find_loops(code) if function is not owner.function else list_own_loops(owner):
            reason = owner.unrolled.get((code.co_filename, line))
            text = reason.text if reason else None
            own = find_loop_tiers(owner, line, tiers) if function is owner.function else tiers
            regions.append(Region("loop", *place, line, own, text))
    reasons = dict.fromkeys([*owner.reasons, *[one.reason for one in served if one.reason]])
    if owner.loops is not None:
        reasons |= dict.fromkeys(owner.loops.list_reasons())
    compiled = measure_compiled(owner, tiers, served)
    return Report(owner.function.__qualname__, tuple(regions), compiled, tuple(reasons))


def list_own_loops(owner: Any) -> list[int]:
    """The lines of the loops of a function and of those inside it."""
    code = owner.function.__code__
    if owner.loops is None:
        return find_loops(code)
    inside = [line for const in code.co_consts if isinstance(const, types.CodeType)
              for line in find_loops(const)]
    return sorted({*owner.loops.outline.list_lines(), *inside})


def find_loop_tiers(owner: Any, line: int, tiers: tuple[Tier, ...]) -> tuple[Tier, ...]:
    """The tiers of a loop: in the signatures that are compiled whole, and by itself in the others."""
    if owner.loops is None or Tier.PYTHON not in tiers:
        return tiers
    own = owner.loops.find_tiers(line)
    return tuple(sorted({*tiers} - {Tier.PYTHON} | own, key=list(Tier).index))


def measure_compiled(owner: Any, tiers: tuple[Tier, ...], served: list) -> float:
    """The percentage of operations that compiled code runs, on average over the known signatures."""
    of_loops = 0.0 if owner.loops is None else 100.0 * owner.loops.measure_compiled()
    parts = [of_loops if one.tier is Tier.PYTHON else 100.0 for one in served]
    return sum(parts) / len(parts) if parts else of_loops


def list_functions(function: types.FunctionType) -> list[types.FunctionType]:
    """The function, and those of the user that its code names, as far as global variables tell."""
    found: dict[types.FunctionType, None] = {}
    waiting = [function]
    while waiting:
        current = waiting.pop(0)
        current = current.__dict__.get(ORIGINAL, current)
        if current in found:
            continue
        found[current] = None
        for name in current.__code__.co_names:
            value = current.__globals__.get(name)
            if isinstance(value, types.FunctionType):
                original = value.__dict__.get(ORIGINAL, value)
                if not is_library_file(original.__code__.co_filename):
                    waiting.append(original)
    return list(found)


def find_loops(code: types.CodeType) -> list[int]:
    """The lines of the loops of a code object and of those inside it."""
    first: dict[int, int] = {}
    by_offset = {instruction.offset: instruction for instruction in dis.get_instructions(code)}
    line = code.co_firstlineno
    line_of = {}
    for offset, instruction in by_offset.items():
        line = instruction.positions.lineno or line if instruction.positions else line
        line_of[offset] = line
    for instruction in by_offset.values():
        if "JUMP_BACKWARD" in instruction.opname and instruction.argval in line_of:
            # The test of a `while` is repeated at its end, and its body is jumped to.
            target = instruction.argval
            first[target] = min(first.get(target, line_of[target]), line_of[instruction.offset])
    lines = dict.fromkeys(first.values())
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            lines.update(dict.fromkeys(find_loops(const)))
    return sorted(lines)
