"""Section of plain programs: no arrays, nothing for a compiler of arrays to do.

In: names of programs. Out: their table: seconds in plain Python, of a first and of later calls under
`autojit`. Each program runs in a process of its own, with nothing compiled before and nothing on disk.
"""

from __future__ import annotations

import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from benchmarks.bars import PLAIN_FIRST, PLAIN_LATER
from benchmarks.fresh_process import run_fresh
from benchmarks.measured import Section
from benchmarks.plain_programs import ROWS
from benchmarks.table import align_cells, format_seconds
from benchmarks.timing import Effort

TITLE = "Plain programs: what autojit costs where it has nothing to do"
_LATER_CALLS = 7
_ROW_OF_NAME = {row.name: row for row in ROWS}


def list_names() -> list[str]:
    return list(_ROW_OF_NAME)


def run_section(
    names: Sequence[str], peers: Sequence, effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the rows with these names. `show` is told the name of each before it starts."""
    lines, failed, over = [["program", "Python", "first call", "", "later calls", "", "result"]], False, 0
    for name in names:
        show(name)
        row = measure(name)
        if not is_within(row):  # a busy moment may have done that: the least of two counts
            again = measure(name)
            row = {key: min(row[key], again[key]) for key in row}
        over += not is_within(row)
        failed |= not row["agrees"]
        plain, first, later = row["plain"], row["first"], row["later"]
        lines.append([name, format_seconds(plain), format_seconds(first), _judge(first <= PLAIN_FIRST(plain)),
                      format_seconds(later), _judge(later <= PLAIN_LATER(plain)),
                      "right" if row["agrees"] else "WRONG"])
    return Section(TITLE, f"{align_cells(lines)}\n\n{over} of {len(names)} programs over a bar", failed)


def _judge(is_within_bar: bool) -> str:
    return "within" if is_within_bar else "OVER"


def is_within(row: dict[str, Any]) -> bool:
    return row["first"] <= PLAIN_FIRST(row["plain"]) and row["later"] <= PLAIN_LATER(row["plain"])


def measure(name: str) -> dict[str, Any]:
    return run_fresh(measure_here, name, environment={"JITCORE_CACHE_DIR": ""})


def measure_here(name: str) -> dict[str, Any]:
    """Seconds of a program in this process, in which nothing was compiled before; medians of later calls."""
    import jitcore

    warnings.simplefilter("ignore")
    sys.set_int_max_str_digits(0)
    row = _ROW_OF_NAME[name]
    compiled = jitcore.autojit(row.function)

    def time(function: Callable) -> tuple[float, Any]:
        arguments = row.make_arguments()
        start = perf_counter()
        result = function(*arguments)
        return perf_counter() - start, result

    first, found = time(compiled)
    plain, later, agrees = [], [], True
    for _ in range(_LATER_CALLS):
        seconds, expected = time(row.function)
        plain.append(seconds)
        seconds, again = time(compiled)
        later.append(seconds)
        agrees &= row.agrees(expected, found) and row.agrees(expected, again)
    return {"plain": statistics.median(plain), "first": first, "later": statistics.median(later),
            "agrees": agrees}
