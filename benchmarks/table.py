"""Measured rows as Markdown tables, on the screen or in a file.

In: measured rows. Out: text. Times are those of one call; the ratio columns are jitcore's time divided by the
peer's, so that less than 1 means that jitcore is faster.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import math
import platform
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Measured
from benchmarks.workload import ALL_PEERS

RESULTS = Path(__file__).parent / "results"
_TITLES = {"call": "Warm call (first call)", "compile": "Compile time (first call)"}
_PACKAGES = ("jitcore", "numpy", "numba", "llvmlite", "jax", "numexpr")


def format_seconds(seconds: float) -> str:
    """Three significant digits with a unit: 254 us, 1.27 ms."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= 0.9995 * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def format_tables(rows: Sequence[Measured]) -> str:
    """One table for each kind of row that was measured, then the rows whose results differ."""
    parts = []
    for kind, title in _TITLES.items():
        chosen = [row for row in rows if row.kind == kind and row.timings]
        if chosen:
            parts.append(f"{title}\n\n{_format_table(chosen)}")
    parts += [f"DIFFERENT: {row.name}: {row.difference}" for row in rows if row.difference]
    return "\n\n".join(parts)


def format_agreement(rows: Sequence[Measured]) -> str:
    """Who computed the same as jitcore, row by row, without times."""
    lines = [["workload", "result"]]
    for row in rows:
        others = ", ".join(peer for peer in row.timings if peer != "jitcore")
        lines.append([row.name, f"DIFFERENT: {row.difference}" if row.difference else f"same as {others}"])
    return _align(lines)


def _format_table(rows: Sequence[Measured]) -> str:
    peers = [peer for peer in ALL_PEERS if any(peer in row.timings for row in rows)]
    others = peers[1:]
    lines = [["workload", *peers, *(f"/ {peer}" for peer in others)]]
    for row in rows:
        cells = [_format_timing(row, peer) for peer in peers]
        lines.append([row.name, *cells, *(_format_ratio(row.compare(peer)) for peer in others)])
    return _align(lines)


def _format_timing(row: Measured, peer: str) -> str:
    timing = row.timings.get(peer)
    if timing is None:
        return ""
    return f"{format_seconds(timing.figure)} ({format_seconds(timing.first)})"


def _format_ratio(ratio: float) -> str:
    return "" if math.isnan(ratio) else f"{ratio:.3g}"


def _align(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines)]
    rendered = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
                for line in lines]  # fmt: skip
    rendered.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(rendered)


def describe_machine() -> str:
    """Processor, cores, system, and versions of the libraries, on one line."""
    from jitcore.dispatch.backend import list_backends

    cpu = list_backends()[0].get("cpu")
    facts = cpu.describe() if cpu is not None else {}
    versions = [f"{name} {_find_version(name)}" for name in _PACKAGES if _find_version(name)]
    return (f"{facts.get('processor', platform.machine())}, threads: {facts.get('threads', '1')}, "
            f"{platform.system()}, Python {platform.python_version()}, {', '.join(versions)}")  # fmt: skip


def _find_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def save_results(text: str, folder: Path = RESULTS) -> Path:
    """Writes a run's text to <date>-<processor>.md. Returns: the path."""
    machine = describe_machine()
    processor = re.sub(r"[^A-Za-z0-9]+", "-", machine.split(",")[0]).strip("-").lower()
    today = datetime.date.today().isoformat()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{today}-{processor}.md"
    path.write_text(f"# Benchmarks, {today}\n\n{machine}\n\n{text}\n", encoding="utf-8")
    return path
