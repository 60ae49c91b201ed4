"""What became of the hot loops and functions of a script, as a table.

In: the sampler of a run. Out: text: for each unit that was hot its line, how it ran at the end, how often its
program was entered, seconds in Python and compiled, and why not.
"""

from __future__ import annotations

import sys

from jitcore.scripts.sampling import HOT, TICK, Sampler
from jitcore.scripts.units import State, Unit

__all__ = ["format_report"]


def write_report(sampler: Sampler | None, path: str) -> None:
    print(format_report(sampler), file=sys.stderr)


def format_report(sampler: Sampler | None) -> str:
    rows = [("line", "tier", "entries", "s in Python", "s compiled", "why not")]
    for unit in sampler.units if sampler is not None else ():
        entries = 0 if unit.fate is None else unit.fate.entries
        if unit.ticks >= HOT or entries:
            seconds = 0.0 if unit.fate is None else unit.fate.seconds
            tier = "compiled" if unit.state == State.READY else "python"
            rows.append((str(unit.line), tier, str(entries), f"{TICK * unit.ticks:.2f}", f"{seconds:.3f}",
                         find_reason(unit)))
    if len(rows) == 1:
        return "jitcore run: nothing was hot"
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join(lines)


def find_reason(unit: Unit) -> str:
    """Why a unit runs in Python, in a line."""
    if unit.state == State.COMPILING:
        return "the run ended before its program was there"
    known = unit.fate or unit.lesson
    return known.reason.partition("\n")[0] if known is not None else ""
