"""What became of the hot loops and functions of a script.

In: the sampler of a run. Out: a table, or a page of HTML (see `page`), of the regions that were hot: their
lines, how they ran at the end, how often their programs were called, seconds in Python and compiled, what
compiling took, and why not. Under `--check`: what comparing them with Python has shown.
"""

from __future__ import annotations

import linecache
import os
import sys
from typing import NamedTuple

from jitcore.hypertext import format_table
from jitcore.process.lazy import LazyModule
from jitcore.scripts.sampling import HOT, Sampler
from jitcore.scripts.units import State, Unit

page = LazyModule("jitcore.scripts.sessions.page")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Region", "format_check", "format_report", "list_regions", "list_rows", "write_report"]


class Region(NamedTuple):
    """A loop or function that was hot.

    Attributes:
        path: of its file; first, last: its lines; kind: "loop" or "function"; tier: "compiled" or "python".
        calls: of its program; python: seconds that it ran in Python; compiled: the same of its program;
            replaced: what Python would have taken for that, about, or 0; cost: of compiling it.
        reason: why it stays in Python.
    """

    path: str
    first: int
    last: int
    kind: str
    tier: str
    calls: int
    python: float
    compiled: float
    replaced: float
    cost: float
    reason: str


def list_regions(sampler: Sampler | None) -> list[Region]:
    found = []
    for unit in sampler.units if sampler is not None else ():
        fate = unit.fate
        if unit.ticks < HOT and (fate is None or not fate.entries and not fate.compared):
            continue
        numbers = 0, 0.0, 0.0, 0.0
        if fate is not None:
            numbers = fate.entries, fate.seconds, fate.replaced, fate.cost
        calls, *seconds = numbers
        kind = "function" if unit.is_function else "loop"
        tier = "compiled" if unit.state == State.READY and not is_late(unit) else "python"
        path, ticks = unit.text.code.co_filename, unit.seconds
        found.append(Region(path, *find_lines(unit), kind, tier, calls, ticks, *seconds, find_reason(unit)))
    return sorted(found, key=lambda one: (one.path, one.first, -one.last))


def find_lines(unit: Unit) -> tuple[int, int]:
    """The first and the last line."""
    body = None if unit.loop is None else unit.loop.body
    lines = {line for number, (line, *_) in enumerate(unit.prepared.original.co_positions())
             if line and (body is None or 2 * number in body)}
    return unit.line, max(lines, default=unit.line)


def is_late(unit: Unit) -> bool:
    """Whether its program came so late that it was not loaded."""
    return unit.state == State.READY and unit.fate is not None and unit.fate.region is None


def find_reason(unit: Unit) -> str:
    """Why a unit runs in Python, in a line."""
    if unit.state == State.COMPILING:
        return "the run ended before its program was there"
    if is_late(unit):
        return "what was left of it took less than loading its program"
    known = unit.fate or unit.lesson
    return known.reason.partition("\n")[0] if known is not None else ""


def format_report(sampler: Sampler | None) -> str:
    """The table."""
    regions = list_regions(sampler)
    if not regions:
        return "jitcore run: nothing was hot"
    is_one = len({region.path for region in regions}) == 1
    return format_table(list_rows(
        regions, lambda path, lines: lines if is_one else f"{os.path.basename(path)}:{lines}"))


def list_rows(regions: list[Region], name_place: Callable[[str, str], str]) -> list[tuple[str, ...]]:
    """The cells of the table, its head first. name_place: of a path and the lines."""
    rows = [("lines", "tier", "calls", "s in Python", "s compiled", "instead of", "s compiling", "why not")]
    for one in regions:
        place = name_place(one.path, f"{one.first}-{one.last}" if one.last > one.first else str(one.first))
        times = [f"{seconds:.3f}" if seconds else "" for seconds in (one.compiled, one.replaced, one.cost)]
        rows.append((place, one.tier, str(one.calls), f"{one.python:.2f}", *times, one.reason))
    return rows


def format_check(sampler: Sampler | None) -> str:
    """What comparing has shown."""
    units = [unit for unit in (sampler.units if sampler is not None else ())
             if unit.fate is not None and unit.fate.compared]
    wrong = [unit for unit in units if unit.fate.differs]
    count = sum(unit.fate.compared for unit in units)
    lines = [f"jitcore run --check: {len(units) - len(wrong)} of {len(units)} programs did what Python does, "
             f"in {count} comparisons"]
    for unit in wrong:
        first, path = find_lines(unit)[0], unit.text.code.co_filename
        lines += [f"  {path}:{first}: {linecache.getline(path, first).strip()}", f"    {unit.fate.differs}"]
    return "\n".join(lines)


def write_report(sampler: Sampler | None, path: str) -> None:
    """Prints the table; writes the page where there is a path for it."""
    if not path:
        print(format_report(sampler), file=sys.stderr)
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(page.format_page(list_regions(sampler)))
