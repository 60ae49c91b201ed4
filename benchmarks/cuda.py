"""Section of CUDA: the programs of the run-time section as kernels, on a machine without a GPU.

In: names of rows. Out: for each how its kernels are mapped and what they take of a GPU, the bytes that they
touch at least, the time that these take at the copy rate of an H100, and whether the device in software gives
what the CPU gives, for inputs of a size that it runs in seconds.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.agreement import find_difference, list_leaves
from benchmarks.fresh_process import run_fresh
from benchmarks.measured import Section
from benchmarks.table import align_cells, format_bytes, format_seconds
from benchmarks.timing import Effort
from benchmarks.workloads import ROWS

TITLE = "CUDA: compiled ahead of time, and run in software"
TARGET = "cuda:sm_90"
#: Bytes read and written in a second by a copy on an H100, and seconds that a launch takes.
COPY_RATE, LAUNCH = 3.0e12, 3e-6
_ROW_OF_NAME = {row.name: row for row in ROWS}


def list_names() -> list[str]:
    return list(_ROW_OF_NAME)


def run_section(
    names: Sequence[str], peers: Sequence, effort: Effort, show: Callable[[str], None]
) -> Section:
    """Compiles and runs the rows with these names. `show` is told the name of each before it starts."""
    lines = [["row", "kernels", "registers", "spilled", "shared", "16 bytes", "bytes", "roofline", "result"]]
    failed, tally = False, collections.Counter()
    for name in names:
        show(name)
        try:
            cells, problem, kinds = run_fresh(measure, name, environment={"JITCORE_CACHE_DIR": ""})
        except RuntimeError as error:
            cells, problem, kinds = [""] * 7, str(error), []
        failed |= bool(problem)
        tally.update(kinds)
        lines.append([name, *cells, problem or "equal"])
    found = ", ".join(f"{kind} {count}" for kind, count in tally.most_common())
    return Section(TITLE, f"{align_cells(lines)}\n\nkernels: {found}", failed)


def measure(name: str) -> tuple[list[str], str, list[str]]:
    """(cells, what is wrong, mappings) of one row."""
    import jitcore

    row = _ROW_OF_NAME[name]
    jitted = jitcore.jit(row.program(jitcore))
    compiled = jitted.lower(*row.make_inputs(row.size)).compile(target=TARGET)
    texts, memory = compiled.runtime_executable().texts(), compiled.memory_analysis()
    kinds = [line.split(": ")[1].split(",")[0] for line in texts["mapping"]().splitlines()]
    sizes = [memory.argument_size_in_bytes, memory.output_size_in_bytes, 2 * memory.temp_size_in_bytes]
    moved = sum(sizes)
    wide = len(re.findall(r"(?:ld|st)\.global(?:\.nc)?\.v(?:4\.b32|2\.b64)", texts["ptx"]()))
    taken = [str(getattr(memory, part, "")) for part in ("registers", "spilled_bytes", "shared_bytes")]
    cells = [_count(kinds), *taken, str(wide or ""), format_bytes(moved),
             format_seconds(moved / COPY_RATE + LAUNCH * len(kinds))]  # fmt: skip
    return cells, find_problem(row), kinds


def _count(kinds: Sequence[str]) -> str:
    return ", ".join(kind if count == 1 else f"{count} {kind}"
                     for kind, count in collections.Counter(kinds).items()) or "host"  # fmt: skip


def find_problem(row: Any) -> str:
    """What the device in software gives that the CPU backend does not."""
    import jitcore

    inputs = row.make_inputs(row.tiny)

    def run(backend):
        return jitcore.tree.map(np.asarray, jitcore.jit(row.program(jitcore), backend=backend)(*inputs))

    found, expected = run("cuda:emulated"), run("cpu")
    for one, other in zip(list_leaves(found), list_leaves(expected)):
        if one.dtype != other.dtype:
            return f"{one.dtype} instead of {other.dtype}"
    return find_difference(row, found, expected)
