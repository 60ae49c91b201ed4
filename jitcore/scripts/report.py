"""What became of the hot loops and functions of a script, as a table.

In: the sampler of a run. Out: text: for each one its line, how it ran at the end, how often it was
entered, seconds in Python and compiled, and why not.
"""

from __future__ import annotations

from jitcore.scripts.sampling import HOT, TICK, Sampler
from jitcore.scripts.units import Unit

__all__ = ["format_report"]

_TIERS = {Unit.COLD: "python", Unit.COMPILING: "python", Unit.READY: "compiled", Unit.DEAD: "python"}


def format_report(sampler: Sampler | None) -> str:
    rows = [("lines", "tier", "entries", "s in Python", "s compiled", "why not")]
    for state in sampler.units if sampler is not None else ():
        if state.ticks < HOT and not state.entries:
            continue
        reason = "the run ended before its program was there" if state.state == Unit.COMPILING else state.reason
        first = reason.splitlines()[0] if reason else ""
        rows.append((f"{state.line}", _TIERS[state.state], str(state.entries), f"{TICK * state.ticks:.2f}",
                     f"{state.seconds:.3f}", first))
    if len(rows) == 1:
        return "jitcore run: nothing was hot"
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)
