"""Section of the loop program as a Numba kernel: what the readable form costs beside machine code of our own.

In: names of rows of the run-time section. Out: their table: lines of the file, seconds of the first call and
of warm ones in both forms, each row in a process of its own with nothing on disk. Rows whose programs call
libraries are left out: Numba runs these by Python.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.agreement import compute_reference, find_difference
from benchmarks.fresh_process import run_fresh
from benchmarks.measured import Section
from benchmarks.table import align_cells, format_seconds
from benchmarks.timing import Call, Effort, time_in_turns, time_once
from benchmarks.workloads import ROWS

TITLE = "The loop program as a Numba kernel"
_ROW_OF_NAME = {row.name: row for row in ROWS}
_EFFORT = Effort(seconds=0.2, rounds=20, batch_seconds=2e-3, compiles=1, processes=1, longest=2.0)


def list_names() -> list[str]:
    return list(_ROW_OF_NAME)


def run_section(
    names: Sequence[str], peers: Sequence, effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the rows with these names. `show` is told the name of each before it starts."""
    lines = [["row", "lines", "first call", "Numba's", "ratio", "warm call", "Numba's", "ratio", "result"]]
    failed, found = False, []
    for name in names:
        show(name)
        try:
            row = run_fresh(measure, name, environment={"JITCORE_CACHE_DIR": "", "JITCORE_NUM_THREADS": "1"})
        except RuntimeError as error:
            failed = True
            lines.append([name, *[""] * 7, str(error)])
            continue
        if row["problem"] == "library":
            continue
        failed |= bool(row["problem"])
        found.append(row)
        ratios = [f"{row['numba'][k] / row['llvm'][k]:.1f}" for k in range(2)]
        times = [[format_seconds(row[codegen][k]) for codegen in ("llvm", "numba")] for k in range(2)]
        cells = [str(row["lines"]), *times[0], ratios[0], *times[1], ratios[1]]
        lines.append([name, *cells, row["problem"] or "right"])
    return Section(TITLE, f"{align_cells(lines)}\n\n{_summarize(found)}", failed)


def _summarize(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return "no rows"
    first, warm = ([row["numba"][k] / row["llvm"][k] for row in rows] for k in range(2))
    count = statistics.median(row["lines"] for row in rows)
    return (
        f"{len(rows)} rows of one thread each; medians: {count:.0f} lines, first calls "
        f"{statistics.median(first):.1f} times as long, warm ones {statistics.median(warm):.1f} times"
    )


def measure(name: str) -> dict[str, Any]:
    """Of one row: lines; for each form the seconds of a first and of a warm call; what is wrong."""
    import jitcore

    row = _ROW_OF_NAME[name]
    inputs, reference = row.make_inputs(row.size), None
    found: dict[str, Any] = {"problem": "", "lines": 0}
    calls = {}
    for codegen in ("llvm", "numba"):
        jitted = jitcore.jit(row.program(jitcore), compiler_options={"codegen": codegen})
        if codegen == "llvm":
            jitcore.jit(lambda x: x + 1)(
                jitcore.tree_util.tree_leaves((inputs, 1.0))[0]
            )  # loads the compiler
        else:
            _load_numba()
        seconds, result = time_once(lambda jitted=jitted: jitcore.block_until_ready(jitted(*inputs)))
        text = jitted.inspect("numba")
        if "with objmode():" in text:
            return {"problem": "library"}
        reference = compute_reference(row, inputs) if reference is None else reference
        found["problem"] = found["problem"] or find_difference(row, result, reference)
        found["lines"], found[codegen] = len(text.splitlines()), [seconds]
        calls[codegen] = Call(lambda jitted=jitted: jitted(*inputs))
    for codegen, seconds in time_in_turns(calls, _EFFORT).items():
        found[codegen].append(seconds)
    return found


def _load_numba() -> None:
    """What the first function that a process compiles with Numba takes longer."""
    import numba
    import numpy as np

    numba.njit(lambda x: x[0] + np.exp(x[0]))(np.ones(2))
