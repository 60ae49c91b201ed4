"""Measured rows as Markdown tables.

In: measured rows. Out: text. Times are those of one call; the ratio columns are jitcore's time divided by the
peer's, so that less than 1 means that jitcore is faster.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks.bars import describe_bars
from benchmarks.measured import Measured
from benchmarks.peers import PEER_NAMES


def format_seconds(seconds: float) -> str:
    """Three significant digits with a unit: 254 us, 1.27 ms."""
    return format_quantity(seconds, (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)))


def format_bytes(count: float) -> str:
    """Three significant digits with a unit: 4 MB."""
    return format_quantity(count, (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)))


def format_count(count: float) -> str:
    """Three significant digits: 254 k, 4 M."""
    return format_quantity(count, (("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))).strip()


def format_quantity(value: float, units: Sequence[tuple[str, float]]) -> str:
    """Three significant digits in the largest unit that the value reaches, or else in the last one."""
    for unit, scale in units:
        if abs(value) >= 0.9995 * scale:
            break
    return f"{value / scale:.3g} {unit}"


def format_section(rows: Sequence[Measured], means: Mapping[str, float] | None = None, note: str = "") -> str:
    """The table, the geometric means and the rows over their bars, and what could not be measured.

    `note` is the title of the last column, if there is one."""
    timed = [row for row in rows if row.seconds]
    parts = [format_times(timed, note), "\n".join(describe_bars(timed, means))] if timed else []
    problems = [f"- {row.name}, {peer}: {problem}" for row in rows for peer, problem in row.problems.items()]
    if problems:
        parts.append("\n".join(("Not measured:", "", *problems)))
    return "\n\n".join(parts)


def format_times(rows: Sequence[Measured], note: str = "") -> str:
    """Seconds of each peer, the ratio to the best other one, and the ratios to all of them."""
    peers = [peer for peer in PEER_NAMES if any(peer in row.seconds for row in rows)]
    others = [peer for peer in peers if peer != "jitcore"]
    best = ["/ best"] if len(others) > 1 else []
    lines = [["workload", *peers, *best, *(f"/ {peer}" for peer in others), *([note] if note else [])]]
    for row in rows:
        cells = [format_seconds(row.seconds[peer]) if peer in row.seconds else "" for peer in peers]
        ratios = [row.compare(peer) for peer in ([row.find_best()] if best else []) + others]
        lines.append([row.name, *cells, *map(format_ratio, ratios), *([row.note] if note else [])])
    return align_cells(lines)


def format_ratio(ratio: float) -> str:
    return "" if math.isnan(ratio) else f"{ratio:.3g}"


def align_cells(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first line is its head."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    rendered = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
                for line in lines]
    rendered.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(rendered)
